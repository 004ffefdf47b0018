/* The one thread that reads all guests, and watches the clock for them. It never blocks. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct err;
struct reactor;

/* Something with a descriptor. The reactor calls ready() when it can be read; false means that it
 * is over: the descriptor leaves the set and gone() is the last call. All calls come from one
 * thread. */
struct reactor_source {
    int fd;
    bool (*ready)(struct reactor_source *source);
    void (*gone)(struct reactor_source *source);
};

/* A moment to be told of. Plain memory of its owner, who keeps it until it fired or was cancelled.
 */
struct reactor_timer {
    uint64_t at_ms; /* monotonic */
    void (*fire)(struct reactor_timer *timer);
    struct reactor_timer *next;
    bool is_set;
};

int reactor_start(struct reactor **ret, struct err *err);

/* All sources must be gone. Accepts NULL. */
void reactor_stop(struct reactor *reactor);

int reactor_add(struct reactor *reactor, struct reactor_source *source);

/* fire() is called once, at at_ms or soon after, on the reactor's thread. */
void reactor_set_timer(struct reactor *reactor, struct reactor_timer *timer, uint64_t at_ms);

/* After it returns fire() is not running and will not be called: whether it had not been yet. */
bool reactor_cancel_timer(struct reactor *reactor, struct reactor_timer *timer);
