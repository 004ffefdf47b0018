/* The daemon's side of a raw stream (wire/raw.h): a process's output to its client, and its
 * client's input to the process. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/lock.h"

struct raw_session;
struct stream;
struct stream_owner;
struct upload;

/* All that are running on one listener. */
struct raw_sessions {
    struct lock lock; /* over everything below */
    struct cond changed;
    struct raw_session *first;
    bool is_stopping;
};

void raw_sessions_init(struct raw_sessions *sessions);

/* Hangs up on everybody, and waits until that is done. */
void raw_sessions_stop(struct raw_sessions *sessions);

void raw_sessions_done(struct raw_sessions *sessions);

/* Whom a raw stream is for. The socket is the caller's, who closes it. */
struct raw_client {
    int fd;
    const char *early; /* what was received of it already */
    size_t early_len;
};

/* Passes bytes both ways until the process has ended or the client has gone. Takes the stream,
 * which must be one that was made raw. */
void raw_session_run(struct raw_sessions *sessions, struct stream *stream,
                     const struct stream_owner *owner, const struct raw_client *client);

/* The same for a client stream that was begun: takes what the client sends and answers it. Takes
 * the upload. */
void raw_upload_run(struct raw_sessions *sessions, struct upload *upload,
                    const struct stream_owner *owner, const struct raw_client *client);
