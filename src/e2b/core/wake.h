/* How long sandboxes that clients of E2B have asked for go on, and how they go on again. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "host/sandbox/info.h"

struct e2b_request;
struct err;
struct sandbox;

enum { E2B_TIMEOUT_DEFAULT_S = 300, E2B_TIMEOUT_MAX_S = 30 * 24 * 3600 };

/* Whether its processes run. */
bool e2b_is_awake(struct sandbox *sandbox);

/* What its metadata wants to happen when its time is over. */
enum sandbox_action e2b_action(const json_t *metadata);

/* From now on it has this many seconds, after which happens what its metadata says. */
int e2b_set_timeout(struct sandbox *sandbox, const json_t *metadata, uint64_t timeout_s,
                    struct err *err);

/* Resumes the request's sandbox for so many seconds, or starts it, and what its template starts;
 * *ret_was_awake: it ran already. */
int e2b_wake(const struct e2b_request *request, uint64_t timeout_s, bool *ret_was_awake,
             struct err *err);

/* The same for a request to one that wants to be woken by requests; others refuse. */
int e2b_wake_for_traffic(const struct e2b_request *request, struct err *err);
