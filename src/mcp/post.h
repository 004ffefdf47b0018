/* One request to /mcp, for the files that answer it. */
#pragma once

#include <jansson.h>
#include <microhttpd.h>
#include <stdbool.h>

#include "mcp/message.h"
#include "mcp/session.h"
#include "mcp/stateless.h"

struct exchange;
struct mcp_call_request;
struct mcp_workspace;

struct mcp_post {
    struct exchange *exchange;
    unsigned char owner[MCP_OWNER_BYTES];
    struct mcp_session *session; /* NULL: none, or none yet */
    bool is_stateless;           /* of a revision without sessions */
    struct mcp_envelope envelope;
    bool wants_read_only; /* the address of a stateless request says so */
    bool is_broken;       /* the reading half of the connection was shut down */
};

/* The parameters of the address. */
struct mcp_query {
    struct mcp_session_spec spec;
    const char *workspace; /* NULL: none */
    struct mcp_fault fault;
    bool is_wrong;
};

/* Returns 0, or -1 with ret->fault set. */
int mcp_query_read(const struct mcp_post *post, struct mcp_query *ret);

/* Whether only read-only tools are for this client. */
bool mcp_post_is_read_only(const struct mcp_post *post);

/* Answer the request; a body is taken. */
enum MHD_Result mcp_post_answer(const struct mcp_post *post, unsigned status, json_t *body);
enum MHD_Result mcp_post_refuse(const struct mcp_post *post, unsigned status, json_t *id,
                                const struct mcp_fault *fault);

/* Executes a tool: replies with a stream if progress was requested, or if the call takes so long
 * that the connection would look dead. The workspace is that of a request without a session. */
enum MHD_Result mcp_post_call(struct mcp_post *post, json_t *id,
                              const struct mcp_call_request *request,
                              const struct mcp_workspace *workspace);

/* Answers a message of a revision without sessions. */
enum MHD_Result mcp_stateless_take(struct mcp_post *post, const struct mcp_message *message);
