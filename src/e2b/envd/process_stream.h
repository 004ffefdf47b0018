/* The events of a process, as process.Process of E2B's envd streams them. */
#pragma once

#include <stdint.h>

struct e2b_request;
struct err;
struct process;
struct record;
struct stream;

/* Of a process that was just started (taken), whose output waits for this stream: without it, it
 * goes on and waits for nobody. */
int e2b_process_stream_own(struct e2b_request *request, struct process *process,
                           struct stream **ret, struct err *err);

/* Of one that somebody else has started (taken), from now on. */
int e2b_process_stream_join(struct e2b_request *request, struct record *record, struct stream **ret,
                            struct err *err);

/* How long a stream may be silent, as its client asks. */
uint64_t e2b_keepalive_ms(const struct e2b_request *request);
