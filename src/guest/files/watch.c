// SPDX-License-Identifier: Apache-2.0
/* Reports changes below a directory until the daemon hangs up. inotify watches single directories,
 * so a new subdirectory is watched as soon as it appears, and files created in it before that are
 * reported as if their events had been seen. */
#include "guest/files/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/files/tree_source.h"
#include "base/xalloc.h"
#include "guest/files/file_internal.h"

enum {
    EVENTS = IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
             IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF,
    READ_BYTES = 64 * 1024,
};

struct watched_dir {
    int wd;
    char *path; /* relative to the top; "" is the top itself */
};

/* Returns whether another watch on the same inotify instance has this directory. */
static bool is_shared(const struct dir_watch *watch, int wd)
{
    for (const struct dir_watch *each = *watch->all; each; each = each->next)
        for (size_t i = 0; each != watch && i < each->count; i++)
            if (each->dirs[i].wd == wd)
                return true;
    return false;
}

static void watched_dir_unwatch(const struct dir_watch *watch, int wd)
{
    if (!is_shared(watch, wd))
        (void)inotify_rm_watch(watch->fd, wd);
}

void dir_watch_done(struct dir_watch *watch)
{
    for (size_t i = 0; i < watch->count; i++) {
        watched_dir_unwatch(watch, watch->dirs[i].wd);
        free(watch->dirs[i].path);
    }
    free(watch->dirs);
    watch->dirs = NULL;
    watch->count = 0;
}

static int event_put(struct dir_watch *watch, enum file_event_kind kind, const char *path)
{
    const struct file_event event = { .kind = kind, .path = path };
    int r;

    /* One write often causes several events. */
    if (kind == FILE_EVENT_WRITE && watch->last_kind == kind && !watch->is_last_old &&
        strcmp(watch->last_path, path) == 0)
        return 0;
    watch->last_kind = kind;
    watch->is_last_old = false;
    (void)snprintf(watch->last_path, sizeof(watch->last_path), "%s", path);
    if (watch->has_dropped)
        return 0;
    r = file_put_event(&watch->worker->out, &event);
    if (!watch->may_drop)
        return r < 0 ? r : worker_flush_if_large(watch->worker);
    watch->has_dropped = r == -ENOBUFS;
    return watch->has_dropped ? 0 : r;
}

static struct watched_dir *watched_dir_find(struct dir_watch *watch, int wd)
{
    for (size_t i = 0; i < watch->count; i++)
        if (watch->dirs[i].wd == wd)
            return &watch->dirs[i];
    return NULL;
}

static void watched_dir_remove(struct dir_watch *watch, struct watched_dir *watched_dir)
{
    free(watched_dir->path);
    *watched_dir = watch->dirs[--watch->count];
}

/* Stops watching everything at or below a path that was renamed or removed. */
static void watched_dirs_remove_below(struct dir_watch *watch, const char *path)
{
    size_t len = strlen(path);

    for (size_t i = watch->count; i-- > 0;) {
        struct watched_dir *watched_dir = &watch->dirs[i];

        if (strncmp(watched_dir->path, path, len) != 0 ||
            (watched_dir->path[len] != '/' && watched_dir->path[len] != '\0'))
            continue;
        watched_dir_unwatch(watch, watched_dir->wd);
        watched_dir_remove(watch, watched_dir);
    }
}

static int full_path(const struct dir_watch *watch, const char *path, char ret[PATH_MAX])
{
    int len = snprintf(ret, PATH_MAX, "%s%s%s", watch->top, path[0] ? "/" : "", path);

    return len >= PATH_MAX ? -ENAMETOOLONG : 0;
}

