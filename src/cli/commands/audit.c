// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/output.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "holt.h"

enum { STATUS_NOT_INTACT = 1 };

struct audit_options {
    struct output_options output;
    bool only_verifies;
    int status; /* after a report: a line could not be printed */
};

static const struct option_row rows[] = {
    { "verify", 0, NULL, "only verify the hash chain of the record",
      OPTION_FLAG(struct audit_options, only_verifies) },
    { "output", 'o', "FORMAT", "'table' (the default) or 'json', the lines of the record",
      OPTION_CALL(option_set_output) },
    OPTION_JSON,
    OPTION_HELP,
};

static const struct option_table table = { rows, ARRAY_SIZE(rows), NULL };

/* Prints "TIME  EVENT  SANDBOX  KEY=VALUE ...". */
static int print_line(const char *text)
{
    static const char *const columns[] = { "seq", "time", "event", "sandbox", "prev", "hash" };
    cleanup_json json_t *line = NULL;
    const char *sandbox;
    struct err err;

    if (json_parse_object(text, strlen(text), &line, &err) < 0)
        return report("cannot read a line of the audit record: %s", err.msg);
    sandbox = json_text_of(line, "sandbox");
    print_word(json_text_of(line, "time"));
    (void)printf("  ");
    print_word(json_text_of(line, "event"));
    (void)printf("  ");
    print_word(*sandbox ? sandbox : "-");
    for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
        (void)json_object_del(line, columns[i]);
    print_members(line);
    (void)printf("\n");
    return STATUS_OK;
}

static int line_take(void *context, const char *line)
{
    struct audit_options *options = context;

    if (options->output.wants_json)
        (void)printf("%s\n", line);
    else
        options->status = print_line(line);
    return options->status;
}

static int print_verdict(const struct holt_audit_verdict *verdict,
                         const struct audit_options *options)
{
    if (options->only_verifies && options->output.wants_json)
        (void)output_json(verdict, "verdict");
    else if (verdict->is_intact && options->only_verifies)
        (void)printf("%" PRIu64 " lines are in order\n", verdict->lines);
    if (verdict->is_intact)
        return command_printed();
    (void)command_printed();
    (void)report("the audit record is not in order: %s", verdict->problem);
    return options->only_verifies ? STATUS_NOT_INTACT : STATUS_HOLT;
}

static int audit_run(int argc, char **argv)
{
    static const struct operands operands = { 0, 1, "one ID or none" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct holt_audit_options request = HOLT_INIT(holt_audit_options);
    cleanup_result struct holt_audit_verdict *verdict = NULL;
    struct audit_options options = { .status = STATUS_OK };
    struct holt_error error;
    int next, status;

    if (!command_parse(&command_audit, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_audit, &operands, argc - next) ||
        connection_open(&connection) < 0)
        return STATUS_HOLT;
    request.sandbox = next < argc ? argv[next] : NULL;
    request.only_verifies = options.only_verifies;
    request.on_line = line_take;
    request.context = &options;
    if (holt_audit(connection.holt, &request, HOLT_NO_DEADLINE, &verdict, &error) < 0)
        return options.status != STATUS_OK ? options.status : report_holt_error(&error);
    return print_verdict(verdict, &options);
}

const struct command command_audit = {
    .group = "Host",
    .name = "audit",
    .operands = "[ID]",
    .summary = "Show and verify the audit record",
    .example = "holt audit --verify",
    .options = &table,
    .run = audit_run,
};
