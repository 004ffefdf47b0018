/* Timeouts of E2B's sandboxes, and how paused ones are resumed. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "host/sandbox/info.h"

struct e2b_request;
struct err;
struct host;
struct sandbox;

enum { E2B_TIMEOUT_DEFAULT_S = 300, E2B_TIMEOUT_MAX_S = 30 * 24 * 3600 };

/* Whether the sandbox is active. */
bool e2b_is_active(struct sandbox *sandbox);

/* Returns what the metadata says to do at the timeout. */
enum sandbox_action e2b_action(const struct host *host, const json_t *metadata);

/* Sets the timeout to this many seconds from now, with the action of the metadata. */
int e2b_set_timeout(struct sandbox *sandbox, const json_t *metadata, uint64_t timeout_s,
                    struct err *err);

/* Resumes or starts the request's sandbox for this many seconds, with the start command of its
 * template. *ret_was_active: it was running already. */
int e2b_wake(const struct e2b_request *request, uint64_t timeout_s, bool *ret_was_active,
             struct err *err);

/* Does the same for a request to envd or a port; fails unless the metadata permits it. */
int e2b_wake_for_traffic(const struct e2b_request *request, struct err *err);
