/* A server stream whose messages a function produces one by one, such as a diff. The function runs
 * in a thread of its own and waits while the reader is slow. */
#pragma once

#include "wire/schema.h"

struct err;
struct feed;
struct stream;

struct feed_ops {
    /* Produces all messages with feed_put: 0, or -errno with err set, which ends the stream. */
    int (*run)(struct feed *feed, void *context, struct err *err);

    /* Frees the context after run() has ended. */
    void (*free)(void *context);
};

/* Starts the thread. Takes the context, even on failure. The stream ends with -ECANCELED when
 * watch_fd hangs up. */
int feed_start(const struct feed_ops *ops, void *context, int watch_fd, struct stream **ret,
               struct err *err);

/* Adds one message, and waits until there is room for the next: 0, or a negative errno for run to
 * return. */
int feed_put(struct feed *feed, const struct schema *schema, const void *message,
             enum encode_mode mode);
