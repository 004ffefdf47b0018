// SPDX-License-Identifier: Apache-2.0
#include "host/bundle/import.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "host/bundle/document.h"
#include "host/core/host.h"
#include "host/core/host_internal.h"
#include "host/core/owned_template.h"
#include "host/image/endpoint.h"
#include "host/observe/event_internal.h"
#include "host/registry/registry.h"
#include "host/sandbox/sandbox_internal.h"
#include "host/shell/file.h"
#include "host/shell/shell.h"
#include "host/shell/shell_internal.h"
#include "host/shell/state.h"
#include "store/bundle/bundle.h"
#include "store/import/image.h"
#include "store/store.h"
#include "store/template/settings.h"

/* The owner's template of a layer is found by its digest, so that a second import shares it. */
#define TEMPLATE_PREFIX "bundle-"
enum { TEMPLATE_DIGITS = 40 };

struct import {
    struct host *host;
    const struct caller *caller;
    const struct bundle_spool *spool;
    const struct import_spec *spec;
    struct document document;
    struct template_record template;
    bool is_made; /* the template was made by this import */
};

int import_receive(struct host *host, int fd, struct bundle_spool *ret, struct err *err)
{
    int r =
        bundle_receive(host_store(host), fd, image_config_bytes_max(host->image_config), ret, err);

    fault_point("bundle.received");
    return r;
}

static int template_make(struct import *import, const char *name, struct err *err)
{
    cleanup_with(template_settings_done) struct template_settings settings = { .object = NULL };
    cleanup_json json_t *asked = json_deep_copy(import->document.settings);
    struct template_info info;
    int r = owned_template_reserve(import->host, import->caller, name, &import->template, err);

    if (r < 0)
        return r;
    (void)json_object_del(asked, "network");
    r = asked ? template_settings_parse(asked, &settings, err) : 0;
    if (r == 0)
        r = bundle_make_template(import->spool, import->template.store_name,
                                 asked ? &settings : NULL, &info, err);
    if (r < 0)
        owned_template_release(import->host, import->template.store_name);
    import->is_made = r == 0;
    fault_point("bundle.template");
    return r;
}

/* Finds the template that the bundle omits; or the caller's own template of the first layer, which
 * may have to be made. */
static int template_choose(struct import *import, struct err *err)
{
    const json_t *layers = json_object_get(import->spool->manifest, "layers");
    const char *digest = json_string_value(json_object_get(json_array_get(layers, 0), "digest"));
    const char *hex = digest ? strchr(digest, ':') : NULL;
    char name[sizeof(TEMPLATE_PREFIX) + TEMPLATE_DIGITS];
    struct template_record found;
    struct err ignored;

    if (import->spec->template)
        return owned_template_find(import->host, import->caller, import->spec->template,
                                   &import->template, err);
    if (!hex || strlen(hex + 1) < TEMPLATE_DIGITS)
        return err_set(err, ERR_INVALID, "the first layer of the bundle has no digest");
    (void)snprintf(name, sizeof(name), TEMPLATE_PREFIX "%.*s", TEMPLATE_DIGITS, hex + 1);
    if (owned_template_find(import->host, import->caller, name, &found, &ignored) == 0 &&
        strcmp(found.owner, import->caller->owner) == 0) {
        import->template = found;
        return 0;
    }
    return template_make(import, name, err);
}

static int snapshot_restore(struct sandbox *sandbox, const struct snapshot_info *snapshot,
                            struct err *err)
{
    struct snapshot_info recorded = *snapshot;
    int r = volume_snapshot(sandbox->volume, snapshot->name, err);

    if (r < 0)
        return r;
    recorded.space_used = volume_usage_settled(sandbox->volume);
    r = sandbox_record_snapshot(sandbox, &recorded, err);
    fault_point("bundle.snapshot");
    return r;
}

static int shells_restore(struct sandbox *sandbox, const json_t *shells, struct err *err)
{
    const json_t *shell;
    size_t i;

    json_array_foreach(shells, i, shell) {
        cleanup_with(buf_done) struct buf state = BUF_INIT(SHELL_STATE_MAX);
        const char *name = json_string_value(json_object_get(shell, "name"));
        const json_t *text = json_object_get(shell, "state");

        if (i >= BUNDLE_SHELLS_MAX || !name || !is_handle(name, SHELL_NAME_MAX) ||
            !json_is_string(text) || json_string_length(text) != strlen(json_string_value(text)) ||
            buf_add_str(&state, json_string_value(text)) < 0)
            return err_set(err, ERR_INVALID, "the bundle has an invalid shell");
        if (shell_file_write_now(sandbox, name, &state) < 0)
            return err_set(err, ERR_EXHAUSTED, "the shells of the bundle cannot be stored");
    }
    shells_load(sandbox);
    return 0;
}

