// SPDX-License-Identifier: Apache-2.0
#include "cli/core/each.h"

#include <string.h>

#include "base/cleanup.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/report.h"
#include "holt.h"

struct each_options {
    struct common_options common;
    bool is_forced;
};

static const struct option_row force_rows[] = {
    { "force", 'f', NULL, "ignore operands that do not exist",
      OPTION_FLAG(struct each_options, is_forced) },
    OPTION_HELP,
};

const struct option_table each_force_table = { force_rows, ARRAY_SIZE(force_rows), NULL };

static int act_once(const struct each *each, struct holt *holt, const char *sandbox,
                    const char *operand, bool is_forced)
{
    struct holt_error error;

    if (each->act(holt, sandbox, operand, &error) == 0 ||
        (is_forced && strcmp(error.code, "not_found") == 0))
        return STATUS_OK;
    return report_holt_error(&error);
}

int each_run(const struct each *each, int argc, char **argv)
{
    const struct operands operands = { each->is_of_sandbox ? 2 : 1, 0, each->needs };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct each_options options = { .is_forced = false };
    const char *sandbox = NULL;
    int next, status;

    if (!command_parse(each->command, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(each->command, &operands, argc - next) ||
        connection_open(&connection) < 0)
        return STATUS_HOLT;
    status = STATUS_OK;
    if (each->is_of_sandbox)
        sandbox = argv[next++];
    for (; next < argc; next++)
        if (act_once(each, connection.holt, sandbox, argv[next], options.is_forced) != STATUS_OK)
            status = STATUS_HOLT;
    return status;
}
