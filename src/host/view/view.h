/* The file servers that enforce rules on codebases: one holt-view for each sandbox that has rules.
 *
 * A view stands between a mount and a sandbox: the sandbox gets a FUSE mount instead. It outlives
 * this daemon; one that dies, or does not answer for a second and a half, takes the mount with it,
 * on which everything then fails with ENOTCONN. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

struct err;
struct view;
struct views;

enum { VIEW_ID_MAX = 47, VIEW_HELD_PATH_SIZE = 1024 };

/* What happens to views; told by their thread, without a lock. */
struct view_events {
    void *context;
    /* Sums up refusals: after a second, then once a minute. count is that of all; the array has the
     * first ones, with "path", "operation", "rule" (its index; -1: none matches), "level" and "pid"
     * (on the host; the process may have ended). */
    void (*denied)(void *context, const char *id, const json_t *denials, uint64_t count);
    void (*died)(void *context, const char *id, const char *reason);
};

/* Starts the thread. Sockets are made in the directory, which must outlive the views. */
int views_start(int sockets_fd, const struct view_events *events, struct views **ret,
                struct err *err);

/* Ends the thread; views go on without this daemon. Accepts NULL. */
void views_stop(struct views *views);

/* Removes the sockets of views that are not known here: of sandboxes that are gone. */
void views_sweep(struct views *views);

/* Starts a view of a detached mount, and returns a detached mount in its place. The rules are text,
 * as view_rules_parse reads it. The id is the caller's, and distinguishes what one sandbox has at
 * once. Processes see it once the mount is attached; the view ends when the mount does. */
struct view_start {
    const char *id;
    int mount_fd;
    const char *rules;
    uint64_t generation;
    bool allows_setuid;
};
int view_start(struct views *views, const struct view_start *start, int *ret_mount_fd,
               struct view **ret, struct err *err);

/* Connects to a view that an earlier daemon has started, and gives it the rules. ERR_NOT_FOUND if
 * it does not run any more. */
int view_adopt(struct views *views, const char *id, const char *rules, uint64_t generation,
               struct view **ret, struct err *err);

/* Changes the rules; they are in force when this returns. Returns how many open files have more
 * than they grant now. */
int view_set_rules(struct view *view, const char *rules, uint64_t generation, size_t *ret_open,
                   struct err *err);

/* Lists open files that have more than the rules grant, and who opened them. */
struct view_holder {
    char path[VIEW_HELD_PATH_SIZE];
    char level[8];
    pid_t pid;
};
int view_list_holders(struct view *view, struct view_holder **ret, size_t *ret_count,
                      struct err *err);

/* Asks which files a process may not hold as it does, by their nodes, which the caller keeps alive.
 */
enum { VIEW_HELD_MAX = 256 };
struct view_held {
    uint64_t node;
    bool writes;
    bool has_too_much; /* the answer */
    bool is_open;      /* the same: a descriptor refers to it, of whatever process */
};
int view_judge_held(struct view *view, struct view_held *held, size_t count, struct err *err);

/* Ends a view, if it has not ended yet. Accepts NULL. */
void view_stop(struct view *view);
DEFINE_CLEANUP(view_stop, struct view *);

/* Forgets a view, which outlives the daemon. Accepts NULL. */
void view_release(struct view *view);
