// SPDX-License-Identifier: Apache-2.0
/* The commands for secrets. A value is read from standard input or a file: the arguments of a
 * command are visible to every process of the machine. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/each.h"
#include "cli/core/output.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/options/secret_value.h"
#include "holt.h"

enum { HOSTS_MAX = 16, HOST_KEYS_MAX = 8 };

struct secret_options {
    struct output_options output;
    const char *hosts[HOSTS_MAX + 1];
    size_t host_count;
    const char *host_keys[HOST_KEYS_MAX + 1];
    size_t host_key_count;
    const char *header, *query, *json, *env, *file;
    bool is_basic;
};

static int set_host(void *into, const char *value, struct err *err)
{
    struct secret_options *options = into;

    if (options->host_count == HOSTS_MAX)
        return err_set(err, ERR_INVALID, "a secret has at most %d hosts", HOSTS_MAX);
    options->hosts[options->host_count++] = value;
    return 0;
}

static int set_host_key(void *into, const char *value, struct err *err)
{
    struct secret_options *options = into;

    if (options->host_key_count == HOST_KEYS_MAX)
        return err_set(err, ERR_INVALID, "a key has at most %d host keys", HOST_KEYS_MAX);
    options->host_keys[options->host_key_count++] = value;
    return 0;
}

#define OPTION_VALUE_FILE                                                                          \
    {                                                                                              \
        "file", 'f', "FILE", "read the value from a file instead of standard input",               \
            OPTION_TEXT(struct secret_options, file)                                               \
    }

static const struct option_row rotate_rows[] = {
    OPTION_VALUE_FILE, OPTION_OUTPUT, OPTION_JSON, OPTION_QUIET_NAMES, OPTION_HELP,
};

static const struct option_table rotate_table = { rotate_rows, ARRAY_SIZE(rotate_rows), NULL };

/* --json is a place here, so JSON is printed by --output alone. */
static const struct option_row set_rows[] = {
    { "host", 0, "HOST[:PORT]",
      "where it may be sent, by https; may be repeated; HOST may be *.NAME",
      OPTION_CALL(set_host) },
    { "header", 0, "HEADER", "its place, by default 'Authorization: Bearer {}'",
      OPTION_TEXT(struct secret_options, header) },
    { "query", 0, "PARAM", "its place is this parameter of the query",
      OPTION_TEXT(struct secret_options, query) },
    { "json", 0, "POINTER", "its place is this text of a JSON body, such as /auth/key",
      OPTION_TEXT(struct secret_options, json) },
    { "basic", 0, NULL, "its place is the password of basic authentication, as git sends it",
      OPTION_FLAG(struct secret_options, is_basic) },
    { "host-key", 0, "KEY",
      "it is a key of SSH for the server with this public key; may be repeated",
      OPTION_CALL(set_host_key) },
    { "env", 0, "VAR", "the variable in the sandbox; by default the name in capitals",
      OPTION_TEXT(struct secret_options, env) },
    OPTION_VALUE_FILE,
    OPTION_OUTPUT,
    OPTION_QUIET_NAMES,
    OPTION_HELP,
};

static const struct option_table set_table = { set_rows, ARRAY_SIZE(set_rows), NULL };

static int secret_print(const struct output_options *options, const struct holt_secret *secret,
                        const char *done)
{
    if (options->wants_json || options->is_quiet)
        return output_id(options, secret, "secret", secret->name);
    (void)printf("%s secret %s, for %s\n", done, secret->name,
                 secret->host_count > 0 ? secret->hosts[0] : secret->host_keys[0]);
    return command_printed();
}

static int secret_set_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 1, "a NAME" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_with(secret_value_free_slot) char *value = NULL;
    struct holt_secret_options request = HOLT_INIT(holt_secret_options);
    struct secret_options options = { .file = NULL };
    cleanup_result struct holt_secret *secret = NULL;
    struct holt_error error;
    int next, status;

    if (!command_parse(&command_secret_set, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_secret_set, &operands, argc - next))
        return STATUS_HOLT;
    if (options.host_count == 0 && options.host_key_count == 0)
        return command_misused(&command_secret_set,
                               "needs --host HOST[:PORT], or --host-key KEY for a key of SSH");
    value = secret_value_read(options.file, NULL);
    if (!value || connection_open(&connection) < 0)
        return STATUS_HOLT;
    request.value = value;
    request.hosts = options.hosts;
    request.host_keys = options.host_keys;
    request.header = options.header;
    request.query = options.query;
    request.json = options.json;
    request.is_basic = options.is_basic;
    request.env = options.env;
    if (holt_secret_set(connection.holt, argv[next], &request, HOLT_NO_DEADLINE, &secret, &error) <
        0)
        return report_holt_error(&error);
    return secret_print(&options.output, secret, "set");
}

