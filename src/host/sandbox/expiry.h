/* The expiry thread: ends expired and idle sandboxes, detects machines that ended unexpectedly,
 * and cleans up ended processes. */
#pragma once

struct err;
struct expiry;
struct host;

struct expiry *expiry_new(struct host *host);
int expiry_start(struct expiry *expiry, struct err *err);

/* Makes the thread check all sandboxes again. */
void expiry_wake(struct expiry *expiry);

/* Ends the thread, if it was started. */
void expiry_stop(struct expiry *expiry);

/* Frees the expiry, which must outlive the reactor. */
void expiry_free(struct expiry *expiry);
