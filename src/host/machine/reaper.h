/* The reaper: one thread that waits for all killed machines at once, so that none waits behind a
 * slow one, and releases them in the order in which they end. Files are deleted by the tree
 * cleaner. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct err;
struct host;
struct machine;
struct reaper;

int reaper_start(struct host *host, struct reaper **ret, struct err *err);

/* Takes over a killed machine and the caller's reference. */
void reaper_add(struct reaper *reaper, struct machine *machine);

/* Abandons machines that have not ended at deadline_ms (of clock_ms): their waiters go on, and the
 * next start of the daemon removes them. */
void reaper_abandon_at(struct reaper *reaper, uint64_t deadline_ms);

/* Ends the thread when no machine is left or the rest is abandoned, which takes until the deadline
 * at most. Returns whether all machines were released. */
bool reaper_stop(struct reaper *reaper);

/* Frees a stopped reaper. Accepts NULL. */
void reaper_free(struct reaper *reaper);
