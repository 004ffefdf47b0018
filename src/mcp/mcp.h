/* The Model Context Protocol: what is answered to which message. How messages come and go is the
 * affair of mcp/frontend.c. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct mcp_message;
struct mcp_fault;

/* A revision of the protocol that we speak. */
bool mcp_knows_version(const char *version);

/* The answer to an initialize: its result, or NULL with fault set. *ret_version is the revision
 * that holds from here on. */
json_t *mcp_initialize(const json_t *params, const char **ret_version, struct mcp_fault *fault);

/* Whether messages of this revision may come in batches. */
bool mcp_version_has_batches(const char *version);

/* The result of a request that needs no time; NULL with fault set. */
json_t *mcp_answer(const struct mcp_message *message, bool is_read_only, struct mcp_fault *fault);

/* The id that a notification cancels, or NULL: it is none that does, or no request can have it. Who
 * remembers it can rely on its being short. */
const json_t *mcp_cancelled_id(const struct mcp_message *message);
