// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "cli/core/command.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "holt.h"

enum { STATUS_NOT_IN_ORDER = 1 };

struct audit_options {
    struct output_options output;
    bool wants_verdict;
    json_t *verdict; /* the daemon's, once it has come */
};

static void options_done(struct audit_options *options)
{
    json_decref(options->verdict);
}

static int set_verify(void *into, const char *value, struct err *err)
{
    struct audit_options *options = into;

    (void)value;
    (void)err;
    options->wants_verdict = true;
    return 0;
}

static const struct option_row rows[] = {
    { "verify", 0, NULL, "only say whether the record is whole", set_verify },
    { "output", 'o', "FORMAT", "'table' (the default) or 'json', the lines as they are",
      option_set_output },
    OPTION_HELP,
};

static const struct option_table table = { rows, ARRAY_SIZE(rows), NULL };

/* Texts from elsewhere, in which no control character may be. */
static void print_word(const char *text)
{
    for (; *text; text++)
        (void)putchar((unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text);
}

static bool is_frame(const char *name)
{
    static const char *const names[] = { "seq", "time", "event", "sandbox", "prev", "hash" };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static void print_details(const json_t *line)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)line, name, value)
    {
        cleanup_free char *text = NULL;

        if (is_frame(name))
            continue;
        (void)printf("  ");
        print_word(name);
        (void)printf("=");
        if (!json_is_string(value))
            text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
        print_word(json_is_string(value) ? json_string_value(value) : text ? text : "?");
    }
}

/* "TIME  EVENT  SANDBOX  KEY=VALUE ...". */
static int print_line(const char *text)
{
    cleanup_json json_t *line = NULL;
    const char *sandbox;
    struct err err;

    if (json_parse_object(text, strlen(text), &line, &err) < 0)
        return report("a line of the record cannot be read: %s", err.msg);
    sandbox = call_text(line, "sandbox");
    print_word(call_text(line, "time"));
    (void)printf("  ");
    print_word(call_text(line, "event"));
    (void)printf("  ");
    print_word(*sandbox ? sandbox : "-");
    print_details(line);
    (void)printf("\n");
    return STATUS_OK;
}

static int handle_message(const json_t *message, void *context)
{
    struct audit_options *options = context;
    json_t *verdict = json_object_get(message, "verdict");
    const char *line = call_text(message, "line");

    if (json_is_object(verdict))
        options->verdict = json_incref(verdict);
    if (*line == '\0')
        return STATUS_OK;
    if (!options->output.wants_json)
        return print_line(line);
    (void)printf("%s\n", line);
    return STATUS_OK;
}

static int tell(const struct audit_options *options)
{
    const char *problem = call_text(options->verdict, "problem");
    bool is_in_order = json_is_true(json_object_get(options->verdict, "inOrder"));

    if (!options->verdict)
        return report("the daemon has not said whether the record is whole");
    if (is_in_order && options->wants_verdict)
        (void)printf("%s lines are in order\n", call_text(options->verdict, "lines"));
    if (is_in_order)
        return command_printed();
    (void)command_printed();
    (void)report("the record is not in order: %s", problem);
    return options->wants_verdict ? STATUS_NOT_IN_ORDER : STATUS_HOLT;
}

static int audit_run(int argc, char **argv)
{
    cleanup_with(options_done) struct audit_options options = { .verdict = NULL };
    static const struct operands operands = { 0, 1, "one ID or none" };
    struct holt_error error;
    int next, status;

    if (!command_parse(&command_audit, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_audit, &operands, argc - next))
        return STATUS_HOLT;
    status = call_stream("holt.v1.HostService/Audit",
                         json_pack("{s:s, s:b}", "sandboxId", next < argc ? argv[next] : "",
                                   "verify", options.wants_verdict),
                         handle_message, &options, &error);
    if (status < 0)
        return report_holt_error(&error);
    return status == 0 ? tell(&options) : status;
}

const struct command command_audit = {
    .group = "Host",
    .name = "audit",
    .operands = "[ID]",
    .summary = "Show the record of what was done, and check it",
    .example = "holt audit --verify",
    .options = &table,
    .run = audit_run,
};
