// SPDX-License-Identifier: Apache-2.0
/* The commands that do one thing to each of the things they are given. */
#include <string.h>

#include "base/cleanup.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "holt.h"

struct verb_options {
    struct common_options common;
    bool is_forced; /* what does not exist needs no removing */
};

struct verb {
    const struct command *command;
    const char *method;
    const char *field; /* of the request, for the operand */
    const char *needs;
};

static const struct verb verbs[] = {
    { &command_pause, "holt.v1.SandboxService/Pause", "sandboxId", "an ID" },
    { &command_resume, "holt.v1.SandboxService/Resume", "sandboxId", "an ID" },
    { &command_stop, "holt.v1.SandboxService/Stop", "sandboxId", "an ID" },
    { &command_start, "holt.v1.SandboxService/Start", "sandboxId", "an ID" },
    { &command_rm, "holt.v1.SandboxService/Destroy", "sandboxId", "an ID" },
};

static const struct verb verb_template_rm = {
    &command_template_rm,
    "holt.v1.TemplateService/Remove",
    "name",
    "a NAME",
};

static int do_one(struct holt *holt, const struct verb *verb, const char *operand, bool is_forced)
{
    struct holt_error error;

    if (call_try(holt, verb->method, json_pack("{s:s}", verb->field, operand), NULL, &error) == 0 ||
        (is_forced && strcmp(error.code, "not_found") == 0))
        return STATUS_OK;
    return report_holt_error(&error);
}

/* Goes on after a failure, as rm(1) does. */
static int do_all(const struct verb *verb, int argc, char **argv)
{
    const struct operands operands = { 1, 0, verb->needs };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct verb_options options = { .is_forced = false };
    int next, status;

    if (!command_parse(verb->command, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(verb->command, &operands, argc - next) ||
        connection_open(&connection) < 0)
        return STATUS_HOLT;
    status = STATUS_OK;
    for (; next < argc; next++)
        if (do_one(connection.holt, verb, argv[next], options.is_forced) != STATUS_OK)
            status = STATUS_HOLT;
    return status;
}

/* A command knows its own name by the word it was called with. */
static int verb_run(int argc, char **argv)
{
    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
        if (strcmp(verbs[i].command->name, argv[0]) == 0)
            return do_all(&verbs[i], argc, argv);
    return STATUS_HOLT;
}

static int template_rm_run(int argc, char **argv)
{
    return do_all(&verb_template_rm, argc, argv);
}

static int set_force(void *into, const char *value, struct err *err)
{
    struct verb_options *options = into;

    (void)value;
    (void)err;
    options->is_forced = true;
    return 0;
}

static const struct option_row rm_rows[] = {
    { "force", 'f', NULL, "say nothing of those that do not exist", set_force },
    OPTION_HELP,
};

static const struct option_table rm_table = { rm_rows, ARRAY_SIZE(rm_rows), NULL };

#define SANDBOX_VERB(verb, what, table)                                                            \
    const struct command command_##verb = {                                                        \
        .group = "Sandboxes",                                                                      \
        .name = #verb,                                                                             \
        .operands = "ID...",                                                                       \
        .summary = what,                                                                           \
        .options = &(table),                                                                       \
        .run = verb_run,                                                                           \
    }

SANDBOX_VERB(pause, "Freeze sandboxes where they are", option_table_help);
SANDBOX_VERB(resume, "Let paused sandboxes go on", option_table_help);
SANDBOX_VERB(stop, "End all processes of sandboxes and keep their files", option_table_help);
SANDBOX_VERB(start, "Start sandboxes that are stopped or have failed", option_table_help);
SANDBOX_VERB(rm, "Remove sandboxes with all their snapshots", rm_table);

const struct command command_template_rm = {
    .group = "Templates",
    .name = "template rm",
    .operands = "TEMPLATE...",
    .summary = "Remove templates",
    .options = &option_table_help,
    .run = template_rm_run,
};
