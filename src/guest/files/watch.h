/* One directory that a file worker watches, with all below it if that is wanted. Several may share
 * the kernel's queue of events, of which there are few for all sandboxes together. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/files/file_entry.h"
#include "wire/file.h"

struct buf;
struct inotify_event;
struct place;
struct worker;

struct watching {
    struct watching *next, *const *all; /* those with the same queue */
    struct worker *worker;              /* events go to its `out` */
    int fd;                             /* inotify */
    bool is_recursive;
    bool is_over;    /* the top is gone */
    bool may_forget; /* events for which there is no room are left out: nobody waits for a reader */
    bool has_forgotten;
    char top[PATH_MAX];
    struct place *places;
    size_t count;
    enum file_event_kind last_kind; /* of the event that was told last */
    char last_path[ENTRY_PATH_MAX + 1];
};

/* Begins, with all, worker, fd and may_forget set: 0 or -errno. In any case it is ended by
 * watching_done. */
int watching_begin(struct watching *watching, const struct file_request *request);
void watching_done(struct watching *watching);

/* Why it could not begin, for a client; NULL: what the number says. */
const char *watching_why(int r);

/* Reads what has happened and tells it to each of the list that it concerns: 0 or -errno. */
int watching_take(struct watching *first);
