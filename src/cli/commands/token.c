// SPDX-License-Identifier: Apache-2.0
/* The commands for tokens, which authenticate clients over TCP. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/text/parse.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/each.h"
#include "cli/core/output.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/options/words.h"
#include "holt.h"

enum { SCOPE_BYTES_MAX = 4096 };

struct create_options {
    struct output_options output;
    const char *note;
    const char *ports_of;
    const char *owner, *role;
    struct words scope;
    uint64_t ttl_ms;
    bool is_read_only;
    bool is_e2b;
};

static void create_options_done(struct create_options *options)
{
    words_done(&options->scope);
}

/* A text that is not KEY=VALUE is a note, as it was before tokens had a scope. */
static int set_label(void *into, const char *value, struct err *err)
{
    struct create_options *options = into;

    if (strchr(value, '='))
        return words_add_label(&options->scope, value, err);
    options->note = value;
    return 0;
}

static int set_e2b(void *into, const char *value, struct err *err)
{
    struct create_options *options = into;

    (void)value;
    if (!HOLT_E2B)
        return err_set(err, ERR_INVALID, "this build of holt has no E2B; build it with E2B=1");
    options->is_e2b = true;
    return 0;
}

static const struct option_row create_rows[] = {
    { "owner", 0, "NAME", "the owner that it acts for; your own by default",
      OPTION_TEXT(struct create_options, owner) },
    { "role", 0, "ROLE", "admin, user or read-only", OPTION_TEXT(struct create_options, role) },
    { "read-only", 0, NULL, "the same as --role read-only",
      OPTION_FLAG(struct create_options, is_read_only) },
    { "label", 'l', "KEY=VALUE", "only objects with this label exist for it; may be repeated",
      OPTION_CALL(set_label) },
    { "note", 0, "TEXT", "a note for people", OPTION_TEXT(struct create_options, note) },
    { "ttl", 0, "TIME", "how long it is valid: 12h, 30d; unlimited by default",
      OPTION_DURATION(struct create_options, ttl_ms, 1, "a time like 12h or 30d") },
    { "ports-of", 0, "ID", "open only the ports of this sandbox by host name",
      OPTION_TEXT(struct create_options, ports_of) },
    { "e2b", 0, NULL, "print it in the format of an E2B API key", OPTION_CALL(set_e2b) },
    OPTION_OUTPUT,
    OPTION_JSON,
    { "quiet", 'q', NULL, "print only the secret (the default)", OPTION_CALL(option_set_quiet) },
    OPTION_HELP,
};

static const struct option_table create_table = { create_rows, ARRAY_SIZE(create_rows), NULL };

/* Only the secret goes to stdout, for scripts. */
static int print_created(const struct holt_token *token, const struct create_options *options)
{
    const char *digits = strchr(token->secret, '_');

    if (options->output.wants_json)
        return output_json(token, NULL);
    if (options->is_e2b && digits)
        (void)printf("e2b%s\n", digits);
    else
        (void)printf("%s\n", token->secret);
    if (options->ports_of && isatty(STDERR_FILENO))
        (void)fprintf(stderr,
                      "Browsers open http://PORT-ID.NAME/?holt-token=%s (ID without '-', "
                      "NAME of the daemon); programs send it in the header Holt-Token.\n",
                      token->secret);
    if (token->expires_ms > 0 &&
        (options->ttl_ms == 0 ||
         (uint64_t)(token->expires_ms - token->created_ms) < options->ttl_ms))
        (void)fprintf(stderr, "The token expires with the one that created it.\n");
    if (isatty(STDERR_FILENO))
        (void)fprintf(stderr, "The secret of token %s is not shown again.\n", token->id);
    return command_printed();
}

