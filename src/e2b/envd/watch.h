/* Changes below a directory of a sandbox, as filesystem.Filesystem of E2B's envd reports them. */
#pragma once

#include <stdbool.h>

#include "base/files/file_entry.h"
#include "e2b/core/user.h"
#include "e2b/envd/entry.h"
#include "e2b/envd/file.h"

struct e2b_request;
struct err;
struct file_event;
struct sandbox;

/* A directory that is watched. */
struct e2b_watched {
    struct sandbox *sandbox;
    struct file_call *call;
    struct e2b_user user;
    bool wants_entries;
    int watch_fd; /* hangs up when the watch is no longer needed */
    char path[ENTRY_PATH_MAX + 1];
};

/* As the message has it; takes the sandbox out of the request. Returns when it is watched. The
 * caller calls e2b_watched_done, also when it fails. */
int e2b_watched_begin(struct e2b_request *request, const struct envd_watch_dir_request *message,
                      int watch_fd, struct e2b_watched *ret, struct err *err);
/* The watch outlives the request, until this hangs up. */
void e2b_watched_outlive(struct e2b_watched *watched, int watch_fd);

/* Returns when everything that has happened so far was sent by the sandbox and can be read from the
 * call without waiting; or at once if that cannot be ensured. */
void e2b_watched_catch_up(const struct e2b_watched *watched, int watch_fd);

void e2b_watched_done(struct e2b_watched *watched);

/* A FilesystemEvent and everything it points to, besides the event of the host. */
struct e2b_change {
    struct envd_filesystem_event message;
    struct e2b_entry entry;
    struct e2b_files files; /* the worker that has the texts of the entry */
    char path[ENTRY_PATH_MAX + 1];
};

/* Returns false if the event is of a kind that clients do not know. The caller calls
 * e2b_change_done soon, also then: there are few workers. */
bool e2b_change_init(struct e2b_change *ret, const struct e2b_watched *watched,
                     const struct file_event *event);
void e2b_change_done(struct e2b_change *change);
