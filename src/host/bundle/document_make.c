// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "host/bundle/document.h"
#include "host/core/host_internal.h"
#include "host/sandbox/network.h"
#include "host/sandbox/sandbox_internal.h"
#include "host/secret/grant.h"
#include "host/shell/file.h"
#include "host/shell/shell_internal.h"
#include "store/template/settings.h"

static json_t *limits_make(const struct sandbox_limits *limits)
{
    return json_pack("{s:I, s:I, s:I, s:I}", "memoryBytes", (json_int_t)limits->memory_bytes,
                     "cpuMillis", (json_int_t)limits->cpu_millis, "pids", (json_int_t)limits->pids,
                     "files", (json_int_t)limits->files);
}

static json_t *labels_make(const struct sandbox_info *info)
{
    json_t *labels = json_object();

    for (size_t i = 0; i < info->label_count; i++)
        (void)json_object_set_new(labels, info->labels[i].key, json_text(info->labels[i].value));
    return labels;
}

static json_t *secrets_make(const struct sandbox_info *info)
{
    struct secret_grants grants;
    json_t *names = json_array();

    secret_grants_read(info->secrets, &grants);
    for (size_t i = 0; i < grants.count; i++)
        (void)json_array_append_new(names, json_string(grants.items[i].name));
    return names;
}

/* A proxy has a login, so it is left out. */
static json_t *network_make(struct sandbox *sandbox)
{
    cleanup_with(net_layer_done) struct net_layer layer = { 0 };
    struct err ignored;
    json_t *object;

    if (sandbox_network_layer(sandbox, &layer, &ignored) < 0)
        return json_pack("{s:s}", "mode", net_mode_name(NET_NONE));
    net_layer_set_proxy(&layer, NULL);
    object = net_layer_to_json(&layer);
    (void)json_object_del(object, "from");
    (void)json_object_del(object, "proxy");
    return object;
}

static json_t *template_make(struct sandbox *sandbox, const struct sandbox_info *info)
{
    cleanup_with(template_settings_done) struct template_settings settings = { .object = NULL };
    json_t *object = json_pack("{s:s}", "name", info->template);
    struct err ignored;

    if (template_settings_read(sandbox->host->store, info->template, &settings, &ignored) == 0 &&
        settings.object) {
        json_t *copy = json_copy(settings.object);

        (void)json_object_del(copy,
                              "network"); /* it may have a login, and the sandbox has its own */
        (void)json_object_set_new(object, "settings", copy);
    }
    return object;
}

static json_t *snapshots_make(const struct snapshot_info *snapshots, size_t count)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++)
        (void)json_array_append_new(
            list,
            json_pack("{s:s, s:s, s:I, s:s, s:I, s:o}", "name", snapshots[i].name, "kind",
                      snapshot_kind_name(snapshots[i].kind), "turn", (json_int_t)snapshots[i].turn,
                      "parent", snapshots[i].parent, "createdMs",
                      (json_int_t)snapshots[i].created_ms, "note", json_text(snapshots[i].note)));
    return list;
}

struct shell_list {
    struct sandbox *sandbox;
    json_t *list;
    size_t bytes;
};

/* States that are not UTF-8, or too large together, are left out: the shell then begins anew. */
static void shell_add(void *context, const char *name)
{
    cleanup_with(buf_done) struct buf state = BUF_INIT(SHELL_STATE_MAX);
    struct shell_list *shells = context;
    json_t *text;

    if (json_array_size(shells->list) == BUNDLE_SHELLS_MAX ||
        shell_file_read_now(shells->sandbox, name, &state) < 0 || state.len == 0 ||
        shells->bytes + state.len > BUNDLE_SHELL_BYTES_MAX)
        return;
    text = json_stringn(state.data, state.len);
    if (!text)
        return;
    shells->bytes += state.len;
    (void)json_array_append_new(shells->list,
                                json_pack("{s:o, s:o}", "name", json_text(name), "state", text));
}

json_t *document_make(struct sandbox *sandbox, const struct sandbox_info *info,
                      const struct snapshot_info *snapshots, size_t count, bool has_shells)
{
    struct shell_list shells = { .sandbox = sandbox, .list = json_array() };
    uint64_t ttl_ms = info->expires_ms > info->created_ms ? info->expires_ms - info->created_ms : 0;

    if (has_shells)
        shell_file_each(sandbox, shell_add, &shells);
    return json_pack(
        "{s:i, s:o, s:I, s:s, s:o, s:I, s:I, s:s, s:I, s:s, s:o, s:o, s:o, s:I, s:s, s:o, s:o}",
        "version", 1, "limits", limits_make(&info->limits), "quotaBytes",
        (json_int_t)info->quota_bytes, "runtime", info->runtime, "labels", labels_make(info),
        "snapshotsMax", (json_int_t)info->snapshots_max, "ttlMs", (json_int_t)ttl_ms,
        "expireAction", sandbox_action_name(info->expire_action), "idleTimeoutMs",
        (json_int_t)info->idle_timeout_ms, "idleAction", sandbox_action_name(info->idle_action),
        "network", network_make(sandbox), "secrets", secrets_make(info), "template",
        template_make(sandbox, info), "turns", (json_int_t)info->turns, "base", info->base,
        "snapshots", snapshots_make(snapshots, count), "shells", shells.list);
}
