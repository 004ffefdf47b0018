// SPDX-License-Identifier: Apache-2.0
#include "host/view/permission.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "host/core/host_internal.h"
#include "host/machine/machine_internal.h"
#include "host/observe/event_internal.h"
#include "host/registry/registry.h"
#include "host/sandbox/sandbox_internal.h"
#include "host/view/engine.h"
#include "host/view/holders.h"
#include "host/view/machine_view.h"
#include "host/view/view.h"
#include "view/preset.h"

void permissions_done(struct permissions *permissions)
{
    view_rules_free(TAKE_PTR(permissions->rules));
}

enum { CGROUP_TEXT_MAX = 16 << 10 };

/* --- the record ------------------------------------------------------------------------------- */

static int rules_join(const json_t *array, struct buf *out, struct err *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < json_array_size(array); i++) {
        const char *text = json_string_value(json_array_get(array, i));

        if (!text)
            return err_set(err, ERR_INTERNAL, "the recorded permissions are damaged");
        r = buf_printf(out, "%s\n", text);
    }
    return r < 0 ? err_sys(err, r, "read the recorded permissions") : 0;
}

/* Earlier records lack them: then it is the file server. */
static int engine_read(const json_t *json, struct permissions *ret, struct err *err)
{
    const char *view = "", *engine = ENGINE_FUSE, *mask = "";
    const char *reason = "the sandbox was started by an earlier version";
    int r = json_get_text(json, "view", &view, err);

    if (r == 0)
        r = json_get_text(json, "engine", &engine, err);
    if (r == 0)
        r = json_get_text(json, "reason", &reason, err);
    if (r == 0)
        r = json_get_text(json, "mask", &mask, err);
    (void)snprintf(ret->view, sizeof(ret->view), "%s", view);
    (void)snprintf(ret->engine, sizeof(ret->engine), "%s", engine);
    (void)snprintf(ret->reason, sizeof(ret->reason), "%s", reason);
    (void)snprintf(ret->mask, sizeof(ret->mask), "%s", mask);
    return r;
}

int permissions_read(const char *recorded, struct permissions *ret, struct err *err)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(VIEW_TEXT_MAX);
    cleanup_json json_t *json = NULL;
    const char *preset = "";
    const json_t *rules = NULL;
    uint64_t generation = 0;
    int r;

    *ret = (struct permissions){ .rules = NULL };
    if (!recorded)
        return 0;
    r = json_parse_object(recorded, strlen(recorded), &json, err);
    if (r == 0)
        r = json_get_text(json, "preset", &preset, err);
    if (r == 0)
        r = json_get_u64(json, "generation", &generation, err);
    if (r == 0)
        r = json_get_array(json, "rules", &rules, err);
    if (r == 0)
        r = rules_join(rules, &text, err);
    if (r == 0)
        r = engine_read(json, ret, err);
    if (r < 0)
        return r;
    (void)snprintf(ret->preset, sizeof(ret->preset), "%s", preset);
    return view_rules_parse(text.data ? text.data : "", generation, &ret->rules, err);
}

static char *permissions_write(const struct permissions *permissions)
{
    json_t *rules = json_array();
    char text[VIEW_RULE_TEXT_SIZE], *written;
    cleanup_json json_t *json = NULL;

    for (size_t i = 0; i < view_rules_count(permissions->rules); i++) {
        view_rule_format(view_rules_at(permissions->rules, i), text);
        (void)json_array_append_new(rules, json_string(text));
    }
    json = json_pack("{s:s, s:o, s:s, s:s, s:s, s:s, s:o}", "preset", permissions->preset,
                     "generation", json_u64(view_rules_generation(permissions->rules)), "view",
                     permissions->view, "engine", permissions->engine, "reason",
                     permissions->reason, "mask", permissions->mask, "rules", rules);
    written = json_dumps(json, JSON_COMPACT);
    if (!written)
        abort();
    return written;
}

/* --- requests --------------------------------------------------------------------------------- */

/* The rules that a list is made of; patterns are in the arena. */
struct rule_list {
    struct arena arena;
    struct view_rule *items;
    size_t count;
};

static void rule_list_done(struct rule_list *list)
{
    free(list->items);
    arena_done(&list->arena);
}

static int rule_list_add(struct rule_list *list, const struct view_rule *rule, struct err *err)
{
    char *pattern = arena_alloc(&list->arena, strlen(rule->pattern) + 1, 1);

    if (!pattern || list->count > VIEW_RULES_MAX)
        return err_set(err, ERR_EXHAUSTED, "a list has at most %d rules", VIEW_RULES_MAX);
    memcpy(pattern, rule->pattern, strlen(rule->pattern) + 1);
    list->items = xreallocarray(list->items, list->count + 1, sizeof(*list->items));
    list->items[list->count] = *rule;
    list->items[list->count++].pattern = pattern;
    return 0;
}

