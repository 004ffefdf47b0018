// SPDX-License-Identifier: Apache-2.0
#include "api/message/file_ask.h"

#include <stdio.h>

#include "api/service.h"
#include "base/err.h"
#include "host/sandbox/sandbox.h"
#include "host/worker/file.h"

_Static_assert(MSG_FILE_ENTRY_PATH_MAX_BYTES <= ENTRY_PATH_MAX, "paths");
_Static_assert(MSG_STAT_FILE_REQUEST_PATH_MAX_BYTES <= ENTRY_PATH_MAX, "paths");

static int missing(const char *field, struct err *err)
{
    return err_set(err, ERR_INVALID, "field '%s' is missing", field);
}

int file_ask_send(const struct call *call, const struct file_ask *ask, struct sandbox **ret_sandbox,
                  struct file_call **ret, struct err *err)
{
    const struct file_request *request = &ask->request;
    int r;

    if (request->path[0] == '\0')
        return missing("path", err);
    if (request->type == FILE_MOVE && request->to[0] == '\0')
        return missing("to", err);
    r = sandbox_find(call->host, call->caller, ask->sandbox, ret_sandbox, err);
    if (r == 0)
        r = file_call_open(*ret_sandbox, call->connection_fd, !caller_may_change(call->caller), ret,
                           err);
    return r < 0 ? r : file_call_send_request(*ret, request, err);
}

int file_ask_absolute(const char *path, char ret[ENTRY_PATH_MAX + 1], struct err *err)
{
    int len =
        snprintf(ret, ENTRY_PATH_MAX + 1, "%s%s", path[0] == '/' ? "" : FILE_WORKSPACE "/", path);

    if (path[0] == '\0')
        return missing("path", err);
    return len > ENTRY_PATH_MAX ? err_set(err, ERR_INVALID, "the path is too long") : 0;
}
