/* One HTTP request and its answer, from the header on. */
#pragma once

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>

#include "api/token.h"

struct exchange;
struct host;
struct raw_sessions;

/* Where requests come in. */
struct listener {
    struct host *host;
    bool is_local;             /* the unix socket, which its mode protects: no token */
    char token[TOKEN_LEN + 1]; /* of a listener that is not local */
    struct raw_sessions *raw_sessions;
};

/* Seconds that a connection may be silent while we wait for its client. */
enum { EXCHANGE_IDLE_S = 120 };

/* The header is here. Makes *ret, unless the request is refused and answered at once. */
enum MHD_Result exchange_begin(const struct listener *listener, struct MHD_Connection *connection,
                               const char *path, const char *verb, struct exchange **ret);

/* Some bytes of the body are here. */
enum MHD_Result exchange_receive(struct exchange *exchange, struct MHD_Connection *connection,
                                 const char *data, size_t len);

/* The whole request is here: answers it. */
enum MHD_Result exchange_answer(struct exchange *exchange, struct MHD_Connection *connection);

/* Accepts NULL. */
void exchange_free(struct exchange *exchange);
