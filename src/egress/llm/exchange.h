/* Internal interface of the gateway in holt-net: one connection of a sandbox, and the one to the
 * provider that goes with it. */
#pragma once

#include <http_parser.h>
#include <openssl/types.h>

#include "base/buf.h"
#include "egress/egress_internal.h"
#include "egress/http/sieve.h"
#include "egress/llm/llm.h"
#include "gateway/usage.h"

enum {
    LLM_BODY_MAX = 128 * 1024 * 1024,
    LLM_HELD_MAX = 512 * 1024 * 1024,       /* of all requests that are not sent yet */
    LLM_HELD_GUEST_MAX = 256 * 1024 * 1024, /* of those of one sandbox */
    LLM_HEADERS_MAX = 32 * 1024,
    LLM_FIELD_SIZE = 64, /* of a name */
    LLM_TO_CLIENT_MAX = 512 * 1024,
    LLM_TO_CLIENT_FULL = 32 * 1024, /* from here on the provider is not read */
    LLM_READ_BYTES = 16 * 1024,
};

enum llm_state {
    LLM_IDLE,    /* waits for a request, or reads one */
    LLM_RESERVE, /* waits for holtd */
    LLM_LOOKUP,  /* waits for the addresses of the provider */
    LLM_CONNECT,
    LLM_HANDSHAKE,
    LLM_SEND, /* sends the request; the reply may begin */
    LLM_REPLY,
};

struct llm_field {
    char name[LLM_FIELD_SIZE];
    struct buf value;
    bool is_value; /* the last part was of the value */
};

struct llm_exchange {
    struct connection *connection;
    enum llm_state state;
    http_parser request;
    char target[2048];
    struct buf fields; /* that go to the provider */
    struct llm_field field;
    char token[TOKEN_SIZE];
    bool is_anthropic, is_too_long, is_short, keeps_client, is_old;
    bool is_early;      /* the client has sent more before its turn */
    bool drops_body;    /* it is refused whatever it says */
    bool expects;       /* it waits for a word before it sends its body */
    struct buf pending; /* bytes of the next request */
    struct buf body;
    struct request_body scan;
    enum request_call call;
    enum provider_kind kind;
    size_t held; /* bytes of the request in the sums of all */

    struct llm_table *table;
    const struct llm_model *model;
    uint64_t ticket;   /* that holtd is asked with; 0: none */
    uint64_t reserved; /* of holtd; 0: none */
    uint64_t input, output;

    const struct llm_provider *connected; /* that the server is; NULL: none */
    struct llm_table *connected_table;
    size_t address_next;
    bool is_reused; /* the connection had a request before */
    SSL *ssl;
    struct buf to_server;
    size_t sent;
    uint64_t sent_ms; /* when the request was sent */
    http_parser reply;
    struct llm_field reply_field;
    struct buf reply_fields;
    struct usage_reader usage;
    struct sieve sieve; /* of the body of the reply */
    bool has_key;       /* the reply has the key of the provider */
    uint64_t reply_bytes, down_before;
    bool reply_is_begun, reply_is_whole, reply_keeps, reply_has_length;
    bool wants_write; /* TLS */
    struct buf to_client;
};

/* --- server.c --- */

/* Connects to the provider, or uses the connection that there is, and sends the request. */
void llm_server_start(struct llm_exchange *exchange);
void llm_server_pump(struct llm_exchange *exchange);
void llm_server_close(struct llm_exchange *exchange);

/* --- reserve.c --- */

/* Asks holtd whether the budgets allow the request; llm_reserved goes on. */
void llm_reserve(struct llm_exchange *exchange);

/* Tells holtd what the request has used. */
void llm_settle(struct llm_exchange *exchange);

/* --- field.c --- */

/* Not keys, framing, who pays, and what Holt decides itself; a compressed reply could not be read.
 */
bool llm_request_field_passes(const char *name);

/* Not fields of one connection, and those that would bind the sandbox to the provider. */
bool llm_reply_field_passes(const char *name);

/* --- models.c --- */

/* Finds a model that the sandbox may use in the format of the request; NULL: none. */
const struct llm_model *llm_model_find(const struct llm_exchange *exchange, const char *name);

/* Answer the calls for the list of models, and for one of them. */
void llm_answer_list(struct llm_exchange *exchange);
void llm_answer_entry(struct llm_exchange *exchange);

/* --- client.c --- */

/* Answers the request with an error of Holt in the shape of the provider. */
void llm_refuse(struct llm_exchange *exchange, enum request_error error, const char *message,
                uint64_t retry_seconds);

/* Sends what there is for the client. Returns false if the connection has ended. */
bool llm_client_flush(struct llm_exchange *exchange);

/* Watches the client for what the state of the exchange waits for. */
void llm_client_watch(struct llm_exchange *exchange);

/* Ends the exchange after a whole reply; the next request may begin. */
void llm_exchange_end(struct llm_exchange *exchange);

/* Frees the request, which the provider has. */
void llm_request_drop(struct llm_exchange *exchange);
