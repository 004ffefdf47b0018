/* The exit status of `holt run` and its like. */
#pragma once

struct holt_end;
struct holt_process_info;

/* Reports an outcome that the exit status alone would hide, and returns the exit status. */
int run_outcome(const char *command, const struct holt_end *end);

/* Returns the exit status of a command that has waited for a service and printed what is known of
 * it; reports why if it is not ready. */
int run_ready_status(const char *verb, const char *command,
                     const struct holt_process_info *process);
