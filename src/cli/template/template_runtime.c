// SPDX-License-Identifier: Apache-2.0
/* The command that sets the runtimes of the sandboxes of a template. */
#include <stdio.h>

#include "base/cleanup.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/output.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "holt.h"

struct runtime_options {
    struct output_options output;
    struct holt_template_runtime runtime;
};

static const struct option_row rows[] = {
    { "default", 0, "NAME", "runtime of sandboxes that name none, if it is as strong as the host's",
      OPTION_TEXT(struct runtime_options, runtime.runtime) },
    { "min", 0, "NAME", "weakest runtime that they may have",
      OPTION_TEXT(struct runtime_options, runtime.min) },
    OPTION_OUTPUT,
    OPTION_JSON,
    OPTION_QUIET,
    OPTION_HELP,
};

static const struct option_table table = { rows, ARRAY_SIZE(rows), NULL };

static int template_runtime_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 1, "a NAME" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_result struct holt_template *template = NULL;
    struct runtime_options options = { .runtime = { .runtime = NULL } };
    struct holt_error error;
    int next, status;

    if (!command_parse(&command_template_runtime, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_template_runtime, &operands, argc - next) ||
        connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (holt_template_set_runtime(connection.holt, argv[next], &options.runtime, HOLT_NO_DEADLINE,
                                  &template, &error) < 0)
        return report_holt_error(&error);
    return output_id(&options.output, template, "template", template->name);
}

const struct command command_template_runtime = {
    .group = "Templates",
    .name = "template runtime",
    .operands = "TEMPLATE",
    .summary = "Set the default and the weakest runtime of a template's sandboxes",
    .example = "holt template runtime untrusted --min gvisor",
    .options = &table,
    .run = template_runtime_run,
};
