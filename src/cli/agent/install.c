// SPDX-License-Identifier: Apache-2.0
#include "cli/agent/install.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/xalloc.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/options/network_options.h"
#include "cli/options/words.h"
#include "holt.h"

enum { SETTING_MAX = 4096, CA_BYTES_MAX = 8 << 20, LAST_BYTES = 2000 };

#define CA_PATH "/etc/holt-npm-ca.pem"

/* Starts npm; *ret_fd is its output. Returns its pid or -errno. */
static pid_t npm_start(const char *name, int *ret_fd)
{
    const char *const args[] = { "npm", "config", "get", name, NULL };
    cleanup_close int read_fd = -EBADF, write_fd = -EBADF;
    posix_spawn_file_actions_t actions;
    pid_t pid = -1;
    int pipes[2], r;

    if (pipe2(pipes, O_CLOEXEC) < 0)
        return -errno;
    read_fd = pipes[0];
    write_fd = pipes[1];
    (void)posix_spawn_file_actions_init(&actions);
    r = posix_spawn_file_actions_adddup2(&actions, write_fd, STDOUT_FILENO);
    if (r == 0)
        r = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    if (r == 0)
        r = posix_spawnp(&pid, args[0], &actions, NULL, (char *const *)(uintptr_t)args, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    if (r != 0)
        return -r;
    *ret_fd = TAKE_FD(read_fd);
    return pid;
}

/* Returns a setting of npm on this machine; "": it has none, or there is no npm. */
static char *npm_setting(const char *name)
{
    char *value = xcalloc(1, SETTING_MAX);
    cleanup_close int fd = -EBADF;
    pid_t pid = npm_start(name, &fd);

    if (pid < 0)
        return value;
    if (read_full(fd, value, SETTING_MAX - 1) < 0)
        value[0] = '\0';
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    value[strcspn(value, "\r\n")] = '\0';
    if (strcmp(value, "null") == 0 || strcmp(value, "undefined") == 0)
        value[0] = '\0';
    return value;
}

/* Returns the rule for the host of a URL: its scheme, host and port. */
static char *rule_of(const char *url)
{
    const char *rest = strstr(url, "://"), *at;
    size_t scheme = rest ? (size_t)(rest - url) + 3 : 0, len;

    if (!rest)
        return NULL;
    rest += 3;
    len = strcspn(rest, "/");
    at = memchr(rest, '@', len);
    if (at) {
        len -= (size_t)(at + 1 - rest);
        rest = at + 1;
    }
    return xasprintf("%.*s%.*s", (int)scheme, url, (int)len, rest);
}

static bool template_exists(struct holt *holt, const char *name, int *ret_status)
{
    cleanup_result struct holt_template_list *list = NULL;
    struct holt_error error;

    if (holt_template_list(holt, HOLT_NO_DEADLINE, &list, &error) < 0) {
        *ret_status = report_holt_error(&error);
        return false;
    }
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i]->name, name) == 0)
            return true;
    return false;
}

/* The end of the output of npm, for a report if it fails; all of it goes to a terminal. */
struct log {
    struct buf tail;
    bool is_shown;
};

static int log_take(void *context, enum holt_piece_kind kind, const char *data, size_t len)
{
    struct log *log = context;

    (void)kind;
    if (log->is_shown)
        (void)write_all(STDERR_FILENO, data, len);
    if (len > LAST_BYTES) {
        data += len - LAST_BYTES;
        len = LAST_BYTES;
    }
    if (log->tail.len + len > log->tail.max)
        buf_consume(&log->tail, log->tail.len + len - log->tail.max);
    (void)buf_add(&log->tail, data, len);
    return 0;
}

/* Gives the sandbox the certificates that npm of this machine trusts. */
static int ca_copy(struct holt *holt, const char *sandbox, const char *path)
{
    cleanup_with(buf_done) struct buf content = BUF_INIT(CA_BYTES_MAX);
    struct holt_write_options options = HOLT_INIT(holt_write_options);
    struct holt_error error;
    int r = file_read_at(AT_FDCWD, path, &content);

    if (r < 0)
        return report("read '%s', which npm is configured for: %s", path, strerror(-r));
    options.path = CA_PATH;
    options.data = content.data;
    options.len = content.len;
    if (holt_file_write(holt, sandbox, &options, HOLT_NO_DEADLINE, NULL, &error) < 0)
        return report_holt_error(&error);
    return STATUS_OK;
}

static int npm_failed(const char *package, const struct log *log, int exit_code)
{
    if (!log->is_shown && log->tail.len > 0)
        (void)write_all(STDERR_FILENO, log->tail.data, log->tail.len);
    return report("npm cannot install %s (exit status %d)", package, exit_code);
}

