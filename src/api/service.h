/* The services: message in, host call, message out. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/access/caller.h"
#include "wire/holt_v1.h"

struct arena;
struct buf;
struct err;
struct host;
struct listener;
struct sandbox;
struct session_store;
struct stream;
struct token_store;
struct upload;

/* What a service knows of the call besides its message. */
struct call {
    struct host *host;
    const struct listener *listener;
    struct token_store *tokens;
    struct session_store *sessions; /* logins and previews; NULL: none */
    const struct caller *caller;
    bool is_local;          /* it came over the unix socket */
    const char *agents_dir; /* agent types of this host */
    bool has_port_names;    /* a front end serves ports of sandboxes by host name */
    bool is_raw;            /* the connection is handed over to the stream, which makes frames */
    int connection_fd;      /* hangs up when the client goes away */
    struct buf *out;        /* of a unary call: a service may write the reply here as JSON text */
    const json_t *message;  /* the request as it came */
    struct arena *arena;    /* for what lives as long as the request */
};

/* Returns r. If it is an error of the sandbox that the request names, its message gets the word of
 * the request in place of the id. */
int call_result(const struct call *call, int r, struct err *err);

/* Replaces the id of the sandbox in the message of an error by the word of the client, for streams
 * that fail after their call has returned. */
void call_set_word(const struct sandbox *sandbox, const char *word, struct err *err);

/* Writes the reply of a unary method: 0, or a negative errno with err set. */
int call_reply(const struct call *call, const struct schema *schema, const void *message,
               struct err *err);

/* Refuses ports of the system to callers that are no admins; 0 stands for any port. */
int listen_port_check(const struct caller *caller, uint64_t port, struct err *err);

/* A method as the table of routes has it: decodes the request, and calls the function below. A
 * unary method writes its reply to call->out; no text stands for an empty message. */
typedef int unary_fn(const struct call *call, const json_t *request, struct err *err);

/* The request is gone when the stream is first read. */
typedef int stream_fn(const struct call *call, const json_t *request, struct stream **ret,
                      struct err *err);

/* Takes a stream of messages, of which this is the first, and answers with one (http/upload.h). */
typedef int upload_fn(const struct call *call, const json_t *first, struct upload **ret,
                      struct err *err);

/* One function for each method of holt.v1, named after it: sandbox_service_create for
 * SandboxService/Create. It takes the decoded request. */
#define DECLARE_UNARY(function, type)                                                              \
    int function(const struct call *call, const struct type *request, struct err *err);
#define DECLARE_STREAM(function, type)                                                             \
    int function(const struct call *call, const struct type *request, struct stream **ret,         \
                 struct err *err);
#define DECLARE_UPLOAD(function, type)                                                             \
    int function(const struct call *call, const struct type *first, struct upload **ret,           \
                 struct err *err);
#define DECLARE(kind, path, function, request, ...) DECLARE_##kind(function, request)

MSG_METHODS(DECLARE)

#undef DECLARE
#undef DECLARE_UNARY
#undef DECLARE_STREAM
#undef DECLARE_UPLOAD
