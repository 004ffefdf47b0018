// SPDX-License-Identifier: Apache-2.0
/* The commands for permissions by path. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/output.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/core/table.h"
#include "cli/options/permission_options.h"
#include "holt.h"

/* --- the rules -------------------------------------------------------------------------------- */

/* Prints the rules as lines that --perm-file reads, the rest as comments. */
static int rules_print(const struct holt_permissions *permissions)
{
    if (!permissions->is_enforced) {
        (void)printf("# no rules: all of %s can be written\n", permissions->path);
        return command_printed();
    }
    (void)printf(
        "# %s, generation %" PRIu64 ", by the engine %s%s%s; refused so far: %" PRIu64 "\n",
        permissions->path, permissions->generation, permissions->engine,
        *permissions->preset ? "; preset " : "", permissions->preset, permissions->denials);
    for (size_t i = 0; i < permissions->rule_count; i++) {
        print_word(permissions->rules[i]);
        (void)printf("\n");
    }
    return command_printed();
}

struct ls_options {
    struct output_options output;
    bool wants_tree;
    uint32_t depth;
};

static const struct option_row ls_rows[] = {
    { "tree", 0, NULL, "list the files of the codebase with their levels",
      OPTION_FLAG(struct ls_options, wants_tree) },
    { "depth", 0, "NUMBER", "with --tree: so many levels of directories",
      OPTION_U32(struct ls_options, depth, 1, "a number like 2") },
    OPTION_OUTPUT,
    OPTION_JSON,
    OPTION_HELP,
};

static const struct option_table ls_table = { ls_rows, ARRAY_SIZE(ls_rows), NULL };

/* An entry is a line: its level, then its name, as deep as it is. */
static int tree_print(const struct holt_permission_tree *tree)
{
    for (size_t i = 0; i < tree->count; i++) {
        const struct holt_permission_entry *entry = tree->items[i];
        const char *name = strrchr(entry->path, '/');
        int depth = -1;

        for (const char *at = entry->path; *at; at++)
            depth += *at == '/';
        (void)printf("%-6s%*s", entry->level, 2 * depth, "");
        print_word(name ? name + 1 : entry->path);
        (void)printf("%s\n", entry->is_directory ? "/" : "");
    }
    if (tree->is_truncated)
        (void)fprintf(stderr, "holt: there are more files; name a directory or use --depth\n");
    return command_printed();
}

static int perm_ls_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 2, "an ID, and a PATH with --tree" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_result struct holt_permissions *permissions = NULL;
    cleanup_result struct holt_permission_tree *tree = NULL;
    struct holt_permission_part part;
    struct ls_options options = { .wants_tree = false };
    struct holt_error error;
    int next, status;

    if (!command_parse(&command_perm_ls, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_perm_ls, &operands, argc - next))
        return STATUS_HOLT;
    if (!options.wants_tree && argc - next > 1)
        return command_misused(&command_perm_ls, "takes a PATH only with --tree");
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (!options.wants_tree) {
        if (holt_permission_list(connection.holt, argv[next], HOLT_NO_DEADLINE, &permissions,
                                 &error) < 0)
            return report_holt_error(&error);
        return options.output.wants_json ? output_json(permissions, "permissions")
                                         : rules_print(permissions);
    }
    part = (struct holt_permission_part){ .path = argv[next + 1], .depth = options.depth };
    if (holt_permission_tree(connection.holt, argv[next], &part, HOLT_NO_DEADLINE, &tree, &error) <
        0)
        return report_holt_error(&error);
    return options.output.wants_json ? output_json(tree, "entries") : tree_print(tree);
}

/* --- changes ---------------------------------------------------------------------------------- */

struct change_options {
    struct output_options output;
    struct permission_options permissions;
    bool is_revoking;
};

static void change_options_done(struct change_options *options)
{
    permission_options_done(&options->permissions);
}

static int set_perm_file(void *into, const char *value, struct err *err)
{
    return permission_add_file(&((struct change_options *)into)->permissions, value, err);
}

