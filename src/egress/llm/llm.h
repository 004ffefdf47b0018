/* The gateway to models: llm.holt, a server inside of holt-net that sandboxes with models see. A
 * request is read whole, reserved with holtd, and sent to the provider of its model with the
 * provider's key; the reply passes as it comes, while its use of tokens is read from it. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "gateway/request.h"
#include "net/name.h"

struct connection;
struct egress;
struct needles;
struct trust;
struct upstream;

enum {
    LLM_PORT = 80,
    LLM_URL_PATH_MAX = 255,
    LLM_KEY_MAX = 4096,
    LLM_KEY_MIN = 16, /* shorter ones are words that local servers accept, such as "ollama" */
};

struct llm_provider {
    char name[NET_NAME_SIZE];
    char owner[NET_NAME_SIZE]; /* whose sandboxes alone may use it; "": all */
    enum provider_kind kind;
    bool is_tls;
    char prefix[LLM_URL_PATH_MAX + 1]; /* of its paths */
    char key[LLM_KEY_MAX + 1];         /* "": its secret is missing */
    struct needles *needles;   /* the key, which replies must not have; NULL: it is no secret */
    struct trust *trust;       /* who it must be; NULL: plain HTTP, or no authority is known */
    struct upstream *upstream; /* host, port and the addresses of its name */
};

struct llm_model {
    char name[MODEL_NAME_MAX + 1]; /* in the sandbox */
    char upstream[MODEL_NAME_MAX + 1];
    size_t provider;
    uint64_t max_output; /* of a request that does not say it */
};

/* The providers and models of the host. An exchange keeps those that it began with. */
struct llm_table {
    unsigned users;
    struct egress *egress;
    struct llm_provider *providers;
    size_t provider_count;
    struct llm_model *models;
    size_t model_count;
};

/* --- table.c --- */

/* Reads "llm" of the hello; NULL is none. Returns 0 or -EPROTO. */
int llm_table_read(struct egress *egress, const json_t *json);
struct llm_table *llm_table_ref(struct llm_table *table);
void llm_table_unref(struct llm_table *table);
void llm_table_tick(struct llm_table *table);

/* --- models.c --- */

/* Returns whether the policy of the sandbox allows what the connection has under way. */
bool llm_is_granted(const struct connection *connection);

/* --- client.c --- */

/* Serves a connection of a sandbox to llm.holt. */
void llm_accept(struct connection *connection);
void llm_client_ready(struct connection *connection, uint32_t events);
void llm_server_ready(struct connection *connection);
void llm_tick(struct connection *connection);

/* Gives up what the connection has under way; tells holtd what it has used. */
void llm_forget(struct connection *connection);

/* Frees what is left of it, at the end of the turn. */
void llm_free(struct connection *connection);

/* Goes on after holtd has answered. */
void llm_reserved(struct egress *egress, const json_t *message);
