// SPDX-License-Identifier: Apache-2.0
/* The commands that list processes, send them signals and wait for them. */
#include <ctype.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/text/parse.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/output.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/core/signal_name.h"
#include "cli/run/outcome.h"
#include "holt.h"

enum { STATE_SIZE = 64, LINE_MAX_BYTES = 4096, STATUS_TIMED_OUT = 124 };

/* --- ps --------------------------------------------------------------------------------------- */

struct ps_options {
    struct output_options output;
    const char *tag;
    bool wants_all;
};

static const struct option_row ps_rows[] = {
    { "all", 'a', NULL, "include processes that have ended",
      OPTION_FLAG(struct ps_options, wants_all) },
    { "tag", 0, "TEXT", "only those with this tag", OPTION_TEXT(struct ps_options, tag) },
    OPTION_OUTPUT,
    OPTION_JSON,
    OPTION_QUIET,
    OPTION_HELP,
};

static const struct option_table ps_table = { ps_rows, ARRAY_SIZE(ps_rows), NULL };

static void format_state(char ret[STATE_SIZE], const struct holt_process_info *process)
{
    static const char *const words[] = {
        [HOLT_OUTCOME_UNKNOWN] = "unknown",
        [HOLT_TIMED_OUT] = "timed out",
        [HOLT_OOM] = "oom",
        [HOLT_LOST] = "lost",
        [HOLT_NOT_STARTED] = "not started",
    };
    const struct holt_end *end = process->end;

    if (process->is_running || !end) {
        (void)snprintf(ret, STATE_SIZE, "%s", process->is_running ? "running" : "");
    } else if (end->outcome == HOLT_EXITED) {
        (void)snprintf(ret, STATE_SIZE, "exited %d", end->exit_code);
    } else if (end->outcome == HOLT_SIGNALED) {
        signal_format(end->signal, ret);
    } else if (end->outcome == HOLT_KILLED) {
        (void)snprintf(ret, STATE_SIZE, "killed by %s", end->killed_by);
    } else {
        (void)snprintf(ret, STATE_SIZE, "%s", words[end->outcome]);
    }
}

static void command_add(struct table *cells, const struct holt_process_info *process)
{
    cleanup_with(buf_done) struct buf line = BUF_INIT(LINE_MAX_BYTES);

    for (size_t i = 0; process->args[i]; i++)
        (void)buf_printf(&line, "%s%s", i > 0 ? " " : "", process->args[i]);
    if (process->is_args_truncated)
        (void)buf_add_str(&line, " ...");
    table_add(cells, "%s", line.data ? line.data : "-");
}

/* The port inside, and the address outside if it is forwarded. */
static void port_add(struct table *cells, const struct holt_process_info *process)
{
    if (process->port == 0)
        table_add(cells, "-");
    else if (*process->address)
        table_add(cells, "%s->%" PRIu32, process->address, process->port);
    else
        table_add(cells, "%" PRIu32, process->port);
}

static const struct holt_process_info *process_at(const void *result, size_t row)
{
    return ((const struct holt_process_list *)result)->items[row];
}

static void row_add(struct table *cells, const void *options, const void *result, size_t row)
{
    const struct holt_process_info *process = process_at(result, row);
    char state[STATE_SIZE], age[CELL_SIZE];

    (void)options;
    format_state(state, process);
    format_age(age, process->started_ms);
    table_add(cells, "%s", process->id);
    if (process->pid > 0)
        table_add(cells, "%" PRIu32, process->pid);
    else
        table_add(cells, "-");
    table_add(cells, "%s", state);
    table_add(cells, "%s", age);
    table_add(cells, "%" PRIu32, process->restarts);
    port_add(cells, process);
    table_add(cells, "%s", *process->tag ? process->tag : "-");
    command_add(cells, process);
}

static const char *row_id(const void *result, size_t row)
{
    return process_at(result, row)->id;
}

static bool is_wanted(const void *options, const void *result, size_t row)
{
    return ((const struct ps_options *)options)->wants_all || process_at(result, row)->is_running;
}

static int ps_print(const struct ps_options *options, const struct holt_process_list *list)
{
    static const char *const titles[] = { "ID",       "PID",  "STATE", "STARTED",
                                          "RESTARTS", "PORT", "TAG",   "COMMAND" };
    const struct listing listing = {
        .result = list,
        .field = "processes",
        .count = list->count,
        .titles = titles,
        .columns = ARRAY_SIZE(titles),
        .right = 0x12,
        .flexible = 0xc0,
        .spare = 0x24,
        .id = row_id,
        .add = row_add,
        .is_wanted = is_wanted,
    };

    return listing_print(&listing, options);
}

static int ps_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 1, "an ID" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_result struct holt_process_list *list = NULL;
    struct ps_options options = { .tag = NULL };
    struct holt_error error;
    int next, status;

    if (!command_parse(&command_ps, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_ps, &operands, argc - next) ||
        connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (holt_process_list(connection.holt, argv[next], options.tag, HOLT_NO_DEADLINE, &list,
                          &error) < 0)
        return report_holt_error(&error);
    return ps_print(&options, list);
}

