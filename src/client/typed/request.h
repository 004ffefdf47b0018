/* Building requests of the typed layer. Absent options (NULL, 0, false) are left out, which leaves
 * them to the daemon. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct holt_command;
struct holt_sandbox_options;

/* {"sandboxId": sandbox}; NULL for a text that is not UTF-8. */
json_t *request_for(const char *sandbox);

/* Each returns the request, or NULL, having dropped it, where that fails: so they can be chained.
 */
json_t *request_text(json_t *request, const char *name, const char *value);
json_t *request_u64(json_t *request, const char *name, uint64_t value);
json_t *request_true(json_t *request, const char *name, bool value);

/* Takes value. */
json_t *request_value(json_t *request, const char *name, json_t *value);

/* A map of texts from "name=value" texts, which end with NULL. */
json_t *request_map(const char *const *pairs);

/* A list of texts, which end with NULL; NULL: an empty one. */
json_t *request_texts(const char *const *values);

/* A ProcessSpec; a template, a runtime and limits into a request. */
json_t *request_process(const struct holt_command *command, bool has_stdin);
json_t *request_sandbox(json_t *request, const struct holt_sandbox_options *options);