static int rule_list_add_all(struct rule_list *list, const struct view_rules *rules,
                             struct err *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && rules && i < view_rules_count(rules); i++)
        r = rule_list_add(list, view_rules_at(rules, i), err);
    return r;
}

static int preset_add(struct rule_list *list, const char *name, struct err *err)
{
    cleanup_view_rules struct view_rules *rules = NULL;
    const struct view_preset *preset = view_preset_find(name);
    int r;

    if (!preset) {
        (void)err_set(err, ERR_INVALID, "preset '%.40s' does not exist", name);
        return err_remedy(err, "use view-only, read-only, full-access, agent-safe or development");
    }
    r = view_rules_parse(preset->rules, 0, &rules, err);
    return r < 0 ? r : rule_list_add_all(list, rules, err);
}

bool permission_request_is_given(const struct permission_request *request)
{
    return request->count > 0 || (request->preset && *request->preset);
}

static int request_add(struct rule_list *list, const struct permission_request *request,
                       struct err *err)
{
    char pattern[VIEW_PATTERN_SIZE];
    struct view_rule rule;
    int r = 0;

    if (request->preset && *request->preset)
        r = preset_add(list, request->preset, err);
    for (size_t i = 0; r == 0 && i < request->count; i++) {
        r = view_rule_parse(request->rules[i], pattern, &rule, err);
        if (r == 0)
            r = rule_list_add(list, &rule, err);
    }
    return r;
}

static bool rule_is(const struct view_rule *a, const struct view_rule *b)
{
    return a->type == b->type && a->level == b->level && a->priority == b->priority &&
           strcmp(a->pattern, b->pattern) == 0;
}

static int request_remove(struct rule_list *list, const struct permission_request *request,
                          struct err *err)
{
    char pattern[VIEW_PATTERN_SIZE];
    struct view_rule rule;

    for (size_t i = 0; i < request->count; i++) {
        size_t at = 0;
        int r = view_rule_parse(request->rules[i], pattern, &rule, err);

        if (r < 0)
            return r;
        while (at < list->count && !rule_is(&list->items[at], &rule))
            at++;
        if (at == list->count) {
            (void)err_set(err, ERR_NOT_FOUND, "the sandbox has no rule '%.100s'",
                          request->rules[i]);
            return err_remedy(err, "write it as holt perm ls shows it");
        }
        list->count--;
        memmove(&list->items[at], &list->items[at + 1], (list->count - at) * sizeof(*list->items));
    }
    return 0;
}

/* Makes the permissions that a change leads to. */
static int permissions_make(const struct permissions *present, enum permission_change change,
                            const struct permission_request *request, struct permissions *ret,
                            struct err *err)
{
    cleanup_with(
        rule_list_done) struct rule_list list = { .arena = ARENA_INIT((size_t)VIEW_TEXT_MAX * 2) };
    const uint64_t generation = present->rules ? view_rules_generation(present->rules) + 1 : 1;
    const char *preset = change == PERMISSION_SET ? request->preset : present->preset;
    int r = 0;

    if (change != PERMISSION_SET && request->preset && *request->preset)
        return err_set(err, ERR_INVALID, "a preset replaces all rules; set it");
    if (change != PERMISSION_SET)
        r = rule_list_add_all(&list, present->rules, err);
    if (r == 0)
        r = change == PERMISSION_REMOVE ? request_remove(&list, request, err)
                                        : request_add(&list, request, err);
    *ret = (struct permissions){ .rules = NULL };
    if (r == 0)
        r = view_rules_compile(list.items, list.count, generation, &ret->rules, err);
    (void)snprintf(ret->preset, sizeof(ret->preset), "%s", preset ? preset : "");
    (void)snprintf(ret->view, sizeof(ret->view), "%s",
                   request->view && *request->view ? request->view : present->view);
    return r;
}

static int view_refuse(struct err *err)
{
    (void)err_set(err, ERR_INVALID, "an engine was asked for, but no permissions for it");
    return err_remedy(err, "name a preset or rules as well");
}

int permissions_assign(const struct permission_request *request, struct sandbox_info *info,
                       struct err *err)
{
    cleanup_with(permissions_done) struct permissions old = { .rules = NULL };
    cleanup_with(permissions_done) struct permissions made = { .rules = NULL };
    int r;

