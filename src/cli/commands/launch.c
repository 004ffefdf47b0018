// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "cli/core/command.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/run/options.h"

struct launch_options {
    struct run_options run;
    const char *key;
    const char *restart;
    const char *ready_path;
    uint64_t ready_ms;
    uint32_t port;
    bool does_not_wait;
};

static void options_done(struct launch_options *options)
{
    run_options_done(&options->run);
}

static int set_port(void *into, const char *value, struct err *err)
{
    struct launch_options *options = into;
    uint64_t port;

    if (parse_u64(value, &port) < 0 || port == 0 || port > UINT16_MAX)
        return err_set(err, ERR_INVALID, "--port '%.100s' is not a port from 1 to %d", value,
                       UINT16_MAX);
    options->port = (uint32_t)port;
    return 0;
}

static int set_restart(void *into, const char *value, struct err *err)
{
    static const char *const names[][2] = {
        { "no", "RESTART_NO" },
        { "on-failure", "RESTART_ON_FAILURE" },
        { "always", "RESTART_ALWAYS" },
    };
    struct launch_options *options = into;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (strcmp(names[i][0], value) == 0) {
            options->restart = names[i][1];
            return 0;
        }
    }
    return err_set(err, ERR_INVALID, "--restart '%.100s' is not no, on-failure or always", value);
}

static int set_ready(void *into, const char *value, struct err *err)
{
    struct launch_options *options = into;

    if (*value != '/')
        return err_set(err, ERR_INVALID, "--ready '%.100s' is not a path like /health", value);
    options->ready_path = value;
    return 0;
}

static int set_ready_timeout(void *into, const char *value, struct err *err)
{
    struct launch_options *options = into;

    if (parse_duration_ms(value, &options->ready_ms) < 0)
        return err_set(err, ERR_INVALID, "--ready-timeout '%.100s' is not a time like 30s", value);
    options->does_not_wait = options->ready_ms == 0;
    return 0;
}

static int set_tag(void *into, const char *value, struct err *err)
{
    struct launch_options *options = into;

    (void)err;
    options->run.tag = value;
    return 0;
}

static int set_key(void *into, const char *value, struct err *err)
{
    struct launch_options *options = into;

    (void)err;
    options->key = value;
    return 0;
}

static const struct option_row rows[] = {
    { "port", 'p', "PORT", "where it listens: forwarded to the host, and waited for", set_port },
    { "ready", 0, "PATH", "ready when a GET of this path succeeds", set_ready },
    { "ready-timeout", 0, "TIME", "how long to wait for that; 0: not at all", set_ready_timeout },
    { "restart", 0, "POLICY", "start it again when it ends: no, on-failure or always",
      set_restart },
    { "tag", 0, "TEXT", "something to find the process by", set_tag },
    { "key", 0, "TEXT", "launch once: a second launch with it joins the first", set_key },
};

static const struct option_table table = { rows, ARRAY_SIZE(rows), &run_process_table };

/* What there is to wait for. */
static json_t *ready_object(const struct launch_options *options)
{
    json_t *ready = json_object();

    if (options->ready_path)
        (void)json_object_set_new(ready, "httpPath", json_string(options->ready_path));
    if (options->ready_ms > 0)
        (void)json_object_set_new(ready, "timeoutMs", json_u64(options->ready_ms));
    return ready;
}

/* NULL where something is not UTF-8. */
static json_t *make_request(const char *id, const struct launch_options *options)
{
    json_t *request = json_pack("{s:s, s:s*, s:s*}", "sandboxId", id, "idempotencyKey",
                                options->key, "restart", options->restart);

    if (request && options->port)
        (void)json_object_set_new(request, "port", json_integer(options->port));
    if (request && options->port && !options->does_not_wait)
        (void)json_object_set_new(request, "ready", ready_object(options));
    return request;
}

/* The id and, where there is one, the address: one line for programs. */
static int print_launched(const json_t *reply, const char *command)
{
    const json_t *process = call_object(reply, "process");
    const char *readiness = call_text(reply, "readiness"), *address;

    if (!process)
        return STATUS_HOLT;
    address = call_text(process, "address");
    (void)printf("%s%s%s\n", call_text(process, "id"), *address ? " " : "", address);
    if (strcmp(readiness, "READINESS_ENDED") == 0)
        return report("launch: '%.200s' has ended (see 'holt logs')", command);
    return command_printed();
}

static int launch_run(int argc, char **argv)
{
    cleanup_with(options_done) struct launch_options options = { .key = NULL };
    cleanup_json json_t *request = NULL, *reply = NULL;
    struct run_plan plan = { .has_stdin = false };
    struct command_words words;
    int status;
    struct err err;

    run_options_init(&options.run);
    if (!command_parse_with_id(&command_launch, &options, argc, argv, &words, &status))
        return status;
    if (words.command >= argc)
        return command_misused(&command_launch, "needs an ID and a COMMAND");
    if ((options.ready_path || options.ready_ms) && !options.port)
        return command_misused(&command_launch, "--ready and --ready-timeout need a --port");
    plan.args = argv + words.command;
    plan.has_tty = options.run.tty == TTY_ALWAYS;
    request = make_request(argv[words.id], &options);
    if (!request)
        return report("launch: the ID or the key is not UTF-8");
    if (run_add_process(request, &options.run, &plan, &err) < 0)
        return report("launch: %s", err.msg);
    status = call_once("holt.v1.ProcessService/Launch", TAKE_PTR(request), &reply);
    return status == STATUS_OK ? print_launched(reply, argv[words.command]) : status;
}

const struct command command_launch = {
    .group = "Processes",
    .name = "launch",
    .operands = "ID [--] COMMAND [ARGUMENT...]",
    .summary = "Start a service in a sandbox and forward its port",
    .example = "holt launch work --port 8000 --restart always -- python3 -m http.server 8000",
    .options = &table,
    .takes_command = true,
    .run = launch_run,
};
