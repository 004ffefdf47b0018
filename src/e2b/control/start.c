// SPDX-License-Identifier: Apache-2.0
#include "e2b/control/start.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "host/core/host.h"
#include "host/process/process.h"
#include "host/process/record.h"
#include "host/sandbox/info.h"
#include "host/sandbox/sandbox.h"
#include "store/template/settings.h"

enum { READY_TRIES = 600, READY_PAUSE_MS = 50 };

/* The host template has no such user; its sandboxes accept the client's choice. */
int e2b_start_note(struct host *host, const char *template, json_t *metadata,
                   struct sandbox_limits *limits, struct err *err)
{
    cleanup_with(template_settings_done) struct template_settings settings = { .object = NULL };
    json_t *env;
    int r = template_settings_read(host_store(host), template, &settings, err);

    if (r < 0)
        return r;
    env = json_object_get(metadata, "envVars");
    if (settings.env && env)
        (void)json_object_update_missing(env, (json_t *)(uintptr_t)settings.env);
    else if (settings.env)
        (void)json_object_set_new(metadata, "envVars", json_deep_copy(settings.env));
    if (*settings.user)
        (void)json_object_set_new(metadata, "user", json_string(settings.user));
    if (*settings.workdir)
        (void)json_object_set_new(metadata, "workdir", json_string(settings.workdir));
    limits->cpu_millis = settings.cpus * 1000;
    limits->memory_bytes = settings.memory_bytes;
    return 0;
}

static int run(struct sandbox *sandbox, const struct template_settings *settings,
               const json_t *metadata, bool is_start, struct process **ret, struct err *err)
{
    char bash[] = "/bin/bash", login[] = "-l", flag[] = "-c";
    cleanup_free char *text = xstrdup(is_start ? settings->start_command : settings->ready_command);
    cleanup_with(json_words_free) char **env = json_words(json_object_get(metadata, "envVars"));
    char *const args[] = { bash, login, flag, text, NULL };
    const struct process_spec spec = {
        .args = args,
        .env = env,
        .cwd = *settings->workdir ? settings->workdir : "/",
        .user = *settings->user ? settings->user : NULL,
        .is_detached = true,
    };

    return sandbox_exec(sandbox, &spec, ret, err);
}

/* Whether it succeeded: 1, 0 or a negative errno. */
static int try_ready(struct sandbox *sandbox, const struct template_settings *settings,
                     const json_t *metadata, int watch_fd, struct err *err)
{
    struct process *process = NULL;
    struct process_end end = { .exit_code = PROCESS_EXIT_HOLT };
    int r = run(sandbox, settings, metadata, false, &process, err);

    if (r < 0)
        return r;
    r = record_wait(process_record(process), watch_fd, 0, &end);
    process_unref(process);
    if (r < 0)
        return err_set(err, ERR_CANCELED, "the client has gone");
    return end.outcome == OUTCOME_EXITED && end.exit_code == 0;
}

static int settings_of(struct host *host, struct sandbox *sandbox, struct template_settings *ret,
                       struct err *err)
{
    cleanup_with(sandbox_info_done) struct sandbox_info info = { 0 };

    sandbox_get_info(sandbox, false, &info);
    return template_settings_read(host_store(host), info.template, ret, err);
}

int e2b_start_begin(struct host *host, struct sandbox *sandbox, const json_t *metadata,
                    struct err *err)
{
    cleanup_with(template_settings_done) struct template_settings settings = { .object = NULL };
    struct process *process = NULL;
    int r = settings_of(host, sandbox, &settings, err);

    if (r < 0 || !*settings.start_command)
        return r;
    r = run(sandbox, &settings, metadata, true, &process, err);
    process_unref(process);
    return r;
}

int e2b_start_await(struct host *host, struct sandbox *sandbox, const json_t *metadata,
                    int watch_fd, struct err *err)
{
    cleanup_with(template_settings_done) struct template_settings settings = { .object = NULL };
    int r = settings_of(host, sandbox, &settings, err);

    if (r < 0 || !*settings.start_command || !*settings.ready_command)
        return r;
    for (int i = 0; i < READY_TRIES; i++) {
        r = try_ready(sandbox, &settings, metadata, watch_fd, err);
        if (r != 0)
            return r < 0 ? r : 0;
        clock_sleep_ms(READY_PAUSE_MS);
    }
    return err_set(err, ERR_DEADLINE, "the start command of the template is not ready");
}

int e2b_start_run(struct host *host, struct sandbox *sandbox, const json_t *metadata, int watch_fd,
                  struct err *err)
{
    int r = e2b_start_begin(host, sandbox, metadata, err);

    return r == 0 ? e2b_start_await(host, sandbox, metadata, watch_fd, err) : r;
}
