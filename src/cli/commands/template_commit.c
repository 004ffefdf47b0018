// SPDX-License-Identifier: Apache-2.0
#include "cli/core/command.h"
#include "cli/core/result.h"

static int template_commit_run(int argc, char **argv)
{
    static const struct operands operands = { 2, 2, "an ID and a NAME" };
    int next, status;

    if (!command_parse_plain(&command_template_commit, &operands, argc, argv, &next, &status))
        return status;
    return call_and_print("holt.v1.TemplateService/Commit",
                          json_pack("{s:s, s:s}", "sandboxId", argv[next], "name", argv[next + 1]),
                          "template");
}

const struct command command_template_commit = {
    .group = "Templates",
    .name = "template commit",
    .operands = "ID NAME",
    .summary = "Make a template of a sandbox's files as they are now",
    .example = "holt template commit work work-base",
    .options = &option_table_help,
    .run = template_commit_run,
};
