// SPDX-License-Identifier: Apache-2.0
/* An export reads snapshots, so the sandbox is in use while it lasts; only its removal waits. The
 * present files are those of a temporary snapshot, which the next start removes if the daemon dies
 * first. */
#include "host/bundle/export.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/random.h"
#include "base/xalloc.h"
#include "host/bundle/document.h"
#include "host/core/host_internal.h"
#include "host/observe/event_internal.h"
#include "host/registry/registry.h"
#include "host/sandbox/sandbox_internal.h"
#include "host/shell/state.h"
#include "store/template/settings.h"
#include "store/volume/volume.h"

enum { RANDOM_BYTES = 8, DIGITS = 16 };

struct export
{
    struct sandbox *sandbox;
    struct sandbox_info info;
    struct snapshot_info *snapshots;
    size_t snapshot_count;
    char temporary[sizeof(SNAPSHOT_OWN_PREFIX "export-") + DIGITS]; /* "": none */
    bool is_pinned;
    struct bundle_state *states;
    struct bundle bundle;
};

static int temporary_take(struct export *export, struct err *err)
{
    struct sandbox *sandbox = export->sandbox;
    char digits[DIGITS + 1], name[sizeof(export->temporary)];
    struct err ignored;
    int r = random_hex(digits, RANDOM_BYTES);

    if (r < 0)
        return err_sys(err, r, "name a snapshot");
    (void)snprintf(name, sizeof(name), SNAPSHOT_OWN_PREFIX "export-%s", digits);
    shells_save(sandbox);
    r = sandbox_quiesce(sandbox, true, err);
    if (r < 0)
        return r;
    r = volume_snapshot(sandbox->volume, name, err);
    (void)sandbox_quiesce(sandbox, false, &ignored);
    if (r == 0)
        memcpy(export->temporary, name, sizeof(name));
    fault_point("export.taken");
    return r;
}

static struct snapshot_info *snapshot_find(struct export *export, const char *name)
{
    for (size_t i = 0; i < export->snapshot_count; i++)
        if (strcmp(export->snapshots[i].name, name) == 0)
            return &export->snapshots[i];
    return NULL;
}

/* Keeps the snapshot and those that it derives from, in their order. Names lead to earlier entries,
 * so this ends. */
static int history_cut(struct export *export, const char *snapshot, struct err *err)
{
    const struct snapshot_info *at = snapshot_find(export, snapshot);
    cleanup_free bool *keep = xcalloc(export->snapshot_count + 1, sizeof(*keep));
    size_t kept = 0;

    if (!at)
        return err_refuse(err, CAUSE_SNAPSHOT_NOT_FOUND, "sandbox '%s' has no snapshot '%.100s'",
                          export->info.id, snapshot);
    export->info.turns = 0;
    memcpy(export->info.base, at->name, sizeof(export->info.base));
    for (; at && !keep[at - export->snapshots]; at = snapshot_find(export, at->parent)) {
        keep[at - export->snapshots] = true;
        if (at->turn > export->info.turns)
            export->info.turns = at->turn;
    }
    for (size_t i = 0; i < export->snapshot_count; i++)
        if (keep[i])
            export->snapshots[kept++] = export->snapshots[i];
    export->snapshot_count = kept;
    return 0;
}

static int snapshots_take(struct export *export, const char *snapshot, struct err *err)
{
    struct sandbox *sandbox = export->sandbox;
    int r = registry_list_snapshots(sandbox->host->registry, sandbox->info.id, &export->snapshots,
                                    &export->snapshot_count, err);

    sandbox_get_info(sandbox, false, &export->info);
    return r == 0 && snapshot ? history_cut(export, snapshot, err) : r;
}

/* Takes what is exported within the operation of the caller. Nothing changes the files meanwhile,
 * so the live tree itself is read. */
static int claimed_take(struct export *export, struct err *err)
{
    export->bundle.volume = export->sandbox->volume;
    return snapshots_take(export, NULL, err);
}

/* Takes what is exported, as one operation of the sandbox. */
static int state_take(struct export *export, const char *snapshot, struct err *err)
{
    struct sandbox *sandbox = export->sandbox;
    enum sandbox_state state;
    int r = sandbox_begin(sandbox, OPERATION_SNAPSHOT, &state, err);

    if (r < 0)
        return r;
    if (!snapshot)
        r = temporary_take(export, err);
    if (r == 0)
        r = snapshots_take(export, snapshot, err);
    sandbox_finish(sandbox, state);
    if (r == 0) {
        export->bundle.volume = sandbox_pin(sandbox);
        export->is_pinned = export->bundle.volume;
        if (!export->is_pinned)
            r = err_refuse(err, CAUSE_INVALID_STATE,
                           "sandbox '%s' has no volume in its present state", export->info.id);
    }
    return r;
}

