// SPDX-License-Identifier: Apache-2.0
/* Nothing of a build survives the daemon but what it has kept of its steps. */
#include "host/build.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "host/build_internal.h"
#include "host/build_queue.h"
#include "host/host.h"
#include "host/process.h"
#include "host/reactor.h"
#include "host/record.h"
#include "host/sandbox.h"
#include "store/template_settings.h"

enum {
    STEP_TEXT_MAX = 512,
    READY_PAUSE_US = 100 * 1000,
};

/* --- the log -----------------------------------------------------------------------------------
 */

/* Needs the lock. */
static bool log_is_full(const struct build *build)
{
    return json_array_size(build->logs) >= BUILD_LOGS_MAX ||
           build->log_bytes >= BUILD_LOGS_BYTES_MAX;
}

/* Needs the lock. */
static void log_append(struct build *build, const char *level, const char *line)
{
    build->log_bytes += strlen(line);
    (void)json_array_append_new(build->logs,
                                json_pack("{s:o, s:s, s:o, s:o}", "timestamp",
                                          json_time(clock_wall_ms()), "level", level, "message",
                                          json_text(line), "step", json_string(build->state.step)));
}

void build_log(struct build *build, const char *level, const char *text, size_t len)
{
    cleanup_free char *line =
        xasprintf("%.*s", (int)(len < BUILD_LOG_BYTES_MAX ? len : BUILD_LOG_BYTES_MAX), text);

    (void)pthread_mutex_lock(&build->lock);
    if (log_is_full(build)) {
        (void)pthread_mutex_unlock(&build->lock);
        return;
    }
    log_append(build, level, line);
    if (log_is_full(build))
        log_append(build, "warn", "the log is full: what comes now is left out");
    (void)pthread_mutex_unlock(&build->lock);
}

/* What has become of it is told in any case. */
static void log_end(struct build *build, const char *level, const char *text)
{
    (void)pthread_mutex_lock(&build->lock);
    log_append(build, level, text);
    (void)pthread_mutex_unlock(&build->lock);
}

static void log_text(struct build *build, const char *text)
{
    build_log(build, "info", text, strlen(text));
}

/* Whole lines; the last is what is left at the end. */
static void log_output(struct build *build, struct buf *pending, enum output_stream stream,
                       bool is_last)
{
    const char *level = stream == PROCESS_ERR ? "warn" : "info";
    size_t start = 0;

    for (size_t i = 0; i < pending->len; i++) {
        if (pending->data[i] != '\n' && i - start < BUILD_LOG_BYTES_MAX)
            continue;
        build_log(build, level, pending->data + start, i - start);
        start = i + (pending->data[i] == '\n');
    }
    if (is_last && start < pending->len) {
        build_log(build, level, pending->data + start, pending->len - start);
        start = pending->len;
    }
    buf_consume(pending, start);
}

/* --- commands ----------------------------------------------------------------------------------
 */

static int cancelled(struct build *build, struct err *err)
{
    if (!atomic_load(&build->is_cancelled))
        return 0;
    return err_set(err, ERR_CANCELED, "the build was cancelled");
}

/* By which those that a daemon has left behind are found. */
static const struct label label_of_builds = { "holt.build", "1" };

int build_need_sandbox(struct build *build, struct err *err)
{
    const struct sandbox_spec spec = { .template = build->origin,
                                       .limits = { .memory_bytes = build->memory_bytes,
                                                   .cpu_millis = build->cpus * 1000 },
                                       .labels = &label_of_builds,
                                       .label_count = 1 };

    if (build->sandbox)
        return 0;
    return sandbox_create(build->host, &spec, &build->sandbox, err);
}

static int send_file(struct process *process, int fd, struct err *err)
{
    cleanup_free char *data = xcalloc(1, PROCESS_INPUT_MAX);
    ssize_t n;
    int r;

    do {
        n = read(fd, data, PROCESS_INPUT_MAX);
        if (n < 0)
            return err_sys(err, -errno, "read the uploaded files");
        r = process_send_input(process, data, (size_t)n, n == 0, err);
    } while (r == 0 && n > 0);
    return r;
}

static void set_process(struct build *build, struct process *process)
{
    (void)pthread_mutex_lock(&build->lock);
    build->process = process;
    (void)pthread_mutex_unlock(&build->lock);
}

