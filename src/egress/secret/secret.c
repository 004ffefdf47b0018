// SPDX-License-Identifier: Apache-2.0
#include "egress/secret/secret.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "egress/secret/needle.h"

enum { HTTPS_PORT = 443 };

/* "name", "name:port" or "*.name:port". */
static int host_read(const char *text, struct broker_host *ret)
{
    const char *colon = text ? strrchr(text, ':') : NULL;
    size_t len = !text ? 0 : colon ? (size_t)(colon - text) : strlen(text);
    unsigned long port = HTTPS_PORT;
    char *end = NULL;

    if (!text || net_pattern_normalize(text, len, ret->name) || strcmp(ret->name, "*") == 0)
        return -EINVAL;
    if (colon) {
        port = strtoul(colon + 1, &end, 10);
        if (end == colon + 1 || *end != '\0')
            return -EINVAL;
    }
    if (port == 0 || port > UINT16_MAX)
        return -EINVAL;
    ret->port = (uint16_t)port;
    return 0;
}

bool broker_host_is(const struct broker_host *host, const char *name, uint16_t port)
{
    return host->port == port && net_pattern_matches(host->name, name);
}

/* Bytes that a field of a head can hold. */
static bool is_field_text(const char *text)
{
    for (const char *c = text; *c; c++)
        if (((unsigned char)*c < ' ' && *c != '\t') || *c == 0x7f)
            return false;
    return true;
}

static bool is_token(const char *text)
{
    for (const char *c = text; *c; c++)
        if (*c <= ' ' || *c >= 0x7f || strchr("()<>@,;:\\\"/[]?={}", *c))
            return false;
    return *text != '\0';
}

/* --- secrets --- */

static void secret_done(struct broker_secret *secret)
{
    free(secret->name);
    free(secret->id);
    free(secret->placeholder);
    wiped_free(secret->value);
    free(secret->field);
    free(secret->prefix);
    free(secret->suffix);
    free(secret->hosts);
    *secret = (struct broker_secret){ .name = NULL };
}

static char *text_take(const json_t *item, const char *name, size_t min, size_t max)
{
    const char *text = json_string_value(json_object_get(item, name));
    size_t len = text ? strlen(text) : 0;

    return text && len >= min && len <= max && is_field_text(text) ? xstrdup(text) : NULL;
}

static int hosts_take(const json_t *list, struct broker_secret *ret)
{
    size_t count = json_array_size(list);

    if (count == 0 || count > BROKER_HOSTS_MAX)
        return -EINVAL;
    ret->hosts = xcalloc(count, sizeof(*ret->hosts));
    for (size_t i = 0; i < count; i++)
        if (host_read(json_string_value(json_array_get(list, i)), &ret->hosts[i]) < 0)
            return -EINVAL;
    ret->host_count = count;
    return 0;
}

/* The parts of the template around its "{}"; without a template the value stands alone. */
static int template_take(const json_t *item, struct broker_secret *ret)
{
    const char *text = json_string_value(json_object_get(item, "template"));
    const char *at;

    if (!text || !*text)
        text = "{}";
    at = strstr(text, "{}");
    if (!at || strlen(text) > BROKER_FIELD_MAX || !is_field_text(text))
        return -EINVAL;
    ret->prefix = strndup(text, (size_t)(at - text));
    ret->suffix = xstrdup(at + 2);
    return ret->prefix ? 0 : -ENOMEM;
}

static int place_take(const json_t *item, struct broker_secret *ret)
{
    static const char *const names[] = { "header", "basic", "query", "json", "set" };
    const char *text = json_string_value(json_object_get(item, "place"));
    size_t i = 0;

    while (text && i < ARRAY_SIZE(names) && strcmp(text, names[i]) != 0)
        i++;
    if (!text || i == ARRAY_SIZE(names))
        return -EINVAL;
    ret->place = (enum broker_place)i;
    ret->field = text_take(item, "field", ret->place == BROKER_BASIC ? 0 : 1, BROKER_FIELD_MAX);
    if (ret->place == BROKER_BASIC && (!ret->field || !*ret->field)) {
        free(ret->field);
        ret->field = xstrdup("Authorization");
    }
    if (!ret->field || (ret->place == BROKER_JSON && ret->field[0] != '/') ||
        (ret->place != BROKER_JSON && ret->place != BROKER_QUERY && !is_token(ret->field)))
        return -EINVAL;
    return template_take(item, ret);
}

