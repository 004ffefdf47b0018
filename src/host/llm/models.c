// SPDX-License-Identifier: Apache-2.0
#include "host/llm/models.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "base/xalloc.h"
#include "net/address.h"
#include "net/name.h"

enum {
    FILE_BYTES_MAX = 128 * 1024,
    KEY_BYTES_MAX = 4096,
    PORT_HTTP = 80,
    PORT_HTTPS = 443,
    PREFIX_MAX = 255,
};

/* --- files --- */

static int file_load(const char *path, bool is_secret, size_t max, struct buf *ret, struct err *err)
{
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    ssize_t n;

    if (fd < 0 || fstat(fd, &status) < 0)
        return err_set(err, ERR_INVALID, "'%s' cannot be read: %s", path, strerror(errno));
    if (is_secret && (status.st_mode & 077) != 0) {
        (void)err_set(err, ERR_INVALID, "'%s' has a key and can be read by others", path);
        return err_remedy(err, "chmod 600 %s", path);
    }
    *ret = (struct buf)BUF_INIT(max);
    if ((uint64_t)status.st_size > max || buf_reserve(ret, max) < 0)
        return err_set(err, ERR_INVALID, "'%s' is longer than %zu bytes", path, max);
    n = read_full(fd, ret->data, max);
    if (n < 0)
        return err_sys(err, (int)n, "read '%s'", path);
    ret->len = (size_t)n;
    ret->data[ret->len] = '\0';
    return 0;
}

static int key_load(const char *path, char ret[KEY_BYTES_MAX + 1], struct err *err)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(0);
    int r = file_load(path, true, KEY_BYTES_MAX, &text, err);
    size_t len;

    if (r < 0)
        return r;
    len = text.data ? strcspn(text.data, "\r\n") : 0;
    for (size_t i = 0; i < len; i++)
        if (text.data[i] <= ' ' || text.data[i] > '~')
            len = 0;
    if (!text.data || len == 0)
        return err_set(err, ERR_INVALID, "'%s' has no key in its first line", path);
    memcpy(ret, text.data, len);
    ret[len] = '\0';
    explicit_bzero(text.data, text.len);
    return 0;
}

/* --- providers --- */

struct provider_url {
    char host[NET_NAME_SIZE];
    int port;
    bool is_tls;
    char prefix[PREFIX_MAX + 1];
};

static int url_parse(const char *text, struct provider_url *ret)
{
    struct net_address address;
    size_t host_len, len;
    const char *rest;

    ret->is_tls = strncmp(text, "https://", 8) == 0;
    if (!ret->is_tls && strncmp(text, "http://", 7) != 0)
        return -EINVAL;
    text += ret->is_tls ? 8 : 7;
    host_len = strcspn(text, ":/");
    ret->port = ret->is_tls ? PORT_HTTPS : PORT_HTTP;
    if (host_len == 0 || host_len > NET_NAME_MAX)
        return -EINVAL;
    memcpy(ret->host, text, host_len);
    ret->host[host_len] = '\0';
    if (net_address_parse(ret->host, &address) < 0 &&
        net_name_normalize(text, host_len, ret->host) != 0)
        return -EINVAL;
    rest = text + host_len;
    if (*rest == ':') {
        char digits[6] = "";
        uint64_t port = 0;
        size_t count = strspn(rest + 1, "0123456789");

        if (count >= sizeof(digits))
            return -EINVAL;
        memcpy(digits, rest + 1, count);
        if (parse_u64(digits, &port) < 0 || port < 1 || port > UINT16_MAX)
            return -EINVAL;
        ret->port = (int)port;
        rest += 1 + count;
    }
    len = strlen(rest);
    while (len > 0 && rest[len - 1] == '/')
        len--;
    if ((*rest && *rest != '/') || len > PREFIX_MAX || strcspn(rest, "?# \r\n\t") < len)
        return -EINVAL;
    memcpy(ret->prefix, rest, len);
    ret->prefix[len] = '\0';
    return 0;
}

/* Without TLS the key would be readable on the way, unless it does not leave this machine. */
static bool host_is_loopback(const char *host)
{
    return strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 ||
           strcmp(host, "::1") == 0;
}

