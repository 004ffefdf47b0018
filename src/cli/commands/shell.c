// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "cli/core/command.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/run/attach.h"

struct shell_options {
    struct common_options common;
    const char *name;
};

static int set_name(void *into, const char *value, struct err *err)
{
    struct shell_options *options = into;

    (void)err;
    options->name = value;
    return 0;
}

static const struct option_row rows[] = {
    { "name", 'n', "SHELL", "which shell; 'main' unless it is given", set_name },
    OPTION_HELP,
};

static const struct option_table table = { rows, ARRAY_SIZE(rows), NULL };

static int shell_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 1, "an ID" };
    struct shell_options options = { .name = "main" };
    cleanup_json json_t *reply = NULL;
    const json_t *shell;
    int next, status;

    if (!command_parse(&command_shell, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_shell, &operands, argc - next))
        return STATUS_HOLT;
    status =
        call_once("holt.v1.ShellService/Open",
                  json_pack("{s:s, s:s}", "sandboxId", argv[next], "name", options.name), &reply);
    if (status != STATUS_OK)
        return status;
    shell = call_object(reply, "shell");
    if (!shell)
        return STATUS_HOLT;
    if (strcmp(call_text(shell, "kind"), "bash") != 0)
        return report(
            "shell: the sandbox has no bash, and a plain sh has no terminal to attach to; "
            "see 'holt sh'");
    return attach_run(&(struct attach){ argv[next], call_text(shell, "processId") });
}

const struct command command_shell = {
    .group = "Shells",
    .name = "shell",
    .operands = "ID",
    .summary = "Attach to the terminal of a shell that stays",
    .example = "holt shell work -n build",
    .options = &table,
    .passes_status = true,
    .run = shell_run,
};