/* Returns -ENOSPC if there are too many. Directories that are gone or unreadable are skipped. */
static int watched_dir_add(struct dir_watch *watch, const char *path)
{
    char full[PATH_MAX];
    int wd, r = full_path(watch, path, full);

    if (r < 0)
        return 0;
    wd = inotify_add_watch(watch->fd, full, EVENTS | IN_ONLYDIR | (path[0] ? IN_DONT_FOLLOW : 0));
    if (wd < 0)
        return errno == ENOSPC || errno == ENOMEM || path[0] == '\0' ? -errno : 0;
    if (watched_dir_find(watch, wd))
        return 0;
    if (watch->count == FILE_WATCHES_MAX) {
        watched_dir_unwatch(watch, wd);
        return -ENOSPC;
    }
    if (!watch->dirs)
        watch->dirs = xcalloc(FILE_WATCHES_MAX, sizeof(*watch->dirs));
    watch->dirs[watch->count++] = (struct watched_dir){ .wd = wd, .path = xstrdup(path) };
    return 0;
}

/* A walk through a new directory, whose path is relative to the top. */
struct dir_scan {
    struct dir_watch *watch;
    const char *prefix;
    bool reports;
};

static int scan_entry(void *context, const struct file_entry *entry)
{
    struct dir_scan *scan = context;
    char path[ENTRY_PATH_MAX + 1];
    int r = 0, len = snprintf(path, sizeof(path), "%s%s%s", scan->prefix,
                              scan->prefix[0] ? "/" : "", entry->path);

    if (len >= (int)sizeof(path))
        return 0;
    if (scan->reports)
        r = event_put(scan->watch, FILE_EVENT_CREATE, path);
    if (r == 0 && scan->reports && entry->type == ENTRY_FILE && entry->size > 0)
        r = event_put(scan->watch, FILE_EVENT_WRITE, path);
    if (r == 0 && entry->type == ENTRY_DIRECTORY && scan->watch->is_recursive)
        r = watched_dir_add(scan->watch, path);
    return r;
}

static int scan_trouble(void *context, const char *path, int errnum)
{
    (void)context, (void)path, (void)errnum;
    return 0;
}

/* Watches first and walks afterwards, so that no change is missed in between. */
static int watched_tree_add(struct dir_watch *watch, const char *path, bool reports)
{
    static const struct tree_source_ops ops = { .entry = scan_entry, .trouble = scan_trouble };
    const struct tree_source options = { .skips_top = true, .follows_top = path[0] == '\0' };
    struct dir_scan scan = { .watch = watch, .prefix = path, .reports = reports };
    char full[PATH_MAX];
    int r = watched_dir_add(watch, path);

    if (r < 0 || !watch->is_recursive || full_path(watch, path, full) < 0)
        return r;
    return tree_source_run(AT_FDCWD, full, &options, &ops, &scan);
}

static enum file_event_kind kind_of(uint32_t mask)
{
    if (mask & (IN_CREATE | IN_MOVED_TO))
        return FILE_EVENT_CREATE;
    if (mask & IN_MOVED_FROM)
        return FILE_EVENT_RENAME;
    if (mask & IN_DELETE)
        return FILE_EVENT_REMOVE;
    if (mask & (IN_MODIFY | IN_CLOSE_WRITE))
        return FILE_EVENT_WRITE;
    return mask & IN_ATTRIB ? FILE_EVENT_CHMOD : FILE_EVENT_NONE;
}

static int handle_directory(struct dir_watch *watch, uint32_t mask, const char *path)
{
    int r = 0;

    if (mask & (IN_MOVED_FROM | IN_DELETE))
        watched_dirs_remove_below(watch, path);
    else if (mask & (IN_CREATE | IN_MOVED_TO))
        r = watched_tree_add(watch, path, true);
    /* Some directories are not watched from now on, which is equivalent to lost events. */
    return r == -ENOSPC ? event_put(watch, FILE_EVENT_OVERFLOW, path) : r;
}

