/* Messages of the Model Context Protocol and their replies. mcp/frontend.c has the transport. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "net/policy.h"

struct mcp_message;
struct mcp_fault;

/* All revisions that we speak, the latest first; NULL: no memory. */
json_t *mcp_versions_json(void);

/* What a model should know about the tools as a whole, and about the network of its sandbox. */
const char *mcp_instructions(enum net_mode network);

/* The result of tools/list; NULL with fault set. */
json_t *mcp_tools_list(const json_t *params, bool is_read_only, struct mcp_fault *fault);

/* A revision of the protocol that we speak. */
bool mcp_knows_version(const char *version);

/* The answer to an initialize: its result, or NULL with fault set. *ret_version is the revision
 * that holds from here on. */
json_t *mcp_initialize(const json_t *params, enum net_mode network, const char **ret_version,
                       struct mcp_fault *fault);

/* Whether messages of this revision may come in batches. */
bool mcp_version_has_batches(const char *version);

/* The result of a request that needs no time; NULL with fault set. */
json_t *mcp_answer(const struct mcp_message *message, bool is_read_only, struct mcp_fault *fault);

/* Returns the request id that a notification cancels; NULL: none, or an id that no request can
 * have. It is short enough to be stored. */
const json_t *mcp_cancelled_id(const struct mcp_message *message);
