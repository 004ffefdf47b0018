// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "cli/commands/tool_params.h"
#include "cli/core/command.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/core/terminal.h"
#include "holt.h"

enum { STATUS_TOOL_ERROR = 1, STATUS_TIMED_OUT = 124 };

struct tool_options {
    struct output_options output;
    json_t *request;
    json_t *params;
};

static void options_done(struct tool_options *options)
{
    json_decref(options->request);
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

static int set_id(void *into, const char *value, struct err *err)
{
    struct tool_options *options = into;

    if (json_object_set_new(options->request, "toolCallId", json_string(value)) < 0)
        return err_set(err, ERR_INVALID, "--id is not UTF-8");
    return 0;
}

static int set_timeout(void *into, const char *value, struct err *err)
{
    struct tool_options *options = into;
    uint64_t ms;

    if (parse_duration_ms(value, &ms) < 0 || ms == 0)
        return err_set(err, ERR_INVALID, "'%.100s' is not a time, as 30s or 5m", value);
    return json_object_set_new(options->request, "timeoutMs", json_u64(ms));
}

static int set_tokens(void *into, const char *value, struct err *err)
{
    struct tool_options *options = into;
    uint64_t tokens;

    if (parse_u64(value, &tokens) < 0 || tokens == 0)
        return err_set(err, ERR_INVALID, "'%.100s' is not a number of tokens", value);
    return json_object_set_new(options->request, "maxOutputTokens", json_u64(tokens));
}

static int set_changed(void *into, const char *value, struct err *err)
{
    struct tool_options *options = into;

    (void)value, (void)err;
    return json_object_set_new(options->request, "changed", json_true());
}

static int set_snapshot(void *into, const char *value, struct err *err)
{
    struct tool_options *options = into;

    (void)value, (void)err;
    return json_object_set_new(options->request, "snapshot", json_true());
}

static const struct option_row rows[] = {
    { "json", 0, "PARAMS", "the parameters as JSON: the name of a file, - for stdin, or the object",
      set_params },
    { "id", 0, "TEXT", "make the call once: a second one with this id gets the same result",
      set_id },
    { "timeout", 0, "TIME", "end the tool after this time (30s, 5m)", set_timeout },
    { "max-output-tokens", 0, "NUMBER", "cut longer results in the middle; a token is 4 bytes",
      set_tokens },
    { "changed", 0, NULL, "say on stderr which paths the call has changed", set_changed },
    { "snapshot", 0, NULL, "take a snapshot after the call", set_snapshot },
    OPTION_OUTPUT,
    OPTION_HELP,
};

static const struct option_table table = { rows, ARRAY_SIZE(rows), NULL };

/* --- the result ------------------------------------------------------------------------------- */

static int put(int fd, const char *data, size_t len)
{
    int r = write_all(fd, data, len);

    if (r == -EPIPE)
        return STATUS_BROKEN_PIPE;
    return r < 0 ? report("cannot write: %s", strerror(-r)) : STATUS_OK;
}

static int print_image(const json_t *image)
{
    cleanup_free char *line = NULL;
    int len =
        asprintf(&line, "[image: %s, %zu bytes of base64; -o json has it]\n",
                 call_text(image, "mimeType"), json_string_length(json_object_get(image, "data")));

    return len < 0 ? STATUS_HOLT : put(STDOUT_FILENO, line, (size_t)len);
}

/* As it is, and the end of a line behind it where there is none. */
static int print_text(const json_t *text)
{
    const char *data = json_string_value(text);
    size_t len = json_string_length(text);
    int status = len > 0 ? put(STDOUT_FILENO, data, len) : STATUS_OK;

    if (status != STATUS_OK || len == 0 || data[len - 1] == '\n')
        return status;
    return put(STDOUT_FILENO, "\n", 1);
}

static int print_content(const json_t *result)
{
    const json_t *blocks = json_object_get(result, "content");
    int status = STATUS_OK;

    for (size_t i = 0; status == STATUS_OK && i < json_array_size(blocks); i++) {
        const json_t *block = json_array_get(blocks, i), *image = json_object_get(block, "image");

        status = image ? print_image(image) : print_text(json_object_get(block, "text"));
    }
    return status;
}

static void print_changed(const json_t *result)
{
    const json_t *changed = json_object_get(result, "changed");

    for (size_t i = 0; i < json_array_size(changed); i++) {
        const json_t *each = json_array_get(changed, i);

        report_note("%s %s", call_text(each, "kind"), call_text(each, "path"));
    }
    if (json_is_true(json_object_get(result, "changedTruncated")))
        report_note("and more paths have changed");
}

/* What is about the call and not of its content. */
static void print_notes(const json_t *result)
{
    const char *snapshot = call_text(result, "snapshotId");
    const char *why = call_text(result, "snapshotError");

    print_changed(result);
    if (*snapshot)
        report_note("snapshot %s", snapshot);
    if (*why)
        report_note("no snapshot was taken: %s", why);
}

static int exit_status(const json_t *result)
{
    json_int_t code = json_integer_value(json_object_get(result, "exitCode"));

    if (json_is_true(json_object_get(result, "timedOut")))
        return STATUS_TIMED_OUT;
    if ((code & 0xff) != 0)
        return (int)(code & 0xff);
    return json_is_true(json_object_get(result, "isError")) ? STATUS_TOOL_ERROR : STATUS_OK;
}

static int print_result(const json_t *result, bool wants_json)
{
    int status;

    if (wants_json) {
        status = print_json(result);
    } else {
        status = print_content(result);
        print_notes(result);
    }
    return status == STATUS_OK ? exit_status(result) : status;
}

/* --- the call --------------------------------------------------------------------------------- */

/* Who watches a terminal sees what a tool says meanwhile, in another colour than its result. */
static int print_progress(const json_t *progress)
{
    const json_t *content = json_object_get(progress, "content");
    bool is_coloured = terminal_has_colours(STDERR_FILENO);
    int status = STATUS_OK;

    if (is_coloured)
        status = put(STDERR_FILENO, COLOUR_GREY, strlen(COLOUR_GREY));
    if (status == STATUS_OK && json_string_length(content) > 0)
        status = put(STDERR_FILENO, json_string_value(content), json_string_length(content));
    if (status == STATUS_OK && is_coloured)
        status = put(STDERR_FILENO, COLOUR_NONE, strlen(COLOUR_NONE));
    return status;
}

static int take_event(const json_t *event, void *context)
{
    json_t *progress = json_object_get(event, "progress");
    json_t **result = context;

    if (progress)
        return print_progress(progress);
    if (!*result)
        *result = json_incref(json_object_get(event, "result"));
    return STATUS_OK;
}

/* Takes the request. */
static int follow(json_t *request, json_t **ret)
{
    struct holt_error error;
    int status = call_stream("holt.v1.ToolService/ExecuteStream", request, take_event, ret, &error);

    if (status < 0)
        return report_holt_error(&error);
    if (status == STATUS_OK && !*ret)
        return report_unreadable("it has no result");
    return status;
}

static int execute(struct tool_options *options, const char *id, const char *tool)
{
    cleanup_json json_t *result = NULL;
    bool is_watched = isatty(STDERR_FILENO) && !options->output.wants_json;
    int status;

    if (json_object_set_new(options->request, "sandboxId", json_string(id)) < 0 ||
        json_object_set_new(options->request, "tool", json_string(tool)) < 0 ||
        json_object_set(options->request, "params", options->params) < 0)
        return report("tool: an argument is not UTF-8");
    /* The result may be longer than its reader wants it. */
    (void)signal(SIGPIPE, SIG_IGN);
    status = is_watched
                 ? follow(json_incref(options->request), &result)
                 : call_once("holt.v1.ToolService/Execute", json_incref(options->request), &result);
    return status == STATUS_OK ? print_result(result, options->output.wants_json) : status;
}

static int tool_run(int argc, char **argv)
{
    cleanup_with(options_done) struct tool_options options = { .request = json_object(),
                                                               .params = json_object() };
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
    .summary = "Call a tool as a model would",
    .example = "holt tool work edit_file path=a.c old_string=foo new_string=bar\n"
               "  holt tool work write_file path=a.c content=@a.c create_dirs=true\n"
               "  holt tool work grep pattern=TODO max_results:=20 -o json",
    .options = &table,
    .passes_status = true,
    .run = tool_run,
};
