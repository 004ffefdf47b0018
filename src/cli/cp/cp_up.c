// SPDX-License-Identifier: Apache-2.0
/* Copies from this machine into a sandbox. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/files/tree_source.h"
#include "cli/core/connect.h"
#include "cli/core/report.h"
#include "cli/cp/cp.h"
#include "cli/options/source_size.h"
#include "holt.h"

struct upward {
    struct cp *cp;
    struct tree_push *push;
    struct holt_error error;
    bool is_left_out; /* the data belongs to a skipped file */
};

static int push_entry(void *context, const struct file_entry *entry)
{
    struct upward *up = context;

    up->is_left_out =
        entry->type != ENTRY_FILE && entry->type != ENTRY_DIRECTORY && entry->type != ENTRY_LINK;
    if (up->is_left_out) {
        cp_trouble(up->cp, entry->path, "it is not a file, directory or symbolic link");
        return 0;
    }
    return tree_push_entry(up->push, entry, &up->error) < 0 ? -EPIPE : 0;
}

static int push_data(void *context, const void *data, size_t len)
{
    struct upward *up = context;

    cp_moved(up->cp, len);
    return tree_push_data(up->push, data, len, &up->error) < 0 ? -EPIPE : 0;
}

static int push_trouble(void *context, const char *path, int errnum)
{
    struct upward *up = context;

    cp_trouble(up->cp, path, strerror(errnum));
    return 0;
}

/* "." and ".." are resolved to find the directory's name. */
static const char *source_path(struct cp *cp, char real[PATH_MAX])
{
    const char *path = cp->from.path;
    size_t len = strlen(path);
    bool is_dots = strcmp(path, "..") == 0 || (len >= 3 && strcmp(path + len - 3, "/..") == 0);

    return is_dots && realpath(path, real) ? real : path;
}

static int push_all(struct cp *cp, struct holt *holt, bool is_directory)
{
    static const struct tree_source_ops ops = { push_entry, push_data, push_trouble, NULL };
    const struct tree_source options = {
        .wants_data = true,
        .follows_top = cp->follows_link,
        .skips_top = is_directory && cp->name[0] == '\0',
        .rename = cp->name,
    };
    const struct tree_place into = { .sandbox = cp->to.sandbox,
                                     .path = cp->into,
                                     .keeps_owner = cp->keeps_owner };
    struct upward up = { .cp = cp };
    int r;

    if (tree_push_open(holt, &into, &up.push, &up.error) < 0)
        return report_holt_error(&up.error);
    r = tree_source_run(AT_FDCWD, cp->from.path, &options, &ops, &up);
    if (r == 0 && tree_push_finish(up.push, &up.error) < 0)
        r = -EPIPE;
    tree_push_close(up.push);
    if (r == -EPIPE)
        return report_holt_error(&up.error);
    return r < 0 ? report("read '%s': %s", cp->from.text, strerror(-r)) : STATUS_OK;
}

static int copy(struct cp *cp, struct holt *holt)
{
    struct cp_target target = { .exists = false };
    struct file_entry there;
    struct holt_error error;
    struct stat st;
    int status;

    if (fstatat(AT_FDCWD, cp->from.path, &st, cp->follows_link ? 0 : AT_SYMLINK_NOFOLLOW) < 0)
        return report("read '%s': %s", cp->from.text, strerror(errno));
    if (cp_stat_remote(holt, &cp->to, true, &there, &error) < 0)
        return report_holt_error(&error);
    target.exists = there.type != ENTRY_NONE;
    target.is_directory = there.type == ENTRY_DIRECTORY;
    if (S_ISREG(st.st_mode))
        cp->progress.total = (uint64_t)st.st_size;
    else if (S_ISDIR(st.st_mode))
        source_size_set(&cp->progress, cp->from.path);
    status = S_ISREG(st.st_mode) && target.exists ? cp_follow_remote(cp, holt) : 0;
    if (status == 0)
        status = cp_aim(cp, S_ISDIR(st.st_mode), &target);
    return status != 0 ? status : push_all(cp, holt, S_ISDIR(st.st_mode));
}

/* Standard input is a tar archive for a directory, and otherwise the contents of a file. */
static int copy_stdin(struct cp *cp, struct holt *holt)
{
    struct tree_place into = { .sandbox = cp->to.sandbox, .keeps_owner = cp->keeps_owner };
    struct cp_target target = { .exists = false };
    struct tree_push *push = NULL;
    struct file_entry there;
    struct holt_error error;
    int status = 0;

    if (cp_stat_remote(holt, &cp->to, true, &there, &error) < 0)
        return report_holt_error(&error);
    target.exists = there.type != ENTRY_NONE;
    into.path = cp->to.path;
    if (there.type != ENTRY_DIRECTORY) {
        status = target.exists ? cp_follow_remote(cp, holt) : 0;
        if (status == 0)
            status = cp_aim(cp, false, &target);
        into.path = cp->into;
    }
    if (status != 0)
        return status;
    if (tree_push_open(holt, &into, &push, &error) < 0)
        return report_holt_error(&error);
    status = there.type == ENTRY_DIRECTORY ? cp_push_tar(cp, push) : cp_push_bytes(cp, push);
    tree_push_close(push);
    return status;
}

int cp_up(struct cp *cp)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    char real[PATH_MAX];

    cp->from.path = source_path(cp, real);
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    return cp->from.is_stream ? copy_stdin(cp, connection.holt) : copy(cp, connection.holt);
}
