/* The reactor: one thread that reads from all guests and runs timers. It never blocks. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct err;
struct reactor;

/* A descriptor that the reactor polls. It calls ready() when the descriptor is readable; when that
 * returns false, it stops polling and calls gone(), the last call. All calls come from one thread.
 */
struct reactor_source {
    int fd;
    bool (*ready)(struct reactor_source *source);
    void (*gone)(struct reactor_source *source);
};

/* A timer. Its owner provides the memory and keeps it until the timer has fired or was cancelled.
 */
struct reactor_timer {
    uint64_t at_ms; /* monotonic */
    void (*fire)(struct reactor_timer *timer);
    struct reactor_timer *next;
    bool is_set;
};

int reactor_start(struct reactor **ret, struct err *err);

/* Stops the thread. All sources must be gone. Accepts NULL. */
void reactor_stop(struct reactor *reactor);

int reactor_add(struct reactor *reactor, struct reactor_source *source);

/* Makes the reactor call fire() once, at at_ms or soon after, on its thread. */
void reactor_set_timer(struct reactor *reactor, struct reactor_timer *timer, uint64_t at_ms);

/* Cancels the timer; afterwards fire() neither runs nor will be called. Returns whether it had not
 * been called. */
bool reactor_cancel_timer(struct reactor *reactor, struct reactor_timer *timer);
