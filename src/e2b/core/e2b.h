/* The E2B protocol, as its unmodified clients speak it: a control API (REST), and for each sandbox
 * an "envd" (Connect and REST) and the ports of its programs. Everything is a thin layer over
 * host/.
 *
 * Where a request belongs is found in its header (e2b/core/target.h). It is then a struct
 * e2b_request and goes to the route that fits (e2b/core/route.c has the tables, each in the file of
 * its subject). By the time a handler is called:
 *   - the caller has shown that it may: an API key (a token of Holt's) for the control API, the
 *     sandbox's own token for envd, the traffic token for a port that is not public;
 *   - the sandbox of envd and ports is there and active, woken if it wants that. */
#pragma once

#include <jansson.h>
#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "e2b/core/target.h"

struct buf;
struct e2b_builds;
struct e2b_history;
struct e2b_objects;
struct e2b_request;
struct e2b_resets;
struct e2b_watchers;
struct exchange;
struct host;
struct sandbox;
struct stream;

enum {
    E2B_PARAMS_MAX = 3,
    E2B_HEADERS_MAX = 8, /* of an answer */
};

/* The version of envd that clients see; they do without later features. */
#define E2B_ENVD_VERSION "0.6.13"

/* Takes a body piece by piece, instead of one JSON object. */
struct e2b_body_ops {
    /* The header is complete. On a negative errno with err set the request fails (e2b_reply_err)
     * and the rest of its body is discarded. */
    int (*begin)(struct e2b_request *request, struct err *err);

    /* Some bytes are here; as begin. Chunks of the transfer are undone already. */
    int (*receive)(struct e2b_request *request, const char *data, size_t len, struct err *err);
};

/* One way to call. Exactly one of answer, unary and stream is set. */
struct e2b_route {
    const char *verb; /* "*": any */
    const char *path; /* "{}" is one segment, "*" at the end all that is left */

    /* REST. The request is complete: sends the reply with one of e2b_reply_*, once. */
    enum MHD_Result (*answer)(struct e2b_request *request);

    /* Connect. request->body is the message, {} at least. A unary call appends its reply to out;
     * nothing stands for {}. An error travels as its code. */
    int (*unary)(struct e2b_request *request, struct buf *out, struct err *err);
    int (*stream)(struct e2b_request *request, struct stream **ret, struct err *err);

    const struct e2b_body_ops *body; /* NULL: JSON, bounded */

    /* Frees request->state. Called once, when the reply was sent or the client has gone; not when
     * state is NULL. */
    void (*close)(struct e2b_request *request);

    bool is_open;     /* needs no token */
    bool is_transfer; /* REST: breaks off with the sandbox, as streams do (e2b/core/reset.h) */
};

struct e2b_routes {
    const struct e2b_route *routes;
    size_t count;
};

/* Those of the control API and of envd; a port has one for everything. */
extern const struct e2b_routes e2b_template_routes, e2b_template_build_routes, e2b_tag_routes,
    e2b_upload_routes;
extern const struct e2b_routes e2b_sandbox_routes, e2b_list_routes, e2b_metrics_routes,
    e2b_log_routes, e2b_snapshot_routes, e2b_fork_routes, e2b_team_routes, e2b_secret_routes,
    e2b_volume_routes, e2b_volume_content_routes, e2b_envd_routes, e2b_port_routes;
extern const struct e2b_routes e2b_method_routes, e2b_files_routes;

/* What the front end keeps as long as the daemon runs. */
struct e2b {
    struct host *host;
    struct e2b_objects *objects;
    struct e2b_builds *builds;
    struct e2b_watchers *watchers;
    struct e2b_resets *resets;
    struct e2b_history *history;
};

/* One request. */
struct e2b_request {
    struct e2b *e2b;
    struct exchange *exchange;
    struct MHD_Connection *connection;
    int connection_fd; /* hangs up when the client goes away */
    struct host *host;

    const char *verb;
    const char *target; /* path and query as the client wrote them */
    char *path;         /* of the target, not decoded */
    const struct e2b_route *route;
    char *params[E2B_PARAMS_MAX]; /* what stood in the path's places, decoded */

    struct e2b_target to;
    struct sandbox *sandbox; /* of envd and ports, with a reference */
    json_t *metadata;        /* of the sandbox, see e2b/core/metadata.h */
    bool is_read_only;       /* the token is read-only */
    bool has_token;          /* the sandbox's own was shown, or none is needed here */
    char preview[64 + 1];    /* the cookie that a code for this port was exchanged for; "": none */

    json_t *body;           /* an object; NULL: the request has none */
    void *state;            /* the handler's own */
    uint64_t storage_bytes; /* see e2b_disk_bytes */

    struct {
        const char *name;
        char *value;
    } headers[E2B_HEADERS_MAX]; /* of the answer */
    size_t header_count;

    enum err_kind outcome; /* for the counters: ERR_CANCELED until there is an answer */
};

/* A header, or NULL; a parameter of the query (decoded once), or NULL. */
const char *e2b_header(const struct e2b_request *request, const char *name);
const char *e2b_query(const struct e2b_request *request, const char *name);

/* The answer will have this header. The name must stay. */
void e2b_header_add(struct e2b_request *request, const char *name, const char *value);

/* Takes the JSON (NULL: out of memory). */
enum MHD_Result e2b_reply_json(struct e2b_request *request, unsigned status, json_t *body);

/* Without a body. */
enum MHD_Result e2b_reply_empty(struct e2b_request *request, unsigned status);

/* {"code": status, "message": ...}. */
enum MHD_Result e2b_reply_error(struct e2b_request *request, unsigned status, const char *format,
                                ...) __attribute__((format(printf, 3, 4)));

/* What an error of the host is to clients; about a sandbox that is not there (any more), to a
 * client of envd or a port, e2b_reply_gone. */
enum MHD_Result e2b_reply_err(struct e2b_request *request, const struct err *err);

/* The status of such an answer, of the control API. */
unsigned e2b_status_of(const struct err *err);

/* 502, by which clients know that a sandbox does not run. */
enum MHD_Result e2b_reply_gone(struct e2b_request *request);

/* Any other answer, for files and proxies. Takes the response. */
enum MHD_Result e2b_reply_response(struct e2b_request *request, unsigned status,
                                   struct MHD_Response *response);
