// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/output.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/options/lifetime.h"
#include "cli/options/permission_options.h"
#include "cli/options/words.h"
#include "cli/run/options.h"
#include "cli/template/pull.h"
#include "holt.h"

struct create_options {
    struct run_options run;
    struct holt_sandbox_options sandbox; /* all but run, labels and volumes */
    struct words labels;
    struct words volumes;
    struct words secrets;
    struct permission_options permissions;
};

static void options_done(struct create_options *options)
{
    run_options_done(&options->run);
    words_done(&options->labels);
    words_done(&options->volumes);
    words_done(&options->secrets);
    permission_options_done(&options->permissions);
}

static int set_label(void *into, const char *value, struct err *err)
{
    struct create_options *options = into;

    return words_add_label(&options->labels, value, err);
}

/* The action is "kill" by default. */
static int time_set(const char *value, uint64_t *ret_ms, const char **ret_action)
{
    int r = lifetime_parse(value, ret_ms, ret_action);

    if (!*ret_action)
        *ret_action = "kill";
    return *ret_ms == 0 ? -EINVAL : r;
}

static int set_ttl(void *into, const char *value, struct err *err)
{
    struct holt_sandbox_options *sandbox = &((struct create_options *)into)->sandbox;

    if (time_set(value, &sandbox->ttl_ms, &sandbox->expire_action) < 0)
        return err_set(err, ERR_INVALID, "--ttl '%.100s' is not a time like 1h or 1h:pause", value);
    return 0;
}

static int set_idle_timeout(void *into, const char *value, struct err *err)
{
    struct holt_sandbox_options *sandbox = &((struct create_options *)into)->sandbox;

    if (time_set(value, &sandbox->idle_timeout_ms, &sandbox->idle_action) < 0)
        return err_set(err, ERR_INVALID,
                       "--idle-timeout '%.100s' is not a time like 10m or 10m:pause", value);
    return 0;
}

static int set_volume(void *into, const char *value, struct err *err)
{
    struct create_options *options = into;

    return words_add_volume(&options->volumes, value, err);
}

static int set_secret(void *into, const char *value, struct err *err)
{
    (void)err;
    words_add(&((struct create_options *)into)->secrets, value);
    return 0;
}

static int set_perm(void *into, const char *value, struct err *err)
{
    return permission_add(&((struct create_options *)into)->permissions, value, err);
}

static int set_perm_file(void *into, const char *value, struct err *err)
{
    return permission_add_file(&((struct create_options *)into)->permissions, value, err);
}

static const struct option_row rows[] = {
    { "name", 0, "NAME", "a unique name, to use instead of the id",
      OPTION_TEXT(struct create_options, sandbox.name) },
    { "label", 'l', "KEY=VALUE", "a label, for 'holt ls --label'; may be repeated",
      OPTION_CALL(set_label) },
    { "volume", 'v', "NAME:PATH[:ro]",
      "a volume to mount at a path, with :ro read-only; may be repeated", OPTION_CALL(set_volume) },
    { "codebase", 0, "NAME[:PATH]", "a codebase to see at a path, by default /workspace",
      OPTION_TEXT(struct create_options, sandbox.codebase) },
    { "preset", 0, "NAME",
      "permissions in the codebase: view-only, read-only, full-access, agent-safe or development",
      OPTION_TEXT(struct create_options, permissions.preset) },
    { "perm", 0, "RULE", "a rule behind those of the preset: '/src/**=write'; may be repeated",
      OPTION_CALL(set_perm) },
    { "perm-file", 0, "FILE", "a file with one rule a line", OPTION_CALL(set_perm_file) },
    { "view", 0, "ENGINE",
      "what enforces the permissions: fuse or kernel; by default, Holt chooses",
      OPTION_TEXT(struct create_options, permissions.view) },
    { "secret", 0, "SECRET", "a secret whose placeholder its processes have; may be repeated",
      OPTION_CALL(set_secret) },
    { "ttl", 0, "TIME[:ACTION]", "kill, pause, stop or deep-pause it at this age: 1h, 1h:pause",
      OPTION_CALL(set_ttl) },
    { "idle-timeout", 0, "TIME[:ACTION]",
      "kill, pause, stop or deep-pause it when unused for this time",
      OPTION_CALL(set_idle_timeout) },
    { "max-snapshots", 0, "NUMBER", "the number of turns to keep",
      OPTION_U32(struct create_options, sandbox.max_snapshots, 1, "a number like 20") },
    { "key", 0, "KEY", "create once: a second create with this key joins the first",
      OPTION_TEXT(struct create_options, sandbox.idempotency_key) },
    OPTION_OUTPUT,
    OPTION_JSON,
    { "quiet", 'q', NULL, "print only the id", OPTION_CALL(option_set_quiet) },
    OPTION_HELP,
};

static const struct option_table own_table = { rows, ARRAY_SIZE(rows), NULL };

static const struct option_table table = { run_sandbox_rows, RUN_SANDBOX_ROWS, &own_table };

static int print_created(const struct output_options *output, const struct holt_sandbox *sandbox)
{
    if (output->wants_json || output->is_quiet)
        return output_id(output, sandbox, "sandbox", sandbox->id);
    if (sandbox->is_joined)
        (void)printf("sandbox %s was already created with this key\n", sandbox->id);
    else if (*sandbox->name)
        (void)printf("created sandbox %s (%s)\n", sandbox->id, sandbox->name);
    else
        (void)printf("created sandbox %s\n", sandbox->id);
    return command_printed();
}

static int create_run(int argc, char **argv)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_with(options_done) struct create_options options = { .sandbox = HOLT_INIT(
                                                                     holt_sandbox_options) };
    cleanup_result struct holt_sandbox *sandbox = NULL;
    struct holt_permission_rules rules;
    struct holt_error error;
    int next, status;

    if (!command_parse(&command_create, &options, argc, argv, &next, &status))
        return status;
    if (next != argc)
        return command_misused(&command_create, "takes no arguments");
    status = pull_if_missing(options.run.template);
    if (status != STATUS_OK)
        return status;
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    run_sandbox_set(&options.run, &options.sandbox);
    options.sandbox.labels = (const char *const *)options.labels.items;
    options.sandbox.volumes = (const char *const *)options.volumes.items;
    options.sandbox.secrets = (const char *const *)options.secrets.items;
    options.sandbox.permissions = permission_rules(&options.permissions, &rules);
    if (holt_sandbox_create(connection.holt, &options.sandbox, HOLT_NO_DEADLINE, &sandbox, &error) <
        0)
        return report_holt_error(&error);
    return print_created(&options.run.output, sandbox);
}

const struct command command_create = {
    .group = "Sandboxes",
    .name = "create",
    .operands = "",
    .summary = "Create a persistent sandbox",
    .example = "id=$(holt create --name work --label team=red --ttl 1h -q)",
    .options = &table,
    .run = create_run,
};