const struct command command_ps = {
    .group = "Processes",
    .name = "ps",
    .operands = "ID",
    .summary = "List the processes of a sandbox",
    .options = &ps_table,
    .run = ps_run,
};

/* --- kill ------------------------------------------------------------------------------------- */

struct kill_options {
    struct common_options common;
    int signal;
    bool is_for_tree;
};

static int set_signal(void *into, const char *value, struct err *err)
{
    struct kill_options *options = into;

    if (signal_parse(value, &options->signal) < 0)
        return err_set(err, ERR_INVALID, "--signal '%.100s' is not a signal like TERM or 15",
                       value);
    return 0;
}

static const struct option_row kill_rows[] = {
    { "signal", 's', "SIGNAL", "a name or a number, also as -9 or -KILL; TERM by default",
      OPTION_CALL(set_signal) },
    { "tree", 0, NULL, "also signal all descendants of the process",
      OPTION_FLAG(struct kill_options, is_for_tree) },
    OPTION_HELP,
};

static const struct option_table kill_table = { kill_rows, ARRAY_SIZE(kill_rows), NULL };

/* Takes "-9", "-KILL" or "-SIGKILL" out of the words, as kill(1) knows them. */
static void signal_take(struct kill_options *options, int *argc, char **argv)
{
    for (int i = 1; i < *argc && strcmp(argv[i], "--") != 0; i++) {
        bool is_word = argv[i][0] == '-' && (isdigit((unsigned char)argv[i][1]) ||
                                             (isupper((unsigned char)argv[i][1]) && argv[i][2]));

        if (!is_word || signal_parse(argv[i] + 1, &options->signal) < 0)
            continue;
        memmove(argv + i, argv + i + 1, (size_t)(*argc - i) * sizeof(*argv));
        --*argc;
        return;
    }
}

/* Continues after a failure, as kill(1) does. */
static int kill_run(int argc, char **argv)
{
    static const struct operands operands = { 2, 0, "an ID and a PROCESS" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct kill_options options = { .signal = SIGTERM };
    struct holt_error error;
    int next, status;

    signal_take(&options, &argc, argv);
    if (!command_parse(&command_kill, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_kill, &operands, argc - next) ||
        connection_open(&connection) < 0)
        return STATUS_HOLT;
    status = STATUS_OK;
    for (int i = next + 1; i < argc; i++)
        if ((options.is_for_tree ? holt_process_signal_tree : holt_process_signal)(
                connection.holt, argv[next], argv[i], options.signal, HOLT_NO_DEADLINE, &error) < 0)
            status = report_holt_error(&error);
    return status;
}

const struct command command_kill = {
    .group = "Processes",
    .name = "kill",
    .operands = "ID PROCESS...",
    .summary = "Send a signal to processes",
    .example = "holt kill -s INT --tree work p4",
    .options = &kill_table,
    .run = kill_run,
};

/* --- wait ------------------------------------------------------------------------------------- */

struct wait_options {
    struct common_options common;
    uint64_t timeout_ms; /* 0: none */
};

static const struct option_row wait_rows[] = {
    { "timeout", 0, "TIME", "give up after this time: 30s, 5m",
      OPTION_DURATION(struct wait_options, timeout_ms, 0, "a time like 30s") },
    OPTION_HELP,
};

static const struct option_table wait_table = { wait_rows, ARRAY_SIZE(wait_rows), NULL };

/* Returns the exit status of a process; *ret_ended is whether it has ended. */
static int wait_one(struct holt *holt, const char *sandbox, const char *process,
                    uint64_t timeout_ms, bool *ret_ended)
{
    cleanup_result struct holt_end *end = NULL;
    struct holt_error error;

    *ret_ended = false;
    if (holt_process_wait_for(holt, sandbox, process, timeout_ms, HOLT_NO_DEADLINE, &end, &error) <
        0)
        return report_holt_error(&error);
    *ret_ended = end != NULL;
    return end ? run_outcome(process, end) : STATUS_TIMED_OUT;
}

/* Stops at the first process that does not exist or does not end in time. */
static int wait_run(int argc, char **argv)
{
    static const struct operands operands = { 2, 0, "an ID and a PROCESS" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct wait_options options = { .timeout_ms = 0 };
    const uint64_t start_ms = clock_ms();
    bool has_ended = true;
    int next, status;

    if (!command_parse(&command_wait, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_wait, &operands, argc - next) ||
        connection_open(&connection) < 0)
        return STATUS_HOLT;
    for (int i = next + 1; i < argc && has_ended; i++) {
        uint64_t passed_ms = clock_ms() - start_ms, left_ms = 0;

        if (options.timeout_ms > 0) /* 0 would mean no limit */
            left_ms = options.timeout_ms > passed_ms ? options.timeout_ms - passed_ms : 1;
        status = wait_one(connection.holt, argv[next], argv[i], left_ms, &has_ended);
    }
    return status;
}

const struct command command_wait = {
    .group = "Processes",
    .name = "wait",
    .operands = "ID PROCESS...",
    .summary = "Wait for processes to end; exit with the status of the last",
    .example = "holt wait --timeout 5m work p4",
    .options = &wait_table,
    .passes_status = true,
    .run = wait_run,
};
