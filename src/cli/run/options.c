// SPDX-License-Identifier: Apache-2.0
#include "cli/run/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/text/parse.h"
#include "base/text/utf8.h"
#include "base/xalloc.h"
#include "cli/core/terminal.h"
#include "holt.h"

static void file_close(FILE **file)
{
    if (*file)
        (void)fclose(*file);
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

/* Adds the lines NAME=VALUE or NAME of a file; empty lines and those that start with # are none. */
static int set_env_file(void *into, const char *value, struct err *err)
{
    cleanup_with(file_close) FILE *file = fopen(value, "re");
    cleanup_free char *line = NULL;
    size_t room = 0;
    int r = 0;

    if (!file)
        return err_sys(err, -errno, "open the --env-file '%.150s'", value);
    while (r == 0 && getline(&line, &room, file) >= 0) {
        line[strcspn(line, "\r\n")] = '\0';
        if (*line && *line != '#')
            r = set_env(into, line, err);
    }
    return r;
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

static int set_net(void *into, const char *value, struct err *err)
{
    return network_set_mode(&((struct run_options *)into)->network, value, err);
}

static int set_allow(void *into, const char *value, struct err *err)
{
    return network_add_allow(&((struct run_options *)into)->network, value, err);
}

static int set_deny(void *into, const char *value, struct err *err)
{
    return network_add_deny(&((struct run_options *)into)->network, value, err);
}

static int set_model(void *into, const char *value, struct err *err)
{
    return network_add_model(&((struct run_options *)into)->network, value, err);
}

static int set_net_file(void *into, const char *value, struct err *err)
{
    return network_add_file(&((struct run_options *)into)->network, value, err);
}

const struct option_row run_sandbox_rows[RUN_SANDBOX_ROWS] = {
    { "template", 0, "TEMPLATE", "the template of the files",
      OPTION_TEXT(struct run_options, template) },
    { "runtime", 0, "RUNTIME", "the runtime: native, bwrap or gvisor",
      OPTION_NAME(struct run_options, runtime) },
    { "memory", 'm', "SIZE", "memory limit of the sandbox: 512M, 2G",
      OPTION_SIZE(struct run_options, memory_bytes, 1, "a size like 512M") },
    { "cpus", 0, "NUMBER", "CPU limit: 1.5",
      OPTION_CPUS(struct run_options, cpu_millis, 1, "a number like 1.5") },
    { "pids", 0, "NUMBER", "limit of processes and threads",
      OPTION_U32(struct run_options, pids, 1, "a number like 256") },
    { "files", 0, "NUMBER", "limit of descriptors of one process",
      OPTION_U32(struct run_options, files, 1, "a number like 4096") },
    { "quota", 0, "SIZE", "limit of its files and snapshots: 2G",
      OPTION_SIZE(struct run_options, quota_bytes, 1, "a size like 2G") },
    { "net", 0, "MODE", "what it may reach: none, open (public addresses) or allow (its rules)",
      OPTION_CALL(set_net) },
    { "allow", 0, "RULE", "allow a host or a range: *.example.com; may be repeated",
      OPTION_CALL(set_allow) },
    { "deny", 0, "RULE", "deny a host or a range; may be repeated", OPTION_CALL(set_deny) },
    { "net-file", 0, "FILE",
      "a file with lines 'mode MODE', 'allow RULE', 'deny RULE', 'proxy URL'",
      OPTION_CALL(set_net_file) },
    { "model", 0, "NAME", "a model that it may use, or all; may be repeated",
      OPTION_CALL(set_model) },
};

static const struct option_row surroundings_rows[] = {
    { "user", 'u', "USER", "the user of a new shell: a name or number", OPTION_CALL(set_user) },
    { "env", 'e', "NAME[=VALUE]", "set a variable in the shell, or pass on that of holt",
      OPTION_CALL(set_env) },
    { "workdir", 'w', "DIR", "the directory that the shell enters first",
      OPTION_PATH(struct run_options, workdir, "an absolute path") },
    { "tier", 0, "NAME", "run a new shell in this runtime, which is stronger than the sandbox's",
      OPTION_TEXT(struct run_options, tier) },
    OPTION_HELP,
};

const struct option_table run_surroundings_table = { surroundings_rows,
                                                     ARRAY_SIZE(surroundings_rows), NULL };

static const struct option_row process_rows[] = {
    { "timeout", 0, "TIME", "kill the command after this time: 30s, 5m",
      OPTION_DURATION(struct run_options, timeout_ms, 0, "a time like 30s") },
    { "env", 'e', "NAME[=VALUE]", "set a variable, or pass on that of holt", OPTION_CALL(set_env) },
    { "env-file", 0, "FILE", "set the variables of the lines of a file",
      OPTION_CALL(set_env_file) },
    { "workdir", 'w', "DIR", "the working directory of the command",
      OPTION_PATH(struct run_options, workdir, "an absolute path") },
    { "cwd", 0, "DIR", "the same as --workdir",
      OPTION_PATH(struct run_options, workdir, "an absolute path") },
    { "user", 'u', "USER", "the user to run the command as: USER or USER:GROUP",
      OPTION_CALL(set_user) },
    { "tty", 't', NULL, "give the command a terminal", OPTION_CALL(set_tty) },
    { "no-tty", 'T', NULL, "use pipes, even on a terminal", OPTION_CALL(set_no_tty) },
    OPTION_HELP,
};

const struct option_table run_process_table = { process_rows, ARRAY_SIZE(process_rows), NULL };

static bool port_parse(const char *text, uint32_t *ret)
{
    uint64_t port;

    if (parse_u64(text, &port) < 0 || port == 0 || port > UINT16_MAX)
        return false;
    *ret = (uint32_t)port;
    return true;
}

bool run_port_parse(const char *text, struct run_port *ret)
{
    const char *colon = strchr(text, ':');
    cleanup_free char *host = colon ? xasprintf("%.*s", (int)(colon - text), text) : NULL;

    *ret = (struct run_port){ .host = 0 };
    return (!host || port_parse(host, &ret->host)) &&
           port_parse(colon ? colon + 1 : text, &ret->inside);
}

void run_options_done(struct run_options *options)
{
    words_done(&options->env);
    network_options_done(&options->network);
}

void run_sandbox_set(struct run_options *options, struct holt_sandbox_options *ret)
{
    ret->template_name = options->template;
    ret->runtime = options->runtime;
    ret->memory_bytes = options->memory_bytes;
    ret->cpu_millis = options->cpu_millis;
    ret->pids = options->pids;
    ret->files = options->files;
    ret->quota_bytes = options->quota_bytes;
    ret->network = network_rules(&options->network, &options->rules);
    ret->proxy = options->network.proxy;
    ret->models = (const char *const *)options->network.models.items;
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
    ret->tier = options->tier;
    ret->timeout_ms = options->timeout_ms;
    return 0;
}
