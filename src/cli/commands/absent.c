// SPDX-License-Identifier: Apache-2.0
/* Commands whose front end this build leaves out: each says so. */
#include <string.h>

#include "cli/core/command.h"
#include "cli/core/report.h"

#if !HOLT_MCP
static int mcp_absent(int argc, char **argv)
{
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
        return commands_help(1, argv);
    return report_exit_status(report_usage("this build of holt has no MCP; build it with MCP=1"));
}

const struct command command_mcp = {
    .group = "Tools",
    .name = "mcp",
    .operands = "",
    .summary = "Not in this build",
    .options = &option_table_help,
    .run = mcp_absent,
};
#endif
