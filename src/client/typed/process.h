/* A process that is followed, whatever call it came from. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct holt;
struct holt_command;
struct holt_error;
struct holt_process;

struct process_call {
    const char *method; /* "holt.v1.ProcessService/Exec" */
    json_t *request;    /* taken; NULL stands for one that cannot be built */
    bool is_raw;
    int64_t deadline;
};

/* Sends the call, whose answers are like ExecResponse: 0 or -1. */
int process_open(struct holt *holt, const struct process_call *call, struct holt_process **ret,
                 struct holt_error *error);

/* Whether the process is one that an earlier call has started, once it has. */
bool process_is_joined(const struct holt_process *process);

/* The sandbox that it is in, once it has started; "" before. */
const char *process_sandbox(const struct holt_process *process);

/* Hangs up on the process, which whoever feeds it notices; nothing but closing it makes sense then.
 */
void process_leave(struct holt_process *process);

/* The call that runs the command while its client stays. */
struct process_call process_exec_call(const char *sandbox, const struct holt_command *command,
                                      bool has_stdin, int64_t deadline);
