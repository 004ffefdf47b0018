/* Files of a sandbox, through a worker inside it: one request (wire/file.h) and its answers. All of
 * it blocks, and ends when the caller's client goes away. A worker is lent for one call. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/file.h"

struct err;
struct file_call;
struct sandbox;

/* Needs what exec needs, and keeps the sandbox from being idle. The sandbox must stay referenced
 * until the call is closed. watch_fd hangs up when the client goes away (-1: none). -ECANCELED when
 * it has. is_read_only: the client may change nothing, and has only a share of the workers. */
int file_call_open(struct sandbox *sandbox, int watch_fd, bool is_read_only, struct file_call **ret,
                   struct err *err);

/* The same for one FILE_WATCH, with the rights of root, which takes no worker from the others: a
 * sandbox has up to FILE_HUB_MAX of these at once. */
int file_call_open_watch(struct sandbox *sandbox, int watch_fd, struct file_call **ret,
                         struct err *err);

/* Sends the request. What is too long, or has a NUL in it, is refused. */
int file_call_ask(struct file_call *call, const struct file_request *request, struct err *err);

/* What the worker says; texts and data are valid until the next call. */
struct file_answer {
    enum file_message_type type; /* ENTRY, DATA, TROUBLE, EVENT; or END, with a number */
    struct file_entry entry;
    struct file_failure trouble;
    struct file_event event;
    const char *data;
    size_t len;
    uint32_t number;
};

/* The next answer: 1, or 0 when this was the last, or a negative errno with err set; -ECANCELED
 * when the client has gone. The last of STAT, MKDIR, MOVE and WRITE is an ENTRY, that of the others
 * END; a WATCH has none. */
int file_call_next(struct file_call *call, struct file_answer *ret, struct err *err);

/* Why the worker has refused the last request, and of which path: an errno, 0 if it has not. */
int file_call_failed(const struct file_call *call, const char **ret_path);

/* Waits until the next answer, or the first part of it, is here: 1, or 0 after so long, or a
 * negative errno with err set; -ECANCELED when the client has gone. */
int file_call_wait(struct file_call *call, int timeout_ms, struct err *err);

/* From now on it is this that hangs up when nobody wants the answers any more. */
void file_call_set_watch_fd(struct file_call *call, int watch_fd);

/* Whether the next answer is here already, so that asking for it does not wait. */
bool file_call_has_next(const struct file_call *call);

/* What goes on behind WRITE and PUSH. When the worker has failed already these say so. */
int file_call_send_entry(struct file_call *call, const struct file_entry *entry, struct err *err);
int file_call_send_data(struct file_call *call, const void *data, size_t len, struct err *err);
int file_call_send_end(struct file_call *call, struct err *err);

/* Gives the worker back, or ends it if it is in the middle of something. Accepts NULL. */
void file_call_close(struct file_call *call);