/* The states of the layers: the template, the snapshots, and what the image shows, which for a
 * snapshot is the last one again. */
static void states_make(struct export *export, const char *snapshot)
{
    const char *temporary = export->temporary[0] ? export->temporary : NULL;
    size_t count = 0;

    export->states = xcalloc(export->snapshot_count + 2, sizeof(*export->states));
    export->states[count++] = (struct bundle_state){ .snapshot = "" };
    for (size_t i = 0; i < export->snapshot_count; i++)
        export->states[count++] =
            (struct bundle_state){ export->snapshots[i].name, export->snapshots[i].created_ms };
    export->states[count++] = (struct bundle_state){ snapshot ? snapshot : temporary, 0 };
    export->bundle.states = export->states;
    export->bundle.count = count;
}

/* The settings that images have in common with templates, for tools that run the image. */
static json_t *config_make(const struct export *export)
{
    cleanup_with(template_settings_done) struct template_settings settings = { .object = NULL };
    json_t *env = json_array(), *command = json_array(), *value;
    const char *workdir = "", *user = "", *key;
    struct err ignored;
    size_t i;

    if (template_settings_read(export->sandbox->host->store, export->info.template, &settings,
                               &ignored) == 0) {
        workdir = settings.workdir ? settings.workdir : "";
        user = settings.user ? settings.user : "";
        json_object_foreach((json_t *)(uintptr_t)settings.env, key, value)
            (void)json_array_append_new(env, json_sprintf("%s=%s", key, json_string_value(value)));
        json_array_foreach(settings.command, i, value)
            (void)json_array_append(command, value);
    }
    if (json_array_size(command) == 0)
        (void)json_array_append_new(command, json_string("/bin/sh"));
    return json_pack("{s:o, s:o, s:s, s:s}", "Env", env, "Cmd", command, "WorkingDir", workdir,
                     "User", user);
}

static int bundle_prepare(struct export *export, bool has_shells, struct err *err)
{
    cleanup_json json_t *config =
        json_pack("{s:o, s:o}", "config", config_make(export), "holt",
                  document_make(export->sandbox, &export->info, export->snapshots,
                                export->snapshot_count, has_shells));

    return config ? bundle_measure(&export->bundle, config, err)
                  : err_sys(err, -ENOMEM, "describe sandbox '%s'", export->info.id);
}

int export_begin_as(struct sandbox *sandbox, const struct export_spec *spec, struct export **ret,
                    struct err *err)
{
    struct export *export = xcalloc(1, sizeof(*export));
    int r;

    export->sandbox = sandbox;
    export->bundle.omits_template = spec->omits_template;
    r = spec->is_claimed ? claimed_take(export, err) : state_take(export, spec->snapshot, err);
    if (r == 0) {
        states_make(export, spec->snapshot);
        r = bundle_prepare(export, !spec->snapshot, err);
    }
    if (r < 0) {
        export_end(export);
        return r;
    }
    *ret = export;
    return 0;
}

int export_begin(struct sandbox *sandbox, const char *snapshot, struct export **ret,
                 struct err *err)
{
    int r = export_begin_as(sandbox, &(struct export_spec){ .snapshot = snapshot }, ret, err);

    if (r < 0)
        return r;
    sandbox_event(sandbox, EVENT_SANDBOX_EXPORTED,
                  json_pack("{s:s}", "snapshot", snapshot ? snapshot : ""));
    return 0;
}

uint64_t export_size(const struct export *export)
{
    return export->bundle.size;
}

int export_write(struct export *export, bundle_write_fn *write, void *context, struct err *err)
{
    return bundle_write(&export->bundle, write, context, err);
}

void export_end(struct export *export)
{
    if (!export)
        return;
    bundle_done(&export->bundle);
    if (export->is_pinned)
        sandbox_unpin(export->sandbox);
    if (export->temporary[0])
        sandbox_drop_temporary(export->sandbox, export->temporary);
    fault_point("export.tidied");
    sandbox_info_done(&export->info);
    free(export->snapshots);
    free(export->states);
    free(export);
}
