// SPDX-License-Identifier: Apache-2.0
#include "api/message/sandbox_ref.h"

#include <errno.h>

#include "api/message/fields.h"
#include "api/message/messages.h"
#include "api/service.h"
#include "base/cleanup.h"
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

int sandbox_ref_reply(struct sandbox *sandbox, bool wants_space, json_t **ret_reply,
                      struct err *err)
{
    cleanup_with(sandbox_info_done) struct sandbox_info info = { 0 };

    sandbox_get_info(sandbox, wants_space, &info);
    *ret_reply = json_pack("{s:o}", "sandbox", sandbox_json(&info, wants_space));
    return *ret_reply ? 0 : err_sys(err, -ENOMEM, "write the reply");
}