#define OPTION_REVOKE                                                                              \
    {                                                                                              \
        "revoke", 0, NULL, "kill the processes that hold files which they may not open any more",  \
            OPTION_FLAG(struct change_options, is_revoking)                                        \
    }

static const struct option_row set_rows[] = {
    { "preset", 0, "NAME",
      "rules that come first: view-only, read-only, full-access, agent-safe "
      "or development",
      OPTION_TEXT(struct change_options, permissions.preset) },
    { "perm-file", 0, "FILE", "a file with one rule a line", OPTION_CALL(set_perm_file) },
    OPTION_REVOKE,
    OPTION_OUTPUT,
    OPTION_JSON,
    OPTION_HELP,
};

static const struct option_table set_table = { set_rows, ARRAY_SIZE(set_rows), NULL };

static const struct option_row change_rows[] = { OPTION_REVOKE, OPTION_OUTPUT, OPTION_JSON,
                                                 OPTION_HELP };

static const struct option_table change_table = { change_rows, ARRAY_SIZE(change_rows), NULL };

static int change_print(const struct change_options *options,
                        const struct holt_permissions *permissions)
{
    int status =
        options->output.wants_json ? output_json(permissions, "change") : rules_print(permissions);

    if (permissions->ended_processes > 0)
        (void)fprintf(stderr, "holt: killed %" PRIu32 " processes\n", permissions->ended_processes);
    if (permissions->open_files > permissions->ended_processes)
        (void)fprintf(stderr, "holt: %" PRIu32 " open files have more than the rules grant now%s\n",
                      permissions->open_files,
                      options->is_revoking ? "" : "; --revoke ends who holds them");
    return status;
}

typedef int permission_call(struct holt *holt, const char *sandbox,
                            const struct holt_permission_change *change, int64_t deadline,
                            struct holt_permissions **ret, struct holt_error *error);

