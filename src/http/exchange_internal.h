/* One request on its way, as the files that answer it see it. */
#pragma once

#include <jansson.h>
#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/service.h"
#include "auth/token_store.h"
#include "base/buf.h"
#include "base/err.h"

struct e2b_request;
struct envelope;
struct client_connection;
struct listener;
struct page;
struct refusal;
struct route;
struct stream;
struct upload;
struct upload_intake;

/* How /mcp is asked; MCP_NONE: the request is to another path. */
enum mcp_verb { MCP_NONE, MCP_POST, MCP_DELETE, MCP_OTHER };

struct exchange {
    const struct listener *listener;
    char *target; /* as the client wrote it */
    bool is_begun;
    struct client_connection *client; /* its connection */
    const struct page *page; /* at most one of these three; none: a page that does not exist */
    const struct route *route;
    const struct refusal *refusal;
    enum mcp_verb mcp_verb;
    struct e2b_request *e2b; /* NULL: it is none of E2B's */
    enum token_access access;
    bool is_stranger; /* refused at the door */
    struct call call;
    struct buf body;
    struct upload_intake *intake; /* of a client stream, in place of the body */
    size_t discarded;
    struct err err; /* why the call fails, found before its body was whole */
    bool is_failed;
    uint64_t deadline_ns;      /* that the client gave the call, or CONNECTION_FOREVER */
    bool is_answered;          /* while its body still came */
    bool is_raw;               /* the client asks for the connection itself */
    struct stream *raw_stream; /* that will get it; or */
    struct upload *raw_upload;
    uint64_t started_ns;
    bool is_counted;
};

/* A call has ended, as clients see it. Counts once, whoever calls first. */
void exchange_count(struct exchange *exchange, enum err_kind kind);

/* Answers a call with an error. */
enum MHD_Result exchange_fail(struct exchange *exchange, struct MHD_Connection *connection,
                              const struct err *err);

/* Whether the call has taken longer than its client gave it; then sets err. */
bool exchange_is_late(const struct exchange *exchange, struct err *err);

/* Whether the daemon is shutting down; then sets err. */
bool exchange_is_stopped(const struct exchange *exchange, struct err *err);

/* Says why a call that waits with an eye on its connection has stopped, if it was not its client.
 */
void exchange_explain_cancel(const struct exchange *exchange, struct err *err);

/* A piece of a client stream: false when it was not looked at, because something has failed. */
bool exchange_receive_upload(struct exchange *exchange, const char *data, size_t len);
enum MHD_Result exchange_answer_upload(struct exchange *exchange,
                                       struct MHD_Connection *connection);

/* Answer with a stream, or with the connection itself. */
enum MHD_Result exchange_answer_stream(struct exchange *exchange, struct MHD_Connection *connection,
                                       const json_t *request);
enum MHD_Result exchange_answer_raw(struct exchange *exchange, struct MHD_Connection *connection,
                                    const json_t *request);

/* Why a request is not let in whatever it asks for, or NULL. host is the name it says it is for,
 * and a web page that it comes from must be known unless anybody's may call. */
const struct refusal *exchange_check_origin(const struct exchange *exchange,
                                            struct MHD_Connection *connection, const char *host,
                                            bool is_anybody);

/* Takes the client's Connect-Timeout-Ms, from when the request came. */
int exchange_read_timeout(struct exchange *exchange, struct MHD_Connection *connection,
                          struct err *err);

/* A piece of a body that nobody wants. */
enum MHD_Result exchange_discard(struct exchange *exchange, size_t len);

/* The one message of a stream's request. */
int exchange_unwrap(const struct exchange *exchange, size_t max, struct envelope *ret,
                    struct err *err);

/* Whether a request is one of E2B's, and then its life. */
bool exchange_is_e2b(struct exchange *exchange, struct MHD_Connection *connection, const char *path,
                     const char *verb);
void exchange_begin_e2b(struct exchange *exchange);
bool exchange_is_kept(const struct exchange *exchange); /* its connection, for longer than others */
enum MHD_Result exchange_receive_e2b(struct exchange *exchange, const char *data, size_t len);
enum MHD_Result exchange_answer_e2b(struct exchange *exchange);
void exchange_free_e2b(struct exchange *exchange);

/* Whether a request is one of the Model Context Protocol, and its answer. */
bool exchange_is_mcp(const char *path, const char *verb, enum mcp_verb *ret);
enum MHD_Result exchange_answer_mcp(struct exchange *exchange, struct MHD_Connection *connection);
