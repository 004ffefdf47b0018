/* The file of models (`models` in holt.conf): which providers there are, which of their models
 * sandboxes may use under which names, for how much money, and the budgets.
 *
 *   {"providers": [{"name": "anthropic", "kind": "anthropic", "url": "https://api.anthropic.com",
 *                   "keyFile": "/etc/holt/anthropic.key", "owner": "ann", "caFile": "..."}],
 *    "models": [{"name": "fast", "provider": "anthropic", "model": "claude-haiku-4-5",
 *                "maxOutput": 64000}],
 *    "prices": "/usr/share/holt/prices-2025-12-01.json",
 *    "budgets": {"sandbox": {...}, "owner": {...}, "owners": {"ann": {...}}}}
 *
 * A provider with an owner is for the sandboxes of that owner alone: their key pays for them. In
 * place of keyFile a provider may have "secret", the name of a secret of that owner, or of root. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/access/caller.h"
#include "host/llm/ledger.h"

struct err;

enum { LLM_PROVIDER_NAME_MAX = 64, LLM_OUTPUT_DEFAULT = 32768, LLM_DATE_SIZE = 16 };

struct llm_model_info {
    char name[MODEL_NAME_MAX + 1];
    char upstream[MODEL_NAME_MAX + 1];
    char provider[LLM_PROVIDER_NAME_MAX + 1];
    char owner[OWNER_NAME_MAX + 1]; /* "": all */
    char kind[16];                  /* "anthropic" or "openai" */
    struct llm_price price;
};

struct llm_models {
    json_t *message; /* what holt-net is told: providers with keys, and models */
    struct llm_model_info *list;
    size_t count;
    char prices_date[LLM_DATE_SIZE];
    struct llm_budget sandbox_budget;
    json_t *owner_budgets; /* by name; "" is that of all others */
};

/* Reads the file; a path of "" gives no models. Fails with ERR_INVALID that names the file and what
 * is wrong in it, never a key. */
int llm_models_read(const char *path, struct llm_models *ret, struct err *err);
void llm_models_done(struct llm_models *models);

/* Finds a model that the owner may use. */
const struct llm_model_info *llm_models_find(const struct llm_models *models, const char *owner,
                                             const char *name);

void llm_models_owner_budget(const struct llm_models *models, const char *owner,
                             struct llm_budget *ret);