/* Runs a command whose operands are an ID and rules, at least as many as `least`. */
static int change_run(const struct command *command, int least, permission_call *call, int argc,
                      char **argv)
{
    const struct operands operands = { 1 + least, INT32_MAX,
                                       least > 0 ? "an ID and RULEs" : "an ID" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_with(change_options_done) struct change_options options = { .is_revoking = false };
    cleanup_result struct holt_permissions *permissions = NULL;
    struct holt_permission_change change;
    struct holt_error error;
    int next, status;

    if (!command_parse(command, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(command, &operands, argc - next))
        return STATUS_HOLT;
    for (int i = next + 1; i < argc; i++)
        words_add(&options.permissions.rules, argv[i]);
    if (least == 0 && !options.permissions.preset && options.permissions.rules.count == 0)
        return command_misused(command, "needs rules; without any, all paths would be hidden");
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    change = (struct holt_permission_change){
        .preset = options.permissions.preset,
        .rules = (const char *const *)options.permissions.rules.items,
        .is_revoking = options.is_revoking,
    };
    if (call(connection.holt, argv[next], &change, HOLT_NO_DEADLINE, &permissions, &error) < 0)
        return report_holt_error(&error);
    return change_print(&options, permissions);
}

static int perm_set_run(int argc, char **argv)
{
    return change_run(&command_perm_set, 0, holt_permission_set, argc, argv);
}

static int perm_add_run(int argc, char **argv)
{
    return change_run(&command_perm_add, 1, holt_permission_add, argc, argv);
}

static int perm_rm_run(int argc, char **argv)
{
    return change_run(&command_perm_rm, 1, holt_permission_remove, argc, argv);
}

/* --- questions -------------------------------------------------------------------------------- */

static const struct option_row plain_rows[] = { OPTION_OUTPUT, OPTION_JSON, OPTION_HELP };

static const struct option_table plain_table = { plain_rows, ARRAY_SIZE(plain_rows), NULL };

static void rule_print(const char *rule, uint32_t number)
{
    if (!*rule)
        (void)printf("no rule matches");
    else {
        (void)printf("rule '");
        print_word(rule);
        (void)printf("'");
    }
    if (number > 0)
        (void)printf(", number %" PRIu32 " of the list", number);
}

static int perm_why_run(int argc, char **argv)
{
    static const struct operands operands = { 2, 2, "an ID and a PATH" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct output_options options = { .wants_json = false };
    cleanup_result struct holt_permission_why *why = NULL;
    struct holt_error error;
    int next, status;

    if (!command_parse(&command_perm_why, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_perm_why, &operands, argc - next) ||
        connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (holt_permission_why(connection.holt, argv[next], argv[next + 1], HOLT_NO_DEADLINE, &why,
                            &error) < 0)
        return report_holt_error(&error);
    if (options.wants_json)
        return output_json(why, NULL);
    (void)printf("%s: ", why->level);
    rule_print(why->rule, why->number);
    (void)printf("\n");
    if (why->is_traversable)
        (void)printf("as a directory it is there: something below it may be seen\n");
    if (*why->would_take) {
        (void)printf("to write it: holt perm add %s '", argv[next]);
        print_word(why->would_take);
        (void)printf("'\n");
    }
    return command_printed();
}

static int perm_test_run(int argc, char **argv)
{
    static const struct operands operands = { 3, 4, "an ID, a PATH and an OPERATION" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct output_options options = { .wants_json = false };
    cleanup_result struct holt_permission_test *test = NULL;
    struct holt_permission_operation operation;
    struct holt_error error;
    int next, status;

    if (!command_parse(&command_perm_test, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_perm_test, &operands, argc - next) ||
        connection_open(&connection) < 0)
        return STATUS_HOLT;
    operation = (struct holt_permission_operation){ .name = argv[next + 2],
                                                    .path = argv[next + 1],
                                                    .to = argv[next + 3] };
    if (holt_permission_test(connection.holt, argv[next], &operation, HOLT_NO_DEADLINE, &test,
                             &error) < 0)
        return report_holt_error(&error);
    if (options.wants_json) {
        status = output_json(test, NULL);
        return status == STATUS_OK && !test->is_allowed ? 1 : status;
    }
    (void)printf("%s%s: %s is %s, ", test->is_allowed ? "allowed" : "refused with ", test->error,
                 test->path, test->level);
    rule_print(test->rule, 0);
    (void)printf("\n");
    status = command_printed();
    return status == STATUS_OK && !test->is_allowed ? 1 : status;
}

const struct command command_perm_ls = {
    .group = "Permissions",
    .name = "perm ls",
    .operands = "ID [PATH]",
    .summary = "Show the rules of a sandbox for the paths of its codebase",
    .example = "holt perm ls work --tree --depth 2",
    .options = &ls_table,
    .run = perm_ls_run,
};

const struct command command_perm_set = {
    .group = "Permissions",
    .name = "perm set",
    .operands = "ID [RULE...]",
    .summary = "Replace the rules of a sandbox",
    .example = "holt perm set work --preset agent-safe '/src/**=write'",
    .options = &set_table,
    .run = perm_set_run,
};

const struct command command_perm_add = {
    .group = "Permissions",
    .name = "perm add",
    .operands = "ID RULE...",
    .summary = "Add rules behind those of a sandbox",
    .example = "holt perm add work '/vendor/**=read@10'",
    .options = &change_table,
    .run = perm_add_run,
};

const struct command command_perm_rm = {
    .group = "Permissions",
    .name = "perm rm",
    .operands = "ID RULE...",
    .summary = "Remove rules of a sandbox",
    .options = &change_table,
    .run = perm_rm_run,
};

const struct command command_perm_why = {
    .group = "Permissions",
    .name = "perm why",
    .operands = "ID PATH",
    .summary = "Show the level of a path, and the rule that decides",
    .options = &plain_table,
    .run = perm_why_run,
};

const struct command command_perm_test = {
    .group = "Permissions",
    .name = "perm test",
    .operands = "ID PATH OPERATION [PATH]",
    .summary = "Show whether an operation on a path would be allowed",
    .example = "holt perm test work README.md write",
    .options = &plain_table,
    .run = perm_test_run,
};
