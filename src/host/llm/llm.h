/* The models that sandboxes may use: the daemon's part of the gateway. holt-net (src/egress/llm)
 * moves the requests; it asks here before each, and says what each has used. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "host/llm/ledger.h"
#include "host/llm/models.h"

struct config;
struct err;
struct host;
struct llm;

/* The name and address of the gateway in sandboxes that have models. */
#define LLM_NAME "llm.holt"
#define LLM_ADDRESS "192.0.2.80"

enum { LLM_TOKEN_BYTES = 32, LLM_ENV_COUNT = 4 };

int llm_open(int state_fd, const struct config *config, struct llm **ret, struct err *err);
void llm_close(struct llm *llm);

/* Reads the file of models and all keys again. Fails with ERR_INVALID; nothing has changed then. */
int llm_configure(struct llm *llm, const struct config *config, struct err *err);

/* Returns what holt-net is told of providers and models, keys among it. A provider whose key is a
 * secret has an empty key and the member "secret". */
json_t *llm_message(struct llm *llm);

/* Writes the token of a sandbox: a keyed hash of its id, so it needs no record, and is another one
 * in a fork. */
void llm_token(const struct llm *llm, const char *sandbox, char ret[2 * LLM_TOKEN_BYTES + 1]);

/* Returns the variables by which clients of both formats find the gateway, NULL-terminated; the
 * caller frees it at once, with the texts. */
char **llm_environment(const struct llm *llm, const char *sandbox);

/* Answers a message of holt-net about a sandbox (NULL: it is gone): returns the reply, or NULL. */
json_t *llm_handle(struct llm *llm, const char *sandbox, const char *owner, const json_t *message);

/* Ends the reservations of a holt-net that has ended: they count as reserved. */
void llm_helper_lost(struct llm *llm);

/* Checks that each of these words names a model that the owner may use. Fails with ERR_INVALID. */
int llm_check(struct llm *llm, const char *owner, const char *models, struct err *err);

/* Calls fn for every model that the owner may use. */
typedef void llm_model_fn(void *data, const struct llm_model_info *model, const char *prices_date);
void llm_each_model(struct llm *llm, const char *owner, llm_model_fn *fn, void *data);

/* Copies what has ended since the daemon started, see llm_ledger_series. */
size_t llm_series(struct llm *llm, struct llm_series **ret);

/* Copies the use since a day, see llm_ledger_rows. */
size_t llm_usage(struct llm *llm, uint64_t since_day, struct llm_usage_row **ret);
