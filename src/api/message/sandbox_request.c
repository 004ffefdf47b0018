// SPDX-License-Identifier: Apache-2.0
#include "api/message/sandbox_request.h"

#include <errno.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/message/fields.h"
#include "api/message/run_request.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/hex.h"

/* In the place of a snapshot's name: the template, before anything was written. */
static const char template_word[] = "template";

static bool is_template(const char *name)
{
    return name && strcmp(name, template_word) == 0;
}

static int action_get(const json_t *object, const char *name, enum sandbox_action *ret,
                      struct err *err)
{
    const char *text = NULL;
    int r = field_text(object, name, &text, err);

    if (r == 0 && text && !sandbox_action_parse(text, ret))
        return err_set(err, ERR_INVALID, "field '%s' must be kill, pause or stop", name);
    return r;
}

static int times_parse(const json_t *object, struct sandbox_spec *spec, struct err *err)
{
    int r = field_duration(object, "ttlMs", &spec->ttl_ms, err);

    if (r == 0)
        r = action_get(object, "expireAction", &spec->expire_action, err);
    if (r == 0)
        r = field_duration(object, "idleTimeoutMs", &spec->idle_timeout_ms, err);
    if (r == 0)
        r = action_get(object, "idleAction", &spec->idle_action, err);
    return r;
}

/* Of everything but the key, whatever the order of its fields. */
static int digest_make(const json_t *object, char ret[static SANDBOX_DIGEST_LEN + 1],
                       struct err *err)
{
    unsigned char hash[SHA256_DIGEST_LENGTH];
    cleanup_json json_t *rest = json_copy((json_t *)(uintptr_t)object);
    cleanup_free char *text = NULL;

    (void)json_object_del(rest, "idempotencyKey");
    text = json_dumps(rest, JSON_COMPACT | JSON_SORT_KEYS);
    if (!text)
        return err_sys(err, -ENOMEM, "read the request");
    (void)SHA256((const unsigned char *)text, strlen(text), hash);
    hex_encode(hash, sizeof(hash), ret);
    return 0;
}

static int key_parse(const json_t *object, struct create_request *ret, struct err *err)
{
    int r = field_word(object, "idempotencyKey", SANDBOX_KEY_MAX, &ret->spec.key, err);

    if (r < 0 || !ret->spec.key)
        return r;
    ret->spec.digest = ret->digest;
    return digest_make(object, ret->digest, err);
}

static int volumes_parse(const json_t *object, const json_t **ret, struct err *err)
{
    static const char *const fields[] = { "volume", "path", NULL };
    const json_t *mount;
    size_t index;
    int r = json_get_array(object, "volumes", ret, err);

    if (r == 0 && json_array_size(*ret) > SANDBOX_MOUNTS_MAX)
        return err_set(err, ERR_INVALID, "a sandbox has at most %d volumes", SANDBOX_MOUNTS_MAX);
    if (r < 0 || !*ret)
        return r;
    json_array_foreach(*ret, index, mount)
    {
        const char *word;

        r = json_is_object(mount) ? json_only_fields(mount, fields, err)
                                  : err_set(err, ERR_INVALID, "field 'volumes' must have objects");
        if (r == 0)
            r = field_needed(mount, "volume", &word, err);
        if (r == 0)
            r = field_needed(mount, "path", &word, err);
        if (r < 0)
            return r;
    }
    return 0;
}

