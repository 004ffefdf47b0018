// SPDX-License-Identifier: Apache-2.0
/* write_file: replaces the content of a file. */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "base/cleanup.h"
#include "tools/edit/replace.h"
#include "tools/path.h"
#include "tools/text.h"

static void write_refuse(struct tool_reply *reply, const char *path, const char *full,
                         const struct write_target *target, int r)
{
    if (r == -EISDIR)
        tool_reply_set_error(reply, "'%s' is a directory, not a file.", path);
    else if (r == -EINVAL)
        tool_reply_set_error(reply, "'%s' is %s, not a file.", path,
                             path_kind(target->old.st_mode));
    else if (r == -ENOENT)
        tool_reply_set_error(
            reply,
            "The directory of '%s' does not exist. Set create_dirs to create it, or "
            "check the path.",
            path);
    else
        (void)path_refuse(reply, "write", path, full, r);
}

void tool_write_file(const struct tool_values *values, struct tool_reply *reply)
{
    cleanup_with(target_done) struct write_target target = { .dir_fd = -EBADF };
    const struct tool_text *path = &values->at[WRITE_PATH].text;
    const struct tool_text *content = &values->at[WRITE_CONTENT].text;
    const struct iovec whole = { (void *)(uintptr_t)content->data, content->len };
    char full[PATH_MAX];
    int r;

    if (!path_full(path, full, reply))
        return;
    r = target_find(full, &target);
    if (r == -ENOENT && values->at[WRITE_CREATE_DIRS].number) {
        r = target_make_dirs(full, reply);
        if (r == 0)
            r = target_find(full, &target);
    }
    if (r == 0)
        r = target_write(&target, &whole, 1, false);
    if (r < 0) {
        write_refuse(reply, path->data, full, &target, r);
        return;
    }
    target_report(&target, reply);
    (void)buf_printf(&reply->content, "%s '%s' (%s).", target.is_new ? "Created" : "Wrote",
                     path->data, text_count(content->len, "byte"));
}
