// SPDX-License-Identifier: Apache-2.0
/* write_file: all of a file at once. */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "base/cleanup.h"
#include "tools/edit/replace.h"
#include "tools/path.h"
#include "tools/text.h"

static void refuse(struct tool_reply *reply, const char *path, const char *full,
                   const struct place *place, int r)
{
    if (r == -EISDIR)
        tool_refuse(reply, "'%s' is a directory, not a file.", path);
    else if (r == -EINVAL)
        tool_refuse(reply, "'%s' is %s, not a file.", path, path_kind(place->old.st_mode));
    else if (r == -ENOENT)
        tool_refuse(reply,
                    "The directory of '%s' does not exist. Set create_dirs to have it made, or "
                    "check the path.",
                    path);
    else
        (void)path_refuse(reply, "write", path, full, r);
}

void tool_write_file(const struct tool_values *values, struct tool_reply *reply)
{
    cleanup_with(place_done) struct place place = { .dir_fd = -EBADF };
    const struct tool_text *path = &values->at[WRITE_PATH].text;
    const struct tool_text *content = &values->at[WRITE_CONTENT].text;
    const struct iovec whole = { (void *)(uintptr_t)content->data, content->len };
    char full[PATH_MAX];
    int r;

    if (!path_full(path, full, reply))
        return;
    r = place_find(full, &place);
    if (r == -ENOENT && values->at[WRITE_CREATE_DIRS].number) {
        r = place_make_dirs(full, reply);
        if (r == 0)
            r = place_find(full, &place);
    }
    if (r == 0)
        r = place_write(&place, &whole, 1, false);
    if (r < 0) {
        refuse(reply, path->data, full, &place, r);
        return;
    }
    place_tell(&place, reply);
    (void)buf_printf(&reply->content, "%s '%s' (%s).", place.is_new ? "Created" : "Wrote",
                     path->data, text_count(content->len, "byte"));
}
