// SPDX-License-Identifier: Apache-2.0
#include "api/e2b_page.h"

#include <stdint.h>
#include <string.h>

#include "api/e2b.h"
#include "base/err.h"
#include "base/parse.h"

enum { TOKEN_MAX = 200 };

int e2b_page_parse(const struct e2b_request *request, struct e2b_page *ret, struct err *err)
{
    const char *limit = e2b_query(request, "limit"), *token = e2b_query(request, "nextToken");
    uint64_t number = E2B_PAGE_MAX;

    if (limit && (parse_u64(limit, &number) < 0 || number < 1 || number > E2B_PAGE_MAX))
        return err_set(err, ERR_INVALID, "limit must be from 1 to %d", E2B_PAGE_MAX);
    if (token && strlen(token) > TOKEN_MAX)
        return err_set(err, ERR_INVALID, "nextToken is not one of ours");
    *ret = (struct e2b_page){ .limit = number, .after = token && *token ? token : NULL };
    return 0;
}

void e2b_page_more(struct e2b_request *request, const char *key)
{
    e2b_header_add(request, "X-Next-Token", key);
}
