// SPDX-License-Identifier: Apache-2.0
/* Tells of changes below a directory until the daemon hangs up. The kernel watches directories one
 * by one; so a directory that comes to be is watched too, and what was made in it before that is
 * told as if it had been seen. */
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

struct place {
    int wd;
    char *path; /* from the top; "" of the top itself */
};

/* Whether somebody else of the same queue watches it too. */
static bool is_shared(const struct watching *watching, int wd)
{
    for (const struct watching *each = *watching->all; each; each = each->next)
        for (size_t i = 0; each != watching && i < each->count; i++)
            if (each->places[i].wd == wd)
                return true;
    return false;
}

static void place_leave(const struct watching *watching, int wd)
{
    if (!is_shared(watching, wd))
        (void)inotify_rm_watch(watching->fd, wd);
}

void watching_done(struct watching *watching)
{
    for (size_t i = 0; i < watching->count; i++) {
        place_leave(watching, watching->places[i].wd);
        free(watching->places[i].path);
    }
    free(watching->places);
    watching->places = NULL;
    watching->count = 0;
}

static int tell(struct watching *watching, enum file_event_kind kind, const char *path)
{
    const struct file_event event = { .kind = kind, .path = path };
    int r;

    /* One write is often several events. */
    if (kind == FILE_EVENT_WRITE && watching->last_kind == kind &&
        strcmp(watching->last_path, path) == 0)
        return 0;
    watching->last_kind = kind;
    (void)snprintf(watching->last_path, sizeof(watching->last_path), "%s", path);
    if (watching->has_forgotten)
        return 0;
    r = file_put_event(&watching->worker->out, &event);
    if (!watching->may_forget)
        return r < 0 ? r : worker_flush_some(watching->worker);
    watching->has_forgotten = r == -ENOBUFS;
    return watching->has_forgotten ? 0 : r;
}

static struct place *place_find(struct watching *watching, int wd)
{
    for (size_t i = 0; i < watching->count; i++)
        if (watching->places[i].wd == wd)
            return &watching->places[i];
    return NULL;
}

static void place_remove(struct watching *watching, struct place *place)
{
    free(place->path);
    *place = watching->places[--watching->count];
}

/* Takes all at or below a path off the list: it has another name now, or is gone. */
static void places_leave(struct watching *watching, const char *path)
{
    size_t len = strlen(path);

    for (size_t i = watching->count; i-- > 0;) {
        struct place *place = &watching->places[i];

        if (strncmp(place->path, path, len) != 0 ||
            (place->path[len] != '/' && place->path[len] != '\0'))
            continue;
        place_leave(watching, place->wd);
        place_remove(watching, place);
    }
}

static int full_path(const struct watching *watching, const char *path, char ret[PATH_MAX])
{
    int len = snprintf(ret, PATH_MAX, "%s%s%s", watching->top, path[0] ? "/" : "", path);

    return len >= PATH_MAX ? -ENAMETOOLONG : 0;
}

/* -ENOSPC when there are too many. What is gone, or may not be read, is left out. */
static int place_add(struct watching *watching, const char *path)
{
    char full[PATH_MAX];
    int wd, r = full_path(watching, path, full);

    if (r < 0)
        return 0;
    wd =
        inotify_add_watch(watching->fd, full, EVENTS | IN_ONLYDIR | (path[0] ? IN_DONT_FOLLOW : 0));
    if (wd < 0)
        return errno == ENOSPC || errno == ENOMEM || path[0] == '\0' ? -errno : 0;
    if (place_find(watching, wd))
        return 0;
    if (watching->count == FILE_WATCHES_MAX) {
        place_leave(watching, wd);
        return -ENOSPC;
    }
    if (!watching->places)
        watching->places = xcalloc(FILE_WATCHES_MAX, sizeof(*watching->places));
    watching->places[watching->count++] = (struct place){ .wd = wd, .path = xstrdup(path) };
    return 0;
}

/* A walk through a directory that is to be watched, which has this path from the top. */
struct entering {
    struct watching *watching;
    const char *prefix;
    bool tells;
};

static int enter_entry(void *context, const struct file_entry *entry)
{
    struct entering *entering = context;
    char path[ENTRY_PATH_MAX + 1];
    int r = 0, len = snprintf(path, sizeof(path), "%s%s%s", entering->prefix,
                              entering->prefix[0] ? "/" : "", entry->path);

    if (len >= (int)sizeof(path))
        return 0;
    if (entering->tells)
        r = tell(entering->watching, FILE_EVENT_CREATE, path);
    if (r == 0 && entering->tells && entry->type == ENTRY_FILE && entry->size > 0)
        r = tell(entering->watching, FILE_EVENT_WRITE, path);
    if (r == 0 && entry->type == ENTRY_DIRECTORY && entering->watching->is_recursive)
        r = place_add(entering->watching, path);
    return r;
}

static int enter_trouble(void *context, const char *path, int errnum)
{
    (void)context, (void)path, (void)errnum;
    return 0;
}