static int token_create_run(int argc, char **argv)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct holt_token_options request = HOLT_INIT(holt_token_options);
    cleanup_with(create_options_done) struct create_options options = { .note = NULL };
    cleanup_result struct holt_token *token = NULL;
    struct holt_error error;
    int status;

    if (!connection_open_for(&command_token_create, &options, argc, argv, &connection, &status))
        return status;
    request.label = options.note;
    request.owner = options.owner;
    request.role = options.role;
    request.scope = (const char *const *)options.scope.items;
    request.is_read_only = options.is_read_only;
    request.ttl_ms = options.ttl_ms;
    request.ports_of = options.ports_of;
    if (holt_token_create(connection.holt, &request, HOLT_NO_DEADLINE, &token, &error) < 0)
        return report_holt_error(&error);
    return print_created(token, &options);
}

static const char *row_id(const void *result, size_t row)
{
    return ((const struct holt_token_list *)result)->items[row]->id;
}

/* Appends "key=value,key=value", or "-". */
static void scope_add(struct table *cells, const struct holt_token *token)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(SCOPE_BYTES_MAX);

    for (size_t i = 0; i < token->scope_count; i++)
        (void)buf_printf(&text, "%s%s=%s", i ? "," : "", token->scope[i].key,
                         token->scope[i].value);
    table_add(cells, "%s", text.len > 0 ? text.data : "-");
}

static void row_add(struct table *cells, const void *options, const void *result, size_t row)
{
    const struct holt_token *token = ((const struct holt_token_list *)result)->items[row];
    char age[CELL_SIZE], used[CELL_SIZE], expires[TIME_TEXT_SIZE] = "never";

    (void)options;
    format_age(age, token->created_ms);
    format_age(used, token->last_used_ms);
    if (token->expires_ms > 0)
        format_time_ms((uint64_t)token->expires_ms, expires);
    table_add(cells, "%s", token->id);
    table_add(cells, "%s", token->owner);
    table_add(cells, "%s", token->role);
    scope_add(cells, token);
    table_add(cells, "%s", age);
    table_add(cells, "%s", expires);
    table_add(cells, "%s", used);
    table_add(cells, "%s", *token->label ? token->label : "-");
}

static int tokens_print(const struct output_options *options, const struct holt_token_list *list)
{
    static const char *const titles[] = { "ID",      "OWNER",   "ROLE", "SCOPE",
                                          "CREATED", "EXPIRES", "USED", "NOTE" };
    const struct listing listing = {
        .result = list,
        .field = "tokens",
        .count = list->count,
        .titles = titles,
        .columns = ARRAY_SIZE(titles),
        .flexible = 0x88,
        .spare = 0x22,
        .id = row_id,
        .add = row_add,
    };

    return listing_print(&listing, options);
}

static int token_ls_run(int argc, char **argv)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct output_options options = { .wants_json = false };
    cleanup_result struct holt_token_list *list = NULL;
    struct holt_error error;
    int status;

    if (!connection_open_for(&command_token_ls, &options, argc, argv, &connection, &status))
        return status;
    if (holt_token_list(connection.holt, HOLT_NO_DEADLINE, &list, &error) < 0)
        return report_holt_error(&error);
    return tokens_print(&options, list);
}

static int token_remove(struct holt *holt, const char *sandbox, const char *token,
                        struct holt_error *error)
{
    (void)sandbox;
    return holt_token_remove(holt, token, HOLT_NO_DEADLINE, error);
}

static int token_rm_run(int argc, char **argv)
{
    return each_run(&(struct each){ &command_token_rm, "a TOKEN", false, token_remove }, argc,
                    argv);
}

const struct command command_token_create = {
    .group = "Host",
    .name = "token create",
    .operands = "",
    .summary = "Create a token for clients over TCP",
    .options = &create_table,
    .run = token_create_run,
};

const struct command command_token_ls = {
    .group = "Host",
    .name = "token ls",
    .operands = "",
    .summary = "List tokens",
    .options = &option_table_output,
    .run = token_ls_run,
};

const struct command command_token_rm = {
    .group = "Host",
    .name = "token rm",
    .operands = "TOKEN...",
    .summary = "Remove tokens",
    .options = &each_force_table,
    .run = token_rm_run,
};