static int explain(const struct build *build, const struct build_command *command,
                   const struct process_end *end, struct err *err)
{
    const char *what = command->what ? command->what : command->text;

    if (end->outcome == OUTCOME_TIMED_OUT)
        return err_set(err, ERR_DEADLINE,
                       "failed to run command '%.60s': the build took longer than %llu s", what,
                       (unsigned long long)build->limit_ms / 1000);
    if (end->outcome == OUTCOME_NOT_STARTED && end->obstacle == OBSTACLE_USER)
        return err_set(err, ERR_INVALID,
                       "failed to run command '%.60s': command failed: unauthenticated: invalid "
                       "username: '%.60s'",
                       what, command->user);
    if (end->outcome == OUTCOME_EXITED)
        return err_set(err, ERR_INVALID, "failed to run command '%.100s': exit status %d", what,
                       end->exit_code);
    return err_set(err, ERR_INVALID, "failed to run command '%.60s': %s %.100s", what,
                   outcome_word(end->outcome), end->reason);
}

/* Reads to the end, which it returns. */
static struct process_end follow(struct build *build, struct process *process)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(1 << 20), errors = BUF_INIT(1 << 20);
    struct buf *pending[] = { [PROCESS_OUT] = &out, [PROCESS_ERR] = &errors };
    struct reader_event event = { .kind = READER_DATA };
    char data[16 * 1024];

    while (process_next(process, -1, data, sizeof(data), &event) == 0 &&
           event.kind != READER_ENDED) {
        if (event.kind != READER_DATA)
            continue;
        (void)buf_add(pending[event.stream], data, event.len);
        log_output(build, pending[event.stream], event.stream, false);
    }
    log_output(build, &out, PROCESS_OUT, true);
    log_output(build, &errors, PROCESS_ERR, true);
    return event.end;
}

/* "NAME=value" of each variable, for free_words. */
static char **env_words(const json_t *env)
{
    char **words = xcalloc(json_object_size(env) + 1, sizeof(*words));
    size_t count = 0;
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)env, name, value) words[count++] =
        xasprintf("%s=%s", name, json_string_value(value));
    return words;
}

static void free_words(char ***words)
{
    for (char **word = *words; word && *word; word++)
        free(*word);
    free(*words);
}

/* At least one: none would be no limit. */
static uint64_t ms_until(uint64_t end_ms)
{
    uint64_t now = clock_ms();

    return now < end_ms ? end_ms - now : 1;
}

static int start(struct build *build, const struct build_command *command, struct process **ret,
                 struct err *err)
{
    char bash[] = "/bin/bash", login[] = "-l", flag[] = "-c", zero[] = "step";
    cleanup_free char *text = xstrdup(command->text);
    cleanup_with(free_words) char **env = env_words(build->env);
    char *args[16] = { bash, login, flag, text, zero };
    struct process_spec spec = {
        .args = args,
        .env = env,
        .cwd = command->cwd ? command->cwd : "/",
        .user = command->user,
        .has_stdin = command->input_fd >= 0,
        .is_detached = command->is_detached,
    };

    if (!command->is_detached)
        spec.timeout_ms = ms_until(command->until_ms ? command->until_ms : build->end_ms);
    for (size_t i = 0; command->args && command->args[i] && i < 10; i++)
        args[5 + i] = command->args[i];
    return sandbox_exec(build->sandbox, &spec, ret, err);
}

int build_run(struct build *build, const struct build_command *command, struct err *err)
{
    struct process *process = NULL;
    struct process_end end = { .outcome = OUTCOME_NONE };
    struct err ignored;
    int r = cancelled(build, err);

    if (r == 0)
        r = build_need_sandbox(build, err);
    if (r == 0)
        r = start(build, command, &process, err);
    if (r < 0)
        return r;
    if (command->is_detached) {
        process_unref(process);
        return 0;
    }
    set_process(build, process);
    if (cancelled(build, &ignored) < 0)
        process_kill(process, KILLER_USER);
    /* Who does not read all of its input is asked for its status, not for why. */
    if (command->input_fd >= 0)
        (void)send_file(process, command->input_fd, &ignored);
    end = follow(build, process);
    set_process(build, NULL);
    process_unref(process);
    r = cancelled(build, err);
    if (r < 0)
        return r;
    if (command->ret_code) {
        *command->ret_code = end.exit_code;
        return 0;
    }
    return end.outcome == OUTCOME_EXITED && end.exit_code == 0 ? 0
                                                               : explain(build, command, &end, err);
}

/* --- the build ---------------------------------------------------------------------------------
 */

static void set_step(struct build *build, size_t step)
{
    (void)pthread_mutex_lock(&build->lock);
    if (step > json_array_size(build->steps))
        (void)snprintf(build->state.step, sizeof(build->state.step), "finalize");
    else
        (void)snprintf(build->state.step, sizeof(build->state.step), "%zu", step);
    (void)pthread_mutex_unlock(&build->lock);
}

