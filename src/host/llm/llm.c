// SPDX-License-Identifier: Apache-2.0
#include "host/llm/llm.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/random.h"
#include "base/text/hex.h"
#include "base/xalloc.h"
#include "host/core/config.h"

#define KEY_FILE "llm.key"

struct llm {
    struct lock lock;
    struct llm_models models;
    struct llm_ledger *ledger;
    unsigned char key[LLM_TOKEN_BYTES];
};

/* --- the key of tokens --- */

static int key_make(int state_fd, unsigned char *key, struct err *err)
{
    cleanup_close int fd =
        openat(state_fd, KEY_FILE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int r = fd < 0 ? -errno : 0;

    if (r == 0) {
        random_bytes(key, LLM_TOKEN_BYTES);
        r = write_all(fd, key, LLM_TOKEN_BYTES);
    }
    if (r == 0 && fsync(fd) < 0)
        r = -errno;
    return r < 0 ? err_sys(err, r, "make '%s'", KEY_FILE) : 0;
}

static int key_open(int state_fd, unsigned char *key, struct err *err)
{
    cleanup_close int fd = openat(state_fd, KEY_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0 && errno == ENOENT)
        return key_make(state_fd, key, err);
    if (fd < 0)
        return err_sys(err, -errno, "open '%s'", KEY_FILE);
    if (read_full(fd, key, LLM_TOKEN_BYTES) == LLM_TOKEN_BYTES)
        return 0;
    (void)unlinkat(state_fd, KEY_FILE, 0); /* cut by a power failure: no token of it is in use */
    return key_make(state_fd, key, err);
}

void llm_token(const struct llm *llm, const char *sandbox, char ret[2 * LLM_TOKEN_BYTES + 1])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned len = 0;

    (void)HMAC(EVP_sha256(), llm->key, sizeof(llm->key), (const unsigned char *)sandbox,
               strlen(sandbox), digest, &len);
    hex_encode(digest, LLM_TOKEN_BYTES, ret);
}

char **llm_environment(const struct llm *llm, const char *sandbox)
{
    enum { TEXT_SIZE = 128 };
    char **list =
        xcalloc(1, (LLM_ENV_COUNT + 1) * sizeof(*list) + (size_t)LLM_ENV_COUNT * TEXT_SIZE);
    char *text = (char *)(list + LLM_ENV_COUNT + 1), token[2 * LLM_TOKEN_BYTES + 1];

    llm_token(llm, sandbox, token);
    for (size_t i = 0; i < LLM_ENV_COUNT; i++)
        list[i] = text + i * TEXT_SIZE;
    (void)snprintf(list[0], TEXT_SIZE, "ANTHROPIC_BASE_URL=http://%s", LLM_NAME);
    (void)snprintf(list[1], TEXT_SIZE, "ANTHROPIC_API_KEY=%s", token);
    (void)snprintf(list[2], TEXT_SIZE, "OPENAI_BASE_URL=http://%s/v1", LLM_NAME);
    (void)snprintf(list[3], TEXT_SIZE, "OPENAI_API_KEY=%s", token);
    return list;
}

/* --- life --- */

int llm_configure(struct llm *llm, const struct config *config, struct err *err)
{
    struct llm_models models, old;
    int r = llm_models_read(config->models, &models, err);

    if (r < 0)
        return r;
    lock_take(&llm->lock);
    old = llm->models;
    llm->models = models;
    lock_release(&llm->lock);
    llm_models_done(&old);
    return 0;
}

int llm_open(int state_fd, const struct config *config, struct llm **ret, struct err *err)
{
    struct llm *llm = xcalloc(1, sizeof(*llm));
    int r;

    lock_init(&llm->lock, LOCK_LLM_MODELS);
    r = key_open(state_fd, llm->key, err);
    if (r == 0)
        r = llm_ledger_open(state_fd, &llm->ledger, err);
    if (r == 0)
        r = llm_configure(llm, config, err);
    if (r < 0) {
        llm_close(llm);
        return r;
    }
    *ret = llm;
    return 0;
}

void llm_close(struct llm *llm)
{
    if (!llm)
        return;
    llm_ledger_close(llm->ledger);
    llm_models_done(&llm->models);
    lock_destroy(&llm->lock);
    free(llm);
}

json_t *llm_message(struct llm *llm)
{
    lock_scope(&llm->lock);

    return json_deep_copy(llm->models.message);
}

/* --- requests --- */

static uint64_t number_of(const json_t *message, const char *name)
{
    json_int_t value = json_integer_value(json_object_get(message, name));

    return value < 0 ? 0 : (uint64_t)value;
}

