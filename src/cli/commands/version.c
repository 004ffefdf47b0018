// SPDX-License-Identifier: Apache-2.0
#include "base/cleanup.h"
#include "cli/core/command.h"
#include "cli/core/report.h"

static const struct option_row rows[] = { OPTION_OUTPUT, OPTION_HELP };

static const struct option_table table = { rows, ARRAY_SIZE(rows), NULL };

static int version_run(int argc, char **argv)
{
    struct output_options options = { .wants_json = false };
    int next, status;

    if (!command_parse(&command_version, &options, argc, argv, &next, &status))
        return status;
    if (next != argc)
        return command_misused(&command_version, "takes no arguments");
    (void)printf(options.wants_json ? "{\"version\":\"" HOLT_VERSION "\"}\n"
                                    : "holt " HOLT_VERSION "\n");
    return command_printed();
}

const struct command command_version = {
    .group = "Host",
    .name = "version",
    .operands = "",
    .summary = "Show the version",
    .options = &table,
    .run = version_run,
};
