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

    /* Of a message of a revision without sessions, which repeats them in headers; NULL: none. */
    const char *version, *method;
    const char *name;
    size_t name_len;
};

/* Sends the message. Returns 0 or -1. */
int mcp_post_open(struct holt *holt, const struct mcp_post_request *request, struct mcp_post **ret,
                  struct holt_error *error);

/* Waits for the start of the reply. Returns 0 or -1. */
int mcp_post_wait(struct mcp_post *post, struct holt_error *error);

/* Ends the connection, and so all waits for the reply. Another thread may call it that prevents a
 * concurrent mcp_post_close. */
void mcp_post_hang_up(struct mcp_post *post);

unsigned mcp_post_status(const struct mcp_post *post);

/* Returns the session id of the reply, or "". */
const char *mcp_post_session(const struct mcp_post *post);

/* Returns the next message of the reply as one line, valid until the next call: 1, 0 at the end, or
 * -1. */
int mcp_post_next(struct mcp_post *post, const char **ret, size_t *ret_len,
                  struct holt_error *error);

/* Accepts NULL. */
void mcp_post_close(struct mcp_post *post);
