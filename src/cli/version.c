// SPDX-License-Identifier: Apache-2.0
#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/report.h"

static int version_run(int argc, char **argv)
{
    struct common_options options = { .wants_help = false };
    int next, status;

    if (!command_parse(&command_version, &options, argc, argv, &next, &status))
        return status;
    if (next != argc)
        return command_misused(&command_version, "takes no arguments");
    (void)printf("holt " HOLT_VERSION "\n");
    return fflush(stdout) == 0 ? STATUS_OK : report("cannot write to stdout");
}

static const struct option_row rows[] = { OPTION_HELP };

static const struct option_table table = { rows, ARRAY_SIZE(rows), NULL };

const struct command command_version = {
    .name = "version",
    .operands = "",
    .summary = "Show the version",
    .options = &table,
    .run = version_run,
};
