/* The daemon's side of a raw stream (wire/raw.h): a process's output to its client, and its
 * client's input to the process. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct raw_session;
struct stream;

/* All that are running on one listener. */
struct raw_sessions {
    pthread_mutex_t lock; /* over everything below */
    pthread_cond_t changed;
    struct raw_session *first;
    bool is_stopping;
};

void raw_sessions_init(struct raw_sessions *sessions);

/* Hangs up on everybody, and waits until that is done. */
void raw_sessions_stop(struct raw_sessions *sessions);

void raw_sessions_done(struct raw_sessions *sessions);

/* Passes bytes both ways until the process has ended or the client has gone. The socket is the
 * caller's, who closes it; early is what was received of it already. Takes the stream, which must
 * be one that was made raw. Returns how it ended; ERR_NONE also when the client has gone. */
enum err_kind raw_session_run(struct raw_sessions *sessions, struct stream *stream, int fd,
                              const char *early, size_t early_len);
