// SPDX-License-Identifier: Apache-2.0
#include "base/cleanup.h"
#include "cli/core/command.h"

static int help_run(int argc, char **argv)
{
    struct common_options options = { .wants_help = false };
    int next, status;

    if (!command_parse(&command_help, &options, argc, argv, &next, &status))
        return status;
    return commands_help(argc - next, argv + next);
}

const struct command command_help = {
    .group = "Host",
    .name = "help",
    .operands = "[COMMAND]",
    .summary = "Show what holt or one of its commands can do",
    .options = &option_table_help,
    .run = help_run,
};
