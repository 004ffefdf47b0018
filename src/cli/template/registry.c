// SPDX-License-Identifier: Apache-2.0
/* The commands for logins to registries of images. */
#include <stdio.h>

#include "base/cleanup.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/each.h"
#include "cli/core/output.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/options/secret_value.h"
#include "holt.h"

struct login_options {
    struct output_options output;
    const char *username, *file;
};

static const struct option_row login_rows[] = {
    { "username", 'u', "NAME", "the user of the registry",
      OPTION_TEXT(struct login_options, username) },
    { "file", 'f', "FILE", "read the password from a file instead of standard input",
      OPTION_TEXT(struct login_options, file) },
    OPTION_OUTPUT,
    OPTION_JSON,
    OPTION_QUIET_NAMES,
    OPTION_HELP,
};

static const struct option_table login_table = { login_rows, ARRAY_SIZE(login_rows), NULL };

static int registry_login_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 1, "a REGISTRY" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_with(secret_value_free_slot) char *password = NULL;
    struct holt_registry_options request = HOLT_INIT(holt_registry_options);
    struct login_options options = { .file = NULL };
    cleanup_result struct holt_registry_login *login = NULL;
    struct holt_error error;
    int next, status;

    if (!command_parse(&command_registry_login, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_registry_login, &operands, argc - next))
        return STATUS_HOLT;
    if (!options.username)
        return command_misused(&command_registry_login, "needs --username NAME");
    password = secret_value_read(options.file, "Password");
    if (!password || connection_open(&connection) < 0)
        return STATUS_HOLT;
    request.registry = argv[next];
    request.username = options.username;
    request.password = password;
    if (holt_registry_login(connection.holt, &request, HOLT_NO_DEADLINE, &login, &error) < 0)
        return report_holt_error(&error);
    if (options.output.wants_json || options.output.is_quiet)
        return output_id(&options.output, login, "login", login->registry);
    (void)printf("logged in to %s as %s\n", login->registry, login->username);
    return command_printed();
}

const struct command command_registry_login = {
    .group = "Templates",
    .name = "registry login",
    .operands = "REGISTRY",
    .summary = "Keep a login to a registry on the host; the password is read from standard input",
    .example = "holt registry login registry.example -u ann <token",
    .options = &login_table,
    .run = registry_login_run,
};

static int registry_logout(struct holt *holt, const char *sandbox, const char *registry,
                           struct holt_error *error)
{
    (void)sandbox;
    return holt_registry_logout(holt, registry, HOLT_NO_DEADLINE, error);
}

static int registry_logout_run(int argc, char **argv)
{
    return each_run(
        &(struct each){ &command_registry_logout, "a REGISTRY", false, registry_logout }, argc,
        argv);
}

const struct command command_registry_logout = {
    .group = "Templates",
    .name = "registry logout",
    .operands = "REGISTRY...",
    .summary = "Forget logins to registries",
    .options = &each_force_table,
    .run = registry_logout_run,
};

static const char *row_id(const void *result, size_t row)
{
    return ((const struct holt_registry_login_list *)result)->items[row]->registry;
}

static const char *row_owner(const void *result, size_t row)
{
    return ((const struct holt_registry_login_list *)result)->items[row]->owner;
}

static void row_add(struct table *cells, const void *options, const void *result, size_t row)
{
    const struct holt_registry_login *login =
        ((const struct holt_registry_login_list *)result)->items[row];

    (void)options;
    table_add(cells, "%s", login->registry);
    table_add(cells, "%s", login->username);
}

static int registry_ls_run(int argc, char **argv)
{
    static const char *const titles[] = { "REGISTRY", "USER" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct output_options options = { .wants_json = false };
    cleanup_result struct holt_registry_login_list *list = NULL;
    struct holt_error error;
    int status;

    if (!connection_open_for(&command_registry_ls, &options, argc, argv, &connection, &status))
        return status;
    if (holt_registry_list(connection.holt, HOLT_NO_DEADLINE, &list, &error) < 0)
        return report_holt_error(&error);
    return listing_print(&(struct listing){ .result = list,
                                            .field = "logins",
                                            .count = list->count,
                                            .titles = titles,
                                            .columns = ARRAY_SIZE(titles),
                                            .flexible = 0x3,
                                            .id = row_id,
                                            .add = row_add,
                                            .owner = row_owner },
                         &options);
}

const struct command command_registry_ls = {
    .group = "Templates",
    .name = "registry ls",
    .operands = "",
    .summary = "List logins to registries, without their passwords",
    .options = &option_table_output_names,
    .run = registry_ls_run,
};
