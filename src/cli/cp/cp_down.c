// SPDX-License-Identifier: Apache-2.0
/* Copies out of a sandbox, which is not trusted: base/files/tree_sink.h keeps every file inside the
 * destination. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/files/tree_sink.h"
#include "cli/core/connect.h"
#include "cli/core/report.h"
#include "cli/cp/cp.h"
#include "holt.h"

static bool is_copied(enum entry_type type)
{
    return type == ENTRY_FILE || type == ENTRY_DIRECTORY || type == ENTRY_LINK;
}

/* Returns whether to pass the entry on, with its paths at the destination. */
static bool entry_prepare(struct cp *cp, struct file_entry *entry, char path[ENTRY_PATH_MAX + 1],
                          char same_as[ENTRY_PATH_MAX + 1])
{
    const char *before = entry->path;

    if (before[0] == '\0' && cp->name[0] == '\0')
        return false; /* only its contents are copied */
    if (!is_copied(entry->type)) {
        cp_trouble(cp, before, "it is not a file, directory or symbolic link");
        return false;
    }
    if (cp_entry_path(cp, before, path) < 0 ||
        (entry->same_as[0] && cp_entry_path(cp, entry->same_as, same_as) < 0)) {
        cp_trouble(cp, before, "its path is too long");
        return false;
    }
    entry->path = path;
    if (entry->same_as[0])
        entry->same_as = same_as;
    return true;
}

int cp_take(struct cp *cp, struct tree_pull *pull, const struct cp_taker *taker, void *context,
            struct holt_error *error)
{
    char path[ENTRY_PATH_MAX + 1], same_as[ENTRY_PATH_MAX + 1];
    struct tree_piece piece;
    bool is_wanted = false;
    int r;

    while ((r = tree_pull_next(pull, &piece, error)) > 0) {
        int taken = 0;

        if (piece.kind == TREE_TROUBLE)
            cp_trouble(cp, piece.entry.path, piece.data);
        if (piece.kind == TREE_ENTRY) {
            is_wanted = entry_prepare(cp, &piece.entry, path, same_as);
            if (is_wanted)
                taken = taker->entry(context, &piece.entry);
            if (taken == -EEXIST) {
                cp_trouble(cp, path, "a link, pipe, socket or device has its name");
                is_wanted = false;
                taken = 0;
            }
        }
        if (piece.kind == TREE_DATA && is_wanted) {
            cp_moved(cp, piece.len);
            taken = taker->data(context, piece.data, piece.len);
        }
        if (taken < 0)
            return taken;
    }
    return r;
}

/* --- to this machine ------------------------------------------------------------------------- */

struct downward {
    struct tree_sink *sink;
    char path[ENTRY_PATH_MAX + 1]; /* of the latest entry */
};

static int sink_entry(void *context, const struct file_entry *entry)
{
    struct downward *down = context;

    memcpy(down->path, entry->path, strlen(entry->path) + 1);
    return tree_sink_entry(down->sink, entry);
}

static int sink_data(void *context, const void *data, size_t len)
{
    struct downward *down = context;

    return tree_sink_data(down->sink, data, len);
}

static int pull_to(struct cp *cp, struct tree_pull *pull, int dir_fd)
{
    static const struct cp_taker taker = { sink_entry, sink_data };
    const struct tree_sink_options options = { .keeps_owner = cp->keeps_owner };
    struct downward down = { .sink = tree_sink_new(dir_fd, &options) };
    struct holt_error error = { .code = "" };
    int r = cp_take(cp, pull, &taker, &down, &error);

    if (r == 0)
        r = tree_sink_finish(down.sink);
    tree_sink_free(down.sink);
    if (r < 0 && error.code[0])
        return report_holt_error(&error);
    return r < 0 ? report("write '%s/%s': %s", cp->into, down.path, strerror(-r)) : STATUS_OK;
}

