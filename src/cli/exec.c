// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/report.h"
#include "cli/run_call.h"
#include "cli/run_options.h"

/* Options may stand on both sides of the ID, until "--" has ended them. */
static bool parse(struct run_options *options, int argc, char **argv, int *ret_id, int *ret_command,
                  int *ret_status)
{
    int next;

    if (!command_parse(&command_exec, options, argc, argv, ret_id, ret_status))
        return false;
    *ret_command = *ret_id + 1;
    if (*ret_id >= argc || strcmp(argv[*ret_id - 1], "--") == 0)
        return true;
    if (!command_parse(&command_exec, options, argc - *ret_id, argv + *ret_id, &next, ret_status))
        return false;
    *ret_command = *ret_id + next;
    return true;
}

static int exec_run(int argc, char **argv)
{
    cleanup_with(run_options_done) struct run_options options = { .env = NULL };
    struct run_call call = { .command = &command_exec, .method = "holt.v1.ProcessService/Exec" };
    int id, command, status;

    run_options_init(&options);
    if (!parse(&options, argc, argv, &id, &command, &status))
        return status;
    if (command >= argc)
        return command_misused(&command_exec, "needs an ID and a COMMAND");
    call.request = json_pack("{s:s}", "sandboxId", argv[id]);
    if (!call.request)
        return report("exec: the ID is not UTF-8");
    call.options = &options;
    call.args = argv + command;
    return run_call(&call);
}

const struct command command_exec = {
    .group = "Sandboxes",
    .name = "exec",
    .operands = "ID [--] COMMAND [ARGUMENT...]",
    .summary = "Run a command in a sandbox that stays",
    .options = &run_process_table,
    .takes_command = true,
    .run = exec_run,
};
