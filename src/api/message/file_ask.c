// SPDX-License-Identifier: Apache-2.0
#include "api/message/file_ask.h"

#include "api/message/file_request.h"
#include "api/service.h"
#include "host/sandbox/sandbox.h"
#include "host/worker/file.h"

int file_ask(const struct call *call, const struct file_call_request *wish,
             struct sandbox **ret_sandbox, struct file_call **ret, struct err *err)
{
    int r = sandbox_find(call->host, wish->sandbox, ret_sandbox, err);

    if (r == 0)
        r = file_call_open(*ret_sandbox, call->connection_fd, call->is_read_only, ret, err);
    return r < 0 ? r : file_call_send_request(*ret, &wish->request, err);
}
