// SPDX-License-Identifier: Apache-2.0
#include "base/cleanup.h"
#include "cli/command.h"

static int help_run(int argc, char **argv)
{
    struct common_options options = { .wants_help = false };
    int next, status;

    if (!command_parse(&command_help, &options, argc, argv, &next, &status))
        return status;
    return commands_help(argc - next, argv + next);
}

static const struct option_row rows[] = { OPTION_HELP };

static const struct option_table table = { rows, ARRAY_SIZE(rows), NULL };

const struct command command_help = {
    .name = "help",
    .operands = "[COMMAND]",
    .summary = "Show what holt or one of its commands can do",
    .options = &table,
    .run = help_run,
};
