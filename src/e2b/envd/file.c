// SPDX-License-Identifier: Apache-2.0
#include "e2b/envd/file.h"

#include <errno.h>

#include "base/err.h"
#include "e2b/core/e2b.h"
#include "host/worker/file.h"

int e2b_files_open(const struct e2b_request *request, bool is_rest, struct e2b_files *ret,
                   struct err *err)
{
    int r = is_rest ? e2b_user_of_query(request, &ret->user, err)
                    : e2b_user_of_call(request, &ret->user, err);

    ret->call = NULL;
    ret->is_rest = is_rest;
    if (r == 0)
        r = file_call_open(request->sandbox, request->connection_fd, false, &ret->call, err);
    return e2b_files_explain(ret, r, err);
}

void e2b_files_close(struct e2b_files *files)
{
    file_call_close(files->call);
    files->call = NULL;
}

const char *e2b_files_path(const char *path)
{
    return path[0] ? path : "~";
}

int e2b_files_ask(struct e2b_files *files, struct file_request *request, struct err *err)
{
    request->user = files->user.name;
    request->flags |= FILE_GIVE | FILE_DETAILS | FILE_FROM_HOME;
    return e2b_files_explain(files, file_call_send_request(files->call, request, err), err);
}

int e2b_files_explain(const struct e2b_files *files, int r, struct err *err)
{
    const char *path = "", *name = files->user.name;
    int errnum = r < 0 && files->call ? file_call_failure(files->call, &path) : 0;

    if (errnum == ENOENT && err->kind == ERR_NOT_FOUND)
        return err_set(err, ERR_NOT_FOUND, "path '%.180s' does not exist", path);
    if (errnum == ESRCH && err->kind == ERR_NOT_FOUND)
        r = e2b_user_refuse(name, err);
    if (r < 0 && files->is_rest && err->kind == ERR_UNAUTHENTICATED)
        return err_set(err, ERR_UNAUTHENTICATED,
                       "error looking up user '%s': the sandbox has none of this name", name);
    return r;
}

int e2b_files_ask_one(struct e2b_files *files, struct file_request *request, struct file_entry *ret,
                      struct err *err)
{
    struct file_answer answer = { 0 };
    int r = e2b_files_ask(files, request, err);

    if (r == 0)
        r = e2b_files_explain(files, file_call_next(files->call, &answer, err), err);
    *ret = answer.entry;
    return r;
}
