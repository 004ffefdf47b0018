// SPDX-License-Identifier: Apache-2.0
#include "host/secret/grant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/access/caller.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/log.h"
#include "base/random.h"
#include "base/text/hex.h"
#include "base/xalloc.h"
#include "host/core/host_internal.h"
#include "host/net/net.h"
#include "host/secret/owned_secret.h"
#include "wire/message.h"

#define PLACEHOLDER_PREFIX "holt-secret-"

enum { PLACEHOLDER_BYTES = 20 };

/* Where guest/trust.c lays them out. */
static const char *const trust_env[] = {
    "NODE_EXTRA_CA_CERTS=/dev/holt/ca.pem",  "REQUESTS_CA_BUNDLE=/dev/holt/ca-bundle.pem",
    "PIP_CERT=/dev/holt/ca-bundle.pem",      "DENO_CERT=/dev/holt/ca.pem",
    "SSL_CERT_FILE=/dev/holt/ca-bundle.pem",
};

/* --- what is recorded ---------------------------------------------------------------------------
 */

static bool grant_read(const json_t *json, struct secret_grant *ret)
{
    const char *secret = json_string_value(json_object_get(json, "secret"));
    const char *name = json_string_value(json_object_get(json, "name"));
    const char *env = json_string_value(json_object_get(json, "env"));
    const char *placeholder = json_string_value(json_object_get(json, "placeholder"));

    if (!secret || !name || !env || !placeholder)
        return false;
    (void)snprintf(ret->secret, sizeof(ret->secret), "%s", secret);
    (void)snprintf(ret->name, sizeof(ret->name), "%s", name);
    (void)snprintf(ret->env, sizeof(ret->env), "%s", env);
    (void)snprintf(ret->placeholder, sizeof(ret->placeholder), "%s", placeholder);
    return true;
}

void secret_grants_read(const char *recorded, struct secret_grants *ret)
{
    cleanup_json json_t *json = NULL;
    const json_t *list = NULL, *each;
    struct err ignored;
    size_t i;

    ret->count = 0;
    if (!recorded || json_parse_object(recorded, strlen(recorded), &json, &ignored) < 0 ||
        json_get_array(json, "grants", &list, &ignored) < 0)
        return;
    json_array_foreach(list, i, each) {
        if (ret->count < SECRET_GRANTS_MAX && grant_read(each, &ret->items[ret->count]))
            ret->count++;
    }
}

static char *grants_text(const struct secret_grants *grants)
{
    cleanup_json json_t *json = NULL;
    json_t *list = json_array();
    char *text;

    for (size_t i = 0; i < grants->count; i++) {
        const struct secret_grant *grant = &grants->items[i];

        (void)json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s}", "secret", grant->secret,
                                                    "name", grant->name, "env", grant->env,
                                                    "placeholder", grant->placeholder));
    }
    json = json_pack("{s:o}", "grants", list);
    text = json_dumps(json, JSON_COMPACT);
    if (!text)
        abort();
    return text;
}

static int placeholder_make(struct secret_grant *grant, struct err *err)
{
    char digits[HEX_SIZE(PLACEHOLDER_BYTES)];
    int r = random_hex(digits, PLACEHOLDER_BYTES);

    if (r < 0)
        return err_sys(err, r, "get random bytes");
    (void)snprintf(grant->placeholder, sizeof(grant->placeholder), PLACEHOLDER_PREFIX "%s", digits);
    return 0;
}

/* --- making them --------------------------------------------------------------------------------
 */

static int grants_add(struct host *host, const struct caller *caller, const char *name,
                      struct secret_grants *grants, struct err *err)
{
    struct secret_grant *grant = &grants->items[grants->count];
    struct secret_info info;
    int r = owned_secret_find(host, caller, name, &info, err);

    /* A sandbox belongs to its creator, also if that is an admin who sees all secrets. */
    if (r == 0 && strcmp(info.owner, caller->owner) != 0)
        r = err_set(err, ERR_DENIED, "secret '%s' belongs to '%s', and the sandbox to '%s'",
                    info.name, info.owner, caller->owner);
    for (size_t i = 0; r == 0 && i < grants->count; i++) {
        if (!*info.use.env || strcmp(grants->items[i].env, info.use.env) != 0)
            continue;
        (void)err_set(err, ERR_INVALID, "secrets '%s' and '%s' are both in variable %s",
                      grants->items[i].name, info.name, info.use.env);
        r = err_remedy(err, "set one of them again with another --env");
    }
    if (r < 0)
        return r;
    memcpy(grant->secret, info.id, sizeof(grant->secret));
    memcpy(grant->name, info.name, sizeof(grant->name));
    memcpy(grant->env, info.use.env, sizeof(grant->env));
    r = placeholder_make(grant, err);
    grants->count += r == 0;
    return r;
}

int secret_grants_make(struct host *host, const struct caller *caller, const char *const *names,
                       size_t count, char **ret, struct err *err)
{
    struct secret_grants grants = { .count = 0 };
    int r = 0;

    *ret = NULL;
    if (count == 0)
        return 0;
    if (count > SECRET_GRANTS_MAX)
        return err_set(err, ERR_EXHAUSTED, "a sandbox has at most %d secrets, not %zu",
                       SECRET_GRANTS_MAX, count);
    for (size_t i = 0; r == 0 && i < count; i++)
        r = grants_add(host, caller, names[i], &grants, err);
    if (r == 0)
        *ret = grants_text(&grants);
    return r;
}

