/* The expiry thread: ends expired and idle sandboxes, detects machines that ended unexpectedly,
 * and cleans up ended processes. What it does to a sandbox as a whole happens in a thread of its
 * own, so that no sandbox waits for the end of another. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct err;
struct expiry;
struct host;

struct expiry *expiry_new(struct host *host);
int expiry_start(struct expiry *expiry, struct err *err);

/* Makes the thread check all sandboxes again. */
void expiry_wake(struct expiry *expiry);

/* Ends the thread, if it was started, and waits for the actions under way until deadline_ms of
 * clock_ms. Returns whether they have ended. */
bool expiry_stop(struct expiry *expiry, uint64_t deadline_ms);

/* Frees the expiry, which must outlive the reactor. */
void expiry_free(struct expiry *expiry);
