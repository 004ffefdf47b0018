// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/output.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/core/terminal.h"
#include "cli/tool/tool_params.h"
#include "holt.h"

enum { STATUS_TOOL_ERROR = 1, STATUS_TIMED_OUT = 124 };

struct tool_options {
    struct output_options output;
    json_t *params;
    const char *id;
    uint64_t timeout_ms;
    uint64_t max_output_tokens;
    bool wants_changed;
    bool wants_snapshot;
    const char *tier;
    int status; /* of a failed write; STATUS_OK: all progress was written */
};

static void options_done(struct tool_options *options)
{
    json_decref(options->params);
}

static int set_params(void *into, const char *value, struct err *err)
{
    struct tool_options *options = into;
    json_t *params = NULL;
    int r = tool_params_load(value, &params, err);

    if (r < 0)
        return r;
    json_decref(options->params);
    options->params = params;
    return 0;
}

static const struct option_row rows[] = {
    { "json", 0, "PARAMS", "the parameters as JSON: a file, - for stdin, or the object itself",
      OPTION_CALL(set_params) },
    { "id", 0, "TEXT", "call once: a second call with this id returns the same result",
      OPTION_TEXT(struct tool_options, id) },
    { "timeout", 0, "TIME", "end the tool after this time: 30s, 5m",
      OPTION_DURATION(struct tool_options, timeout_ms, 1, "a time like 30s") },
    { "max-output-tokens", 0, "NUMBER", "truncate longer results in the middle; a token is 4 bytes",
      OPTION_U64(struct tool_options, max_output_tokens, 1, "a number like 1000") },
    { "changed", 0, NULL, "list the changed paths on stderr",
      OPTION_FLAG(struct tool_options, wants_changed) },
    { "snapshot", 0, NULL, "take a snapshot after the call",
      OPTION_FLAG(struct tool_options, wants_snapshot) },
    { "tier", 0, "NAME", "run bash in this runtime, which is stronger than that of the sandbox",
      OPTION_TEXT(struct tool_options, tier) },
    OPTION_OUTPUT,
    OPTION_HELP,
};

static const struct option_table table = { rows, ARRAY_SIZE(rows), NULL };

/* --- the result ------------------------------------------------------------------------------- */

static int bytes_write(int fd, const char *data, size_t len)
{
    int r = write_all(fd, data, len);

    if (r == -EPIPE)
        return STATUS_BROKEN_PIPE;
    return r < 0 ? report("cannot write: %s", strerror(-r)) : STATUS_OK;
}

static int print_image(const struct holt_tool_block *block)
{
    cleanup_free char *line = NULL;
    int len = asprintf(&line, "[image: %s, %zu bytes of base64; -o json has it]\n",
                       block->mime_type, (block->len + 2) / 3 * 4);

    return len < 0 ? STATUS_HOLT : bytes_write(STDOUT_FILENO, line, (size_t)len);
}

/* Prints the text, and a newline if it does not end with one. */
static int print_text(const struct holt_tool_block *block)
{
    int status = block->len > 0 ? bytes_write(STDOUT_FILENO, block->data, block->len) : STATUS_OK;

    if (status != STATUS_OK || block->len == 0 || block->data[block->len - 1] == '\n')
        return status;
    return bytes_write(STDOUT_FILENO, "\n", 1);
}

static int print_content(const struct holt_tool_result *result)
{
    int status = STATUS_OK;

    for (size_t i = 0; status == STATUS_OK && i < result->block_count; i++) {
        const struct holt_tool_block *block = result->blocks[i];

        status = *block->mime_type ? print_image(block) : print_text(block);
    }
    return status;
}

/* Prints notices, which are not part of the content, to stderr. */
static void print_notes(const struct holt_tool_result *result)
{
    for (size_t i = 0; i < result->changed_count; i++)
        report_note("%s %s", result->changed[i]->kind, result->changed[i]->path);
    if (result->is_changed_truncated)
        report_note("more paths have changed");
    if (*result->snapshot_id)
        report_note("snapshot %s", result->snapshot_id);
    if (*result->snapshot_error)
        report_note("no snapshot was taken: %s", result->snapshot_error);
}