    if (!permission_request_is_given(request))
        return request->view && *request->view ? view_refuse(err) : 0;
    if (!info->codebase[0]) {
        (void)err_set(err, ERR_INVALID, "permissions are for the paths of a codebase");
        return err_remedy(err, "name one with --codebase");
    }
    r = permissions_read(info->permissions, &old, err);
    if (r == 0)
        r = permissions_make(&old, PERMISSION_SET, request, &made, err);
    if (r == 0)
        r = engine_choose(&made, info->runtime, info->codebase_version, err);
    if (r < 0)
        return r;
    free(info->permissions);
    info->permissions = permissions_write(&made);
    return 0;
}

/* --- sandboxes -------------------------------------------------------------------------------- */

int sandbox_permissions(struct sandbox *sandbox, struct permissions *ret, struct err *err)
{
    cleanup_free char *recorded = NULL;

    *ret = (struct permissions){ .rules = NULL };
    if (!sandbox->info.codebase[0])
        return sandbox_lacks_codebase(sandbox, err);
    lock_take(&sandbox->lock);
    recorded = sandbox->info.permissions ? xstrdup(sandbox->info.permissions) : NULL;
    lock_release(&sandbox->lock);
    return permissions_read(recorded, ret, err);
}

static int permissions_replace(struct sandbox *sandbox, const struct permissions *permissions,
                               struct err *err)
{
    char *recorded = permissions_write(permissions), *old;
    int r = registry_put_permissions(sandbox->host->registry, sandbox->info.id, recorded, err);

    if (r < 0) {
        free(recorded);
        return r;
    }
    lock_take(&sandbox->lock);
    old = sandbox->info.permissions;
    sandbox->info.permissions = recorded;
    lock_release(&sandbox->lock);
    free(old);
    return 0;
}

int sandbox_record_permissions(struct sandbox *sandbox, const struct permissions *permissions,
                               struct err *err)
{
    cleanup_free char *text = permissions_write(permissions);
    bool is_known;

    lock_take(&sandbox->lock);
    is_known = sandbox->info.permissions && strcmp(text, sandbox->info.permissions) == 0;
    lock_release(&sandbox->lock);
    return is_known ? 0 : permissions_replace(sandbox, permissions, err);
}

/* Only the file server can change rules under processes that run. */
static int change_check_engine(const struct sandbox *sandbox, const struct permissions *present,
                               struct err *err)
{
    if (!sandbox->machine || engine_is_fuse(present))
        return 0;
    if (!present->rules) {
        (void)err_set(err, ERR_BUSY, "sandbox '%s' runs without permissions", sandbox->info.id);
        return err_remedy(err, "stop it, set the rules, and start it");
    }
    (void)err_set(err, ERR_BUSY,
                  "the kernel enforces the permissions of sandbox '%s', which cannot change while "
                  "it runs",
                  sandbox->info.id);
    return err_remedy(err, "stop it, set the rules, and start it; or create it with --view fuse");
}

/* A running sandbox keeps its engine. */
static int change_choose_engine(const struct sandbox *sandbox, struct permissions *made,
                                struct err *err)
{
    if (sandbox->machine)
        return engine_use_fuse(made, "the sandbox was started with it", err);
    return engine_choose(made, sandbox->info.runtime, sandbox->info.codebase_version, err);
}

static int permissions_change_locked(struct sandbox *sandbox, enum permission_change change,
                                     const struct permission_request *request,
                                     struct permissions *ret, struct err *err)
{
    cleanup_with(permissions_done) struct permissions present = { .rules = NULL };
    int r = sandbox_permissions(sandbox, &present, err);

    if (r < 0)
        return r;
    r = change_check_engine(sandbox, &present, err);
    if (r == 0)
        r = permissions_make(&present, change, request, ret, err);
    if (r == 0)
        r = change_choose_engine(sandbox, ret, err);
    return r == 0 ? permissions_replace(sandbox, ret, err) : r;
}

/* Returns whether a process of the host is in the machine. Its pidfd must be open, or the number
 * may be that of another one meanwhile. */
static bool machine_has_process(const struct machine *machine, pid_t pid)
{
    cleanup_with(buf_done) struct buf groups = BUF_INIT(CGROUP_TEXT_MAX);
    char path[32];

    (void)snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
    return file_read_at(AT_FDCWD, path, &groups) == 0 && groups.data &&
           strstr(groups.data, machine->guest.id);
}