static int provider_add(struct llm_models *models, json_t *json, struct err *err)
{
    const char *name = NULL, *kind = NULL, *url = NULL, *owner = "", *ca = NULL;
    const char *key_file = NULL, *secret = NULL;
    cleanup_with(buf_done) struct buf authorities = BUF_INIT(0);
    char key[KEY_BYTES_MAX + 1] = "";
    struct provider_url place;
    json_t *entry;
    int r;

    if (json_unpack(json, "{s:s, s:s, s:s, s?:s, s?:s, s?:s, s?:s !}", "name", &name, "kind", &kind,
                    "url", &url, "keyFile", &key_file, "secret", &secret, "owner", &owner, "caFile",
                    &ca) < 0 ||
        !key_file == !secret)
        return err_set(err, ERR_INVALID,
                       "a provider has name, kind, url, one of keyFile and secret, and perhaps "
                       "owner and caFile");
    if (strcmp(kind, "anthropic") != 0 && strcmp(kind, "openai") != 0)
        return err_set(err, ERR_INVALID,
                       "provider '%.64s' is of kind anthropic or openai, not "
                       "'%.32s'",
                       name, kind);
    if (strlen(name) > LLM_PROVIDER_NAME_MAX || url_parse(url, &place) < 0)
        return err_set(err, ERR_INVALID, "the url of provider '%.64s' is not valid", name);
    if (!place.is_tls && !host_is_loopback(place.host))
        return err_set(err, ERR_INVALID,
                       "the url of provider '%.64s' must be https: its key would be readable",
                       name);
    r = key_file ? key_load(key_file, key, err) : 0;
    if (r == 0 && ca)
        r = file_load(ca, false, FILE_BYTES_MAX / 2, &authorities, err);
    if (r < 0)
        return r;
    entry = json_pack("{s:s, s:s, s:s, s:i, s:b, s:s, s:s, s:s}", "name", name, "kind", kind,
                      "host", place.host, "port", place.port, "tls", (int)place.is_tls, "prefix",
                      place.prefix, "key", key, "owner", owner);
    if (secret)
        (void)json_object_set_new(entry, "secret", json_text(secret));
    if (ca)
        (void)json_object_set_new(entry, "authorities", json_string(authorities.data));
    explicit_bzero(key, sizeof(key));
    return json_array_append_new(json_object_get(models->message, "providers"), entry) < 0
               ? err_sys(err, -ENOMEM, "read the providers")
               : 0;
}

/* --- prices --- */

static uint64_t price_read(const json_t *json, const char *name)
{
    return (uint64_t)llround(json_number_value(json_object_get(json, name)) * 1000);
}

/* {"date":"2025-12-01","models":{"NAME":{"input":3,"cacheRead":0.3,"cacheWrite":3.75,"output":15}}}
 * in dollars for a million tokens. */
static void price_find(const json_t *prices, const char *model, struct llm_price *ret)
{
    const json_t *entry = json_object_get(json_object_get(prices, "models"), model);

    ret->is_known = json_is_object(entry);
    ret->input = price_read(entry, "input");
    ret->cache_read = price_read(entry, "cacheRead");
    ret->cache_write = price_read(entry, "cacheWrite");
    ret->output = price_read(entry, "output");
}

static int prices_load(const char *path, struct llm_models *models, json_t **ret, struct err *err)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(0);
    const char *date;
    int r;

    if (!path)
        return 0;
    r = file_load(path, false, FILE_BYTES_MAX, &text, err);
    if (r == 0 && json_parse_object(text.data, text.len, ret, err) < 0)
        return err_wrap(err, "%s", path);
    date = r == 0 ? json_string_value(json_object_get(*ret, "date")) : NULL;
    if (r == 0 && !date)
        return err_set(err, ERR_INVALID, "'%s' has no \"date\" of its prices", path);
    if (r == 0)
        (void)snprintf(models->prices_date, sizeof(models->prices_date), "%s", date);
    return r;
}

/* --- models --- */

static json_int_t provider_index(const struct llm_models *models, const char *name)
{
    const json_t *list = json_object_get(models->message, "providers");

    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(json_string_value(json_object_get(json_array_get(list, i), "name")), name) == 0)
            return (json_int_t)i;
    return -1;
}

static int model_add(struct llm_models *models, json_t *json, const json_t *prices, struct err *err)
{
    const char *name = NULL, *provider = NULL, *upstream = NULL;
    json_int_t max_output = LLM_OUTPUT_DEFAULT, index;
    struct llm_model_info *info;
    const json_t *from;

    if (json_unpack(json, "{s:s, s:s, s?:s, s?:I !}", "name", &name, "provider", &provider, "model",
                    &upstream, "maxOutput", &max_output) < 0)
        return err_set(err, ERR_INVALID,
                       "a model has name, provider, and perhaps model, maxOutput");
    upstream = upstream ? upstream : name;
    index = provider_index(models, provider);
    if (index < 0)
        return err_set(err, ERR_INVALID, "model '%.128s': no provider '%.64s'", name, provider);
    if (!*name || strlen(name) > MODEL_NAME_MAX || strlen(upstream) > MODEL_NAME_MAX ||
        strpbrk(name, " \t\r\n\"\\") || strpbrk(upstream, "\"\\") || max_output < 1)
        return err_set(err, ERR_INVALID, "model '%.128s' is not valid", name);
    models->list = xreallocarray(models->list, models->count + 1, sizeof(*models->list));
    info = &models->list[models->count++];
    *info = (struct llm_model_info){ .name = "" };
    from = json_array_get(json_object_get(models->message, "providers"), (size_t)index);
    (void)snprintf(info->kind, sizeof(info->kind), "%s",
                   json_string_value(json_object_get(from, "kind")));
    (void)snprintf(info->name, sizeof(info->name), "%s", name);
    (void)snprintf(info->upstream, sizeof(info->upstream), "%s", upstream);
    (void)snprintf(info->provider, sizeof(info->provider), "%s", provider);
    (void)snprintf(info->owner, sizeof(info->owner), "%s",
                   json_string_value(json_object_get(from, "owner")));
    price_find(prices, upstream, &info->price);
    (void)json_array_append_new(json_object_get(models->message, "models"),
                                json_pack("{s:s, s:s, s:I, s:I}", "name", name, "upstream",
                                          upstream, "provider", index, "maxOutput", max_output));
    return 0;
}

