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
    return command_printed();
}

const struct command command_version = {
    .group = "Host",
    .name = "version",
    .operands = "",
    .summary = "Show the version",
    .options = &option_table_help,
    .run = version_run,
};
