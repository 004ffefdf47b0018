// SPDX-License-Identifier: Apache-2.0
#include "e2b/control/sandbox_request.h"

#include <string.h>

#include "base/err.h"
#include "base/json.h"
#include "e2b/control/network.h"
#include "e2b/core/metadata.h"
#include "e2b/core/wake.h"
#include "host/sandbox/info.h"

enum { TIMEOUT_V1_S = 15 };

int e2b_timeout_parse(const json_t *body, const char *field, uint64_t *ret, struct err *err)
{
    const json_t *value = json_object_get(body, field);

    if (!value || json_is_null(value))
        return 0;
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return err_set(err, ERR_INVALID, "%s must be a number of seconds", field);
    if (json_integer_value(value) > E2B_TIMEOUT_MAX_S)
        return err_set(err, ERR_INVALID, "%s cannot be greater than %d seconds", field,
                       E2B_TIMEOUT_MAX_S);
    *ret = (uint64_t)json_integer_value(value);
    return 0;
}

/* {text: text}, onto the metadata under the same name. */
static int texts_take(const json_t *body, const char *field, json_t *metadata, struct err *err)
{
    const json_t *object = NULL;
    const char *key;
    json_t *value;
    int r = json_get_object(body, field, &object, err);

    if (r < 0 || !object)
        return r;
    json_object_foreach((json_t *)(uintptr_t)object, key, value) {
        if (!json_is_string(value))
            return err_set(err, ERR_INVALID, "%s must have texts as values", field);
        if (strcmp(field, "envVars") == 0 && (*key == '\0' || strchr(key, '=')))
            return err_set(err, ERR_INVALID, "'%.60s' cannot name a variable", key);
    }
    return json_object_set(metadata, field, (json_t *)(uintptr_t)object);
}

static int lifecycle_take(const json_t *body, json_t *metadata, struct err *err)
{
    const json_t *resume = NULL;
    bool pauses = false, with_memory = true, resumes = false;
    int r = json_get_bool(body, "autoPause", &pauses, err);

    if (r == 0)
        r = json_get_bool(body, "autoPauseMemory", &with_memory, err);
    if (r == 0)
        r = json_get_object(body, "autoResume", &resume, err);
    if (r == 0 && resume)
        r = json_get_bool(resume, "enabled", &resumes, err);
    if (r < 0)
        return r;
    if (!with_memory && !pauses)
        return err_set(err, ERR_INVALID, "autoPauseMemory: false needs autoPause: true");
    if (!with_memory && resumes)
        return err_set(err, ERR_INVALID, "autoPauseMemory: false does not go with autoResume");
    (void)json_object_set_new(metadata, "autoPause", json_boolean(pauses));
    (void)json_object_set_new(metadata, "autoPauseMemory", json_boolean(with_memory));
    return json_object_set_new(metadata, "autoResume", json_boolean(resumes));
}

static int network_take(const json_t *body, bool is_secure, json_t *metadata, struct err *err)
{
    const json_t *network = NULL;
    bool wants_internet = true, is_public = true;
    int r = json_get_object(body, "network", &network, err);

    if (r == 0)
        r = e2b_network_internet(body, &wants_internet, err);
    if (r == 0 && network)
        r = e2b_network_check(network, err);
    if (r < 0)
        return r;
    is_public = !json_is_false(json_field(network, "allowPublicTraffic"));
    if (!is_public && !is_secure)
        return err_set(err, ERR_INVALID,
                       "allowPublicTraffic: false needs a sandbox that is secure");
    if (network)
        (void)json_object_set_new(metadata, "network", e2b_network_copy(network));
    return json_object_set_new(metadata, "internet", json_boolean(wants_internet));
}

/* Which volumes they are is looked up later. */
static int mounts_take(const json_t *body, json_t *metadata, struct err *err)
{
    const json_t *mounts = NULL, *mount;
    json_t *kept;
    size_t index;
    int r = json_get_array(body, "volumeMounts", &mounts, err);

    if (r < 0 || !mounts)
        return r;
    if (json_array_size(mounts) > SANDBOX_MOUNTS_MAX)
        return err_set(err, ERR_INVALID, "a sandbox has at most %d volumes", SANDBOX_MOUNTS_MAX);
    kept = json_array();
    (void)json_object_set_new(metadata, "volumeMounts", kept);
    json_array_foreach(mounts, index, mount) {
        const char *name = json_string_value(json_object_get(mount, "name"));
        const char *path = json_string_value(json_object_get(mount, "path"));

        if (!name || !path)
            return err_set(err, ERR_INVALID, "volumeMounts must have a name and a path each");
        (void)json_array_append_new(kept, json_pack("{s:s, s:s}", "name", name, "path", path));
    }
    return 0;
}

int e2b_metadata_add_traffic_token(json_t *metadata, struct err *err)
{
    char token[E2B_TOKEN_SIZE];
    int r = e2b_token_make(token, err);

    if (r == 0)
        (void)json_object_set_new(metadata, "trafficToken", json_string(token));
    return r;
}

int e2b_metadata_add_tokens(json_t *metadata, struct err *err)
{
    const json_t *network = json_object_get(metadata, "network");
    char token[E2B_TOKEN_SIZE];
    int r;

    if (e2b_metadata_is_open(metadata))
        return 0;
    r = e2b_token_make(token, err);
    if (r < 0)
        return r;
    (void)json_object_set_new(metadata, "accessToken", json_string(token));
    return json_is_false(json_field(network, "allowPublicTraffic"))
               ? e2b_metadata_add_traffic_token(metadata, err)
               : 0;
}

int e2b_create_parse(const json_t *body, bool is_v1, struct e2b_create *ret, struct err *err)
{
    bool is_secure = !is_v1; /* only checked: a client without a token of the sandbox is refused in
                                any case, and all clients that know envd's tokens send them */
    int r;

    *ret = (struct e2b_create){ .timeout_s = is_v1 ? TIMEOUT_V1_S : E2B_TIMEOUT_DEFAULT_S };
    r = json_get_text(body, "templateID", &ret->template_id, err);
    if (r == 0 && (!ret->template_id || *ret->template_id == '\0'))
        r = err_set(err, ERR_INVALID, "templateID is missing");
    if (r == 0 && is_v1)
        r = json_get_bool(body, "secure", &is_secure, err);
    if (r == 0)
        r = e2b_timeout_parse(body, "timeout", &ret->timeout_s, err);
    if (r < 0)
        return r;
    ret->metadata = json_pack("{s:I}", "timeout", (json_int_t)ret->timeout_s);
    r = texts_take(body, "metadata", ret->metadata, err);
    if (r == 0)
        r = texts_take(body, "envVars", ret->metadata, err);
    if (r == 0)
        r = lifecycle_take(body, ret->metadata, err);
    if (r == 0)
        r = network_take(body, is_secure, ret->metadata, err);
    if (r == 0)
        r = mounts_take(body, ret->metadata, err);
    return r == 0 ? e2b_metadata_add_tokens(ret->metadata, err) : r;
}

void e2b_create_done(struct e2b_create *create)
{
    json_decref(create->metadata);
    create->metadata = NULL;
}
