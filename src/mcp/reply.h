/* How answers of /mcp go out: as a whole, or as a stream of events that ends with one. */
#pragma once

#include <jansson.h>
#include <microhttpd.h>
#include <stdbool.h>

struct exchange;
struct client_connection;
struct mcp_call;
struct mcp_session;

#define MCP_STREAM_TYPE "text/event-stream"

/* What clients over stdio take in one line is little more. */
enum { MCP_REPLY_MAX = 9 * 1024 * 1024 };

struct mcp_reply {
    unsigned status;
    json_t *body;        /* taken; NULL: none */
    const char *session; /* its id; NULL: none */
    bool is_last;        /* of its connection */
};

enum MHD_Result mcp_reply_send(struct MHD_Connection *connection, struct client_connection *client,
                               const struct mcp_reply *reply);

/* A call whose client requested progress. */
struct mcp_stream {
    struct exchange *exchange;
    struct mcp_call *call;       /* taken */
    struct mcp_session *session; /* taken; NULL: none */
    json_t *id;                  /* of its request */
};

/* Sends messages, which it takes, as a stream that ends with them. */
enum MHD_Result mcp_events_send(struct MHD_Connection *connection, struct client_connection *client,
                                json_t *const *messages, size_t count);

enum MHD_Result mcp_stream_send(struct MHD_Connection *connection, const struct mcp_stream *stream);
