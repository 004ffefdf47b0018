// SPDX-License-Identifier: Apache-2.0
#include "cli/run/options.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/text/parse.h"
#include "base/text/utf8.h"
#include "base/xalloc.h"
#include "cli/core/terminal.h"
#include "holt.h"

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
    bool has_value = strchr(value, '=') != NULL;
    const char *own = has_value ? NULL : getenv(value);
    cleanup_free char *text = own ? xasprintf("%s=%s", value, own) : xstrdup(value);

    if (*value == '\0' || *value == '=')
        return err_set(err, ERR_INVALID, "--env '%.100s' has no name", value);
    if (!has_value && !own)
        return err_set(err, ERR_INVALID, "--env %.100s: not set in the environment of holt", value);
    words_add(&options->env, text);
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
    { "template", 0, "TEMPLATE", "the template of the files", set_template },
    { "runtime", 0, "RUNTIME", "the runtime: native or bwrap", set_runtime },
    { "memory", 'm', "SIZE", "memory limit of the sandbox: 512M, 2G", set_memory },
    { "cpus", 0, "NUMBER", "CPU limit: 1.5", set_cpus },
    { "pids", 0, "NUMBER", "limit of processes and threads", set_pids },
};

static const struct option_row process_rows[] = {
    { "timeout", 0, "TIME", "kill the command after this time: 30s, 5m", set_timeout },
    { "env", 'e', "NAME[=VALUE]", "set a variable, or pass on that of holt", set_env },
    { "workdir", 'w', "DIR", "the working directory of the command", set_workdir },
    { "cwd", 0, "DIR", "the same as --workdir", set_workdir },
    { "user", 'u', "USER", "the user to run the command as: a name or number", set_user },
    { "tty", 't', NULL, "give the command a terminal", set_tty },
    { "no-tty", 'T', NULL, "use pipes, even on a terminal", set_no_tty },
    OPTION_HELP,
};

const struct option_table run_process_table = { process_rows, ARRAY_SIZE(process_rows), NULL };

void run_options_done(struct run_options *options)
{
    words_done(&options->env);
}

void run_sandbox_set(const struct run_options *options, struct holt_sandbox_options *ret)
{
    ret->template_name = options->template;
    ret->runtime = options->runtime;
    ret->memory_bytes = options->memory_bytes;
    ret->cpu_millis = options->cpu_millis;
    ret->pids = options->pids;
}

static bool has_variable(const struct words *env, const char *start)
{
    for (size_t i = 0; i < env->count; i++)
        if (strncmp(env->items[i], start, strlen(start)) == 0)
            return true;
    return false;
}

int run_command_set(struct run_options *options, char **args, bool has_tty,
                    struct holt_command *ret, struct err *err)
{
    const char *term = getenv("TERM");
    cleanup_free char *own_term = term ? xasprintf("TERM=%s", term) : NULL;

    for (size_t i = 0; args[i]; i++)
        if (utf8_valid(args[i], strlen(args[i])) != strlen(args[i]))
            return err_set(err, ERR_INVALID, "word %zu of the command is not UTF-8", i + 1);
    if (has_tty && own_term && !has_variable(&options->env, "TERM="))
        words_add(&options->env, own_term);
    if (has_tty)
        terminal_size(&ret->rows, &ret->columns);
    ret->args = (const char *const *)args;
    ret->env = (const char *const *)options->env.items;
    ret->cwd = options->workdir;
    ret->user = options->user;
    ret->tag = options->tag;
    ret->timeout_ms = options->timeout_ms;
    return 0;
}
