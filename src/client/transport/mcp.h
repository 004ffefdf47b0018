/* Sends MCP messages to a daemon's /mcp, for `holt mcp`, which forwards them unparsed. */
#pragma once

#include <stddef.h>

struct holt;
struct holt_error;
struct mcp_post;

enum { MCP_SESSION_SIZE = 128 };

struct mcp_post_request {
    const char *verb;    /* NULL: POST */
    const char *path;    /* "mcp?sandbox=work" */
    const char *session; /* NULL: none yet */
    const char *body;
    size_t len;
};

/* Sends the message and waits for the start of the reply. Returns 0 or -1. */
int mcp_post_open(struct holt *holt, const struct mcp_post_request *request, struct mcp_post **ret,
                  struct holt_error *error);

unsigned mcp_post_status(const struct mcp_post *post);

/* Returns the session id of the reply, or "". */
const char *mcp_post_session(const struct mcp_post *post);

/* Returns the next message of the reply as one line, valid until the next call: 1, 0 at the end, or
 * -1. */
int mcp_post_next(struct mcp_post *post, const char **ret, size_t *ret_len,
                  struct holt_error *error);

/* Accepts NULL. */
void mcp_post_close(struct mcp_post *post);
