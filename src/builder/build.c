// SPDX-License-Identifier: Apache-2.0
/* A build does not survive the daemon; only its cached steps do. */
#include "builder/build.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "builder/build_internal.h"
#include "host/core/host.h"
#include "host/core/owned_template.h"
#include "host/core/reactor.h"
#include "host/net/host_layer.h"
#include "host/process/process.h"
#include "host/process/record.h"
#include "host/sandbox/network.h"
#include "host/sandbox/sandbox.h"
#include "store/template/settings.h"

enum {
    STEP_TEXT_MAX = 512,
    READY_PAUSE_MS = 100,
};

const struct label build_label = { "holt.build", "1" };

/* Builds install packages, so they have the widest network that the ceilings allow: open, or what
 * the rules of holt.conf allow. A ceiling of the owner that asks for rules leaves none, because a
 * build has no rules of its own. */
static int build_network(const struct build *build, struct net_layer *ret, struct err *err)
{
    const char *owner = build->caller.owner;

    *ret = (struct net_layer){ .source = NET_FROM_SANDBOX, .mode = NET_NONE };
    if (network_may_have(build->host, owner, NET_OPEN)) {
        ret->mode = NET_OPEN;
    } else if (network_has_host_rules(build->host) &&
               network_may_have(build->host, owner, NET_ALLOW)) {
        ret->mode = NET_ALLOW;
        return net_layer_allow(ret, "*", err);
    }
    return 0;
}

int build_need_sandbox(struct build *build, struct err *err)
{
    cleanup_with(net_layer_done) struct net_layer network = { 0 };
    const struct sandbox_spec spec = { .caller = &build->caller,
                                       .stored_template = build->origin,
                                       .limits = { .memory_bytes = build->memory_bytes,
                                                   .cpu_millis = build->cpus * 1000 },
                                       .labels = &build_label,
                                       .label_count = 1,
                                       .network = &network };
    int r = build->sandbox ? 0 : build_network(build, &network, err);

    if (build->sandbox || r < 0)
        return r;
    return sandbox_create(build->host, &spec, &build->sandbox, err);
}

static void build_set_step(struct build *build, size_t step)
{
    lock_take(&build->lock);
    if (step > json_array_size(build->steps))
        (void)snprintf(build->state.step, sizeof(build->state.step), "finalize");
    else
        (void)snprintf(build->state.step, sizeof(build->state.step), "%zu", step);
    lock_release(&build->lock);
}

static int build_run_steps(struct build *build, struct err *err)
{
    size_t cached = build_cached_steps(build), count = json_array_size(build->steps), i;
    char text[STEP_TEXT_MAX], line[STEP_TEXT_MAX + 64];
    json_t *step;

    json_array_foreach(build->steps, i, step) {
        int r = 0;

        build_set_step(build, i + 1);
        build_step_describe(step, text, sizeof(text));
        (void)snprintf(line, sizeof(line), "[builder %zu/%zu] %s%s", i + 1, count,
                       i < cached ? "CACHED " : "", text);
        build_log_text(build, line);
        build_hash_step(build->hash, step);
        build->is_forced = build->is_forced || json_is_true(json_object_get(step, "force"));
        if (i >= cached)
            r = build_step_run(build, step, err);
        if (r < 0)
            return r;
        build_step_apply(build, step);
        if (i >= cached && build_step_writes(step))
            build_cache_step(build);
    }
    /* Later stages copy from the template of the last step. */
    if (build->sources && build->cache_err.kind != ERR_NONE) {
        *err = build->cache_err;
        return err_wrap(err, "store the files of a step");
    }
    build_set_step(build, count + 1);
    return 0;
}

/* Runs the start command, so that a template that never becomes ready fails here. */
static int build_try_start(struct build *build, struct err *err)
{
    struct build_command command = { .text = build->start_command,
                                     .user = build->user,
                                     .cwd = build->workdir,
                                     .input_fd = -1,
                                     .is_detached = true };
    int code = 0, r;

    if (!*build->start_command)
        return 0;
    build_log_text(build, "running the start command");
    r = build_run(build, &command, err);
    command = (struct build_command){ .text = build->ready_command,
                                      .user = build->user,
                                      .cwd = build->workdir,
                                      .input_fd = -1,
                                      .ret_code = &code,
                                      .until_ms = clock_ms() + build->ready_ms };
    if (r < 0 || !*build->ready_command)
        return r;
    while (clock_ms() < command.until_ms) {
        r = build_run(build, &command, err);
        if (r < 0 || code == 0)
            return r;
        clock_sleep_ms(READY_PAUSE_MS);
    }
    return err_set(err, ERR_DEADLINE,
                   "the start command was not ready within %llu s: '%.100s' did not succeed",
                   (unsigned long long)build->ready_ms / 1000, build->ready_command);
}

