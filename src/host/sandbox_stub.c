// SPDX-License-Identifier: Apache-2.0
/* A stand-in until the real sandboxes are there: in memory, without history of files. Processes are
 * real. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "host/host.h"
#include "host/machine.h"
#include "host/process.h"
#include "host/sandbox.h"

enum { STUB_SNAPSHOTS_MAX = 64 };

struct sandbox {
    struct sandbox *next;
    struct host *host;
    struct machine *machine;
    struct sandbox_info info;
    struct snapshot_info snapshots[STUB_SNAPSHOTS_MAX];
    size_t snapshot_count;
};

static pthread_mutex_t stub_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sandbox *stub_list;

static const char *const state_names[SANDBOX_STATES] = {
    "creating", "active", "pausing", "paused", "stopped", "rolling-back", "destroying", "failed",
};

const char *sandbox_state_name(enum sandbox_state state)
{
    return state < SANDBOX_STATES ? state_names[state] : "unknown";
}

bool sandbox_state_parse(const char *name, enum sandbox_state *ret)
{
    for (int i = 0; i < SANDBOX_STATES; i++) {
        if (strcmp(state_names[i], name) != 0)
            continue;
        *ret = (enum sandbox_state)i;
        return true;
    }
    return false;
}

const char *sandbox_action_name(enum sandbox_action action)
{
    return action == ACTION_PAUSE ? "pause" : "kill";
}

bool sandbox_action_parse(const char *name, enum sandbox_action *ret)
{
    *ret = strcmp(name, "pause") == 0 ? ACTION_PAUSE : ACTION_KILL;
    return strcmp(name, sandbox_action_name(*ret)) == 0;
}

const char *snapshot_kind_name(enum snapshot_kind kind)
{
    static const char *const names[] = { "turn", "tool", "named" };

    return names[kind];
}

bool snapshot_kind_parse(const char *name, enum snapshot_kind *ret)
{
    for (int i = SNAPSHOT_TURN; i <= SNAPSHOT_NAMED; i++) {
        if (strcmp(snapshot_kind_name((enum snapshot_kind)i), name) != 0)
            continue;
        *ret = (enum snapshot_kind)i;
        return true;
    }
    return false;
}

void sandbox_info_done(struct sandbox_info *info)
{
    free(info->labels);
    info->labels = NULL;
}

void sandbox_info_copy(const struct sandbox_info *info, struct sandbox_info *ret)
{
    *ret = *info;
    ret->labels = xcalloc(info->label_count + 1, sizeof(*ret->labels));
    if (info->label_count > 0)
        memcpy(ret->labels, info->labels, info->label_count * sizeof(*ret->labels));
}

static uint64_t now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static int machine_for(struct sandbox *sandbox, struct err *err)
{
    struct machine_spec spec = {
        .template = *sandbox->info.template ? sandbox->info.template : NULL,
        .runtime = *sandbox->info.runtime ? sandbox->info.runtime : NULL,
        .limits = sandbox->info.limits,
    };

    return machine_create(sandbox->host, &spec, &sandbox->machine, err);
}

static void machine_drop(struct sandbox *sandbox)
{
    if (sandbox->machine)
        machine_destroy(sandbox->machine);
    machine_unref(sandbox->machine);
    sandbox->machine = NULL;
}

int sandbox_create(struct host *host, const struct sandbox_spec *spec, struct sandbox **ret,
                   struct err *err)
{
    struct sandbox *sandbox = xcalloc(1, sizeof(*sandbox)), *other = NULL;
    struct sandbox_info *info = &sandbox->info;
    struct err ignored;
    int r;

    sandbox->host = host;
    if (spec->name && sandbox_find(host, spec->name, &other, &ignored) == 0) {
        free(sandbox);
        return err_refuse(err, CAUSE_SESSION_EXISTS, "there is a sandbox '%s'", spec->name);
    }
    (void)snprintf(info->name, sizeof(info->name), "%s", spec->name ? spec->name : "");
    (void)snprintf(info->template, sizeof(info->template), "%s",
                   spec->template ? spec->template : "");
    (void)snprintf(info->runtime, sizeof(info->runtime), "%s", spec->runtime ? spec->runtime : "");
    info->limits = spec->limits;
    info->quota_bytes = spec->quota_bytes;
    info->created_ms = info->last_active_ms = now_ms();
    info->expires_ms = spec->ttl_ms ? info->created_ms + spec->ttl_ms : 0;
    info->expire_action = spec->expire_action;
    info->idle_timeout_ms = spec->idle_timeout_ms;
    info->idle_action = spec->idle_action;
    info->snapshots_max = spec->snapshots_max;
    info->label_count = spec->label_count;
    info->labels = xcalloc(spec->label_count + 1, sizeof(*info->labels));
    for (size_t i = 0; i < spec->label_count; i++)
        info->labels[i] = spec->labels[i];
    r = machine_for(sandbox, err);
    if (r < 0) {
        sandbox_info_done(info);
        free(sandbox);
        return r;
    }
    (void)snprintf(info->id, sizeof(info->id), "s%s", machine_id(sandbox->machine));
    info->state = SANDBOX_ACTIVE;
    (void)pthread_mutex_lock(&stub_lock);
    sandbox->next = stub_list;
    stub_list = sandbox;
    (void)pthread_mutex_unlock(&stub_lock);
    *ret = sandbox;
    return 0;
}

int sandbox_find(struct host *host, const char *id, struct sandbox **ret, struct err *err)
{
    struct sandbox *found = NULL;

    (void)pthread_mutex_lock(&stub_lock);
    for (struct sandbox *next = stub_list; next && !found; next = next->next)
        if (next->host == host && next->info.state != SANDBOX_DESTROYING &&
            (strcmp(next->info.id, id) == 0 || strcmp(next->info.name, id) == 0))
            found = next;
    (void)pthread_mutex_unlock(&stub_lock);
    if (!found)
        return err_refuse(err, CAUSE_SESSION_NOT_FOUND, "there is no sandbox '%s'", id);
    *ret = found;
    return 0;
}

void sandbox_unref(struct sandbox *sandbox)
{
    (void)sandbox;
}

void sandbox_get_info(struct sandbox *sandbox, bool wants_space, struct sandbox_info *ret)
{
    sandbox_info_copy(&sandbox->info, ret);
    ret->snapshot_count = (uint32_t)sandbox->snapshot_count;
    ret->space_used = wants_space ? 1234567 : 0;
}

static bool has_label(const struct sandbox_info *info, const struct label *wanted)
{
    for (size_t i = 0; i < info->label_count; i++)
        if (strcmp(info->labels[i].key, wanted->key) == 0 &&
            strcmp(info->labels[i].value, wanted->value) == 0)
            return true;
    return false;
}

int sandbox_list(struct host *host, const struct label *labels, size_t label_count,
                 struct sandbox_info **ret, size_t *ret_count, struct err *err)
{
    struct sandbox_info *infos = xcalloc(1024, sizeof(*infos));
    size_t count = 0;

    (void)err;
    for (struct sandbox *next = stub_list; next && count < 1024; next = next->next) {
        bool is_wanted = next->host == host && next->info.state != SANDBOX_DESTROYING;

        for (size_t i = 0; i < label_count; i++)
            is_wanted = is_wanted && has_label(&next->info, &labels[i]);
        if (is_wanted)
            sandbox_get_info(next, false, &infos[count++]);
    }
    *ret = infos;
    *ret_count = count;
    return 0;
}

static int must_be(struct sandbox *sandbox, enum sandbox_state state, struct err *err)
{
    if (sandbox->info.state == state)
        return 0;
    return err_refuse(err,
                      sandbox->info.state == SANDBOX_PAUSED ? CAUSE_SESSION_PAUSED
                                                            : CAUSE_INVALID_STATE,
                      "sandbox '%s' is %s", sandbox->info.id,
                      sandbox_state_name(sandbox->info.state));
}

int sandbox_exec(struct sandbox *sandbox, const struct process_spec *spec, struct process **ret,
                 struct err *err)
{
    int r = must_be(sandbox, SANDBOX_ACTIVE, err);

    return r < 0 ? r : process_start(sandbox->machine, spec, ret, err);
}

int sandbox_find_process(struct sandbox *sandbox, const char *id, struct process **ret,
                         struct err *err)
{
    if (!sandbox->machine)
        return err_refuse(err, CAUSE_PROCESS_NOT_FOUND, "no process '%s'", id);
    return process_find(sandbox->machine, id, ret, err);
}

void sandbox_attach(struct sandbox *sandbox)
{
    (void)sandbox;
}

void sandbox_detach(struct sandbox *sandbox)
{
    (void)sandbox;
}

static int move(struct sandbox *sandbox, enum sandbox_state from, enum sandbox_state to,
                struct err *err)
{
    int r = must_be(sandbox, from, err);

    if (r == 0)
        sandbox->info.state = to;
    return r;
}

int sandbox_pause(struct sandbox *sandbox, struct err *err)
{
    return move(sandbox, SANDBOX_ACTIVE, SANDBOX_PAUSED, err);
}

int sandbox_resume(struct sandbox *sandbox, struct err *err)
{
    return move(sandbox, SANDBOX_PAUSED, SANDBOX_ACTIVE, err);
}

int sandbox_stop(struct sandbox *sandbox, struct err *err)
{
    (void)err;
    machine_drop(sandbox);
    sandbox->info.state = SANDBOX_STOPPED;
    return 0;
}

int sandbox_start(struct sandbox *sandbox, struct err *err)
{
    int r = move(sandbox, SANDBOX_STOPPED, SANDBOX_ACTIVE, err);

    return r < 0 ? r : machine_for(sandbox, err);
}

int sandbox_destroy(struct sandbox *sandbox, struct err *err)
{
    (void)err;
    machine_drop(sandbox);
    sandbox->info.state = SANDBOX_DESTROYING;
    return 0;
}

static struct snapshot_info *snapshot_find(struct sandbox *sandbox, const char *name)
{
    for (size_t i = 0; i < sandbox->snapshot_count; i++)
        if (strcmp(sandbox->snapshots[i].name, name) == 0)
            return &sandbox->snapshots[i];
    return NULL;
}

static int snapshot_need(struct sandbox *sandbox, const char *name, struct err *err)
{
    return snapshot_find(sandbox, name)
               ? 0
               : err_refuse(err, CAUSE_SNAPSHOT_NOT_FOUND, "sandbox '%s' has no snapshot '%s'",
                            sandbox->info.id, name);
}

int sandbox_snapshot(struct sandbox *sandbox, const char *name, enum snapshot_kind kind,
                     struct snapshot_info *ret, struct err *err)
{
    struct snapshot_info *info = &sandbox->snapshots[sandbox->snapshot_count];

    if (snapshot_find(sandbox, name))
        return err_refuse(err, CAUSE_SNAPSHOT_EXISTS, "there is a snapshot '%s'", name);
    if (sandbox->snapshot_count == STUB_SNAPSHOTS_MAX)
        return err_set(err, ERR_EXHAUSTED, "too many snapshots for a stub");
    *info = (struct snapshot_info){ .kind = kind, .created_ms = now_ms(), .space_used = 4096 };
    (void)snprintf(info->name, sizeof(info->name), "%s", name);
    (void)snprintf(info->parent, sizeof(info->parent), "%s", sandbox->info.base);
    info->turn = kind == SNAPSHOT_TURN ? sandbox->info.turns : 0;
    (void)snprintf(sandbox->info.base, sizeof(sandbox->info.base), "%s", name);
    sandbox->snapshot_count++;
    *ret = *info;
    return 0;
}

int sandbox_turn(struct sandbox *sandbox, struct snapshot_info *ret, struct err *err)
{
    char name[32];

    sandbox->info.turns++;
    (void)snprintf(name, sizeof(name), "turn-%04u", sandbox->info.turns);
    return sandbox_snapshot(sandbox, name, SNAPSHOT_TURN, ret, err);
}

int sandbox_rollback(struct sandbox *sandbox, const char *snapshot, bool prune_newer,
                     struct err *err)
{
    int r = snapshot_need(sandbox, snapshot, err);

    if (r < 0)
        return r;
    if (prune_newer)
        sandbox->snapshot_count =
            (size_t)(snapshot_find(sandbox, snapshot) - sandbox->snapshots) + 1;
    (void)snprintf(sandbox->info.base, sizeof(sandbox->info.base), "%s", snapshot);
    machine_drop(sandbox);
    return machine_for(sandbox, err);
}

int sandbox_remove_snapshot(struct sandbox *sandbox, const char *snapshot, struct err *err)
{
    struct snapshot_info *info = snapshot_find(sandbox, snapshot);

    if (!info)
        return snapshot_need(sandbox, snapshot, err);
    *info = sandbox->snapshots[--sandbox->snapshot_count];
    return 0;
}

int sandbox_list_snapshots(struct sandbox *sandbox, struct snapshot_info **ret, size_t *ret_count,
                           struct err *err)
{
    (void)err;
    *ret = xcalloc(sandbox->snapshot_count + 1, sizeof(**ret));
    memcpy(*ret, sandbox->snapshots, sandbox->snapshot_count * sizeof(**ret));
    *ret_count = sandbox->snapshot_count;
    return 0;
}

int sandbox_fork(struct sandbox *sandbox, const char *from, size_t count, struct sandbox **ret,
                 struct err *err)
{
    const struct sandbox_spec spec = {
        .template = *sandbox->info.template ? sandbox->info.template : NULL,
        .limits = sandbox->info.limits,
        .labels = sandbox->info.labels,
        .label_count = sandbox->info.label_count,
    };
    int r = from ? snapshot_need(sandbox, from, err) : 0;

    for (size_t i = 0; i < count && r == 0; i++)
        r = sandbox_create(sandbox->host, &spec, &ret[i], err);
    return r;
}

int sandbox_diff(struct sandbox *sandbox, const struct sandbox_diff *what, diff_fn each,
                 void *context, struct err *err)
{
    static const char patch[] = "--- /dev/null\n+++ b/workspace/a\n@@ -0,0 +1 @@\n+1\n";
    const struct diff_entry entries[] = {
        { DIFF_ADDED, "/workspace/a", NULL, 'f', 2, 0, false, 1, 0,
          what->options.wants_patch ? patch : NULL, strlen(patch) },
        { DIFF_MODIFIED, "/workspace/b.bin", NULL, 'f', 100, 50, true, 0, 0, NULL, 0 },
        { DIFF_DELETED, "/workspace/d\xff", NULL, 'l', 0, 3, false, 0, 0, NULL, 0 },
        { DIFF_RENAMED, "/workspace/new name", "/workspace/old", 'f', 7, 7, false, 0, 0, NULL, 0 },
    };
    int r = what->from && *what->from ? snapshot_need(sandbox, what->from, err) : 0;

    for (size_t i = 0; i < ARRAY_SIZE(entries) && r == 0; i++)
        r = each(&entries[i], context);
    return r;
}

int sandbox_commit(struct sandbox *sandbox, const char *template, struct template_info *ret,
                   struct err *err)
{
    (void)sandbox;
    (void)err;
    *ret = (struct template_info){ .size_bytes = 1, .files = 1, .created_at = 1 };
    (void)snprintf(ret->name, sizeof(ret->name), "%s", template);
    return 0;
}

int host_read_audit(struct host *host, const char *sandbox, audit_fn each, void *context,
                    uint64_t *ret_lines, struct err *err)
{
    int r;

    (void)host;
    (void)sandbox;
    (void)err;
    r = each("{\"seq\":1,\"time\":\"2026-11-15T10:00:00.000Z\",\"event\":\"daemon.start\","
             "\"prev\":\"00\",\"hash\":\"11\"}",
             context);
    if (r == 0)
        r = each("{\"seq\":2,\"time\":\"2026-11-15T10:00:01.000Z\",\"event\":\"sandbox.create\","
                 "\"sandbox\":\"sb1\",\"template\":\"host\",\"prev\":\"11\",\"hash\":\"22\"}",
                 context);
    *ret_lines = 2;
    return r;
}
