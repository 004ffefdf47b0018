/* Revision 2026-07-28 of the protocol, which has no sessions: every request has in its _meta the
 * revision and the capabilities of the client, and repeats parts of its body in headers. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "net/policy.h"

struct mcp_fault;
struct mcp_message;

#define MCP_STATELESS_VERSION "2026-07-28"

/* The headers that repeat parts of a message; NULL: absent. */
struct mcp_headers {
    const char *version; /* MCP-Protocol-Version */
    const char *method;  /* Mcp-Method */
    const char *name;    /* Mcp-Name */
};

/* What a request says about its client. */
struct mcp_envelope {
    bool has_tasks; /* it can poll tasks, see mcp/task.h */
};

/* Returns whether a body belongs to a revision without sessions: its _meta or the header says so,
 * or only such revisions have its method. */
bool mcp_is_stateless(const json_t *body, const char *version_header);

/* Checks _meta and headers of a request or notification. Returns 0, or -1 with fault set. */
int mcp_envelope_read(const struct mcp_message *message, const struct mcp_headers *headers,
                      struct mcp_envelope *ret, struct mcp_fault *fault);

/* Returns the result of a request that needs no time; NULL with fault set. */
json_t *mcp_stateless_answer(const struct mcp_message *message, bool is_read_only,
                             enum net_mode network, struct mcp_fault *fault);

/* Adds to a reply, which it takes and returns, what the revision requires of every reply. */
json_t *mcp_stateless_reply(json_t *reply);

/* Returns the notification that begins the stream of a subscriptions/listen, and as its result the
 * end of it: the lists never change, so there is nothing to wait for. NULL with fault set. */
json_t *mcp_listen_answer(const struct mcp_message *message, json_t **ret_result,
                          struct mcp_fault *fault);