int build_commit(struct build *build, const char *name, struct template_info *ret, struct err *err)
{
    bool is_reserved = build->is_reserved && strcmp(name, build->name) == 0;
    int r = is_reserved
                ? 0
                : owned_template_reserve_internal(build->host, build->caller.owner, name, err);

    if (r < 0)
        return r;
    r = sandbox_commit(build->sandbox, name, ret, err);
    if (r < 0 && !is_reserved)
        owned_template_release(build->host, name);
    return r;
}

/* The settings that the steps have made. */
static json_t *settings_make(const struct build *build, const struct template_settings *old)
{
    json_t *object =
        json_pack("{s:O, s:s, s:s, s:s, s:s, s:b, s:I, s:I}", "env", build->env, "workdir",
                  build->workdir, "user", build->user, "startCommand", build->start_command,
                  "readyCommand", build->ready_command, "allowSetuid", old->allows_setuid, "cpus",
                  (json_int_t)build->cpus, "memoryBytes", (json_int_t)build->memory_bytes);

    if (old->network)
        (void)json_object_set(object, "network", (json_t *)(uintptr_t)old->network);
    return object;
}

/* A build cannot give a template a weaker runtime than the one below it has. */
static void settings_inherit_runtime(json_t *object, const struct template_settings *old)
{
    if (!json_object_get(object, "runtime"))
        (void)json_object_set_new(object, "runtime", json_string(old->runtime));
    (void)json_object_set_new(object, "runtimeMin", json_string(old->runtime_min));
}

static int build_publish(struct build *build, struct err *err)
{
    cleanup_with(template_settings_done) struct template_settings old = { .object = NULL },
                                                                  new = { .object = NULL };
    cleanup_json json_t *object = NULL;
    struct template_info info;
    int r = template_settings_read(host_store(build->host), build->from, &old, err);

    if (r == 0)
        r = build_commit(build, build->name, &info, err);
    if (r < 0)
        return r;
    object = build->settings ? json_deep_copy(build->settings) : settings_make(build, &old);
    settings_inherit_runtime(object, &old);
    r = template_settings_parse(object, &new, err);
    if (r == 0)
        r = template_settings_write(host_store(build->host), build->name, &new, err);
    return r;
}

static int build_run_all(struct build *build, struct err *err)
{
    struct err ignored;
    int r = build_hash_origin(build, err);

    if (r == 0)
        r = build_run_steps(build, err);
    if (r < 0 || !*build->name)
        return r < 0 ? r : build_check_cancel(build, err);
    r = build_need_sandbox(build, err);
    if (r == 0)
        r = build_try_start(build, err);
    if (r == 0)
        r = build_check_cancel(build, err);
    if (r == 0)
        r = build_publish(build, err);
    /* The caller of build_cancel removes an existing template, but not one that is published later.
     */
    if (r == 0 && build_check_cancel(build, err) < 0) {
        (void)host_remove_template(build->host, build->name, &ignored);
        return -ECANCELED;
    }
    return r;
}

void build_sweep(struct host *host)
{
    cleanup_free struct sandbox_info *infos = NULL;
    size_t count = 0;

    sandbox_list(host, &caller_root, &build_label, 1, &infos, &count);
    for (size_t i = 0; i < count; i++) {
        struct sandbox *sandbox = NULL;
        struct err ignored;

        if (sandbox_find(host, &caller_root, infos[i].id, &sandbox, &ignored) == 0)
            (void)sandbox_destroy(sandbox, &ignored);
        sandbox_unref(sandbox);
        sandbox_info_done(&infos[i]);
    }
}

static void build_set_status(struct build *build, enum build_status status, const struct err *err)
{
    lock_take(&build->lock);
    build->state.status = status;
    (void)snprintf(build->state.last, sizeof(build->state.last), "%s", build->last);
    memcpy(build->state.hash, build->hash, sizeof(build->state.hash));
    build->state.err = *err;
    lock_release(&build->lock);
}

/* Runs the build, whose turn it is. */
static int build_in_turn(struct build *build, struct err *err)
{
    struct err ignored;
    int r;

    build_set_status(build, BUILD_RUNS, err);
    build->end_ms = clock_ms() + build->limit_ms;
    r = build_run_all(build, err);
    if (build->sandbox) {
        (void)sandbox_destroy(build->sandbox, &ignored);
        sandbox_unref(build->sandbox);
    }
    return r;
}

static void build_main(void *context)
{
    struct build *build = context;
    struct err err = { 0 };
    int r;

    if (!build->queue) {
        r = build_in_turn(build, &err);
    } else if (build_queue_enter(build->queue, &build->turn, &build->is_cancelled)) {
        r = build_in_turn(build, &err);
        build_queue_leave(build->queue, &build->turn);
    } else {
        r = build_check_cancel(build, &err);
    }
    if (r < 0)
        build_log_end(build, "error", err.msg);
    else
        build_log_end(build, "info", "the template is ready");
    build_set_status(build, r < 0 ? BUILD_HAS_FAILED : BUILD_IS_READY, &err);
    if (build->ended)
        build->ended(build->context);
}

