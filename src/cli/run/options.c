// SPDX-License-Identifier: Apache-2.0
#include "cli/run/options.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "base/xalloc.h"
#include "cli/core/terminal.h"

static int set_template(void *into, const char *value, struct err *err)
{
    struct run_options *options = into;

    if (!is_name(value))
        return err_set(err, ERR_INVALID, "--template '%.100s' is not a name", value);
    options->template = value;
    return 0;
}

static int set_runtime(void *into, const char *value, struct err *err)
{
    struct run_options *options = into;

    if (!is_name(value))
        return err_set(err, ERR_INVALID, "--runtime '%.100s' is not a name", value);
    options->runtime = value;
    return 0;
}

static int set_memory(void *into, const char *value, struct err *err)
{
    struct run_options *options = into;

    if (parse_size(value, &options->memory_bytes) < 0 || options->memory_bytes == 0)
        return err_set(err, ERR_INVALID, "--memory '%.100s' is not a size like 512M", value);
    return 0;
}

static int set_cpus(void *into, const char *value, struct err *err)
{
    struct run_options *options = into;

    if (parse_cpus(value, &options->cpu_millis) < 0 || options->cpu_millis == 0)
        return err_set(err, ERR_INVALID, "--cpus '%.100s' is not a number like 1.5", value);
    return 0;
}

static int set_pids(void *into, const char *value, struct err *err)
{
    struct run_options *options = into;
    uint64_t pids;

    if (parse_u64(value, &pids) < 0 || pids == 0 || pids > UINT32_MAX)
        return err_set(err, ERR_INVALID, "--pids '%.100s' is not a number like 256", value);
    options->pids = (uint32_t)pids;
    return 0;
}

static int set_timeout(void *into, const char *value, struct err *err)
{
    struct run_options *options = into;

    if (parse_duration_ms(value, &options->timeout_ms) < 0)
        return err_set(err, ERR_INVALID, "--timeout '%.100s' is not a time like 30s", value);
    return 0;
}

static int set_env(void *into, const char *value, struct err *err)
{
    struct run_options *options = into;
    const char *equals = strchr(value, '=');
    cleanup_free char *name = xasprintf("%.*s", (int)strcspn(value, "="), value);
    const char *text = equals ? equals + 1 : getenv(value);

    if (*name == '\0')
        return err_set(err, ERR_INVALID, "--env '%.100s' has no name", value);
    if (!text)
        return err_set(err, ERR_INVALID, "--env %.100s: holt itself has no such variable", value);
    if (json_object_set_new(options->env, name, json_string(text)) < 0)
        return err_set(err, ERR_INVALID, "--env %.100s: not UTF-8", name);
    return 0;
}

static int set_workdir(void *into, const char *value, struct err *err)
{
    struct run_options *options = into;

    if (*value != '/')
        return err_set(err, ERR_INVALID, "--workdir '%.100s' is not an absolute path", value);
    options->workdir = value;
    return 0;
}

static int set_user(void *into, const char *value, struct err *err)
{
    struct run_options *options = into;

    if (*value == '\0')
        return err_set(err, ERR_INVALID, "--user is empty");
    options->user = value;
    return 0;
}

static int set_tty(void *into, const char *value, struct err *err)
{
    struct run_options *options = into;

    (void)value;
    (void)err;
    options->tty = TTY_ALWAYS;
    return 0;
}

static int set_no_tty(void *into, const char *value, struct err *err)
{
    struct run_options *options = into;

    (void)value;
    (void)err;
    options->tty = TTY_NEVER;
    return 0;
}

const struct option_row run_sandbox_rows[RUN_SANDBOX_ROWS] = {
    { "template", 0, "TEMPLATE", "the files to start from", set_template },
    { "runtime", 0, "RUNTIME", "the kind of sandbox: native or bwrap", set_runtime },
    { "memory", 'm', "SIZE", "most memory the sandbox may use: 512M, 2G", set_memory },
    { "cpus", 0, "NUMBER", "most CPUs it may use: 1.5", set_cpus },
    { "pids", 0, "NUMBER", "most processes and threads it may have", set_pids },
};