static int run_steps(struct build *build, struct err *err)
{
    size_t kept = build_steps_kept(build), count = json_array_size(build->steps), i;
    char text[STEP_TEXT_MAX], line[STEP_TEXT_MAX + 64];
    json_t *step;

    json_array_foreach(build->steps, i, step)
    {
        int r = 0;

        set_step(build, i + 1);
        build_step_describe(step, text, sizeof(text));
        (void)snprintf(line, sizeof(line), "[builder %zu/%zu] %s%s", i + 1, count,
                       i < kept ? "CACHED " : "", text);
        log_text(build, line);
        build_hash_step(build->hash, step);
        build->is_forced = build->is_forced || json_is_true(json_object_get(step, "force"));
        if (i >= kept)
            r = build_step_run(build, step, err);
        if (r < 0)
            return r;
        build_step_apply(build, step);
        if (i >= kept && build_step_writes(step))
            build_keep_step(build);
    }
    set_step(build, count + 1);
    return 0;
}

/* The start command is run here too, so that one that never is ready fails now. */
static int try_start(struct build *build, struct err *err)
{
    struct build_command command = { .text = build->start_command,
                                     .user = build->user,
                                     .cwd = build->workdir,
                                     .input_fd = -1,
                                     .is_detached = true };
    int code = 0, r;

    if (!*build->start_command)
        return 0;
    log_text(build, "starting the start command");
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
        (void)usleep(READY_PAUSE_US);
    }
    return err_set(err, ERR_DEADLINE,
                   "the start command was not ready in %llu s: '%.100s' has not succeeded",
                   (unsigned long long)build->ready_ms / 1000, build->ready_command);
}

static int publish(struct build *build, struct err *err)
{
    cleanup_with(template_settings_done) struct template_settings old = { .object = NULL },
                                                                  new = { .object = NULL };
    cleanup_json json_t *object = NULL;
    struct template_info info;
    int r = template_settings_read(host_store(build->host), build->from, &old, err);

    if (r == 0)
        r = sandbox_commit(build->sandbox, build->name, &info, err);
    if (r < 0)
        return r;
    object =
        json_pack("{s:O, s:s, s:s, s:s, s:s, s:b, s:I, s:I}", "env", build->env, "workdir",
                  build->workdir, "user", build->user, "startCommand", build->start_command,
                  "readyCommand", build->ready_command, "allowSetuid", old.allows_setuid, "cpus",
                  (json_int_t)build->cpus, "memoryBytes", (json_int_t)build->memory_bytes);
    r = template_settings_parse(object, &new, err);
    if (r == 0)
        r = template_settings_write(host_store(build->host), build->name, &new, err);
    return r;
}

static int build_all(struct build *build, struct err *err)
{
    struct err ignored;
    int r = build_hash_origin(build, err);

    if (r == 0)
        r = run_steps(build, err);
    if (r == 0)
        r = build_need_sandbox(build, err);
    if (r == 0)
        r = try_start(build, err);
    if (r == 0)
        r = cancelled(build, err);
    if (r == 0)
        r = publish(build, err);
    /* Who cancels removes what there is by then; what came later nobody else knows of. */
    if (r == 0 && cancelled(build, err) < 0) {
        (void)host_remove_template(build->host, build->name, &ignored);
        return -ECANCELED;
    }
    return r;
}

int build_sweep(struct host *host, struct err *err)
{
    cleanup_free struct sandbox_info *infos = NULL;
    size_t count = 0;
    int r = sandbox_list(host, &label_of_builds, 1, &infos, &count, err);

    for (size_t i = 0; i < count; i++) {
        struct sandbox *sandbox = NULL;
        struct err ignored;

        if (sandbox_find(host, infos[i].id, &sandbox, &ignored) == 0)
            (void)sandbox_destroy(sandbox, &ignored);
        sandbox_unref(sandbox);
        sandbox_info_done(&infos[i]);
    }
    return r;
}

static void set_status(struct build *build, enum build_status status, const struct err *err)
{
    (void)pthread_mutex_lock(&build->lock);
    build->state.status = status;
    build->state.err = *err;
    (void)pthread_mutex_unlock(&build->lock);
}

