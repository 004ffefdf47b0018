/* A server stream whose messages come from a call that hands them out one by one, as a diff does.
 * The call runs in a thread of its own and waits while its reader is slow. */
#pragma once

#include <jansson.h>

struct err;
struct feed;
struct stream;

struct feed_ops {
    /* Hands out all messages: 0, or -errno with err set, which the client gets as the end. */
    int (*run)(struct feed *feed, void *context, struct err *err);

    /* Frees the context, once run is over. */
    void (*free)(void *context);
};

/* Takes the context, also when it fails. The stream ends with -ECANCELED when watch_fd hangs up. */
int feed_start(const struct feed_ops *ops, void *context, int watch_fd, struct stream **ret,
               struct err *err);

/* Takes one message (NULL: -ENOMEM) and waits until there is room for the next: 0, or a negative
 * errno for run to return. */
int feed_put(struct feed *feed, json_t *message);
