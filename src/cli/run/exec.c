// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "cli/core/command.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/run/call.h"
#include "cli/run/options.h"

struct exec_options {
    struct run_options run;
    const char *key;
    bool is_detached;
    bool is_interactive;
};

static void options_done(struct exec_options *options)
{
    run_options_done(&options->run);
}

static int set_detach(void *into, const char *value, struct err *err)
{
    struct exec_options *options = into;

    (void)value;
    (void)err;
    options->is_detached = true;
    return 0;
}

static int set_interactive(void *into, const char *value, struct err *err)
{
    struct exec_options *options = into;

    (void)value;
    (void)err;
    options->is_interactive = true;
    return 0;
}

static int set_tag(void *into, const char *value, struct err *err)
{
    struct exec_options *options = into;

    (void)err;
    options->run.tag = value;
    return 0;
}

static int set_key(void *into, const char *value, struct err *err)
{
    struct exec_options *options = into;

    (void)err;
    options->key = value;
    return 0;
}

static const struct option_row rows[] = {
    { "detach", 'd', NULL, "do not wait: print the id of the process", set_detach },
    { "interactive", 'i', NULL, "with -d: keep stdin open, for 'holt attach'; else as always",
      set_interactive },
    { "tag", 0, "TEXT", "something to find the process by", set_tag },
    { "key", 0, "TEXT", "start once: a second exec with it joins the first", set_key },
};

static const struct option_table table = { rows, ARRAY_SIZE(rows), &run_process_table };

/* Takes the request. */
static int start(json_t *request, const struct exec_options *options, char **args)
{
    cleanup_json json_t *owned = request, *reply = NULL;
    const struct run_plan plan = {
        .args = args,
        .has_tty = options->run.tty == TTY_ALWAYS,
        .has_stdin = options->is_interactive,
    };
    const json_t *process;
    struct err err;
    int status;

    if (run_add_process(owned, &options->run, &plan, &err) < 0)
        return report("exec: %s", err.msg);
    status = call_once("holt.v1.ProcessService/Start", TAKE_PTR(owned), &reply);
    if (status != STATUS_OK)
        return status;
    process = call_object(reply, "process");
    if (!process)
        return STATUS_HOLT;
    (void)printf("%s\n", call_text(process, "id"));
    return command_printed();
}

static json_t *make_request(const char *id, const char *key)
{
    return key ? json_pack("{s:s, s:s}", "sandboxId", id, "idempotencyKey", key)
               : json_pack("{s:s}", "sandboxId", id);
}

static int exec_run(int argc, char **argv)
{
    cleanup_with(options_done) struct exec_options options = { .key = NULL };
    struct run_call call = { .command = &command_exec, .method = "holt.v1.ProcessService/Exec" };
    struct command_words words;
    int status;

    run_options_init(&options.run);
    if (!command_parse_with_id(&command_exec, &options, argc, argv, &words, &status))
        return status;
    if (words.command >= argc)
        return command_misused(&command_exec, "needs an ID and a COMMAND");
    call.request = make_request(argv[words.id], options.key);
    if (!call.request)
        return report("exec: the ID or the key is not UTF-8");
    if (options.is_detached)
        return start(call.request, &options, argv + words.command);
    call.options = &options.run;
    call.args = argv + words.command;
    return run_call(&call);
}

const struct command command_exec = {
    .group = "Processes",
    .name = "exec",
    .operands = "ID [--] COMMAND [ARGUMENT...]",
    .summary = "Run a command in a sandbox that stays",
    .example = "holt exec work -- sh -c 'echo 1 >/workspace/a'",
    .options = &table,
    .takes_command = true,
    .passes_status = true,
    .run = exec_run,
};
