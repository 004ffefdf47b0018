/* JSON-RPC 2.0 as the Model Context Protocol uses it: what a message is, and what answers one. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct err;

enum mcp_code {
    MCP_PARSE_ERROR = -32700,
    MCP_INVALID_REQUEST = -32600,
    MCP_NO_METHOD = -32601,
    MCP_INVALID_PARAMS = -32602,
    MCP_INTERNAL = -32603,
    MCP_REFUSED = -32000, /* from here on our own: what Holt itself refuses */
    MCP_NO_SESSION = -32001,
    MCP_HEADER_MISMATCH = -32020, /* of revision 2026-07-28, as the next two */
    MCP_MISSING_CAPABILITY = -32021,
    MCP_UNSUPPORTED_VERSION = -32022,
    MCP_REFUSED_STATELESS = -31000, /* MCP_REFUSED in revision 2026-07-28 */
};

enum {
    MCP_TEXT_MAX = 240,
    MCP_ID_MAX = 256, /* bytes of an id that is a text */
    MCP_VERSION_SIZE = 64,
};

/* Why a message is not answered with a result. */
struct mcp_fault {
    enum mcp_code code;
    char text[MCP_TEXT_MAX];
    char requested[MCP_VERSION_SIZE]; /* the version, of MCP_UNSUPPORTED_VERSION */
};

/* Fills it; -1, so that a caller can return it. */
int mcp_fault(struct mcp_fault *fault, enum mcp_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for a version that is not supported; the reply lists those that are. */
int mcp_fault_version(struct mcp_fault *fault, const char *requested);

/* The extension for calls that take long, see mcp/task.h. */
#define MCP_TASKS_EXTENSION "io.modelcontextprotocol/tasks"

enum mcp_kind { MCP_REQUEST, MCP_NOTIFICATION, MCP_RESPONSE };

/* Points into the value it was read from. */
struct mcp_message {
    enum mcp_kind kind;
    json_t *id; /* of a request or response, a text or a number */
    const char *method;
    const json_t *params; /* an object; NULL: none */
};

/* Whether a value can be the id of a request: a number, or a text of at most MCP_ID_MAX bytes. */
bool mcp_is_id(const json_t *id);

/* Text to a value, of whatever kind: 0 or -1. */
int mcp_parse(const char *text, size_t len, json_t **ret, struct mcp_fault *fault);

/* Returns 0 or -1. Sets ret->id in both cases, if there is one, so that an error reaches its
 * request. */
int mcp_message_read(const json_t *value, struct mcp_message *ret, struct mcp_fault *fault);

/* Answers to the request with this id (NULL: it is not known); NULL when there is no memory.
 * mcp_result takes the result. */
json_t *mcp_result(json_t *id, json_t *result);
json_t *mcp_failure(json_t *id, const struct mcp_fault *fault);

/* The same for an error of the host, which keeps its cause and its remedy. */
json_t *mcp_failure_of(json_t *id, const struct err *err);
