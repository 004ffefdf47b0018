// SPDX-License-Identifier: Apache-2.0
#include "cli/core/command.h"
#include "cli/core/result.h"

static int turn_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 1, "an ID" };
    int next, status;

    if (!command_parse_plain(&command_turn, &operands, argc, argv, &next, &status))
        return status;
    return call_and_print("holt.v1.SnapshotService/TurnComplete",
                          json_pack("{s:s}", "sandboxId", argv[next]), "snapshot");
}

const struct command command_turn = {
    .group = "Turns",
    .name = "turn",
    .operands = "ID",
    .summary = "End a turn: keep the files as they are now, as turn-NNNN",
    .options = &option_table_help,
    .run = turn_run,
};
