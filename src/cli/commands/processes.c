// SPDX-License-Identifier: Apache-2.0
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "cli/core/command.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/core/signal_name.h"
#include "cli/core/table.h"

enum { STATE_SIZE = 64, COMMAND_MAX = 80, LINE_MAX_BYTES = 4096 };

struct ps_options {
    struct output_options output;
    const char *tag;
    bool wants_all;
};

static int set_all(void *into, const char *value, struct err *err)
{
    struct ps_options *options = into;

    (void)value;
    (void)err;
    options->wants_all = true;
    return 0;
}

static int set_tag(void *into, const char *value, struct err *err)
{
    struct ps_options *options = into;

    (void)err;
    options->tag = value;
    return 0;
}

static const struct option_row rows[] = {
    { "all", 'a', NULL, "also those that have ended", set_all },
    { "tag", 0, "TEXT", "only those with this tag", set_tag },
    OPTION_OUTPUT,
    OPTION_JSON,
    OPTION_QUIET,
    OPTION_HELP,
};

static const struct option_table table = { rows, ARRAY_SIZE(rows), NULL };

static bool is_running(const json_t *process)
{
    return strcmp(call_text(process, "state"), "PROCESS_STATE_RUNNING") == 0;
}

/* The end of a name like OUTCOME_TIMED_OUT, in small letters and with spaces. */
static void words_of(const char *name, const char *prefix, char *ret, size_t size)
{
    size_t len = strlen(prefix);

    (void)snprintf(ret, size, "%s", strncmp(name, prefix, len) == 0 ? name + len : name);
    for (; *ret; ret++)
        if (*ret == '_')
            *ret = ' ';
        else if (*ret >= 'A' && *ret <= 'Z')
            *ret |= 0x20;
}

static void state_format(const json_t *process, char ret[STATE_SIZE])
{
    const json_t *ended = json_object_get(process, "ended");
    const char *outcome = call_text(ended, "outcome");
    int code = (int)json_integer_value(json_object_get(ended, "exitCode"));
    int signal = (int)json_integer_value(json_object_get(ended, "signal"));
    char words[STATE_SIZE / 2];

    if (is_running(process)) {
        (void)snprintf(ret, STATE_SIZE, "running");
    } else if (strcmp(outcome, "OUTCOME_EXITED") == 0) {
        (void)snprintf(ret, STATE_SIZE, "exited %d", code);
    } else if (strcmp(outcome, "OUTCOME_SIGNALED") == 0) {
        signal_format(signal, ret);
    } else if (strcmp(outcome, "OUTCOME_KILLED") == 0) {
        words_of(call_text(ended, "killedBy"), "KILLED_BY_", words, sizeof(words));
        (void)snprintf(ret, STATE_SIZE, "killed by %s", words);
    } else {
        words_of(outcome, "OUTCOME_", ret, STATE_SIZE);
    }
}

/* Not more than a line has room for, and no half of a character; all of it where a program reads.
 */
static void line_cut(struct buf *line)
{
    size_t len = COMMAND_MAX;

    if (line->len <= COMMAND_MAX || !isatty(STDOUT_FILENO))
        return;
    while (len > 0 && ((unsigned char)line->data[len] & 0xc0) == 0x80)
        len--;
    line->len = len;
    (void)buf_add_str(line, "...");
}

static void command_add(struct table *cells, const json_t *process)
{
    cleanup_with(buf_done) struct buf line = BUF_INIT(LINE_MAX_BYTES);
    const json_t *args = json_object_get(process, "args");

    for (size_t i = 0; i < json_array_size(args); i++) {
        const char *arg = json_string_value(json_array_get(args, i));

        if (arg)
            (void)buf_printf(&line, "%s%s", i > 0 ? " " : "", arg);
    }
    if (json_is_true(json_object_get(process, "argsTruncated")))
        (void)buf_add_str(&line, " ...");
    line_cut(&line);
    table_add(cells, "%s", line.data ? line.data : "-");
}

static void row_add(struct table *cells, const json_t *process)
{
    json_int_t pid = json_integer_value(json_object_get(process, "pid"));
    const char *tag = call_text(process, "tag");
    char state[STATE_SIZE], age[CELL_SIZE];

    state_format(process, state);
    format_age(age, call_text(process, "startedAt"));
    table_add(cells, "%s", call_text(process, "id"));
    if (pid > 0)
        table_add(cells, "%" JSON_INTEGER_FORMAT, pid);
    else
        table_add(cells, "-");
    table_add(cells, "%s", state);
    table_add(cells, "%s", age);
    table_add(cells, "%s", *tag ? tag : "-");
    command_add(cells, process);
}

static int print_table(const json_t *processes)
{
    static const char *const titles[] = { "ID", "PID", "STATE", "STARTED", "TAG", "COMMAND" };
    cleanup_with(table_done) struct table cells = { titles, ARRAY_SIZE(titles), 0x2, NULL, 0 };

    for (size_t i = 0; i < json_array_size(processes); i++)
        row_add(&cells, json_array_get(processes, i));
    table_print(&cells);
    return command_printed();
}

/* Those that are wanted, for the caller to drop. */
static json_t *select_wanted(const json_t *processes, bool wants_all)
{
    json_t *wanted = json_array();

    for (size_t i = 0; i < json_array_size(processes); i++) {
        json_t *process = json_array_get(processes, i);

        if (wants_all || is_running(process))
            (void)json_array_append(wanted, process);
    }
    return wanted;
}

static int ps_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 1, "an ID" };
    struct ps_options options = { .tag = NULL };
    cleanup_json json_t *reply = NULL, *wanted = NULL;
    const json_t *processes = NULL;
    int next, status;

    if (!command_parse(&command_ps, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_ps, &operands, argc - next))
        return STATUS_HOLT;
    status = call_once(
        "holt.v1.ProcessService/List",
        json_pack("{s:s, s:s}", "sandboxId", argv[next], "tag", options.tag ? options.tag : ""),
        &reply);
    if (status != STATUS_OK)
        return status;
    if (!call_list(reply, "processes", &processes))
        return STATUS_HOLT;
    wanted = select_wanted(processes, options.wants_all);
    if (options.output.is_quiet)
        return print_texts(wanted, "id");
    return options.output.wants_json ? print_json(wanted) : print_table(wanted);
}

const struct command command_ps = {
    .group = "Processes",
    .name = "ps",
    .operands = "ID",
    .summary = "List the processes of a sandbox",
    .options = &table,
    .run = ps_run,
};
