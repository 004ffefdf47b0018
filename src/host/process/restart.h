/* Restarts of processes by their restart policy. */
#pragma once

#include "host/process/process.h"

struct machine;
struct record;

/* Returns whether the policy restarts the process after this outcome. Locked. */
bool process_wants_restart(const struct process *process, enum outcome outcome, int exit_code);

/* Schedules the next run after a delay, or ends the process if it is being killed. Locked. */
void process_schedule_restart(struct process *process);

/* Sets the timers that other threads requested while they held the machine's lock. */
void process_set_timers(struct process *process);

/* Returns whether the restart delay is over, and resets that. */
bool process_claim_restart(struct process *process);

/* Restarts the process unless its machine is ending. Waits for the guest; called by the process
 * writer. */
void process_respawn(struct process *process);

/* Schedules the next run of a process that was waiting for it when the daemon ended. */
void process_resume_restart(struct machine *machine, struct record *record);
