/* A process's events as a stream: started, its output, its end. */
#pragma once

struct call;
struct err;
struct machine_spec;
struct process_spec;
struct stream;

/* In a machine that is made for it, and destroyed at the end or when the client goes away. */
int process_stream_run(const struct call *call, const struct machine_spec *machine,
                       const struct process_spec *process, struct stream **ret, struct err *err);

/* In a sandbox, by id or name, which stays; when the client goes away before the end, the process
 * and all that it started are killed. */
int process_stream_exec(const struct call *call, const char *sandbox,
                        const struct process_spec *process, struct stream **ret, struct err *err);
