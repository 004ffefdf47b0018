// SPDX-License-Identifier: Apache-2.0
#include "e2b/control/start.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "host/core/host.h"
#include "host/port/port.h"
#include "host/process/process.h"
#include "host/process/record.h"
#include "host/process/service.h"
#include "host/sandbox/info.h"
#include "host/sandbox/sandbox.h"
#include "store/template/settings.h"

/* The name of the start command among the servers of a sandbox. */
#define START_NAME "start"

enum {
    READY_MS = 60 * 1000,
    READY_PAUSE_MS = 50,
    PROBE_PAUSE_MS = 3,
    PROBE_PATH_SIZE = 256,
    RECENT_MS = 60 * 1000, /* a start that may not be ready yet */
};

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

/* A command of the template: its text, variables besides those of the metadata, a key or NULL. */
struct start_command {
    const char *text;
    const char *key;
    const char *reason; /* name and value of a variable, or NULL */
};

static json_t *variables_of(const json_t *metadata, const char *reason)
{
    json_t *variables = json_deep_copy(json_object_get(metadata, "envVars"));
    const char *value = reason ? strchr(reason, '=') : NULL;

    if (!value)
        return variables;
    if (!variables)
        variables = json_object();
    (void)json_object_setn_new(variables, reason, (size_t)(value - reason), json_text(value + 1));
    return variables;
}

static int run(struct sandbox *sandbox, const struct template_settings *settings,
               const json_t *metadata, const struct start_command *command, struct process **ret,
               struct err *err)
{
    char bash[] = "/bin/bash", login[] = "-l", flag[] = "-c";
    cleanup_free char *text = xstrdup(command->text);
    cleanup_json json_t *variables = variables_of(metadata, command->reason);
    cleanup_with(json_words_free) char **env = json_words(variables);
    char *const args[] = { bash, login, flag, text, NULL };
    const struct process_spec spec = {
        .args = args,
        .env = env,
        .cwd = *settings->workdir ? settings->workdir : "/",
        .user = *settings->user ? settings->user : NULL,
        .key = command->key,
        .is_detached = true,
    };

    return sandbox_exec(sandbox, &spec, ret, err);
}

/* --- ready ------------------------------------------------------------------------------------ */

/* What a ready command asks for, if it is a plain curl: Holt then asks itself, which takes a
 * fraction of a millisecond instead of a login shell. */
struct ready_url {
    uint16_t port;
    char path[PROBE_PATH_SIZE];
};

static bool ready_url_parse(const char *command, struct ready_url *ret)
{
    static const char start[] = "curl --silent --fail http://127.0.0.1:";
    const char *at = command + strlen(start);
    unsigned long port;
    char *end;

    if (strncmp(command, start, strlen(start)) != 0)
        return false;
    port = strtoul(at, &end, 10);
    if (end == at || port == 0 || port > UINT16_MAX || *end != '/' ||
        strlen(end) >= sizeof(ret->path) || end[strcspn(end, " \t\n\"'$`\\;&|<>()*?[]#~{}!")])
        return false;
    ret->port = (uint16_t)port;
    (void)snprintf(ret->path, sizeof(ret->path), "%s", end);
    return true;
}

/* Whether it succeeded: 1, 0 or a negative errno. */
static int try_command(struct sandbox *sandbox, const struct template_settings *settings,
                       const json_t *metadata, int watch_fd, struct err *err)
{
    const struct start_command command = { .text = settings->ready_command };
    struct process *process = NULL;
    struct process_end end = { .exit_code = PROCESS_EXIT_HOLT };
    int r = run(sandbox, settings, metadata, &command, &process, err);

    if (r < 0)
        return r;
    r = record_wait(process_record(process), watch_fd, 0, &end);
    process_unref(process);
    if (r < 0)
        return err_set(err, ERR_CANCELED, "the client has gone");
    return end.outcome == OUTCOME_EXITED && end.exit_code == 0;
}