static int secret_take(const json_t *item, struct broker_secret *ret)
{
    ret->name = text_take(item, "name", 1, BROKER_FIELD_MAX);
    ret->id = text_take(item, "id", 0, BROKER_FIELD_MAX);
    ret->placeholder =
        text_take(item, "placeholder", BROKER_PLACEHOLDER_MIN, BROKER_PLACEHOLDER_MAX);
    ret->value = text_take(item, "value", 1, BROKER_VALUE_MAX);
    ret->may_use_own_path = json_is_true(json_object_get(item, "mayUseOwnPath"));
    if (!ret->name || hosts_take(json_object_get(item, "hosts"), ret) < 0 ||
        place_take(item, ret) < 0)
        return -EINVAL;
    if (ret->place == BROKER_SET)
        return ret->placeholder ? -EINVAL : 0;
    return ret->placeholder && ret->value ? 0 : -EINVAL;
}

struct broker_secrets *broker_secrets_read(const json_t *list)
{
    struct broker_secrets *secrets = xcalloc(1, sizeof(*secrets));
    size_t count = json_array_size(list);

    secrets->refs = 1;
    secrets->placeholders = needles_new();
    secrets->values = needles_new();
    secrets->items = xcalloc(BROKER_SECRETS_MAX, sizeof(*secrets->items));
    for (size_t i = 0; i < count && i < BROKER_SECRETS_MAX; i++) {
        struct broker_secret *secret = &secrets->items[secrets->count];

        if (secret_take(json_array_get(list, i), secret) < 0) {
            log_error("holt-net: secret '%s' cannot be used and is left out",
                      secret->name ? secret->name : "?");
            secret_done(secret);
            continue;
        }
        if (secret->placeholder)
            needles_add(secrets->placeholders, secret->placeholder, strlen(secret->placeholder),
                        secrets->count);
        if (secret->value)
            needles_add(secrets->values, secret->value, strlen(secret->value), secrets->count);
        secrets->count++;
    }
    needles_ready(secrets->placeholders);
    needles_ready(secrets->values);
    return secrets;
}

struct broker_secrets *broker_secrets_ref(struct broker_secrets *secrets)
{
    secrets->refs++;
    return secrets;
}

void broker_secrets_unref(struct broker_secrets *secrets)
{
    if (!secrets || --secrets->refs > 0)
        return;
    for (size_t i = 0; i < secrets->count; i++)
        secret_done(&secrets->items[i]);
    free(secrets->items);
    needles_free(secrets->placeholders);
    needles_free(secrets->values);
    free(secrets);
}

bool broker_secret_is_for(const struct broker_secret *secret, const char *name, uint16_t port)
{
    for (size_t i = 0; i < secret->host_count; i++)
        if (broker_host_is(&secret->hosts[i], name, port))
            return true;
    return false;
}

bool broker_secrets_name(const struct broker_secrets *secrets, const char *name, uint16_t port)
{
    for (size_t i = 0; secrets && i < secrets->count; i++)
        if (broker_secret_is_for(&secrets->items[i], name, port))
            return true;
    return false;
}

/* How exactly a header that is set names the host; 0: not at all. */
static size_t set_precision(const struct broker_secret *secret, const char *name, uint16_t port)
{
    size_t best = 0;

    if (secret->place != BROKER_SET)
        return 0;
    for (size_t i = 0; i < secret->host_count; i++) {
        size_t precision =
            secret->hosts[i].name[0] == '*' ? strlen(secret->hosts[i].name) : SIZE_MAX;

        if (broker_host_is(&secret->hosts[i], name, port) && precision > best)
            best = precision;
    }
    return best;
}

bool broker_secret_is_set(const struct broker_secrets *secrets, size_t i, const char *name,
                          uint16_t port)
{
    size_t precision = set_precision(&secrets->items[i], name, port);

    for (size_t j = 0; j < secrets->count; j++)
        if (set_precision(&secrets->items[j], name, port) > precision)
            return false;
    return precision > 0;
}