static int handle_event(struct dir_watch *watch, const struct inotify_event *event)
{
    struct watched_dir *watched_dir = watched_dir_find(watch, event->wd);
    enum file_event_kind kind = kind_of(event->mask);
    char path[ENTRY_PATH_MAX + 1];
    int r = 0;

    if (event->mask & IN_Q_OVERFLOW)
        return event_put(watch, FILE_EVENT_OVERFLOW, "");
    if (!watched_dir)
        return 0;
    if (event->mask & (IN_DELETE_SELF | IN_MOVE_SELF) && watched_dir->path[0] == '\0') {
        watch->is_over = true;
        return event_put(watch,
                         event->mask & IN_DELETE_SELF ? FILE_EVENT_REMOVE : FILE_EVENT_RENAME, "");
    }
    if (event->mask & IN_IGNORED) {
        watched_dir_remove(watch, watched_dir);
        return 0;
    }
    /* The parent directory reports what happens to a directory itself. */
    if (kind == FILE_EVENT_NONE || event->len == 0 ||
        snprintf(path, sizeof(path), "%s%s%s", watched_dir->path, watched_dir->path[0] ? "/" : "",
                 event->name) >= (int)sizeof(path))
        return 0;
    /* The file was closed after writes that were reported, perhaps a while ago. */
    if (event->mask & IN_CLOSE_WRITE && watch->last_kind == FILE_EVENT_WRITE &&
        strcmp(watch->last_path, path) == 0) {
        watch->last_kind = FILE_EVENT_NONE;
        return 0;
    }
    r = event_put(watch, kind, path);
    if (r == 0 && event->mask & IN_ISDIR && watch->is_recursive)
        r = handle_directory(watch, event->mask, path);
    return r;
}

int dir_watch_read(struct dir_watch *first)
{
    static char data[READ_BYTES] __attribute__((aligned(__alignof__(struct inotify_event))));
    ssize_t n = read(first->fd, data, sizeof(data));
    int r = 0;

    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    for (struct dir_watch *each = first; each; each = each->next)
        each->is_last_old = true;
    for (ssize_t at = 0; r == 0 && at < n;) {
        const struct inotify_event *event = (const void *)(data + at);

        for (struct dir_watch *each = first; r == 0 && each; each = each->next)
            r = handle_event(each, event);
        at += (ssize_t)(sizeof(*event) + event->len);
    }
    return r;
}

int dir_watch_start(struct dir_watch *watch, const struct file_request *request)
{
    struct stat st;
    int r = worker_path(request->path, watch->top);

    watch->is_recursive = request->flags & FILE_RECURSIVE;
    if (r == 0 && stat(watch->top, &st) < 0)
        r = -errno;
    if (r == 0 && !S_ISDIR(st.st_mode))
        r = -ENOTDIR;
    return r == 0 ? watched_tree_add(watch, "", false) : r;
}

const char *dir_watch_error_text(int r)
{
    return r == -ENOSPC ? "too many directories to watch" : NULL;
}

/* Runs until the daemon hangs up; it sends nothing else. */
static int dir_watch_run(struct dir_watch *watch)
{
    int r = 0;

    while (r == 0) {
        struct pollfd fds[] = {
            { .fd = watch->fd, .events = POLLIN },
            { .fd = watch->worker->fd, .events = POLLIN },
        };

        if (poll(fds, ARRAY_SIZE(fds), -1) < 0 && errno != EINTR)
            return -errno;
        if (fds[1].revents)
            return -EPIPE;
        if (fds[0].revents)
            r = dir_watch_read(watch);
        if (r == 0)
            r = worker_flush(watch->worker);
        if (r == 0 && watch->is_over)
            return -EPIPE;
    }
    return r;
}

int file_watch(struct worker *worker, const struct file_request *request)
{
    static struct dir_watch watch; /* static: one at a time, and the worker exits with it */
    struct dir_watch *const only = &watch;
    cleanup_close int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    int r = fd < 0 ? -errno : 0;

    watch = (struct dir_watch){ .worker = worker, .fd = fd, .all = &only };
    if (r == 0)
        r = dir_watch_start(&watch, request);
    if (r < 0) {
        dir_watch_done(&watch);
        return worker_fail(worker, r, request->path, dir_watch_error_text(r));
    }
    r = file_put_number(&worker->out, FILE_END, 0);
    if (r == 0)
        r = worker_flush(worker);
    if (r == 0)
        r = dir_watch_run(&watch);
    dir_watch_done(&watch);
    return r;
}
