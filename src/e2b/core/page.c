// SPDX-License-Identifier: Apache-2.0
#include "e2b/core/page.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "base/xalloc.h"
#include "e2b/core/e2b.h"

enum { TOKEN_MAX = 200, KEY_SIZE = 128 };

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

/* What it is sorted by, as text of the same order: when, and which where that is the same. */
static void key_of(const json_t *stored, char ret[KEY_SIZE])
{
    (void)snprintf(ret, KEY_SIZE, "%016" PRIx64 "-%.100s",
                   (uint64_t)json_integer_value(json_object_get(stored, "createdMs")),
                   json_string_value(json_object_get(stored, "id")));
}

static int compare(const void *a, const void *b)
{
    const json_t *const *left = a, *const *right = b;
    char left_key[KEY_SIZE], right_key[KEY_SIZE];

    key_of(*left, left_key);
    key_of(*right, right_key);
    return strcmp(left_key, right_key);
}

json_t *e2b_page_list(struct e2b_request *request, const struct e2b_page *page, const json_t *all,
                      bool is_newest_first, e2b_page_fn make, const void *context)
{
    size_t count = json_array_size(all);
    cleanup_free const json_t **sorted = xcalloc(count + 1, sizeof(*sorted));
    json_t *array = json_array();
    char last[KEY_SIZE] = "";

    for (size_t i = 0; i < count; i++)
        sorted[i] = json_array_get(all, i);
    if (count > 0)
        qsort(sorted, count, sizeof(*sorted), compare);
    for (size_t i = 0; i < count; i++) {
        const json_t *stored = sorted[is_newest_first ? count - 1 - i : i];
        char key[KEY_SIZE];
        json_t *item;

        key_of(stored, key);
        if (page->after &&
            (is_newest_first ? strcmp(key, page->after) >= 0 : strcmp(key, page->after) <= 0))
            continue;
        item = make(stored, context);
        if (item && json_array_size(array) == page->limit) {
            json_decref(item);
            e2b_page_more(request, last);
            break;
        }
        if (item && json_array_append_new(array, item) == 0)
            memcpy(last, key, sizeof(last));
    }
    return array;
}
