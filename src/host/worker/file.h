/* File operations of a sandbox, done by a worker inside it: one request (wire/file.h) and its
 * answers. All calls block, and end when the caller's client disconnects. A worker is leased for
 * one call. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/file.h"

struct err;
struct file_call;
struct sandbox;

/* Opens a call, under the same conditions as an exec, and keeps the sandbox from being idle. The
 * caller keeps the sandbox referenced until the call is closed. watch_fd hangs up when the client
 * disconnects (-1: none); the result is then -ECANCELED. A read-only client can change nothing and
 * gets only a share of the workers. */
int file_call_open(struct sandbox *sandbox, int watch_fd, bool is_read_only, struct file_call **ret,
                   struct err *err);

/* Opens a call for one FILE_WATCH, with the rights of root. It takes no worker of the pool; a
 * sandbox can have up to FILE_HUB_MAX of these at once. */
int file_call_open_watch(struct sandbox *sandbox, int watch_fd, struct file_call **ret,
                         struct err *err);

/* Sends the request. Texts that are too long or contain a NUL are ERR_INVALID. */
int file_call_send_request(struct file_call *call, const struct file_request *request,
                           struct err *err);

/* An answer of the worker; texts and data are valid until the next call. */
struct file_answer {
    enum file_message_type type; /* ENTRY, DATA, TROUBLE, EVENT; or END, with a number */
    struct file_entry entry;
    struct file_failure trouble;
    struct file_event event;
    const char *data;
    size_t len;
    uint32_t number;
};

/* Receives the next answer. Returns 1, 0 when this was the last one, or a negative errno with err
 * set; -ECANCELED when the client has disconnected. The last answer of STAT, MKDIR, MOVE and WRITE
 * is an ENTRY, that of the others END; WATCH has no last answer. */
int file_call_next(struct file_call *call, struct file_answer *ret, struct err *err);

/* Returns the errno with which the worker refused the last request (0: it did not), and the path.
 */
int file_call_failure(const struct file_call *call, const char **ret_path);

/* Waits until the next answer has begun to arrive. Returns 1, 0 after the timeout, or a negative
 * errno with err set; -ECANCELED when the client has disconnected. */
int file_call_wait(struct file_call *call, int timeout_ms, struct err *err);

/* Waits until something has arrived, or the worker has ended, without reading it: another thread
 * may use the call meanwhile. Returns 0, or a negative errno; -ECANCELED when the client has
 * disconnected. */
int file_call_wait_arrival(const struct file_call *call);

/* Replaces the descriptor that hangs up when the client disconnects. */
void file_call_set_watch_fd(struct file_call *call, int watch_fd);

/* Returns whether the next answer has arrived, so that file_call_next does not wait. */
bool file_call_has_next(const struct file_call *call);

/* Send the entries and data that follow a WRITE or PUSH. They fail when the worker has reported a
 * failure. */
int file_call_send_entry(struct file_call *call, const struct file_entry *entry, struct err *err);
int file_call_send_data(struct file_call *call, const void *data, size_t len, struct err *err);
int file_call_send_end(struct file_call *call, struct err *err);

/* Returns the worker to the pool, or ends it if the call is incomplete. Accepts NULL. */
void file_call_close(struct file_call *call);
