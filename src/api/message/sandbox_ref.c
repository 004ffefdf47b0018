// SPDX-License-Identifier: Apache-2.0
#include "api/message/sandbox_ref.h"

#include "api/message/fields.h"
#include "api/service.h"
#include "base/err.h"
#include "host/sandbox/sandbox.h"

int sandbox_ref_find(const struct call *call, const json_t *request, struct sandbox **ret,
                     struct err *err)
{
    const char *id = NULL;
    int r = field_sandbox(request, &id, err);

    return r < 0 ? r : sandbox_find(call->host, id, ret, err);
}

void sandbox_ref_drop(struct sandbox **sandbox)
{
    sandbox_unref(*sandbox);
}