/* First the watch, then a look: nothing is missed between. */
static int enter(struct watching *watching, const char *path, bool tells)
{
    static const struct tree_source_ops ops = { .entry = enter_entry, .trouble = enter_trouble };
    const struct tree_source options = { .skips_top = true, .follows_top = path[0] == '\0' };
    struct entering entering = { .watching = watching, .prefix = path, .tells = tells };
    char full[PATH_MAX];
    int r = place_add(watching, path);

    if (r < 0 || !watching->is_recursive || full_path(watching, path, full) < 0)
        return r;
    return tree_source_run(AT_FDCWD, full, &options, &ops, &entering);
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

static int take_directory(struct watching *watching, uint32_t mask, const char *path)
{
    int r = 0;

    if (mask & (IN_MOVED_FROM | IN_DELETE))
        places_leave(watching, path);
    else if (mask & (IN_CREATE | IN_MOVED_TO))
        r = enter(watching, path, true);
    /* Not everything is watched from now on, which is as good as events that were lost. */
    return r == -ENOSPC ? tell(watching, FILE_EVENT_OVERFLOW, path) : r;
}

static int take_event(struct watching *watching, const struct inotify_event *event)
{
    struct place *place = place_find(watching, event->wd);
    enum file_event_kind kind = kind_of(event->mask);
    char path[ENTRY_PATH_MAX + 1];
    int r = 0;

    if (event->mask & IN_Q_OVERFLOW)
        return tell(watching, FILE_EVENT_OVERFLOW, "");
    if (!place)
        return 0;
    if (event->mask & (IN_DELETE_SELF | IN_MOVE_SELF) && place->path[0] == '\0') {
        watching->is_over = true;
        return tell(watching, event->mask & IN_DELETE_SELF ? FILE_EVENT_REMOVE : FILE_EVENT_RENAME,
                    "");
    }
    if (event->mask & IN_IGNORED) {
        place_remove(watching, place);
        return 0;
    }
    /* What happens to a directory itself is told by the one above it. */
    if (kind == FILE_EVENT_NONE || event->len == 0 ||
        snprintf(path, sizeof(path), "%s%s%s", place->path, place->path[0] ? "/" : "",
                 event->name) >= (int)sizeof(path))
        return 0;
    r = tell(watching, kind, path);
    if (r == 0 && event->mask & IN_ISDIR && watching->is_recursive)
        r = take_directory(watching, event->mask, path);
    return r;
}

int watching_take(struct watching *first)
{
    static char data[READ_BYTES] __attribute__((aligned(__alignof__(struct inotify_event))));
    ssize_t n = read(first->fd, data, sizeof(data));
    int r = 0;

    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    for (struct watching *each = first; each; each = each->next)
        each->last_kind = FILE_EVENT_NONE;
    for (ssize_t at = 0; r == 0 && at < n;) {
        const struct inotify_event *event = (const void *)(data + at);

        for (struct watching *each = first; r == 0 && each; each = each->next)
            r = take_event(each, event);
        at += (ssize_t)(sizeof(*event) + event->len);
    }
    return r;
}

int watching_begin(struct watching *watching, const struct file_request *request)
{
    struct stat st;
    int r = worker_path(request->path, watching->top);

    watching->is_recursive = request->flags & FILE_RECURSIVE;
    if (r == 0 && stat(watching->top, &st) < 0)
        r = -errno;
    if (r == 0 && !S_ISDIR(st.st_mode))
        r = -ENOTDIR;
    return r == 0 ? enter(watching, "", false) : r;
}

const char *watching_why(int r)
{
    return r == -ENOSPC ? "there are more directories than can be watched" : NULL;
}

/* The daemon says nothing more but by hanging up. */
static int watch_on(struct watching *watching)
{
    int r = 0;

    while (r == 0) {
        struct pollfd fds[] = {
            { .fd = watching->fd, .events = POLLIN },
            { .fd = watching->worker->fd, .events = POLLIN },
        };

        if (poll(fds, ARRAY_SIZE(fds), -1) < 0 && errno != EINTR)
            return -errno;
        if (fds[1].revents)
            return -EPIPE;
        if (fds[0].revents)
            r = watching_take(watching);
        if (r == 0)
            r = worker_flush(watching->worker);
        if (r == 0 && watching->is_over)
            return -EPIPE;
    }
    return r;
}

int file_watch(struct worker *worker, const struct file_request *request)
{
    static struct watching watching; /* there is one at a time, and its worker goes with it */
    struct watching *const only = &watching;
    cleanup_close int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    int r = fd < 0 ? -errno : 0;

    watching = (struct watching){ .worker = worker, .fd = fd, .all = &only };
    if (r == 0)
        r = watching_begin(&watching, request);
    if (r < 0) {
        watching_done(&watching);
        return worker_fail(worker, r, request->path, watching_why(r));
    }
    r = file_put_number(&worker->out, FILE_END, 0);
    if (r == 0)
        r = worker_flush(worker);
    if (r == 0)
        r = watch_on(&watching);
    watching_done(&watching);
    return r;
}
