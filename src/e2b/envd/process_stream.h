/* The events of a process, as process.Process of E2B's envd streams them. */
#pragma once

#include <stdint.h>

struct e2b_request;
struct err;
struct process;
struct record;
struct stream;

/* Streams a process that was just started (taken), whose output waits for this stream. Without the
 * stream it continues without flow control. */
int e2b_process_stream_own(struct e2b_request *request, struct process *process,
                           struct stream **ret, struct err *err);

/* Streams a running process (taken) from now on. */
int e2b_process_stream_join(struct e2b_request *request, struct record *record, struct stream **ret,
                            struct err *err);

/* How long a stream may be silent, as its client asks. */
uint64_t e2b_keepalive_ms(const struct e2b_request *request);