static void build_drop(struct build *build)
{
    json_decref(build->steps);
    json_decref(build->settings);
    json_decref(build->env);
    json_decref(build->logs);
    free(build->files);
    free(build->user);
    free(build->workdir);
    free(build->start_command);
    free(build->ready_command);
    lock_destroy(&build->lock);
    free(build);
}

DEFINE_CLEANUP(build_drop, struct build *);

static int steps_check(const json_t *steps, struct err *err)
{
    const json_t *step;
    size_t i;

    if (json_array_size(steps) > BUILD_STEPS_MAX)
        return err_set(err, ERR_INVALID, "more than %d steps", BUILD_STEPS_MAX);
    json_array_foreach(steps, i, step) {
        int r = build_step_check(step, err);

        if (r < 0)
            return err_wrap(err, "step %zu", i + 1);
    }
    return 0;
}

/* Starts with the settings of the base template. */
static int build_init_settings(struct build *build, const struct build_spec *spec, struct err *err)
{
    cleanup_with(template_settings_done) struct template_settings old = { .object = NULL };
    int r = template_settings_read(host_store(build->host), spec->from, &old, err);

    if (r < 0)
        return r;
    build->env = old.env ? json_deep_copy(old.env) : json_object();
    build->user = xstrdup(spec->user ? spec->user : *old.user ? old.user : "user");
    build->workdir = xstrdup(spec->workdir  ? spec->workdir
                             : *old.workdir ? old.workdir
                                            : "/home/user");
    build->start_command = xstrdup(*spec->start_command ? spec->start_command : old.start_command);
    build->ready_command = xstrdup(
        *spec->start_command || *spec->ready_command ? spec->ready_command : old.ready_command);
    build->cpus = spec->cpus ? spec->cpus : old.cpus;
    build->memory_bytes = spec->memory_bytes ? spec->memory_bytes : old.memory_bytes;
    return 0;
}

int build_start(struct host *host, const struct build_spec *spec, struct build **ret,
                struct err *err)
{
    cleanup_with(build_drop_slot) struct build *build = xcalloc(1, sizeof(*build));
    int r;

    lock_init(&build->lock, LOCK_BUILD);
    build->host = host;
    build->caller = *spec->caller;
    build->logs = json_array();
    (void)snprintf(build->state.step, sizeof(build->state.step), "base");
    build->files = xstrdup(spec->files);
    build->steps = spec->steps ? json_deep_copy(spec->steps) : json_array();
    build->is_forced = spec->is_forced;
    build->queue = spec->queue;
    build->sources = spec->sources;
    build->settings = spec->settings ? json_deep_copy(spec->settings) : NULL;
    build->is_reserved = spec->is_reserved;
    (void)snprintf(build->hash, sizeof(build->hash), "%s",
                   spec->origin_hash ? spec->origin_hash : "");
    (void)snprintf(build->last, sizeof(build->last), "%s", spec->from);
    build->ended = spec->ended;
    build->context = spec->context;
    build->limit_ms = spec->limit_ms;
    build->ready_ms = spec->ready_ms;
    (void)snprintf(build->from, sizeof(build->from), "%s", spec->from);
    (void)snprintf(build->origin, sizeof(build->origin), "%s", spec->from);
    (void)snprintf(build->name, sizeof(build->name), "%s", spec->name);
    r = steps_check(build->steps, err);
    if (r == 0)
        r = build_init_settings(build, spec, err);
    if (r < 0)
        return r;
    if (spec->notice)
        build_log_text(build, spec->notice);
    if (build->queue)
        build_queue_join(build->queue, &build->turn, build->caller.owner);
    r = thread_start(&build->thread, "holt-build", build_main, build);
    if (r < 0) {
        if (build->queue)
            build_queue_quit(build->queue, &build->turn);
        return err_sys(err, r, "start the build");
    }
    *ret = TAKE_PTR(build);
    return 0;
}

void build_get(struct build *build, struct build_state *ret)
{
    lock_take(&build->lock);
    *ret = build->state;
    lock_release(&build->lock);
}

void build_cancel(struct build *build)
{
    atomic_store(&build->is_cancelled, true);
    lock_take(&build->lock);
    if (build->process)
        process_kill(build->process, KILLER_USER);
    lock_release(&build->lock);
    if (build->queue)
        build_queue_wake(build->queue);
}

void build_free(struct build *build)
{
    if (!build)
        return;
    thread_join(&build->thread);
    build_drop(build);
}
