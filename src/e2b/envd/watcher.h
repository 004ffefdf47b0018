/* Watchers for clients that cannot read a stream: events are kept until polled. */
#pragma once

struct e2b_watchers;

struct e2b_watchers *e2b_watchers_new(void);

/* Ends all of them. Accepts NULL. */
void e2b_watchers_free(struct e2b_watchers *watchers);
