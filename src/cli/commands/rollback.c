// SPDX-License-Identifier: Apache-2.0
#include "base/cleanup.h"
#include "cli/core/command.h"
#include "cli/core/report.h"
#include "cli/core/result.h"

struct rollback_options {
    struct common_options common;
    bool wants_prune;
};

static int set_prune_newer(void *into, const char *value, struct err *err)
{
    struct rollback_options *options = into;

    (void)value;
    (void)err;
    options->wants_prune = true;
    return 0;
}

static const struct option_row rows[] = {
    { "prune-newer", 0, NULL, "remove all snapshots that are newer", set_prune_newer },
    OPTION_HELP,
};

static const struct option_table table = { rows, ARRAY_SIZE(rows), NULL };

static int rollback_run(int argc, char **argv)
{
    static const struct operands operands = { 2, 2, "an ID and a SNAPSHOT" };
    struct rollback_options options = { .wants_prune = false };
    int next, status;

    if (!command_parse(&command_rollback, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_rollback, &operands, argc - next))
        return STATUS_HOLT;
    return call_once("holt.v1.SnapshotService/Rollback",
                     json_pack("{s:s, s:s, s:b}", "sandboxId", argv[next], "snapshot",
                               argv[next + 1], "pruneNewer", options.wants_prune),
                     NULL);
}

const struct command command_rollback = {
    .group = "Turns",
    .name = "rollback",
    .operands = "ID SNAPSHOT",
    .summary = "Make the files those of a snapshot again; processes end",
    .example = "holt rollback work turn-0003",
    .options = &table,
    .run = rollback_run,
};
