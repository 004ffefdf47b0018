/* What holt_exec and holt_run need of a process besides its public functions. */
#pragma once

struct holt_process;

/* Closes the stream of the process, which ends a call of holt_process_send in another thread. Only
 * holt_process_close may follow. */
void process_hang_up(struct holt_process *process);