/* Returns whether the process holds an earlier file of the list. */
static bool holder_is_known(const struct view_holder *holders, size_t index)
{
    size_t i = 0;

    while (holders[i].pid != holders[index].pid)
        i++;
    return i < index;
}

/* Kills the processes that opened files which the rules would refuse them now: what is left after
 * machine_find_holders, such as the sentry of a cell. */
static int permissions_revoke(struct machine *machine, struct permission_outcome *ret,
                              struct err *err)
{
    cleanup_free struct view_holder *holders = NULL;
    size_t count = 0;
    int r = view_list_holders(machine->view, &holders, &count, err);

    for (size_t i = 0; r == 0 && i < count; i++) {
        cleanup_close int pidfd = holders[i].pid > 0 ? pidfd_open(holders[i].pid, 0) : -EBADF;

        if (pidfd >= 0 && !holder_is_known(holders, i) &&
            machine_has_process(machine, holders[i].pid) &&
            pidfd_send_signal(pidfd, SIGKILL, NULL, 0) == 0)
            ret->ended_processes++;
    }
    return r;
}

/* Puts recorded rules in force, and ends processes that hold what they refuse. */
static int permissions_enforce(struct sandbox *sandbox, const struct permissions *permissions,
                               bool revokes, struct permission_outcome *ret, struct err *err)
{
    size_t open_files = 0;
    struct holders holders = { 0 };
    struct machine *machine = sandbox->machine;
    int r = sandbox_view_set_rules(sandbox, permissions, &open_files, err);

    if (r < 0 || !machine || !machine->view)
        return r;
    r = machine_find_holders(machine, revokes, &holders, err);
    ret->open_files = (uint32_t)open_files + holders.mapped;
    ret->ended_processes = holders.ended;
    return r == 0 && revokes && open_files > 0 ? permissions_revoke(machine, ret, err) : r;
}

int sandbox_permissions_change(struct sandbox *sandbox, enum permission_change change,
                               const struct permission_request *request, bool revokes,
                               struct permission_outcome *ret, struct err *err)
{
    cleanup_with(permissions_done) struct permissions made = { .rules = NULL };
    enum sandbox_state state = SANDBOX_STOPPED;
    int r = sandbox_begin(sandbox, OPERATION_UPDATE, &state, err);

    *ret = (struct permission_outcome){ 0 };
    if (r != 0)
        return r;
    r = permissions_change_locked(sandbox, change, request, &made, err);
    if (r == 0)
        r = permissions_enforce(sandbox, &made, revokes, ret, err);
    sandbox_finish(sandbox, state);
    if (r == 0)
        sandbox_event(sandbox, EVENT_PERMISSIONS_CHANGED,
                      json_pack("{s:s, s:I, s:I}", "preset", made.preset, "rules",
                                (json_int_t)view_rules_count(made.rules), "generation",
                                (json_int_t)view_rules_generation(made.rules)));
    return r;
}

json_t *sandbox_name_denials(struct sandbox *sandbox, const json_t *denials, uint64_t count)
{
    cleanup_with(permissions_done) struct permissions permissions = { .rules = NULL };
    json_t *named = json_deep_copy(denials), *denial;
    char text[VIEW_RULE_TEXT_SIZE];
    struct err ignored;
    size_t i;

    lock_take(&sandbox->lock);
    sandbox->info.denials += count;
    lock_release(&sandbox->lock);
    (void)sandbox_permissions(sandbox, &permissions, &ignored);
    json_array_foreach(named, i, denial) {
        const json_int_t rule = json_integer_value(json_object_get(denial, "rule"));

        text[0] = '\0';
        if (permissions.rules && rule >= 0 && (size_t)rule < view_rules_count(permissions.rules))
            view_rule_format(view_rules_at(permissions.rules, (size_t)rule), text);
        (void)json_object_set_new(denial, "rule", json_string(text));
    }
    return named;
}

int permission_path(const struct sandbox_info *info, const char *path, char *ret, size_t size,
                    struct err *err)
{
    const char *top = info->codebase_path;
    const size_t len = strlen(top);
    const char *inside = path;

    if (*path == '/') {
        if (strncmp(path, top, len) != 0 || (path[len] != '\0' && path[len] != '/')) {
            (void)err_set(err, ERR_INVALID, "'%.100s' is not below %s", path, top);
            return err_remedy(err,
                              "rules are only about the codebase; name %s/PATH, or a path "
                              "relative to it",
                              top);
        }
        inside = path + len;
    }
    if (view_path_normalize(inside, ret, size) < 0)
        return err_set(err, ERR_INVALID, "path '%.100s' has '..' or is too long", path);
    return 0;
}
