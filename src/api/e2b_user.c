// SPDX-License-Identifier: Apache-2.0
#include "api/e2b_user.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api/e2b.h"
#include "api/e2b_note.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "host/file.h"

/* The user of a sandbox that has the usual one; else root, whom each has. */
#define DEFAULT_USER "user:0"

int e2b_user_refuse(const char *name, struct err *err)
{
    (void)err_set(err, ERR_UNAUTHENTICATED, "invalid username: '%.80s'", name);
    return err_remedy(err, "name a user of the sandbox");
}

static int set_name(struct e2b_user *user, const char *name, struct err *err)
{
    if (strchr(name, ':') || strlen(name) > PROCESS_USER_MAX)
        return e2b_user_refuse(name, err);
    (void)snprintf(user->name, sizeof(user->name), "%s", name);
    user->is_named = true;
    return 0;
}

/* What a template says, or what is usual. */
static int set_default(const struct e2b_request *request, struct e2b_user *user, struct err *err)
{
    const char *name = e2b_note_text(request->note, "user");
    int r = name ? set_name(user, name, err) : 0;

    if (!name)
        (void)snprintf(user->name, sizeof(user->name), "%s", DEFAULT_USER);
    return r;
}

int e2b_user_of_call(const struct e2b_request *request, struct e2b_user *ret, struct err *err)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(512);
    const char *header = e2b_header(request, MHD_HTTP_HEADER_AUTHORIZATION);

    *ret = (struct e2b_user){ .is_named = false };
    if (!header || strncasecmp(header, "Basic ", 6) != 0)
        return set_default(request, ret, err);
    header += 6 + strspn(header + 6, " ");
    if (base64_decode(&text, header, strlen(header)) < 0 || text.len == 0 ||
        memchr(text.data, '\0', text.len))
        return err_set(err, ERR_UNAUTHENTICATED, "invalid username: the header is not readable");
    text.data[strcspn(text.data, ":")] = '\0';
    return text.data[0] ? set_name(ret, text.data, err) : set_default(request, ret, err);
}

int e2b_user_of_query(const struct e2b_request *request, struct e2b_user *ret, struct err *err)
{
    const char *name = e2b_query(request, "username");

    *ret = (struct e2b_user){ .is_named = false };
    return name && name[0] ? set_name(ret, name, err) : set_default(request, ret, err);
}

int e2b_user_look(struct file_call *files, struct e2b_user *user, struct err *err)
{
    const struct file_request who = { .type = FILE_WHO, .path = "/", .user = user->name };
    struct file_answer answer = { 0 };
    int r = file_call_ask(files, &who, err);

    if (r == 0)
        r = file_call_next(files, &answer, err);
    if (r < 0)
        return err->kind == ERR_NOT_FOUND || err->kind == ERR_INVALID
                   ? e2b_user_refuse(user->name, err)
                   : r;
    (void)snprintf(user->home, sizeof(user->home), "%s",
                   answer.entry.path ? answer.entry.path : "/");
    return 0;
}

/* Appends a path's parts, of which none is empty, "." or "..". */
static int add_parts(char ret[ENTRY_PATH_MAX + 1], const char *path)
{
    size_t used = strlen(ret);

    for (; *path; path += strspn(path, "/")) {
        size_t len = strcspn(path, "/");

        if (len == 2 && path[0] == '.' && path[1] == '.') {
            char *slash = strrchr(ret, '/');

            used = slash ? (size_t)(slash - ret) : 0;
        } else if (len > 0 && !(len == 1 && path[0] == '.')) {
            if (used + 1 + len > ENTRY_PATH_MAX)
                return -ENAMETOOLONG;
            ret[used++] = '/';
            memcpy(ret + used, path, len);
            used += len;
        }
        ret[used] = '\0';
        path += len;
    }
    return 0;
}

int e2b_user_path(const struct e2b_user *user, const char *path, char ret[ENTRY_PATH_MAX + 1],
                  struct err *err)
{
    int r = 0;

    ret[0] = '\0';
    if (path[0] != '/')
        r = add_parts(ret, user->home);
    if (path[0] == '~' && (path[1] == '/' || path[1] == '\0'))
        path++;
    if (r == 0)
        r = add_parts(ret, path);
    if (r < 0)
        return err_set(err, ERR_INVALID, "the path is longer than %d bytes", ENTRY_PATH_MAX);
    if (ret[0] == '\0')
        memcpy(ret, "/", 2);
    return 0;
}
