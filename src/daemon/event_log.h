/* Logs the events that an operator has to know of: what recovery found, and the storage. */
#pragma once

struct err;
struct event_log;
struct host;

/* Starts a thread that logs such events, beginning with those of this start. */
int event_log_start(struct host *host, struct event_log **ret, struct err *err);

/* Waits for the end of the thread, which comes after host_drain. Accepts NULL. */
void event_log_stop(struct event_log *log);