int create_request_parse(const json_t *object, struct create_request *ret, struct err *err)
{
    static const char *const fields[] = { "name",          "template",   "runtime",
                                          "limits",        "quotaBytes", "labels",
                                          "maxSnapshots",  "ttlMs",      "expireAction",
                                          "idleTimeoutMs", "idleAction", "idempotencyKey",
                                          "volumes",       NULL };
    struct sandbox_spec *spec = &ret->spec;
    struct machine_spec machine = { 0 };
    int r = json_only_fields(object, fields, err);

    if (r == 0)
        r = field_sandbox_name(object, &spec->name, err);
    if (r == 0)
        r = machine_request_parse(object, &machine, err);
    if (r == 0)
        r = json_get_u64(object, "quotaBytes", &spec->quota_bytes, err);
    if (r == 0)
        r = json_get_u32(object, "maxSnapshots", &spec->snapshots_max, err);
    if (r == 0)
        r = times_parse(object, spec, err);
    if (r == 0)
        r = field_labels(object, &ret->labels, &spec->label_count, err);
    if (r == 0)
        r = volumes_parse(object, &ret->volumes, err);
    if (r == 0)
        r = key_parse(object, ret, err);
    spec->template = machine.template;
    spec->runtime = machine.runtime;
    spec->limits = machine.limits;
    spec->labels = ret->labels;
    return r;
}

void create_request_done(struct create_request *request)
{
    free(request->labels);
    request->labels = NULL;
}

/* One of the sandbox's snapshots, or NULL. */
static int source_get(const json_t *object, const char *name, const char **ret, struct err *err)
{
    int r = field_snapshot(object, name, ret, err);

    if (r == 0 && is_template(*ret))
        return err_set(err, ERR_INVALID,
                       "field '%s': 'template' stands for the template itself; "
                       "create a sandbox from that instead",
                       name);
    return r;
}

int fork_request_parse(const json_t *object, struct fork_request *ret, struct err *err)
{
    static const char *const fields[] = { "sandboxId", "from", "count", NULL };
    int r = json_only_fields(object, fields, err);

    ret->count = 1;
    if (r == 0)
        r = field_sandbox(object, &ret->sandbox, err);
    if (r == 0)
        r = source_get(object, "from", &ret->from, err);
    if (r == 0)
        r = json_get_u32(object, "count", &ret->count, err);
    if (r == 0 && (ret->count < 1 || ret->count > FORK_MAX))
        r = err_set(err, ERR_INVALID, "the count must be from 1 to %d", FORK_MAX);
    return r;
}

static int kind_get(const json_t *object, enum snapshot_kind *ret, struct err *err)
{
    const char *text = NULL;
    int r = field_text(object, "kind", &text, err);

    if (r == 0 && text && (!snapshot_kind_parse(text, ret) || *ret == SNAPSHOT_TURN))
        return err_set(err, ERR_INVALID,
                       "field 'kind' must be named or tool; a turn is taken with "
                       "TurnComplete");
    return r;
}

int snapshot_request_parse(const json_t *object, struct snapshot_request *ret, struct err *err)
{
    static const char *const fields[] = { "sandboxId", "name", "kind", NULL };
    int r = json_only_fields(object, fields, err);

    ret->kind = SNAPSHOT_NAMED;
    if (r == 0)
        r = field_sandbox(object, &ret->sandbox, err);
    if (r == 0)
        r = field_snapshot_needed(object, "name", &ret->name, err);
    if (r == 0 && is_template(ret->name))
        r = err_set(err, ERR_INVALID,
                    "a snapshot cannot be called 'template': that stands for the template itself");
    return r < 0 ? r : kind_get(object, &ret->kind, err);
}

/* The host spells the template "". */
static int side_get(const json_t *object, const char *name, const char **ret, struct err *err)
{
    int r = field_snapshot(object, name, ret, err);

    if (r == 0 && is_template(*ret))
        *ret = "";
    return r;
}

int diff_request_parse(const json_t *object, struct diff_request *ret, struct err *err)
{
    static const char *const fields[] = { "sandboxId", "from", "to", "lines", "patch", NULL };
    int r = json_only_fields(object, fields, err);

    if (r == 0)
        r = field_sandbox(object, &ret->sandbox, err);
    if (r == 0)
        r = side_get(object, "from", &ret->what.from, err);
    if (r == 0)
        r = side_get(object, "to", &ret->what.to, err);
    if (r == 0)
        r = json_get_bool(object, "lines", &ret->what.options.wants_lines, err);
    if (r == 0)
        r = json_get_bool(object, "patch", &ret->what.options.wants_patch, err);
    return r;
}