/* Writes the files and the history of a sandbox that is being created. */
static int sandbox_fill(struct sandbox *sandbox, void *context, struct err *err)
{
    const struct import *import = context;
    const struct document *document = &import->document;
    struct bundle_fill *fill = NULL;
    int r = volume_snapshot(sandbox->volume, SNAPSHOT_UNFILLED, err);

    if (r == 0)
        r = bundle_fill_begin(import->spool, sandbox->volume, &fill, err);
    for (size_t i = 0; r == 0 && i <= document->snapshot_count; i++) {
        r = bundle_fill_layer(fill, i + 1, err);
        fault_point("bundle.layer");
        if (r == 0 && i < document->snapshot_count)
            r = snapshot_restore(sandbox, &document->snapshots[i], err);
    }
    bundle_fill_end(fill);
    lock_take(&sandbox->lock);
    sandbox->info.turns = document->info.turns;
    memcpy(sandbox->info.base, document->info.base, sizeof(sandbox->info.base));
    lock_release(&sandbox->lock);
    if (r == 0)
        r = shells_restore(sandbox, document->shells, err);
    if (r == 0 && import->spec->flushes)
        store_flush(sandbox->host->store);
    return r;
}

int import_refill(struct sandbox *sandbox, const struct bundle_spool *spool, struct err *err)
{
    struct document document;
    struct bundle_fill *fill = NULL;
    int r = document_read(json_object_get(spool->config, "holt"),
                          image_layer_count(spool->manifest), &document, err);

    if (r < 0)
        return r;
    r = bundle_fill_begin(spool, sandbox->volume, &fill, err);
    for (size_t i = 0; r == 0 && i <= document.snapshot_count; i++) {
        r = bundle_fill_layer(fill, i + 1, err);
        if (r == 0 && i < document.snapshot_count)
            r = volume_snapshot(sandbox->volume, document.snapshots[i].name, err);
        fault_point("refill.layer");
    }
    bundle_fill_end(fill);
    document_done(&document);
    return r;
}

/* A runtime that this host lacks, and a quota where storage has none, are not asked for: they are
 * properties of the host that the bundle comes from. */
static int sandbox_make(struct import *import, struct sandbox **ret, struct err *err)
{
    const struct sandbox_info *info = &import->document.info;
    const struct runtime_ops *ops;
    struct err ignored;
    const struct sandbox_spec spec = {
        .caller = import->caller,
        .id = import->spec->id,
        .name = import->spec->name,
        .stored_template = import->template.store_name,
        .runtime =
            *info->runtime && host_find_runtime(import->host, info->runtime, &ops, &ignored) == 0
                ? info->runtime
                : NULL,
        .limits = info->limits,
        .quota_bytes = store_has_quota(import->host->store) ? info->quota_bytes : 0,
        .labels = info->labels,
        .label_count = info->label_count,
        .snapshots_max = info->snapshots_max,
        .ttl_ms = import->document.ttl_ms,
        .expire_action = info->expire_action,
        .idle_timeout_ms = info->idle_timeout_ms,
        .idle_action = info->idle_action,
        .network = &import->document.network,
        .fill = sandbox_fill,
        .fill_context = import,
    };

    return sandbox_create(import->host, &spec, ret, err);
}

int import_sandbox(struct host *host, const struct caller *caller, const struct bundle_spool *spool,
                   const struct import_spec *spec, struct sandbox **ret, struct err *err)
{
    struct import import = { .host = host, .caller = caller, .spool = spool, .spec = spec };
    struct err ignored;
    int r = document_read(json_object_get(spool->config, "holt"),
                          image_layer_count(spool->manifest), &import.document, err);

    if (r < 0)
        return r;
    r = template_choose(&import, err);
    if (r == 0)
        r = sandbox_make(&import, ret, err);
    if (r < 0 && import.is_made)
        (void)host_remove_template(host, import.template.store_name, &ignored);
    fault_point("bundle.made");
    if (r == 0) {
        sandbox_drop_temporary(*ret, SNAPSHOT_UNFILLED);
        sandbox_event(*ret, EVENT_SANDBOX_IMPORTED,
                      json_pack("{s:s}", "template", import.template.store_name));
    }
    document_done(&import.document);
    return r;
}
