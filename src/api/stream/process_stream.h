/* A process's events as a stream: started, its output, its end. A call that is raw gets them as
 * frames (wire/raw.h), any other as messages. */
#pragma once

struct call;
struct err;
struct machine_spec;
struct msg_attach_request;
struct process;
struct process_spec;
struct stream;

/* In a machine that is made for it, and destroyed at the end or when the client goes away. */
int process_stream_run(const struct call *call, const struct machine_spec *machine,
                       const struct process_spec *process, struct stream **ret, struct err *err);

/* In a sandbox, which stays; when the client goes away before the end, the process and all that it
 * started are killed. One that an earlier call with the same key has started is only listened to.
 */
int process_stream_exec(const struct call *call, const char *sandbox,
                        const struct process_spec *process, struct stream **ret, struct err *err);

/* Streams a running process without flow control. */
int process_stream_attach(const struct call *call, const struct msg_attach_request *request,
                          struct stream **ret, struct err *err);

/* Returns the process that reads the client's stdin, with a reference; NULL: none. */
struct process *process_stream_writer(struct stream *stream);
