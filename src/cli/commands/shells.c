// SPDX-License-Identifier: Apache-2.0
/* The commands for the persistent shells of a sandbox. */
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text/parse.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/each.h"
#include "cli/core/output.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/run/attach.h"
#include "cli/run/input.h"
#include "cli/run/options.h"
#include "holt.h"

/* --- shell ------------------------------------------------------------------------------------ */

struct shell_options {
    struct run_options run; /* user, env and workdir */
    const char *name;
    uint64_t timeout_ms;
    int status; /* of a failed write; STATUS_OK: all output was written */
};

static void shell_options_done(struct shell_options *options)
{
    run_options_done(&options->run);
}

static void shell_command_set(const struct shell_options *options, struct holt_shell_command *ret)
{
    ret->user = options->run.user;
    ret->tier = options->run.tier;
    ret->env = (const char *const *)options->run.env.items;
    ret->cwd = options->run.workdir;
}

static const struct option_row shell_rows[] = {
    { "name", 'n', "SHELL", "the name of the shell; 'main' by default",
      OPTION_TEXT(struct shell_options, name) },
};

static const struct option_table shell_table = { shell_rows, ARRAY_SIZE(shell_rows),
                                                 &run_surroundings_table };

static int shell_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 1, "an ID" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct holt_shell_command command = HOLT_INIT(holt_shell_command);
    cleanup_with(shell_options_done) struct shell_options options = { .name = "main" };
    cleanup_result struct holt_shell *shell = NULL;
    struct holt_error error;
    int next, status;

    if (!command_parse(&command_shell, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_shell, &operands, argc - next) ||
        connection_open(&connection) < 0)
        return STATUS_HOLT;
    command.shell = options.name;
    shell_command_set(&options, &command);
    if (holt_shell_open_with(connection.holt, argv[next], &command, HOLT_NO_DEADLINE, &shell,
                             &error) < 0)
        return report_holt_error(&error);
    if (strcmp(shell->kind, "bash") != 0)
        return report("shell: the sandbox has no bash, and a plain sh has no terminal; use "
                      "'holt sh'");
    return attach_run(&connection, argv[next], shell->process_id);
}

const struct command command_shell = {
    .group = "Shells",
    .name = "shell",
    .operands = "ID",
    .summary = "Attach to the terminal of a persistent shell",
    .example = "holt shell work -n build",
    .options = &shell_table,
    .passes_status = true,
    .run = shell_run,
};

/* --- sh --------------------------------------------------------------------------------------- */

static const struct option_row sh_rows[] = {
    { "timeout", 0, "TIME", "interrupt the command after this time: 30s, 5m",
      OPTION_DURATION(struct shell_options, timeout_ms, 1, "a time like 30s") },
};

static const struct option_table sh_table = { sh_rows, ARRAY_SIZE(sh_rows),
                                              &run_surroundings_table };

static int output_write(void *context, enum holt_piece_kind kind, const char *data, size_t len)
{
    struct shell_options *options = context;
    bool is_stdout = kind == HOLT_STDOUT;
    int r = write_all(is_stdout ? STDOUT_FILENO : STDERR_FILENO, data, len);

    if (r == -EPIPE)
        options->status = STATUS_BROKEN_PIPE;
    else if (r < 0)
        options->status =
            report("cannot write to %s: %s", is_stdout ? "stdout" : "stderr", strerror(-r));
    return r;
}

static int result_status(const struct holt_result *result, const char *shell)
{
    const struct holt_end *end = result->end;

    if (end->outcome == HOLT_TIMED_OUT)
        (void)report("the command timed out%s", result->is_shell_ended ? ", its shell ended" : "");
    else if (result->is_shell_ended && *end->reason)
        (void)report("shell '%.70s' ended: %s", shell, end->reason);
    return end->exit_code & 0xff;
}

