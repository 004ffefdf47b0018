/* One HTTP request and its answer, from the header on. */
#pragma once

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>

#include "http/origin.h"

struct e2b_resets;
struct e2b_builds;
struct e2b_history;
struct e2b_objects;
struct e2b_watchers;
struct exchange;
struct host;
struct mcp_sessions;
struct raw_sessions;
struct token_store;

/* Where requests come in. */
struct listener {
    struct host *host;
    bool is_local; /* the unix socket, which its mode protects: no token */
    bool is_tls;
    struct origin_rules origin_rules;
    struct token_store *tokens;
    struct raw_sessions *raw_sessions;
    struct mcp_sessions *mcp;
    struct e2b_resets *resets;
    struct e2b_objects *objects;
    struct e2b_watchers *watchers;
    struct e2b_builds *builds;
    struct e2b_history *history;
};

/* The first line is here; target is what it asks for, as the client wrote it. */
struct exchange *exchange_new(const struct listener *listener, const char *target);

/* Whether its header was not yet seen. */
bool exchange_is_new(const struct exchange *exchange);

/* The header is here. */
enum MHD_Result exchange_begin(struct exchange *exchange, struct MHD_Connection *connection,
                               const char *path, const char *verb);

/* Some bytes of the body are here. */
enum MHD_Result exchange_receive(struct exchange *exchange, const char *data, size_t len);

/* The whole request is here: answers it. */
enum MHD_Result exchange_answer(struct exchange *exchange, struct MHD_Connection *connection);

/* The request is over, answered or not. Accepts NULL. */
void exchange_free(struct exchange *exchange);