static int secret_rotate_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 1, "a SECRET" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_with(secret_value_free_slot) char *value = NULL;
    struct secret_options options = { .file = NULL };
    cleanup_result struct holt_secret *secret = NULL;
    struct holt_error error;
    int next, status;

    if (!command_parse(&command_secret_rotate, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_secret_rotate, &operands, argc - next))
        return STATUS_HOLT;
    value = secret_value_read(options.file, NULL);
    if (!value || connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (holt_secret_rotate(connection.holt, argv[next], value, HOLT_NO_DEADLINE, &secret, &error) <
        0)
        return report_holt_error(&error);
    return secret_print(&options.output, secret, "rotated");
}

static const char *row_id(const void *result, size_t row)
{
    return ((const struct holt_secret_list *)result)->items[row]->name;
}

static const char *row_owner(const void *result, size_t row)
{
    return ((const struct holt_secret_list *)result)->items[row]->owner;
}

static void row_add(struct table *cells, const void *options, const void *result, size_t row)
{
    const struct holt_secret *secret = ((const struct holt_secret_list *)result)->items[row];

    (void)options;
    table_add(cells, "%s", secret->name);
    table_add(cells, "%s", *secret->env ? secret->env : "-");
    if (strcmp(secret->place, "header") == 0)
        table_add(cells, "%s: %s", secret->field, secret->template_text);
    else
        table_add(cells, "%s %s", secret->place, secret->field);
    if (secret->host_count > 1)
        table_add(cells, "%s and %zu more", secret->hosts[0], secret->host_count - 1);
    else if (secret->host_key_count > 1)
        table_add(cells, "%zu servers", secret->host_key_count);
    else
        table_add(cells, "%s", secret->host_count ? secret->hosts[0] : secret->host_keys[0]);
}

static int secret_ls_run(int argc, char **argv)
{
    static const char *const titles[] = { "NAME", "VARIABLE", "PLACE", "HOSTS" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct output_options options = { .wants_json = false };
    cleanup_result struct holt_secret_list *list = NULL;
    struct holt_error error;
    int status;

    if (!connection_open_for(&command_secret_ls, &options, argc, argv, &connection, &status))
        return status;
    if (holt_secret_list(connection.holt, HOLT_NO_DEADLINE, &list, &error) < 0)
        return report_holt_error(&error);
    return listing_print(&(struct listing){ .result = list,
                                            .field = "secrets",
                                            .count = list->count,
                                            .titles = titles,
                                            .columns = ARRAY_SIZE(titles),
                                            .flexible = 0x8,
                                            .spare = 0x4,
                                            .id = row_id,
                                            .add = row_add,
                                            .owner = row_owner },
                         &options);
}

static int secret_remove(struct holt *holt, const char *sandbox, const char *secret,
                         struct holt_error *error)
{
    (void)sandbox;
    return holt_secret_remove(holt, secret, HOLT_NO_DEADLINE, error);
}

static int secret_rm_run(int argc, char **argv)
{
    return each_run(&(struct each){ &command_secret_rm, "a SECRET", false, secret_remove }, argc,
                    argv);
}

const struct command command_secret_ls = {
    .group = "Secrets",
    .name = "secret ls",
    .operands = "",
    .summary = "List secrets, without their values",
    .options = &option_table_output_names,
    .run = secret_ls_run,
};

const struct command command_secret_rm = {
    .group = "Secrets",
    .name = "secret rm",
    .operands = "SECRET...",
    .summary = "Remove secrets",
    .options = &each_force_table,
    .run = secret_rm_run,
};

const struct command command_secret_rotate = {
    .group = "Secrets",
    .name = "secret rotate",
    .operands = "SECRET",
    .summary = "Replace the value of a secret; hosts and place stay",
    .example = "holt secret rotate github <new-token",
    .options = &rotate_table,
    .run = secret_rotate_run,
};

const struct command command_secret_set = {
    .group = "Secrets",
    .name = "secret set",
    .operands = "NAME",
    .summary = "Keep a value sealed on the host, bound to hosts; it is read from standard input",
    .example = "holt secret set github --host api.github.com <token",
    .options = &set_table,
    .run = secret_set_run,
};
