/* Watchers for clients that cannot read a stream: events are kept until polled. */
#pragma once

#include <jansson.h>

struct e2b_request;
struct e2b_watchers;
struct err;

struct e2b_watchers *e2b_watchers_new(void);

/* Ends all of them. Accepts NULL. */
void e2b_watchers_free(struct e2b_watchers *watchers);

/* CreateWatcher, GetWatcherEvents, RemoveWatcher. */
int e2b_watcher_create(struct e2b_request *request, json_t **ret_reply, struct err *err);
int e2b_watcher_events(struct e2b_request *request, json_t **ret_reply, struct err *err);
int e2b_watcher_remove(struct e2b_request *request, json_t **ret_reply, struct err *err);
