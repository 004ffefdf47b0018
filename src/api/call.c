// SPDX-License-Identifier: Apache-2.0
#include "api/service.h"
#include "base/err.h"

int call_reply(const struct call *call, const struct schema *schema, const void *message,
               struct err *err)
{
    int r = schema_encode(schema, message, ENCODE_ALL, call->out);

    return r < 0 ? err_sys(err, r, "write the reply") : 0;
}
