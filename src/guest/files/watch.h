/* One directory that a file worker watches, optionally with its subdirectories. Several watches
 * may share one inotify instance, of which all sandboxes together have few. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/files/file_entry.h"
#include "wire/file.h"

struct buf;
struct inotify_event;
struct watched_dir;
struct worker;

struct dir_watch {
    struct dir_watch *next, *const *all; /* watches on the same inotify instance */
    struct worker *worker;               /* receives the events in its `out` */
    int fd;                              /* inotify */
    bool is_recursive;
    bool is_over;  /* the top directory is gone */
    bool may_drop; /* drops events when `out` is full instead of blocking on the reader */
    bool has_dropped;
    char top[PATH_MAX];
    struct watched_dir *dirs;
    size_t count;
    enum file_event_kind last_kind; /* of the latest event */
    bool is_last_old;               /* it was read earlier than the events at hand */
    char last_path[ENTRY_PATH_MAX + 1];
};

/* Starts a watch whose all, worker, fd and may_drop are set. Returns 0 or -errno; the caller
 * calls dir_watch_done in both cases. */
int dir_watch_start(struct dir_watch *watch, const struct file_request *request);
void dir_watch_done(struct dir_watch *watch);

/* Returns a text for an error of dir_watch_start, or NULL if strerror suffices. */
const char *dir_watch_error_text(int r);

/* Reads pending events and queues them for every watch of the list that they concern. Returns 0 or
 * -errno. */
int dir_watch_read(struct dir_watch *first);
