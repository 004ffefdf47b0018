// SPDX-License-Identifier: Apache-2.0
/* The commands for turns, snapshots, rollbacks and forks. */
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/text/parse.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/each.h"
#include "cli/core/output.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/options/lifetime.h"
#include "cli/options/network_options.h"
#include "cli/options/permission_options.h"
#include "cli/options/words.h"
#include "holt.h"

/* --- turn, snapshot --------------------------------------------------------------------------- */

static int turn_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 1, "an ID" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_result struct holt_snapshot *snapshot = NULL;
    struct output_options options = { .wants_json = false };
    struct holt_error error;
    int next, status;

    if (!command_parse(&command_turn, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_turn, &operands, argc - next) ||
        connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (holt_turn(connection.holt, argv[next], HOLT_NO_DEADLINE, &snapshot, &error) < 0)
        return report_holt_error(&error);
    return output_id(&options, snapshot, "snapshot", snapshot->name);
}

const struct command command_turn = {
    .group = "Turns",
    .name = "turn",
    .operands = "ID",
    .summary = "End a turn: take a snapshot of the files, turn-NNNN",
    .options = &option_table_output,
    .run = turn_run,
};

static int snapshot_run(int argc, char **argv)
{
    static const struct operands operands = { 2, 2, "an ID and a NAME" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_result struct holt_snapshot *snapshot = NULL;
    struct output_options options = { .wants_json = false };
    struct holt_error error;
    int next, status;

    if (!command_parse(&command_snapshot, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_snapshot, &operands, argc - next) ||
        connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (holt_snapshot_create(connection.holt, argv[next], argv[next + 1], HOLT_NO_DEADLINE,
                             &snapshot, &error) < 0)
        return report_holt_error(&error);
    return output_id(&options, snapshot, "snapshot", snapshot->name);
}

const struct command command_snapshot = {
    .group = "Turns",
    .name = "snapshot",
    .operands = "ID NAME",
    .summary = "Take a named snapshot of the files",
    .example = "holt snapshot work before-upgrade",
    .options = &option_table_output,
    .run = snapshot_run,
};

/* --- snapshots -------------------------------------------------------------------------------- */

static const char *row_id(const void *result, size_t row)
{
    return ((const struct holt_snapshot_list *)result)->items[row]->name;
}

static void row_add(struct table *cells, const void *options, const void *result, size_t row)
{
    const struct holt_snapshot_list *list = result;
    const struct holt_snapshot *snapshot = list->items[row];
    bool is_now = strcmp(snapshot->name, list->base) == 0;
    char age[CELL_SIZE], space[CELL_SIZE];

    format_age(age, snapshot->created_ms);
    output_size(options, space, snapshot->space_used_bytes);
    table_add(cells, "%s", snapshot->name);
    table_add(cells, "%s", snapshot->kind);
    if (snapshot->turn > 0)
        table_add(cells, "%" PRIu32, snapshot->turn);
    else
        table_add(cells, "-");
    table_add(cells, "%s", *snapshot->parent ? snapshot->parent : "template");
    table_add(cells, "%s", age);
    table_add(cells, "%s", space);
    table_add(cells, "%s%s%s", is_now ? "<- now" : "", is_now && *snapshot->note ? " " : "",
              snapshot->note);
}

static int snapshots_print(const struct output_options *options,
                           const struct holt_snapshot_list *list)
{
    static const char *const titles[] = {
        "NAME", "KIND", "TURN", "PARENT", "CREATED", "SPACE", ""
    };
    const struct listing listing = {
        .result = list,
        .count = list->count,
        .titles = titles,
        .columns = ARRAY_SIZE(titles),
        .right = 0x24,
        .flexible = 0x48,
        .spare = 0x1,
        .id = row_id,
        .add = row_add,
    };

    return listing_print(&listing, options);
}

static const struct option_row snapshots_rows[] = { OPTION_BYTES, OPTION_OUTPUT, OPTION_JSON,
                                                    OPTION_QUIET_NAMES, OPTION_HELP };

static const struct option_table snapshots_table = { snapshots_rows, ARRAY_SIZE(snapshots_rows),
                                                     NULL };

static int snapshots_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 1, "an ID" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct output_options options = { .wants_json = false };
    cleanup_result struct holt_snapshot_list *list = NULL;
    struct holt_error error;
    int next, status;

    if (!command_parse(&command_snapshots, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_snapshots, &operands, argc - next) ||
        connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (holt_snapshot_list(connection.holt, argv[next], HOLT_NO_DEADLINE, &list, &error) < 0)
        return report_holt_error(&error);
    return snapshots_print(&options, list);
}

const struct command command_snapshots = {
    .group = "Turns",
    .name = "snapshots",
    .operands = "ID",
    .summary = "List the turns and snapshots of a sandbox",
    .options = &snapshots_table,
    .run = snapshots_run,
};

static int snapshot_remove(struct holt *holt, const char *sandbox, const char *snapshot,
                           struct holt_error *error)
{
    return holt_snapshot_remove(holt, sandbox, snapshot, HOLT_NO_DEADLINE, error);
}

static int snapshots_rm_run(int argc, char **argv)
{
    return each_run(
        &(struct each){ &command_snapshots_rm, "an ID and a NAME", true, snapshot_remove }, argc,
        argv);
}

const struct command command_snapshots_rm = {
    .group = "Turns",
    .name = "snapshots rm",
    .operands = "ID SNAPSHOT...",
    .summary = "Remove turns or snapshots of a sandbox",
    .options = &each_force_table,
    .run = snapshots_rm_run,
};

static const struct option_row note_rows[] = { OPTION_HELP };
static const struct option_table note_table = { note_rows, ARRAY_SIZE(note_rows), NULL };

static int snapshots_note_run(int argc, char **argv)
{
    static const struct operands operands = { 3, 3, "an ID, a SNAPSHOT and a TEXT" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct common_options options = { .wants_help = false };
    struct holt_error error;
    int next, status;

    if (!command_parse(&command_snapshots_note, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_snapshots_note, &operands, argc - next) ||
        connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (holt_snapshot_update(connection.holt, argv[next], argv[next + 1], argv[next + 2],
                             HOLT_NO_DEADLINE, &error) < 0)
        return report_holt_error(&error);
    return 0;
}

const struct command command_snapshots_note = {
    .group = "Turns",
    .name = "snapshots note",
    .operands = "ID SNAPSHOT TEXT",
    .summary = "Set the note of a turn or snapshot",
    .example = "holt snapshots note work turn-0003 'tests pass'",
    .options = &note_table,
    .run = snapshots_note_run,
};

/* --- rollback --------------------------------------------------------------------------------- */

struct rollback_options {
    struct common_options common;
    bool prunes_newer;
};

static const struct option_row rollback_rows[] = {
    { "prune-newer", 0, NULL, "remove all newer snapshots",
      OPTION_FLAG(struct rollback_options, prunes_newer) },
    OPTION_HELP,
};

static const struct option_table rollback_table = { rollback_rows, ARRAY_SIZE(rollback_rows),
                                                    NULL };

static int rollback_run(int argc, char **argv)
{
    static const struct operands operands = { 2, 2, "an ID and a SNAPSHOT" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct rollback_options options = { .prunes_newer = false };
    struct holt_error error;
    int next, status;

    if (!command_parse(&command_rollback, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_rollback, &operands, argc - next) ||
        connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (holt_rollback(connection.holt, argv[next], argv[next + 1], options.prunes_newer,
                      HOLT_NO_DEADLINE, &error) < 0)
        return report_holt_error(&error);
    return STATUS_OK;
}

const struct command command_rollback = {
    .group = "Turns",
    .name = "rollback",
    .operands = "ID SNAPSHOT",
    .summary = "Restore the files of a snapshot (ends all processes)",
    .example = "holt rollback work turn-0003",
    .options = &rollback_table,
    .run = rollback_run,
};

/* --- fork ------------------------------------------------------------------------------------- */

struct fork_options {
    struct output_options output;
    struct holt_fork_options request; /* all but labels */
    struct words labels;
    struct network_options network;
    struct permission_options permissions;
};

static void fork_options_done(struct fork_options *options)
{
    words_done(&options->labels);
    permission_options_done(&options->permissions);
    network_options_done(&options->network);
}

static int set_label(void *into, const char *value, struct err *err)
{
    return words_add_label(&((struct fork_options *)into)->labels, value, err);
}

static int set_ttl(void *into, const char *value, struct err *err)
{
    struct holt_fork_options *request = &((struct fork_options *)into)->request;

    if (lifetime_parse(value, &request->ttl_ms, &request->expire_action) < 0)
        return err_set(err, ERR_INVALID, "--ttl '%.100s' is not a time like 1h or 1h:pause", value);
    request->sets_ttl = true;
    return 0;
}

static int set_net(void *into, const char *value, struct err *err)
{
    return network_set_mode(&((struct fork_options *)into)->network, value, err);
}

static int set_allow(void *into, const char *value, struct err *err)
{
    return network_add_allow(&((struct fork_options *)into)->network, value, err);
}

static int set_deny(void *into, const char *value, struct err *err)
{
    return network_add_deny(&((struct fork_options *)into)->network, value, err);
}

static int set_net_file(void *into, const char *value, struct err *err)
{
    return network_add_file(&((struct fork_options *)into)->network, value, err);
}

static int set_perm(void *into, const char *value, struct err *err)
{
    return permission_add(&((struct fork_options *)into)->permissions, value, err);
}

static int set_perm_file(void *into, const char *value, struct err *err)
{
    return permission_add_file(&((struct fork_options *)into)->permissions, value, err);
}

static const struct option_row fork_rows[] = {
    { "count", 'n', "NUMBER", "how many to create, all or none",
      OPTION_U32(struct fork_options, request.count, 1, "a number like 8") },
    { "from", 0, "SNAPSHOT", "with the files of a snapshot, not the current files",
      OPTION_TEXT(struct fork_options, request.from) },
    { "name", 0, "NAME", "the name of the fork; several are NAME-1, NAME-2, ...",
      OPTION_TEXT(struct fork_options, request.name) },
    { "label", 'l', "KEY=VALUE", "a label, besides those of the original; may be repeated",
      OPTION_CALL(set_label) },
    { "ttl", 0, "TIME[:ACTION]", "kill, pause, stop or deep-pause it at this age; 0: never",
      OPTION_CALL(set_ttl) },
    { "net", 0, "MODE", "another network than the original: none, open or allow",
      OPTION_CALL(set_net) },
    { "allow", 0, "RULE", "what it may reach, instead of the rules of the original",
      OPTION_CALL(set_allow) },
    { "deny", 0, "RULE", "what it may not reach; may be repeated", OPTION_CALL(set_deny) },
    { "net-file", 0, "FILE",
      "a file with lines 'mode MODE', 'allow RULE', 'deny RULE', 'proxy URL'",
      OPTION_CALL(set_net_file) },
    { "preset", 0, "NAME", "other permissions than the original: agent-safe, read-only, ...",
      OPTION_TEXT(struct fork_options, permissions.preset) },
    { "perm", 0, "RULE", "a rule instead of those of the original; may be repeated",
      OPTION_CALL(set_perm) },
    { "perm-file", 0, "FILE", "a file with one rule a line", OPTION_CALL(set_perm_file) },
    { "view", 0, "ENGINE", "what enforces the permissions: fuse or kernel",
      OPTION_TEXT(struct fork_options, permissions.view) },
    OPTION_OUTPUT,
    OPTION_JSON,
    { "quiet", 'q', NULL, "print only ids (the default)", OPTION_CALL(option_set_quiet) },
    OPTION_HELP,
};

static const struct option_table fork_table = { fork_rows, ARRAY_SIZE(fork_rows), NULL };

static int fork_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 1, "an ID" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_with(fork_options_done) struct fork_options options = { .request = HOLT_INIT(
                                                                        holt_fork_options) };
    cleanup_result struct holt_sandbox_list *list = NULL;
    struct holt_permission_rules permissions;
    struct holt_network_rules rules;
    struct holt_error error;
    int next, status;

    if (!command_parse(&command_fork, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_fork, &operands, argc - next) ||
        connection_open(&connection) < 0)
        return STATUS_HOLT;
    options.request.labels = (const char *const *)options.labels.items;
    options.request.network = network_rules(&options.network, &rules);
    options.request.proxy = options.network.proxy;
    options.request.permissions = permission_rules(&options.permissions, &permissions);
    if (holt_sandbox_fork(connection.holt, argv[next], &options.request, HOLT_NO_DEADLINE, &list,
                          &error) < 0)
        return report_holt_error(&error);
    if (options.output.wants_json)
        return output_json(list, "sandboxes");
    for (size_t i = 0; i < list->count; i++)
        (void)printf("%s\n", list->items[i]->id);
    return command_printed();
}

const struct command command_fork = {
    .group = "Turns",
    .name = "fork",
    .operands = "ID",
    .summary = "Create new sandboxes with the files of one",
    .example = "holt fork work --from turn-0003 --count 8",
    .options = &fork_table,
    .run = fork_run,
};