const struct llm_model_info *llm_models_find(const struct llm_models *models, const char *owner,
                                             const char *name)
{
    for (size_t i = 0; i < models->count; i++)
        if (strcmp(models->list[i].name, name) == 0 &&
            (!models->list[i].owner[0] || strcmp(models->list[i].owner, owner) == 0))
            return &models->list[i];
    return NULL;
}

/* --- budgets --- */

static int budget_read(json_t *json, struct llm_budget *ret, struct err *err)
{
    json_int_t requests_minute = 0, requests_day = 0, tokens_minute = 0, tokens_day = 0;
    double dollars_minute = 0, dollars_day = 0;

    if (json && json_unpack(json, "{s?:I, s?:I, s?:I, s?:I, s?:F, s?:F !}", "requestsPerMinute",
                            &requests_minute, "requestsPerDay", &requests_day, "tokensPerMinute",
                            &tokens_minute, "tokensPerDay", &tokens_day, "dollarsPerMinute",
                            &dollars_minute, "dollarsPerDay", &dollars_day) < 0)
        return err_set(err, ERR_INVALID,
                       "a budget has numbers: requestsPerMinute, requestsPerDay, tokensPerMinute, "
                       "tokensPerDay, dollarsPerMinute, dollarsPerDay");
    if (requests_minute < 0 || requests_day < 0 || tokens_minute < 0 || tokens_day < 0 ||
        dollars_minute < 0 || dollars_minute > 1e9 || dollars_day < 0 || dollars_day > 1e9)
        return err_set(err, ERR_INVALID, "a budget cannot be negative");
    *ret = (struct llm_budget){ .requests_minute = (uint64_t)requests_minute,
                                .requests_day = (uint64_t)requests_day,
                                .tokens_minute = (uint64_t)tokens_minute,
                                .tokens_day = (uint64_t)tokens_day,
                                .money_minute = (uint64_t)llround(dollars_minute * LLM_NANO),
                                .money_day = (uint64_t)llround(dollars_day * LLM_NANO) };
    return 0;
}

static int budgets_read(struct llm_models *models, const json_t *json, struct err *err)
{
    const json_t *owners = json_object_get(json, "owners");
    struct llm_budget checked;
    const char *name;
    json_t *each;
    int r = budget_read(json_object_get(json, "sandbox"), &models->sandbox_budget, err);

    models->owner_budgets = owners ? json_deep_copy(owners) : json_object();
    if (json_object_get(json, "owner"))
        (void)json_object_set(models->owner_budgets, "", json_object_get(json, "owner"));
    json_object_foreach(models->owner_budgets, name, each) {
        if (r == 0)
            r = budget_read(each, &checked, err);
    }
    return r;
}

void llm_models_owner_budget(const struct llm_models *models, const char *owner,
                             struct llm_budget *ret)
{
    json_t *found = json_object_get(models->owner_budgets, owner);
    struct err ignored;

    *ret = (struct llm_budget){ 0 };
    (void)budget_read(found ? found : json_object_get(models->owner_budgets, ""), ret, &ignored);
}

/* --- the file --- */

static int models_parse(const json_t *json, struct llm_models *models, struct err *err)
{
    const json_t *providers = json_object_get(json, "providers");
    const json_t *list = json_object_get(json, "models");
    cleanup_json json_t *prices = NULL;
    int r = prices_load(json_string_value(json_object_get(json, "prices")), models, &prices, err);

    for (size_t i = 0; r == 0 && i < json_array_size(providers); i++)
        r = provider_add(models, json_array_get(providers, i), err);
    for (size_t i = 0; r == 0 && i < json_array_size(list); i++)
        r = model_add(models, json_array_get(list, i), prices, err);
    return r == 0 ? budgets_read(models, json_object_get(json, "budgets"), err) : r;
}

int llm_models_read(const char *path, struct llm_models *ret, struct err *err)
{
    struct llm_models models = { .message = json_pack("{s:[], s:[]}", "providers", "models") };
    cleanup_with(buf_done) struct buf text = BUF_INIT(0);
    cleanup_json json_t *json = NULL;
    int r = *path ? file_load(path, false, FILE_BYTES_MAX, &text, err) : 0;

    if (*path && r == 0)
        r = json_parse_object(text.data, text.len, &json, err);
    if (r == 0)
        r = models_parse(json, &models, err);
    if (r < 0) {
        llm_models_done(&models);
        return err_wrap(err, "models: %s", path);
    }
    *ret = models;
    return 0;
}

void llm_models_done(struct llm_models *models)
{
    json_decref(models->message);
    json_decref(models->owner_budgets);
    free(models->list);
    *models = (struct llm_models){ .message = NULL };
}