/* Its turn has come. */
static int build_in_turn(struct build *build, struct err *err)
{
    struct err ignored;
    int r;

    set_status(build, BUILD_RUNS, err);
    build->end_ms = clock_ms() + build->limit_ms;
    r = build_all(build, err);
    if (build->sandbox) {
        (void)sandbox_destroy(build->sandbox, &ignored);
        sandbox_unref(build->sandbox);
    }
    return r;
}

static void *build_thread(void *context)
{
    struct build *build = context;
    struct err err = { 0 };
    int r;

    if (build_queue_enter(build->queue, &build->is_cancelled)) {
        r = build_in_turn(build, &err);
        build_queue_leave(build->queue);
    } else {
        r = cancelled(build, &err);
    }
    if (r < 0)
        log_end(build, "error", err.msg);
    else
        log_end(build, "info", "the template is ready");
    set_status(build, r < 0 ? BUILD_HAS_FAILED : BUILD_IS_READY, &err);
    if (build->ended)
        build->ended(build->context);
    return NULL;
}

static void build_drop(struct build *build)
{
    json_decref(build->steps);
    json_decref(build->env);
    json_decref(build->logs);
    free(build->files);
    free(build->user);
    free(build->workdir);
    free(build->start_command);
    free(build->ready_command);
    (void)pthread_mutex_destroy(&build->lock);
    free(build);
}

static void build_drop_slot(struct build **build)
{
    if (*build)
        build_drop(*build);
}

static int steps_check(const json_t *steps, struct err *err)
{
    const json_t *step;
    size_t i;

    if (json_array_size(steps) > BUILD_STEPS_MAX)
        return err_set(err, ERR_INVALID, "there are more than %d steps", BUILD_STEPS_MAX);
    json_array_foreach(steps, i, step)
    {
        int r = build_step_check(step, err);

        if (r < 0)
            return err_wrap(err, "step %zu", i + 1);
    }
    return 0;
}

/* What the steps begin with is what sandboxes of the origin have. */
static int settings_take(struct build *build, const struct build_spec *spec, struct err *err)
{
    cleanup_with(template_settings_done) struct template_settings old = { .object = NULL };
    int r = template_settings_read(host_store(build->host), spec->from, &old, err);

    if (r < 0)
        return r;
    build->env = old.env ? json_deep_copy(old.env) : json_object();
    build->user = xstrdup(*old.user ? old.user : "user");
    build->workdir = xstrdup(*old.workdir ? old.workdir : "/home/user");
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

    (void)pthread_mutex_init(&build->lock, NULL);
    build->host = host;
    build->logs = json_array();
    (void)snprintf(build->state.step, sizeof(build->state.step), "base");
    build->files = xstrdup(spec->files);
    build->steps = spec->steps ? json_deep_copy(spec->steps) : json_array();
    build->is_forced = spec->is_forced;
    build->queue = spec->queue;
    build->ended = spec->ended;
    build->context = spec->context;
    build->limit_ms = spec->limit_ms;
    build->ready_ms = spec->ready_ms;
    (void)snprintf(build->from, sizeof(build->from), "%s", spec->from);
    (void)snprintf(build->origin, sizeof(build->origin), "%s", spec->from);
    (void)snprintf(build->name, sizeof(build->name), "%s", spec->name);
    r = steps_check(build->steps, err);
    if (r == 0)
        r = settings_take(build, spec, err);
    if (r < 0)
        return r;
    if (spec->notice)
        log_text(build, spec->notice);
    r = pthread_create(&build->thread, NULL, build_thread, build);
    if (r != 0)
        return err_sys(err, -r, "start the build");
    *ret = TAKE_PTR(build);
    return 0;
}

void build_get(struct build *build, struct build_state *ret)
{
    (void)pthread_mutex_lock(&build->lock);
    *ret = build->state;
    (void)pthread_mutex_unlock(&build->lock);
}

json_t *build_logs(struct build *build, size_t offset, size_t limit)
{
    json_t *list = json_array();

    (void)pthread_mutex_lock(&build->lock);
    for (size_t i = offset; i < json_array_size(build->logs) && i - offset < limit; i++)
        (void)json_array_append_new(list, json_deep_copy(json_array_get(build->logs, i)));
    (void)pthread_mutex_unlock(&build->lock);
    return list;
}

void build_cancel(struct build *build)
{
    atomic_store(&build->is_cancelled, true);
    (void)pthread_mutex_lock(&build->lock);
    if (build->process)
        process_kill(build->process, KILLER_USER);
    (void)pthread_mutex_unlock(&build->lock);
    build_queue_wake(build->queue);
}

void build_free(struct build *build)
{
    if (!build)
        return;
    (void)pthread_join(build->thread, NULL);
    build_drop(build);
}
