/* A process that is followed, whatever call it came from. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct holt;
struct holt_command;
struct holt_error;
struct holt_process;
struct holt_sandbox_options;

struct process_call {
    const char *method; /* "holt.v1.ProcessService/Exec" */
    json_t *request;    /* taken; NULL stands for one that cannot be built */
    bool is_raw;
    int64_t deadline;
};

/* Sends the call, whose answers are like ExecResponse: 0 or -1. */
int process_open(struct holt *holt, const struct process_call *call, struct holt_process **ret,
                 struct holt_error *error);

/* Hangs up on the process, which whoever feeds it notices; nothing but closing it makes sense then.
 */
void process_leave(struct holt_process *process);

/* Returns the call that runs the command while its client is connected. */
struct process_call process_exec_call(const char *sandbox, const struct holt_command *command,
                                      bool has_stdin, int64_t deadline);

/* The same in a throw-away sandbox. */
struct process_call process_run_call(const struct holt_sandbox_options *options,
                                     const struct holt_command *command, bool has_stdin,
                                     int64_t deadline);
