// SPDX-License-Identifier: Apache-2.0
#include "base/cleanup.h"
#include "cli/core/command.h"
#include "cli/run/call.h"
#include "cli/run/options.h"

static int run_run(int argc, char **argv)
{
    cleanup_with(run_options_done) struct run_options options = { .env = NULL };
    struct run_call call = { .command = &command_run, .method = "holt.v1.SandboxService/Run" };
    json_t *sandbox;
    int next, status;

    run_options_init(&options);
    if (!command_parse(&command_run, &options, argc, argv, &next, &status))
        return status;
    if (next == argc)
        return command_misused(&command_run, "needs a COMMAND");
    sandbox = json_object();
    run_add_sandbox(sandbox, &options);
    call.request = json_pack("{s:o}", "sandbox", sandbox);
    call.options = &options;
    call.args = argv + next;
    return run_call(&call);
}

static int set_nothing(void *into, const char *value, struct err *err)
{
    (void)into;
    (void)value;
    (void)err;
    return 0;
}

/* Fingers that know other tools type run --rm -it. */
static const struct option_row habit_rows[] = {
    { "interactive", 'i', NULL, "pass stdin on, as always", set_nothing },
    { "rm", 0, NULL, "remove the sandbox at the end, as always", set_nothing },
};

static const struct option_table habit_table = { habit_rows, ARRAY_SIZE(habit_rows),
                                                 &run_process_table };

static const struct option_table table = { run_sandbox_rows, RUN_SANDBOX_ROWS, &habit_table };

const struct command command_run = {
    .group = "Sandboxes",
    .name = "run",
    .operands = "[--] COMMAND [ARGUMENT...]",
    .summary = "Run a command in a throw-away sandbox",
    .example = "holt run --memory 512M --timeout 30s -- python3 -c 'print(\"hi\")'",
    .options = &table,
    .takes_command = true,
    .passes_status = true,
    .run = run_run,
};
