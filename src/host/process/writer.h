/* One thread that brings to disk what processes write and what became of them, and tells guests
 * what they need not keep any more. */
#pragma once

#include <stdbool.h>

struct err;
struct host;
struct process;
struct scribe;

int scribe_start(struct host *host, struct scribe **ret, struct err *err);

/* There is something to do for a process of a sandbox: at once, or within a moment, when it may be
 * over already. Takes a reference of its own. */
void scribe_add(struct scribe *scribe, struct process *process);
void scribe_add_later(struct scribe *scribe, struct process *process);

/* Does what is left to do and ends. Accepts NULL. */
void scribe_stop(struct scribe *scribe);

/* Asks the thread for a sign of life, and whether it has given one since. */
void scribe_ask(struct scribe *scribe);
bool scribe_has_answered(struct scribe *scribe);