/* Installs one package. */
static int npm_run(struct holt *holt, const char *sandbox, const char *package,
                   const char *registry, bool has_ca)
{
    cleanup_with(words_done) struct words args = { .count = 0 }, env = { .count = 0 };
    struct log log = { .tail = BUF_INIT(LAST_BYTES), .is_shown = isatty(STDERR_FILENO) };
    cleanup_result struct holt_result *result = NULL;
    cleanup_free char *setting = xasprintf("npm_config_registry=%s", registry);
    struct holt_command command = HOLT_INIT(holt_command);
    static const char *const words[] = {
        "npm",        "install",   "--global",        "--prefix",   "/usr/local",
        "--no-audit", "--no-fund", "--no-progress",   "--loglevel", "warn",
        "--cache",    "/tmp/npm",  "--fetch-retries", "5",          "--fetch-retry-maxtimeout",
        "10000"
    };
    struct holt_error error;
    int status = STATUS_OK;

    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        words_add(&args, words[i]);
    words_add(&args, package);
    words_add(&env, setting);
    if (has_ca)
        words_add(&env, "npm_config_cafile=" CA_PATH);
    command.args = (const char *const *)args.items;
    command.env = (const char *const *)env.items;
    command.on_output = log_take;
    command.context = &log;
    if (holt_exec(holt, sandbox, &command, HOLT_NO_DEADLINE, &result, &error) < 0)
        status = report_holt_error(&error);
    else if (result->end->exit_code != 0)
        status = npm_failed(package, &log, result->end->exit_code);
    buf_done(&log.tail);
    return status;
}

static int files_clean(struct holt *holt, const char *sandbox)
{
    static const char *const paths[] = { "/tmp/npm", "/root/.npm", CA_PATH };
    struct holt_error error;

    for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
        if (holt_file_remove(holt, sandbox, paths[i], true, HOLT_NO_DEADLINE, &error) < 0 &&
            strcmp(error.cause, "FileNotFound") != 0)
            return report_holt_error(&error);
    return STATUS_OK;
}

static int template_make(struct holt *holt, const char *sandbox, const struct holt_agent_type *type,
                         const char *registry)
{
    cleanup_free char *ca = npm_setting("cafile");
    struct holt_error error;
    int status = *ca ? ca_copy(holt, sandbox, ca) : STATUS_OK;

    /* One after the other: npm and install scripts of a package run with the Node.js before it. */
    for (size_t i = 0; status == STATUS_OK && i < type->package_count; i++)
        status = npm_run(holt, sandbox, type->packages[i], registry, *ca != '\0');
    if (status == STATUS_OK)
        status = files_clean(holt, sandbox);
    if (status == STATUS_OK && holt_template_commit(holt, sandbox, type->template_name,
                                                    HOLT_NO_DEADLINE, NULL, &error) < 0)
        status = report_holt_error(&error);
    return status;
}

static int install(struct holt *holt, const struct holt_agent_type *type,
                   const struct holt_network_rules *network)
{
    cleanup_free char *registry = npm_setting("registry"), *rule = rule_of(registry);
    const char *const allow[] = { rule, NULL };
    const struct holt_network_rules rules = { .mode = "allow", .allow = allow };
    struct holt_sandbox_options options = HOLT_INIT(holt_sandbox_options);
    cleanup_result struct holt_sandbox *sandbox = NULL;
    struct holt_error error;
    int status;

    if (!rule)
        return report("npm of this machine has no registry; install npm, or make the template '%s' "
                      "yourself",
                      type->template_name);
    options.network = network ? network : &rules;
    options.template_name = *type->base_template ? type->base_template : NULL;
    report_note("installing %s as template %s; this is done once", type->packages[0],
                type->template_name);
    if (holt_sandbox_create(holt, &options, HOLT_NO_DEADLINE, &sandbox, &error) < 0)
        return report_holt_error(&error);
    status = template_make(holt, sandbox->id, type, registry);
    if (holt_sandbox_destroy(holt, sandbox->id, HOLT_NO_DEADLINE, &error) < 0)
        status = report_holt_error(&error);
    return status;
}

int agent_install(struct holt *holt, const char *name, const struct holt_network_rules *network,
                  bool renews)
{
    cleanup_result struct holt_agent_type *type = NULL;
    struct holt_error error;
    int status = STATUS_OK;

    if (holt_agent_type_get(holt, name, HOLT_NO_DEADLINE, &type, &error) < 0)
        return report_holt_error(&error);
    if (type->package_count == 0)
        return STATUS_OK;
    if (template_exists(holt, type->template_name, &status)) {
        if (!renews)
            return STATUS_OK;
        if (holt_template_remove(holt, type->template_name, HOLT_NO_DEADLINE, &error) < 0)
            return report_holt_error(&error);
    }
    return status == STATUS_OK ? install(holt, type, network) : status;
}

struct install_options {
    struct common_options common;
    struct network_options network;
    bool renews;
};

static void options_done(struct install_options *options)
{
    network_options_done(&options->network);
}

static int set_allow(void *into, const char *value, struct err *err)
{
    return network_add_allow(&((struct install_options *)into)->network, value, err);
}

static int agent_install_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 1, "a TYPE" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_with(options_done) struct install_options options = { .renews = false };
    struct holt_network_rules rules;
    int next, status;

    if (!command_parse(&command_agent_install, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_agent_install, &operands, argc - next))
        return STATUS_HOLT;
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    return agent_install(connection.holt, argv[next], network_rules(&options.network, &rules),
                         options.renews);
}

static const struct option_row rows[] = {
    { "allow", 0, "RULE", "reach this instead of npm's registry; may be repeated",
      OPTION_CALL(set_allow) },
    { "renew", 0, NULL, "install again if the template exists",
      OPTION_FLAG(struct install_options, renews) },
    OPTION_HELP,
};

static const struct option_table table = { rows, ARRAY_SIZE(rows), NULL };

const struct command command_agent_install = {
    .group = "Agents",
    .name = "agent install",
    .operands = "TYPE",
    .summary = "Install the packages of an agent type as a template; run and serve do it, too",
    .example = "holt agent install claude-code --renew",
    .options = &table,
    .run = agent_install_run,
};
