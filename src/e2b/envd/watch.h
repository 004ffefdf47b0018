/* Changes below a directory of a sandbox, as filesystem.Filesystem of E2B's envd reports them. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/files/file_entry.h"
#include "e2b/core/user.h"

struct e2b_request;
struct err;
struct file_event;
struct sandbox;
struct stream;

/* A directory that is watched. */
struct e2b_watched {
    struct sandbox *sandbox;
    struct file_call *call;
    struct e2b_user user;
    bool wants_entries;
    int watch_fd; /* hangs up when the watch is no longer needed */
    char path[ENTRY_PATH_MAX + 1];
};

/* As the request's message has it; takes the sandbox out of the request. Returns when it is
 * watched. The caller calls e2b_watched_done, also when it fails. */
int e2b_watched_begin(struct e2b_request *request, int watch_fd, struct e2b_watched *ret,
                      struct err *err);
/* The watch outlives the request, until this hangs up. */
void e2b_watched_outlive(struct e2b_watched *watched, int watch_fd);

void e2b_watched_done(struct e2b_watched *watched);

/* A FilesystemEvent; NULL: it is none that clients know. */
json_t *e2b_watched_event(struct e2b_watched *watched, const struct file_event *event);

/* WatchDir. */
int e2b_watch(struct e2b_request *request, struct stream **ret, struct err *err);
