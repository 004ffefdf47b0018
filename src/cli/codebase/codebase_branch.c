// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/output.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "holt.h"

struct branch_options {
    struct output_options output;
    uint32_t version; /* UINT32_MAX: the newest */
};

static const struct option_row branch_rows[] = {
    { "version", 0, "NUMBER", "the last version to write; by default the newest",
      OPTION_U32(struct branch_options, version, 0, "a version") },
    OPTION_OUTPUT,
    OPTION_JSON,
    OPTION_HELP,
};

static const struct option_table branch_table = { branch_rows, ARRAY_SIZE(branch_rows), NULL };

static int codebase_branch_run(int argc, char **argv)
{
    static const struct operands operands = { 2, 3, "a CODEBASE, a BRANCH and at most one DIR" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_result struct holt_codebase_branching *branching = NULL;
    struct branch_options options = { .version = UINT32_MAX };
    struct holt_codebase_branch_options target = { .directory = NULL };
    struct holt_error error;
    char path[PATH_MAX];
    int next, status;

    if (!command_parse(&command_codebase_branch, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_codebase_branch, &operands, argc - next))
        return STATUS_HOLT;
    if (argc - next == 3 && !(target.directory = realpath(argv[next + 2], path)))
        return report_usage("cannot open directory '%s': %s", argv[next + 2], strerror(errno));
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (options.version != UINT32_MAX)
        target.version = &options.version;
    target.branch = argv[next + 1];
    if (holt_codebase_branch(connection.holt, argv[next], &target, HOLT_NO_DEADLINE, &branching,
                             &error) < 0)
        return report_holt_error(&error);
    if (options.output.wants_json)
        return output_json(branching, NULL);
    (void)printf("branch %s has version %" PRIu32 " (%" PRIu32 " new commits, %.12s)\n",
                 argv[next + 1], branching->version, branching->commits, branching->commit);
    return command_printed();
}

const struct command command_codebase_branch = {
    .group = "Codebases",
    .name = "codebase branch",
    .operands = "CODEBASE BRANCH [DIR]",
    .summary = "Write versions as commits on a branch of the git repository",
    .example = "holt codebase branch app agent/parser && git diff main...agent/parser",
    .options = &branch_table,
    .run = codebase_branch_run,
};