static int sh_run(int argc, char **argv)
{
    static const struct operands operands = { 3, 3, "an ID, a NAME and one COMMAND" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct holt_shell_command command = HOLT_INIT(holt_shell_command);
    cleanup_with(shell_options_done) struct shell_options options = { .status = STATUS_OK };
    cleanup_result struct holt_result *result = NULL;
    struct holt_error error;
    int next, status;

    if (!command_parse(&command_sh, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_sh, &operands, argc - next) ||
        connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (run_input_is_waiting())
        report_note("sh: standard input is not passed on; use 'holt exec -i'");
    (void)signal(SIGPIPE, SIG_IGN); /* EPIPE is the exit status instead */
    command.shell = argv[next + 1];
    command.text = argv[next + 2];
    command.timeout_ms = options.timeout_ms;
    shell_command_set(&options, &command);
    command.on_output = output_write;
    command.context = &options;
    if (holt_shell_run(connection.holt, argv[next], &command, HOLT_NO_DEADLINE, &result, &error) <
        0)
        return options.status != STATUS_OK ? options.status : report_holt_error(&error);
    return result_status(result, command.shell);
}

const struct command command_sh = {
    .group = "Shells",
    .name = "sh",
    .operands = "ID SHELL COMMAND",
    .summary = "Run one command in a persistent shell",
    .example = "holt sh work main 'cd /workspace && make'",
    .options = &sh_table,
    .passes_status = true,
    .run = sh_run,
};

/* --- shells ----------------------------------------------------------------------------------- */

static const char *row_id(const void *result, size_t row)
{
    return ((const struct holt_shell_list *)result)->items[row]->name;
}

static const char *shell_id(const void *result, size_t row)
{
    (void)row;
    return ((const struct holt_shell *)result)->name;
}

static void cells_add(struct table *cells, const struct holt_shell *shell)
{
    bool has_process = *shell->process_id != '\0';

    table_add(cells, "%s", shell->name);
    table_add(cells, "%s", *shell->kind ? shell->kind : "-");
    table_add(cells, "%s", has_process ? shell->process_id : "-");
    table_add(cells, "%s", shell->is_busy ? "busy" : has_process ? "idle" : "asleep");
    table_add(cells, "%" PRIu32, shell->waiting);
}

static void row_add(struct table *cells, const void *options, const void *result, size_t row)
{
    (void)options;
    cells_add(cells, ((const struct holt_shell_list *)result)->items[row]);
}

static void shell_add(struct table *cells, const void *options, const void *result, size_t row)
{
    (void)options;
    (void)row;
    cells_add(cells, result);
}

static const char *const titles[] = { "NAME", "KIND", "PROCESS", "STATE", "WAITING" };

static int shells_print(const struct output_options *options, const struct holt_shell_list *list)
{
    const struct listing listing = {
        .result = list,
        .field = "shells",
        .count = list->count,
        .titles = titles,
        .columns = ARRAY_SIZE(titles),
        .right = 0x10,
        .flexible = 0x1,
        .id = row_id,
        .add = row_add,
    };

    return listing_print(&listing, options);
}

/* One shell is an object in JSON, not a list. */
static int shell_print(const struct output_options *options, const struct holt_shell *shell)
{
    const struct listing listing = {
        .result = shell,
        .field = "shell",
        .count = 1,
        .titles = titles,
        .columns = ARRAY_SIZE(titles),
        .right = 0x10,
        .flexible = 0x1,
        .id = shell_id,
        .add = shell_add,
    };

    return listing_print(&listing, options);
}

static int shells_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 2, "an ID and perhaps the name of one SHELL" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct output_options options = { .wants_json = false };
    cleanup_result struct holt_shell_list *list = NULL;
    cleanup_result struct holt_shell *shell = NULL;
    struct holt_error error;
    int next, status;

    if (!command_parse(&command_shells, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_shells, &operands, argc - next) ||
        connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (next + 1 < argc) {
        if (holt_shell_get(connection.holt, argv[next], argv[next + 1], HOLT_NO_DEADLINE, &shell,
                           &error) < 0)
            return report_holt_error(&error);
        return shell_print(&options, shell);
    }
    if (holt_shell_list(connection.holt, argv[next], HOLT_NO_DEADLINE, &list, &error) < 0)
        return report_holt_error(&error);
    return shells_print(&options, list);
}

const struct command command_shells = {
    .group = "Shells",
    .name = "shells",
    .operands = "ID [SHELL]",
    .summary = "List the shells of a sandbox, or show one",
    .options = &option_table_output_names,
    .run = shells_run,
};

static int shell_remove(struct holt *holt, const char *sandbox, const char *shell,
                        struct holt_error *error)
{
    return holt_shell_remove(holt, sandbox, shell, HOLT_NO_DEADLINE, error);
}

static int shells_rm_run(int argc, char **argv)
{
    return each_run(&(struct each){ &command_shells_rm, "an ID and a NAME", true, shell_remove },
                    argc, argv);
}

const struct command command_shells_rm = {
    .group = "Shells",
    .name = "shells rm",
    .operands = "ID SHELL...",
    .summary = "End shells of a sandbox and all their processes",
    .options = &each_force_table,
    .run = shells_rm_run,
};