/* The same for a URL. */
static int try_url(struct sandbox *sandbox, const struct ready_url *url, uint64_t deadline_ms,
                   int watch_fd, struct err *err)
{
    const struct port_patience patience = { deadline_ms, watch_fd };
    int r = sandbox_probe(sandbox, url->port, url->path, &patience, err);

    if (r == -ECANCELED)
        return err_set(err, ERR_CANCELED, "the client has gone");
    if (r < 0 && err->kind == ERR_BUSY && err->cause == CAUSE_NONE)
        return 0;
    return r < 0 ? r : 1;
}

static int await_ready(struct sandbox *sandbox, const struct template_settings *settings,
                       const json_t *metadata, int watch_fd, struct err *err)
{
    uint64_t deadline_ms = clock_ms() + READY_MS;
    struct ready_url url;
    bool is_url = ready_url_parse(settings->ready_command, &url);

    do {
        int r = is_url ? try_url(sandbox, &url, deadline_ms, watch_fd, err)
                       : try_command(sandbox, settings, metadata, watch_fd, err);

        if (r != 0)
            return r < 0 ? r : 0;
        clock_sleep_ms(is_url ? PROBE_PAUSE_MS : READY_PAUSE_MS);
    } while (clock_ms() < deadline_ms);
    return err_set(err, ERR_DEADLINE, "the start command of the template is not ready");
}

/* --- start ------------------------------------------------------------------------------------ */

static int settings_of(struct host *host, struct sandbox *sandbox, struct template_settings *ret,
                       struct err *err)
{
    cleanup_with(sandbox_info_done) struct sandbox_info info = { 0 };

    sandbox_get_info(sandbox, false, &info);
    return template_settings_read(host_store(host), info.template, ret, err);
}

/* Starts the command, unless another request has just done so. */
static int begin(struct sandbox *sandbox, const struct template_settings *settings,
                 const json_t *metadata, const struct server_run *last, struct err *err)
{
    char reason[SERVER_REASON_SIZE];
    const struct start_command command = {
        .text = settings->start_command,
        .key = last->next_key,
        .reason = last->is_known ? server_reason(last, reason) : NULL,
    };
    struct process *process = NULL;
    int r = run(sandbox, settings, metadata, &command, &process, err);

    if (r < 0)
        return err->cause == CAUSE_PROCESS_EXISTS ? 0 : r;
    process_unref(process);
    return 0;
}

int e2b_start_begin(struct host *host, struct sandbox *sandbox, const json_t *metadata,
                    struct err *err)
{
    cleanup_with(template_settings_done) struct template_settings settings = { .object = NULL };
    struct server_run last;
    int r = settings_of(host, sandbox, &settings, err);

    if (r < 0 || !*settings.start_command)
        return r;
    server_find(sandbox, START_NAME, &last);
    return begin(sandbox, &settings, metadata, &last, err);
}

int e2b_start_await(struct host *host, struct sandbox *sandbox, const json_t *metadata,
                    int watch_fd, struct err *err)
{
    cleanup_with(template_settings_done) struct template_settings settings = { .object = NULL };
    int r = settings_of(host, sandbox, &settings, err);

    if (r < 0 || !*settings.start_command || !*settings.ready_command)
        return r;
    return await_ready(sandbox, &settings, metadata, watch_fd, err);
}

int e2b_start_again(struct host *host, struct sandbox *sandbox, const json_t *metadata,
                    int watch_fd, struct err *err)
{
    cleanup_with(template_settings_done) struct template_settings settings = { .object = NULL };
    struct server_run last;
    int r = settings_of(host, sandbox, &settings, err);

    if (r < 0 || !*settings.start_command || !*settings.ready_command)
        return r;
    server_find(sandbox, START_NAME, &last);
    if (server_was_lost(&last) || !last.is_known)
        r = begin(sandbox, &settings, metadata, &last, err);
    else if (last.is_over || clock_wall_ms() > last.started_ms + RECENT_MS)
        return 0;
    if (r == 0)
        r = await_ready(sandbox, &settings, metadata, watch_fd, err);
    return r < 0 ? r : 1;
}

int e2b_start_run(struct host *host, struct sandbox *sandbox, const json_t *metadata, int watch_fd,
                  struct err *err)
{
    int r = e2b_start_begin(host, sandbox, metadata, err);

    return r == 0 ? e2b_start_await(host, sandbox, metadata, watch_fd, err) : r;
}