static const struct option_row process_rows[] = {
    { "timeout", 0, "TIME", "end everything after this time: 30s, 5m", set_timeout },
    { "env", 'e', "NAME[=VALUE]", "set a variable, or pass on our own", set_env },
    { "workdir", 'w', "DIR", "directory to start the command in", set_workdir },
    { "cwd", 0, "DIR", "the same as --workdir", set_workdir },
    { "user", 'u', "USER", "whom to run the command as: a name or number", set_user },
    { "tty", 't', NULL, "give the command a terminal", set_tty },
    { "no-tty", 'T', NULL, "give it pipes, even on a terminal", set_no_tty },
    OPTION_HELP,
};

const struct option_table run_process_table = { process_rows, ARRAY_SIZE(process_rows), NULL };

void run_options_init(struct run_options *options)
{
    *options = (struct run_options){ .env = json_object() };
}

void run_options_done(struct run_options *options)
{
    json_decref(options->env);
    options->env = NULL;
}

static json_t *make_limits(const struct run_options *options)
{
    json_t *limits = json_object();

    if (options->memory_bytes)
        (void)json_object_set_new(limits, "memoryBytes", json_u64(options->memory_bytes));
    if (options->cpu_millis)
        (void)json_object_set_new(limits, "cpuMillis", json_integer(options->cpu_millis));
    if (options->pids)
        (void)json_object_set_new(limits, "pids", json_integer(options->pids));
    return limits;
}

void run_add_sandbox(json_t *object, const struct run_options *options)
{
    if (options->template)
        (void)json_object_set_new(object, "template", json_string(options->template));
    if (options->runtime)
        (void)json_object_set_new(object, "runtime", json_string(options->runtime));
    (void)json_object_set_new(object, "limits", make_limits(options));
}

static int add_args(json_t *process, char **args, struct err *err)
{
    json_t *list = json_array();

    (void)json_object_set_new(process, "args", list);
    for (size_t i = 0; args[i]; i++)
        if (json_array_append_new(list, json_string(args[i])) < 0)
            return err_set(err, ERR_INVALID, "word %zu of the command is not UTF-8", i + 1);
    return 0;
}

/* The command is to draw for the terminal that we are on, unless it was told otherwise. */
static void add_terminal(json_t *process, const struct run_options *options)
{
    const char *term = getenv("TERM");
    uint32_t rows_now, columns_now;

    terminal_size(&rows_now, &columns_now);
    (void)json_object_set_new(
        process, "terminal",
        json_pack("{s:I,s:I}", "rows", (json_int_t)rows_now, "columns", (json_int_t)columns_now));
    if (term && !json_object_get(options->env, "TERM"))
        (void)json_object_set_new(options->env, "TERM", json_string(term));
}

int run_add_process(json_t *request, const struct run_options *options, const struct run_plan *plan,
                    struct err *err)
{
    json_t *process = json_object();
    int r;

    (void)json_object_set_new(request, "process", process);
    r = add_args(process, plan->args, err);
    if (r < 0)
        return r;
    if (plan->has_tty)
        add_terminal(process, options);
    if (plan->has_stdin)
        (void)json_object_set_new(process, "stdin", json_true());
    if (options->timeout_ms)
        (void)json_object_set_new(process, "timeoutMs", json_u64(options->timeout_ms));
    if (options->workdir && json_object_set_new(process, "cwd", json_string(options->workdir)) < 0)
        return err_set(err, ERR_INVALID, "--workdir is not UTF-8");
    if (options->user && json_object_set_new(process, "user", json_string(options->user)) < 0)
        return err_set(err, ERR_INVALID, "--user is not UTF-8");
    if (options->tag && json_object_set_new(process, "tag", json_string(options->tag)) < 0)
        return err_set(err, ERR_INVALID, "--tag is not UTF-8");
    (void)json_object_set(process, "env", options->env);
    return 0;
}