int secret_grants_renew(const char *recorded, char **ret, struct err *err)
{
    struct secret_grants grants;
    int r = 0;

    *ret = NULL;
    secret_grants_read(recorded, &grants);
    for (size_t i = 0; r == 0 && i < grants.count; i++)
        r = placeholder_make(&grants.items[i], err);
    if (r == 0)
        *ret = grants_text(&grants);
    return r;
}

char *secret_grants_empty(void)
{
    return grants_text(&(struct secret_grants){ .count = 0 });
}

/* --- using them ---------------------------------------------------------------------------------
 */

static bool grant_is_key(const struct secret_grant *grant)
{
    return !*grant->env;
}

static bool grants_have_key(const struct secret_grants *grants)
{
    for (size_t i = 0; i < grants->count; i++)
        if (grant_is_key(&grants->items[i]))
            return true;
    return false;
}

char **secret_env_make(const char *recorded)
{
    struct secret_grants grants;
    char **env;
    size_t at = 0;

    if (!recorded)
        return NULL;
    secret_grants_read(recorded, &grants);
    env = xcalloc(grants.count + ARRAY_SIZE(trust_env) + 2, sizeof(*env));
    for (size_t i = 0; i < ARRAY_SIZE(trust_env); i++)
        env[at++] = xstrdup(trust_env[i]);
    for (size_t i = 0; i < grants.count; i++)
        if (!grant_is_key(&grants.items[i]))
            env[at++] = xasprintf("%s=%s", grants.items[i].env, grants.items[i].placeholder);
    if (grants_have_key(&grants))
        env[at++] = xstrdup("SSH_AUTH_SOCK=" SSH_AGENT_DIRECTORY "/" SSH_AGENT_SOCKET);
    return env;
}

void secret_env_free(char **env)
{
    for (char **each = env; each && *each; each++)
        free(*each);
    free(env);
}

/* Returns whether the secret of a grant is still there, with its value. */
static bool grant_open(struct host *host, const struct secret_grant *grant,
                       struct secret_info *ret_info, struct secret_value *ret_value)
{
    struct err err = { 0 };

    if (secrets_get(host->secrets, grant->secret, ret_info, &err) < 0)
        return false;
    if (secrets_get_value(host->secrets, grant->secret, ret_value, &err) == 0)
        return true;
    log_warn("%s", err.msg);
    return false;
}

static json_t *grant_for_net(struct host *host, const char *owner, const struct secret_grant *grant)
{
    cleanup_with(secret_value_done) struct secret_value value = { .len = 0 };
    struct secret_info info;
    json_t *json;

    /* A secret may have become a key since. */
    if (!grant_open(host, grant, &info, &value) || info.use.place == SECRET_IN_AGENT)
        return NULL;
    json = secret_use_to_json(&info.use);
    (void)json_object_del(json, "env");
    if (info.use.place != SECRET_IN_HEADER)
        (void)json_object_del(json, "template");
    (void)json_object_set_new(json, "name", json_string(info.name));
    (void)json_object_set_new(json, "id", json_string(info.id));
    (void)json_object_set_new(json, "placeholder", json_string(grant->placeholder));
    (void)json_object_set_new(json, "value", json_stringn(value.bytes, value.len));
    /* The proxy of a sandbox is set by its owner or an admin. */
    (void)json_object_set_new(json, "mayUseOwnPath", json_boolean(strcmp(info.owner, owner) == 0));
    return json;
}

static json_t *grant_key(struct host *host, const struct secret_grant *grant)
{
    cleanup_with(secret_value_done) struct secret_value value = { .len = 0 };
    cleanup_json json_t *use = NULL;
    struct secret_info info;

    if (!grant_open(host, grant, &info, &value) || info.use.place != SECRET_IN_AGENT)
        return NULL;
    use = secret_use_to_json(&info.use);
    return json_pack("{s:s, s:s, s:O}", "name", info.name, "key", value.bytes, "hostKeys",
                     json_object_get(use, "hostKeys"));
}

json_t *secret_grants_keys(struct host *host, const char *recorded)
{
    struct secret_grants grants;
    json_t *list;

    secret_grants_read(recorded, &grants);
    if (!grants_have_key(&grants))
        return NULL;
    list = json_array();
    for (size_t i = 0; i < grants.count; i++) {
        json_t *key = grant_is_key(&grants.items[i]) ? grant_key(host, &grants.items[i]) : NULL;

        if (key)
            (void)json_array_append_new(list, key);
    }
    return list;
}

json_t *secret_grants_for_net(struct host *host, const char *owner, const char *recorded)
{
    struct secret_grants grants;
    json_t *list = json_array();

    secret_grants_read(recorded, &grants);
    for (size_t i = 0; i < grants.count; i++) {
        json_t *json =
            grant_is_key(&grants.items[i]) ? NULL : grant_for_net(host, owner, &grants.items[i]);

        if (json)
            (void)json_array_append_new(list, json);
    }
    return list;
}

/* --- changes ------------------------------------------------------------------------------------
 */

static void user_apply(struct host *host, const struct net_user *user)
{
    struct err err = { 0 };

    if (user->grants && net_renew_secrets(host->net, user->id, &err) < 0)
        log_warn("sandbox '%s' keeps its secrets: %s", user->id, err.msg);
}

void secret_grants_apply(struct host *host)
{
    net_each_user(host->net, user_apply);
}
