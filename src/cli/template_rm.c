// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/connect.h"
#include "cli/report.h"
#include "holt.h"

static int remove_one(struct holt *holt, const char *name)
{
    cleanup_json json_t *message = json_pack("{s:s}", "name", name);
    cleanup_free char *request = message ? json_dumps(message, JSON_COMPACT) : NULL;
    cleanup_free char *reply = NULL;
    struct holt_error error;

    if (!request)
        return report("template rm: the name is not UTF-8");
    if (holt_call(holt, "holt.v1.TemplateService/Remove", request, &reply, &error) < 0)
        return report_holt_error(&error);
    return STATUS_OK;
}

/* Goes on after a failure, as rm(1) does. */
static int template_rm_run(int argc, char **argv)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct common_options options = { .wants_help = false };
    int next, status;

    if (!command_parse(&command_template_rm, &options, argc, argv, &next, &status))
        return status;
    if (next == argc)
        return command_misused(&command_template_rm, "needs a NAME");
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    status = STATUS_OK;
    for (; next < argc; next++) {
        int r = remove_one(connection.holt, argv[next]);

        if (r != STATUS_OK)
            status = r;
    }
    return status;
}

static const struct option_row rows[] = { OPTION_HELP };

static const struct option_table table = { rows, ARRAY_SIZE(rows), NULL };

const struct command command_template_rm = {
    .name = "template rm",
    .operands = "NAME...",
    .summary = "Remove templates",
    .options = &table,
    .run = template_rm_run,
};
