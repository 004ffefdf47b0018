/* What the rest of the process code knows of restarts. */
#pragma once

#include "host/process/process.h"

struct machine;
struct record;

/* Whether it runs again after this end. Locked. */
bool process_wants_restart(const struct process *process, enum outcome outcome, int exit_code);

/* It has ended and will be started again, after a pause, unless it is being killed. Locked. */
void process_rest(struct process *process);

/* Sets the timers that somebody wanted while he held a lock. */
void process_set_timers(struct process *process);

/* Whether the pause is over; once. */
bool process_take_restart(struct process *process);

/* Starts it again, unless its machine ends it. Waits for the guest; the process writer's to call.
 */
void process_respawn(struct process *process);

/* One that was between two lives when the daemon ended. */
void process_revive(struct machine *machine, struct record *record);