static int pull_into_directory(struct cp *cp, struct tree_pull *pull)
{
    int fd = open(cp->into, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 ? report("open '%s': %s", cp->into, strerror(errno)) : pull_to(cp, pull, fd);
}

/* Writes through a pipe or device as cp does, and never replaces it. */
static int pull_through(struct cp *cp, struct tree_pull *pull)
{
    cleanup_close int fd = open(cp->to.path, O_WRONLY | O_NOCTTY | O_CLOEXEC);

    return fd < 0 ? report("open '%s': %s", cp->to.text, strerror(errno))
                  : cp_pull_bytes(cp, pull, fd);
}

typedef int pull_fn(struct cp *cp, struct tree_pull *pull);

static int pull_stdout(struct cp *cp, struct tree_pull *pull)
{
    return cp_pull_bytes(cp, pull, STDOUT_FILENO);
}

/* A file follows a link that the user has named; what lies below a directory is never followed. */
static int aim_at_file(struct cp *cp, pull_fn **ret)
{
    struct cp_target target = { .exists = false };
    struct stat st;
    char *real;

    if (lstat(cp->to.path, &st) == 0 && S_ISLNK(st.st_mode)) {
        real = realpath(cp->to.path, NULL);
        if (!real)
            return report("'%s' is a symbolic link that leads nowhere: %s", cp->to.text,
                          strerror(errno));
        (void)snprintf(cp->followed, sizeof(cp->followed), "%s", real);
        free(real);
        cp->to.path = cp->followed;
    }
    target.exists = stat(cp->to.path, &st) == 0;
    target.is_directory = target.exists && S_ISDIR(st.st_mode);
    if (target.exists && !S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
        *ret = pull_through;
    return cp_aim(cp, false, &target);
}

static int aim_at_tree(struct cp *cp, enum entry_type type)
{
    struct cp_target target = { .exists = false };
    struct stat st;

    target.exists = stat(cp->to.path, &st) == 0;
    target.is_directory = target.exists && S_ISDIR(st.st_mode);
    return cp_aim(cp, type == ENTRY_DIRECTORY, &target);
}

/* Chooses how the source is received. Returns 0, or the exit status after a report. */
static int aim(struct cp *cp, const struct file_entry *source, pull_fn **ret)
{
    static const struct cp_target here = { .exists = true, .is_directory = true };

    *ret = pull_into_directory;
    if (cp->to.is_stream) {
        *ret = source->type == ENTRY_DIRECTORY ? cp_pull_tar : pull_stdout;
        return cp_aim(cp, source->type == ENTRY_DIRECTORY, &here);
    }
    return source->type == ENTRY_FILE ? aim_at_file(cp, ret) : aim_at_tree(cp, source->type);
}

/* Sets the total of a progress line that is shown. It stays unknown if counting takes too long. */
static void total_set(struct cp *cp, struct holt *holt, const struct tree_place *from,
                      const struct file_entry *source)
{
    enum { COUNT_MS = 2000 };
    struct holt_error ignored;

    cp->progress.total = source->type == ENTRY_FILE ? source->size : 0;
    if (cp->progress.is_shown && source->type == ENTRY_DIRECTORY)
        (void)tree_size(holt, from, holt_after(COUNT_MS), &cp->progress.total, &ignored);
}

static int copy_down(struct cp *cp, struct holt *holt)
{
    const struct tree_place from = { .sandbox = cp->from.sandbox,
                                     .path = cp->from.path,
                                     .follows_link = cp->follows_link };
    struct tree_pull *pull = NULL;
    struct file_entry there;
    struct holt_error error;
    pull_fn *receive;
    int status;

    if (tree_stat(holt, &from, &there, &error) < 0)
        return report_holt_error(&error);
    total_set(cp, holt, &from, &there);
    status = aim(cp, &there, &receive);
    if (status != 0)
        return status;
    if (tree_pull_open(holt, &from, &pull, &error) < 0)
        return report_holt_error(&error);
    status = receive(cp, pull);
    tree_pull_close(pull);
    return status;
}

int cp_down(struct cp *cp)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };

    return connection_open(&connection) < 0 ? STATUS_HOLT : copy_down(cp, connection.holt);
}

/* --- to another sandbox ---------------------------------------------------------------------- */

struct across {
    struct tree_push *push;
    struct holt_error error;
};

static int across_entry(void *context, const struct file_entry *entry)
{
    struct across *across = context;

    return tree_push_entry(across->push, entry, &across->error) < 0 ? -EPIPE : 0;
}

static int across_data(void *context, const void *data, size_t len)
{
    struct across *across = context;

    return tree_push_data(across->push, data, len, &across->error) < 0 ? -EPIPE : 0;
}

static int pass(struct cp *cp, struct holt *to, struct tree_pull *pull)
{
    static const struct cp_taker taker = { across_entry, across_data };
    const struct tree_place into = { .sandbox = cp->to.sandbox,
                                     .path = cp->into,
                                     .keeps_owner = cp->keeps_owner };
    struct across across = { .push = NULL };
    int r = tree_push_open(to, &into, &across.push, &across.error);

    if (r == 0)
        r = cp_take(cp, pull, &taker, &across, &across.error);
    if (r == 0)
        r = tree_push_finish(across.push, &across.error);
    tree_push_close(across.push);
    return r < 0 ? report_holt_error(&across.error) : STATUS_OK;
}

static int copy_across(struct cp *cp, struct holt *from_holt, struct holt *to_holt)
{
    const struct tree_place from = { .sandbox = cp->from.sandbox,
                                     .path = cp->from.path,
                                     .follows_link = cp->follows_link };
    struct cp_target target = { .exists = false };
    struct file_entry source, there;
    struct tree_pull *pull = NULL;
    struct holt_error error;
    int status;

    if (tree_stat(from_holt, &from, &source, &error) < 0 ||
        cp_stat_remote(to_holt, &cp->to, true, &there, &error) < 0)
        return report_holt_error(&error);
    target.exists = there.type != ENTRY_NONE;
    target.is_directory = there.type == ENTRY_DIRECTORY;
    status = source.type == ENTRY_FILE && target.exists ? cp_follow_remote(cp, to_holt) : 0;
    if (status == 0)
        status = cp_aim(cp, source.type == ENTRY_DIRECTORY, &target);
    if (status != 0)
        return status;
    total_set(cp, from_holt, &from, &source);
    if (tree_pull_open(from_holt, &from, &pull, &error) < 0)
        return report_holt_error(&error);
    status = pass(cp, to_holt, pull);
    tree_pull_close(pull);
    return status;
}

int cp_across(struct cp *cp)
{
    cleanup_with(connection_close) struct connection from = { .holt = NULL }, to = { .holt = NULL };

    if (connection_open(&from) < 0 || connection_open(&to) < 0)
        return STATUS_HOLT;
    return copy_across(cp, from.holt, to.holt);
}
