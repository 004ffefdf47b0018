// SPDX-License-Identifier: Apache-2.0
#include "cli/core/command.h"
#include "cli/core/result.h"

static int snapshot_run(int argc, char **argv)
{
    static const struct operands operands = { 2, 2, "an ID and a NAME" };
    int next, status;

    if (!command_parse_plain(&command_snapshot, &operands, argc, argv, &next, &status))
        return status;
    return call_and_print("holt.v1.SnapshotService/Create",
                          json_pack("{s:s, s:s}", "sandboxId", argv[next], "name", argv[next + 1]),
                          "snapshot");
}

const struct command command_snapshot = {
    .group = "Turns",
    .name = "snapshot",
    .operands = "ID NAME",
    .summary = "Keep the files as they are now under a name",
    .example = "holt snapshot work before-upgrade",
    .options = &option_table_help,
    .run = snapshot_run,
};
