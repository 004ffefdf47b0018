// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "host/bundle/document.h"
#include "host/sandbox/sandbox.h"
#include "store/volume/volume.h"

enum { DOCUMENT_VERSION = 1 };

static int limits_read(const json_t *object, struct sandbox_limits *ret, struct err *err)
{
    const json_t *limits = NULL;
    int r = json_get_object(object, "limits", &limits, err);

    if (r < 0 || !limits)
        return r;
    if (json_get_u64(limits, "memoryBytes", &ret->memory_bytes, err) < 0 ||
        json_get_u32(limits, "cpuMillis", &ret->cpu_millis, err) < 0 ||
        json_get_u32(limits, "pids", &ret->pids, err) < 0 ||
        json_get_u32(limits, "files", &ret->files, err) < 0)
        return -err->errnum;
    return 0;
}

static int labels_read(const json_t *object, struct sandbox_info *ret, struct err *err)
{
    const json_t *labels = NULL;
    const char *key;
    json_t *value;
    int r = json_get_object(object, "labels", &labels, err);

    if (r < 0 || !labels)
        return r;
    if (json_object_size(labels) > SANDBOX_LABELS_MAX)
        return err_set(err, ERR_EXHAUSTED, "more than %d labels", SANDBOX_LABELS_MAX);
    ret->labels = xcalloc(json_object_size(labels) + 1, sizeof(*ret->labels));
    json_object_foreach((json_t *)(uintptr_t)labels, key, value) {
        struct label *label = &ret->labels[ret->label_count++];
        const char *text = json_string_value(value);

        if (!text || strlen(key) >= sizeof(label->key) || strlen(text) >= sizeof(label->value))
            return err_set(err, ERR_INVALID, "label '%.40s' is not valid", key);
        (void)snprintf(label->key, sizeof(label->key), "%s", key);
        (void)snprintf(label->value, sizeof(label->value), "%s", text);
    }
    return 0;
}

static int rules_read(const json_t *object, const char *name,
                      int (*add)(struct net_layer *layer, const char *rule, struct err *err),
                      struct net_layer *layer, struct err *err)
{
    const json_t *list = NULL;
    const json_t *rule;
    size_t i;
    int r = json_get_array(object, name, &list, err);

    json_array_foreach(list, i, rule) {
        if (r < 0)
            break;
        r = json_is_string(rule) ? add(layer, json_string_value(rule), err)
                                 : err_set(err, ERR_INVALID, "'%s' must be a list of texts", name);
    }
    return r;
}

/* Reads the layer as a request has it: what only holt.conf may say has no place in it. */
static int network_read(const json_t *object, struct net_layer *ret, struct err *err)
{
    const json_t *network = NULL;
    const char *mode = "none", *models = "";
    int r = json_get_object(object, "network", &network, err);

    *ret = (struct net_layer){ .source = NET_FROM_SANDBOX, .mode = NET_NONE };
    if (r < 0 || !network)
        return r;
    if (json_get_text(network, "mode", &mode, err) < 0 ||
        json_get_text(network, "models", &models, err) < 0 ||
        json_get_bool(network, "allowWins", &ret->allow_wins, err) < 0 ||
        json_get_bool(network, "inspect", &ret->inspects, err) < 0 ||
        net_mode_parse(mode, &ret->mode, err) < 0 ||
        rules_read(network, "allow", net_layer_allow, ret, err) < 0 ||
        rules_read(network, "deny", net_layer_deny, ret, err) < 0)
        return -err->errnum;
    while (*models && r == 0) {
        char name[NET_MODEL_NAME_MAX + 1];
        size_t len = strcspn(models, " ");

        if (len > NET_MODEL_NAME_MAX)
            return err_set(err, ERR_INVALID, "the name of a model is too long");
        (void)snprintf(name, sizeof(name), "%.*s", (int)len, models);
        r = len ? net_layer_add_model(ret, name, err) : 0;
        models += len + (models[len] == ' ');
    }
    return r;
}

static int action_read(const json_t *object, const char *name, enum sandbox_action *ret,
                       struct err *err)
{
    const char *word = sandbox_action_name(*ret);
    int r = json_get_text(object, name, &word, err);

    if (r == 0 && !sandbox_action_parse(word, ret))
        r = err_set(err, ERR_INVALID, "'%.20s' is no action", word);
    return r;
}

static int times_read(const json_t *object, struct document *ret, struct err *err)
{
    struct sandbox_info *info = &ret->info;

    if (json_get_u64(object, "ttlMs", &ret->ttl_ms, err) < 0 ||
        json_get_u64(object, "idleTimeoutMs", &info->idle_timeout_ms, err) < 0 ||
        action_read(object, "expireAction", &info->expire_action, err) < 0 ||
        action_read(object, "idleAction", &info->idle_action, err) < 0 ||
        json_get_u32(object, "snapshotsMax", &info->snapshots_max, err) < 0 ||
        json_get_u64(object, "quotaBytes", &info->quota_bytes, err) < 0)
        return -err->errnum;
    return 0;
}

static int text_copy(const json_t *object, const char *name, char *ret, size_t size,
                     struct err *err)
{
    const char *text = "";
    int r = json_get_text(object, name, &text, err);

    if (r == 0 && strlen(text) >= size)
        r = err_set(err, ERR_INVALID, "'%s' is longer than %zu bytes", name, size - 1);
    if (r == 0)
        (void)snprintf(ret, size, "%s", text);
    return r;
}

/* --- the history ------------------------------------------------------------------------------ */

/* Returns whether a name is that of one of the first count snapshots, or "" for the template. */
static bool is_known(const struct document *document, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(document->snapshots[i].name, name) == 0)
            return true;
    return *name == '\0';
}

