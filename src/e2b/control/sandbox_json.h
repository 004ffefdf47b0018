/* Sandboxes as JSON of the control API. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct e2b_request;
struct sandbox;
struct sandbox_info;

/* Whether it is there as far as they are concerned: neither being made nor going. */
bool e2b_is_there(const struct sandbox_info *info);
bool e2b_is_running(const struct sandbox_info *info);

/* The answer to create and connect. */
json_t *e2b_sandbox_json(const struct e2b_request *request, const struct sandbox_info *info,
                         const json_t *metadata);

/* How much a sandbox with this quota (0: none) can hold. */
uint64_t e2b_disk_bytes(struct e2b_request *request, uint64_t quota_bytes);

/* One of a list, and all there is to know of one. */
json_t *e2b_listed_json(struct e2b_request *request, const struct sandbox_info *info,
                        const json_t *metadata);
json_t *e2b_detail_json(struct e2b_request *request, const struct sandbox_info *info,
                        const json_t *metadata);

/* The metadata of an info that was listed; an empty object where it has none. */
json_t *e2b_info_note(const struct sandbox_info *info);

/* Milliseconds since 1970 as RFC 3339 with milliseconds. */
json_t *e2b_time_json(uint64_t ms);