static int result_status(const struct holt_tool_result *result)
{
    if (result->is_timed_out)
        return STATUS_TIMED_OUT;
    if ((result->exit_code & 0xff) != 0)
        return result->exit_code & 0xff;
    return result->is_error ? STATUS_TOOL_ERROR : STATUS_OK;
}

static int print_tool_result(const struct holt_tool_result *result, bool wants_json)
{
    int status;

    if (wants_json) {
        status = output_json(result, NULL);
    } else {
        status = print_content(result);
        print_notes(result);
    }
    return status == STATUS_OK ? result_status(result) : status;
}

/* --- the call --------------------------------------------------------------------------------- */

/* Shows progress on the terminal, in another colour than the result. */
static int progress_write(void *context, enum holt_piece_kind kind, const char *data, size_t len)
{
    bool is_coloured = terminal_has_colours(STDERR_FILENO);
    struct tool_options *options = context;
    int status = STATUS_OK;

    (void)kind;
    if (is_coloured)
        status = bytes_write(STDERR_FILENO, COLOUR_GREY, strlen(COLOUR_GREY));
    if (status == STATUS_OK && len > 0)
        status = bytes_write(STDERR_FILENO, data, len);
    if (status == STATUS_OK && is_coloured)
        status = bytes_write(STDERR_FILENO, COLOUR_NONE, strlen(COLOUR_NONE));
    options->status = status;
    return status;
}

static int execute(struct tool_options *options, const char *id, const char *tool)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_free char *params = json_dumps(options->params, JSON_COMPACT);
    struct holt_tool_call call = HOLT_INIT(holt_tool_call);
    cleanup_result struct holt_tool_result *result = NULL;
    struct holt_error error;

    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    call.tool = tool;
    call.params = params;
    call.id = options->id;
    call.timeout_ms = options->timeout_ms;
    call.max_output_tokens = options->max_output_tokens;
    call.wants_changed = options->wants_changed;
    call.snapshot = options->wants_snapshot ? HOLT_TOOL_SNAPSHOT_YES : HOLT_TOOL_SNAPSHOT_DEFAULT;
    call.tier = options->tier;
    if (isatty(STDERR_FILENO) && !options->output.wants_json) {
        call.on_progress = progress_write;
        call.context = options;
    }
    (void)signal(SIGPIPE, SIG_IGN); /* EPIPE is the exit status instead */
    if (holt_tool_execute(connection.holt, id, &call, HOLT_NO_DEADLINE, &result, &error) < 0)
        return options->status != STATUS_OK ? options->status : report_holt_error(&error);
    return print_tool_result(result, options->output.wants_json);
}

static int tool_run(int argc, char **argv)
{
    cleanup_with(options_done) struct tool_options options = { .params = json_object() };
    struct err err;
    int next, status;

    if (!command_parse(&command_tool, &options, argc, argv, &next, &status))
        return status;
    if (argc - next < 2)
        return command_misused(&command_tool, "needs an ID and a TOOL ('holt tools' lists them)");
    for (int i = next + 2; i < argc; i++)
        if (tool_params_add(options.params, argv[i], &err) < 0)
            return report_usage("tool: %s; see 'holt tools %s'", err.msg, argv[next + 1]);
    return execute(&options, argv[next], argv[next + 1]);
}

const struct command command_tool = {
    .group = "Tools",
    .name = "tool",
    .operands = "ID TOOL [KEY=VALUE...]",
    .summary = "Call a tool as a model does",
    .example = "holt tool work edit_file path=a.c old_string=foo new_string=bar\n"
               "  holt tool work write_file path=a.c content=@a.c create_dirs=true\n"
               "  holt tool work grep pattern=TODO max_results:=20 -o json",
    .options = &table,
    .passes_status = true,
    .run = tool_run,
};
