/* Removes what deep pauses have left in object storage: archives of sandboxes whose files are here
 * again or that were destroyed, archives that a killed daemon has not finished, and claims. The
 * registry has a record of each archive (registry/archive.h) until all of it is gone.
 *
 * A thread does this at the start and from time to time, so a storage that does not answer delays
 * nothing else. */
#pragma once

struct err;
struct host;

int settle_start(struct host *host, struct err *err);

/* Stops the thread, if it was started. */
void settle_stop(struct host *host);

/* Makes the thread work soon. */
void settle_wake(struct host *host);

/* Does it now for all archives of an owner (NULL: of all owners). Returns the first error. */
int settle_now(struct host *host, const char *owner, struct err *err);