/* A number of a turn that leaves no room for further turns would be a trap. */
static int turn_check(const struct snapshot_info *snapshot, struct err *err)
{
    if ((snapshot->kind == SNAPSHOT_TURN) == (snapshot->turn > 0) &&
        snapshot->turn < UINT32_MAX / 2)
        return 0;
    return err_set(err, ERR_INVALID, "snapshot '%.40s' has the turn %u", snapshot->name,
                   snapshot->turn);
}

static int snapshot_read(const json_t *object, struct document *document, struct err *err)
{
    struct snapshot_info *snapshot = &document->snapshots[document->snapshot_count];
    uint64_t now_ms = clock_wall_ms();
    const char *kind = "";

    if (!json_is_object(object))
        return err_set(err, ERR_INVALID, "a snapshot is not an object");
    if (text_copy(object, "name", snapshot->name, sizeof(snapshot->name), err) < 0 ||
        text_copy(object, "parent", snapshot->parent, sizeof(snapshot->parent), err) < 0 ||
        text_copy(object, "note", snapshot->note, sizeof(snapshot->note), err) < 0 ||
        json_get_text(object, "kind", &kind, err) < 0 ||
        json_get_u32(object, "turn", &snapshot->turn, err) < 0 ||
        json_get_u64(object, "createdMs", &snapshot->created_ms, err) < 0)
        return -err->errnum;
    if (snapshot->created_ms > now_ms)
        snapshot->created_ms = now_ms;
    if (!volume_snapshot_is_name(snapshot->name) ||
        strncmp(snapshot->name, SNAPSHOT_OWN_PREFIX, strlen(SNAPSHOT_OWN_PREFIX)) == 0 ||
        !snapshot_kind_parse(kind, &snapshot->kind))
        return err_set(err, ERR_INVALID, "'%.40s' is not a snapshot", snapshot->name);
    if (is_known(document, document->snapshot_count, snapshot->name))
        return err_set(err, ERR_INVALID, "there are two snapshots '%.40s'", snapshot->name);
    if (!is_known(document, document->snapshot_count, snapshot->parent))
        return err_set(err, ERR_INVALID,
                       "snapshot '%.40s' is based on '%.40s', which is no earlier one",
                       snapshot->name, snapshot->parent);
    return turn_check(snapshot, err);
}

static int history_read(const json_t *object, size_t layers, struct document *ret, struct err *err)
{
    const json_t *list = NULL, *each;
    size_t i;
    int r = json_get_array(object, "snapshots", &list, err);

    if (r < 0)
        return r;
    if (json_array_size(list) + 2 != layers)
        return err_set(err, ERR_INVALID, "%zu layers do not fit %zu snapshots", layers,
                       json_array_size(list));
    ret->snapshots = xcalloc(json_array_size(list) + 1, sizeof(*ret->snapshots));
    json_array_foreach(list, i, each) {
        r = snapshot_read(each, ret, err);
        if (r < 0)
            return r;
        if (ret->snapshots[i].turn > ret->info.turns)
            ret->info.turns = ret->snapshots[i].turn;
        ret->snapshot_count++;
    }
    r = text_copy(object, "base", ret->info.base, sizeof(ret->info.base), err);
    if (r == 0 && !is_known(ret, ret->snapshot_count, ret->info.base))
        r = err_set(err, ERR_INVALID, "the files are based on '%.40s', which is no snapshot",
                    ret->info.base);
    return r;
}

/* Turns that were pruned count as well: their numbers are not used again. */
static int turns_read(const json_t *object, struct document *ret, struct err *err)
{
    uint32_t turns = 0;
    int r = json_get_u32(object, "turns", &turns, err);

    if (r == 0 && turns >= UINT32_MAX / 2)
        r = err_set(err, ERR_INVALID, "'turns' is %u", turns);
    if (r == 0 && turns > ret->info.turns)
        ret->info.turns = turns;
    return r;
}

static int template_read(const json_t *object, struct document *ret, struct err *err)
{
    const json_t *template = NULL;
    int r = json_get_object(object, "template", &template, err);

    return r == 0 && template ? json_get_object(template, "settings", &ret->settings, err) : r;
}

int document_read(const json_t *object, size_t layers, struct document *ret, struct err *err)
{
    uint32_t version = 0;

    *ret = (struct document){ .snapshots = NULL };
    if (!object)
        return err_set(err, ERR_INVALID, "the image is no bundle of a sandbox");
    if (json_get_u32(object, "version", &version, err) < 0)
        return err_wrap(err, "bundle");
    if (version != DOCUMENT_VERSION)
        return err_set(err, ERR_UNSUPPORTED, "the bundle has version %u; this program reads %d",
                       version, DOCUMENT_VERSION);
    if (limits_read(object, &ret->info.limits, err) < 0 ||
        text_copy(object, "runtime", ret->info.runtime, sizeof(ret->info.runtime), err) < 0 ||
        labels_read(object, &ret->info, err) < 0 || times_read(object, ret, err) < 0 ||
        network_read(object, &ret->network, err) < 0 || template_read(object, ret, err) < 0 ||
        history_read(object, layers, ret, err) < 0 || turns_read(object, ret, err) < 0 ||
        json_get_array(object, "shells", &ret->shells, err) < 0) {
        document_done(ret);
        return err_wrap(err, "bundle");
    }
    return 0;
}

void document_done(struct document *document)
{
    sandbox_info_done(&document->info);
    net_layer_done(&document->network);
    free(document->snapshots);
    document->snapshots = NULL;
}
