// SPDX-License-Identifier: Apache-2.0
/* The commands about tokens, which clients on TCP show. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/core/table.h"
#include "holt.h"

struct create_options {
    struct output_options output;
    json_t *request;
    bool is_e2b;
};

static void options_done(struct create_options *options)
{
    json_decref(options->request);
}

static int set_read_only(void *into, const char *value, struct err *err)
{
    struct create_options *options = into;

    (void)value, (void)err;
    return json_object_set_new(options->request, "readOnly", json_true());
}

static int set_e2b(void *into, const char *value, struct err *err)
{
    struct create_options *options = into;

    (void)value, (void)err;
    options->is_e2b = true;
    return 0;
}

static int set_label(void *into, const char *value, struct err *err)
{
    struct create_options *options = into;

    if (json_object_set_new(options->request, "label", json_string(value)) < 0)
        return err_set(err, ERR_INVALID, "--label is not UTF-8");
    return 0;
}

static int set_ttl(void *into, const char *value, struct err *err)
{
    struct create_options *options = into;
    uint64_t ms;

    if (parse_duration_ms(value, &ms) < 0 || ms == 0)
        return err_set(err, ERR_INVALID, "--ttl '%.100s' is not a time like 12h or 30d", value);
    return json_object_set_new(options->request, "ttlMs", json_u64(ms));
}

static const struct option_row create_rows[] = {
    { "read-only", 0, NULL, "let it look at everything and change nothing", set_read_only },
    { "label", 0, "TEXT", "what it is for", set_label },
    { "ttl", 0, "TIME", "how long it is good for: 12h, 30d; for ever by default", set_ttl },
    { "e2b", 0, NULL, "print it in the form of an E2B API key", set_e2b },
    OPTION_OUTPUT,
    OPTION_HELP,
};

static const struct option_table create_table = { create_rows, ARRAY_SIZE(create_rows), NULL };

/* The secret alone is on stdout, for a shell to keep; a person is told that it is the only time. */
static int print_created(const json_t *reply, const struct create_options *options)
{
    const char *secret = call_text(reply, "secret"), *digits = strchr(secret, '_');

    if (options->output.wants_json)
        return print_json(reply);
    if (options->is_e2b && digits)
        (void)printf("e2b%s\n", digits);
    else
        (void)printf("%s\n", secret);
    if (isatty(STDERR_FILENO))
        (void)fprintf(stderr, "This is the only time that token %s is shown.\n",
                      call_text(json_object_get(reply, "token"), "id"));
    return command_printed();
}

static int token_create_run(int argc, char **argv)
{
    cleanup_with(options_done) struct create_options options = { .request = json_object() };
    cleanup_json json_t *reply = NULL;
    int next, status;

    if (!command_parse(&command_token_create, &options, argc, argv, &next, &status))
        return status;
    if (next != argc)
        return command_misused(&command_token_create, "takes no arguments");
    status = call_once("holt.v1.TokenService/Create", json_incref(options.request), &reply);
    return status == STATUS_OK ? print_created(reply, &options) : status;
}

static void row_add(struct table *cells, const json_t *token)
{
    const char *label = call_text(token, "label"), *expires = call_text(token, "expiresAt");
    bool is_read_only = json_is_true(json_object_get(token, "readOnly"));
    char age[CELL_SIZE], used[CELL_SIZE];

    format_age(age, call_text(token, "createdAt"));
    format_age(used, call_text(token, "lastUsedAt"));
    table_add(cells, "%s", call_text(token, "id"));
    table_add(cells, "%s", is_read_only ? "read" : "all");
    table_add(cells, "%s", age);
    table_add(cells, "%s", *expires ? expires : "never");
    table_add(cells, "%s", used);
    table_add(cells, "%s", *label ? label : "-");
}

static int print_table(const json_t *tokens)
{
    static const char *const titles[] = { "ID", "MAY", "CREATED", "EXPIRES", "USED", "LABEL" };
    cleanup_with(table_done) struct table cells = { titles, ARRAY_SIZE(titles), 0, NULL, 0 };

    for (size_t i = 0; i < json_array_size(tokens); i++)
        row_add(&cells, json_array_get(tokens, i));
    table_print(&cells);
    return command_printed();
}

static const struct option_row list_rows[] = { OPTION_OUTPUT, OPTION_JSON, OPTION_QUIET,
                                               OPTION_HELP };

static const struct option_table list_table = { list_rows, ARRAY_SIZE(list_rows), NULL };

static int token_ls_run(int argc, char **argv)
{
    struct output_options options = { .wants_json = false };
    cleanup_json json_t *reply = NULL;
    const json_t *tokens = NULL;
    int next, status;

    if (!command_parse(&command_token_ls, &options, argc, argv, &next, &status))
        return status;
    if (next != argc)
        return command_misused(&command_token_ls, "takes no arguments");
    status = call_once("holt.v1.TokenService/List", json_object(), &reply);
    if (status != STATUS_OK)
        return status;
    if (!call_list(reply, "tokens", &tokens))
        return STATUS_HOLT;
    if (options.is_quiet)
        return print_texts(tokens, "id");
    return options.wants_json ? print_json(tokens) : print_table(tokens);
}

/* Goes on after a failure, as rm(1) does. */
static int token_rm_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 0, "a TOKEN" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct holt_error error;
    int next, status;

    if (!command_parse_plain(&command_token_rm, &operands, argc, argv, &next, &status))
        return status;
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    status = STATUS_OK;
    for (; next < argc; next++)
        if (call_try(connection.holt, "holt.v1.TokenService/Remove",
                     json_pack("{s:s}", "id", argv[next]), NULL, &error) < 0)
            status = report_holt_error(&error);
    return status;
}

const struct command command_token_create = {
    .group = "Host",
    .name = "token create",
    .operands = "",
    .summary = "Make a token for clients on TCP",
    .options = &create_table,
    .run = token_create_run,
};

const struct command command_token_ls = {
    .group = "Host",
    .name = "token ls",
    .operands = "",
    .summary = "List the tokens",
    .options = &list_table,
    .run = token_ls_run,
};

const struct command command_token_rm = {
    .group = "Host",
    .name = "token rm",
    .operands = "TOKEN...",
    .summary = "Remove tokens",
    .options = &option_table_help,
    .run = token_rm_run,
};