/* The dearest that the call can become: all of its input may be written to a cache. */
static void call_price(struct llm_call *call, const struct llm_price *price)
{
    bool is_cached = price->cache_write > price->input;
    const struct token_counts most = { .input = is_cached ? 0 : call->input,
                                       .cache_write = is_cached ? call->input : 0,
                                       .output = call->output };

    call->price = *price;
    call->money = llm_price_of(price, &most);
}

static json_t *reserve_handle(struct llm *llm, const char *sandbox, const char *owner,
                              const json_t *message)
{
    const char *name = json_string_value(json_object_get(message, "model"));
    struct llm_call call = { .sandbox = sandbox, .owner = owner, .model = name ? name : "" };
    struct llm_refusal refusal = { .text = "" };
    struct llm_budgets budgets;
    const struct llm_model_info *model;
    json_t *reply = json_pack("{s:s, s:I, s:I}", "do", "llm-reserved", "ticket",
                              (json_int_t)number_of(message, "ticket"), "machine",
                              (json_int_t)number_of(message, "machine"));
    uint64_t ticket = 0;
    int r;

    lock_take(&llm->lock);
    model = llm_models_find(&llm->models, owner, call.model);
    budgets.sandbox = llm->models.sandbox_budget;
    llm_models_owner_budget(&llm->models, owner, &budgets.owner);
    call.input = number_of(message, "input");
    call.output = number_of(message, "output");
    if (model)
        call_price(&call, &model->price);
    lock_release(&llm->lock);
    r = model ? llm_ledger_reserve(llm->ledger, &call, &budgets, clock_wall_ms(), &ticket, &refusal)
              : -ENOENT;
    if (r == 0)
        (void)json_object_set_new(reply, "reserved", json_integer((json_int_t)ticket));
    else if (r == -EDQUOT || r == -ENOENT)
        (void)json_object_set_new(
            reply, "refusal",
            json_text(r == -EDQUOT ? refusal.text : "the owner of this sandbox has no such model"));
    (void)json_object_set_new(reply, "retry", json_integer((json_int_t)refusal.retry_seconds));
    (void)json_object_set_new(reply, "isBrief", json_boolean(refusal.is_minute));
    return reply;
}

static void settle_handle(struct llm *llm, const json_t *message)
{
    const struct token_counts tokens = { .input = number_of(message, "input"),
                                         .cache_read = number_of(message, "cacheRead"),
                                         .cache_write = number_of(message, "cacheWrite"),
                                         .output = number_of(message, "output") };

    llm_ledger_settle(llm->ledger, number_of(message, "reserved"), &tokens);
}

json_t *llm_handle(struct llm *llm, const char *sandbox, const char *owner, const json_t *message)
{
    const char *what = json_string_value(json_object_get(message, "do"));

    if (strcmp(what, "llm-reserve") == 0 && sandbox)
        return reserve_handle(llm, sandbox, owner, message);
    if (strcmp(what, "llm-settle") == 0)
        settle_handle(llm, message);
    return NULL;
}

void llm_helper_lost(struct llm *llm)
{
    llm_ledger_keep_all(llm->ledger);
}

/* --- what is asked of it --- */

int llm_check(struct llm *llm, const char *owner, const char *models, struct err *err)
{
    size_t len;

    for (; *models; models += len + (models[len] == ' ')) {
        char name[MODEL_NAME_MAX + 1];
        bool is_known;

        len = strcspn(models, " ");
        (void)snprintf(name, sizeof(name), "%.*s", (int)len, models);
        lock_take(&llm->lock);
        is_known = strcmp(name, "all") == 0 || llm_models_find(&llm->models, owner, name);
        lock_release(&llm->lock);
        if (!is_known) {
            (void)err_set(err, ERR_INVALID, "no model '%s'", name);
            return err_remedy(err,
                              "`holt llm models` lists them; the file of `models` in holt.conf "
                              "adds them");
        }
    }
    return 0;
}

void llm_each_model(struct llm *llm, const char *owner, llm_model_fn *fn, void *data)
{
    lock_scope(&llm->lock);

    for (size_t i = 0; i < llm->models.count; i++)
        if (llm_models_find(&llm->models, owner, llm->models.list[i].name) == &llm->models.list[i])
            fn(data, &llm->models.list[i], llm->models.prices_date);
}

size_t llm_usage(struct llm *llm, uint64_t since_day, struct llm_usage_row **ret)
{
    return llm_ledger_rows(llm->ledger, since_day, ret);
}

size_t llm_series(struct llm *llm, struct llm_series **ret)
{
    return llm_ledger_series(llm->ledger, ret);
}
