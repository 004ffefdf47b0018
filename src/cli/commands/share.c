// SPDX-License-Identifier: Apache-2.0
/* The commands that share templates and volumes with other owners. */
#include <stdio.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/output.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/options/words.h"
#include "holt.h"

enum { OWNERS_MAX = 256 };

struct share_options {
    struct output_options output;
    const char *owners[OWNERS_MAX + 1];
    size_t owner_count;
    bool is_public, is_private;
};

static int set_with(void *into, const char *value, struct err *err)
{
    struct share_options *options = into;

    if (options->owner_count == OWNERS_MAX)
        return err_set(err, ERR_INVALID, "--with can be given %d times", OWNERS_MAX);
    options->owners[options->owner_count++] = value;
    return 0;
}

static const struct option_row share_rows[] = {
    { "with", 0, "OWNER", "share with this owner; may be repeated", OPTION_CALL(set_with) },
    { "public", 0, NULL, "share with all owners of the host",
      OPTION_FLAG(struct share_options, is_public) },
    { "private", 0, NULL, "share with nobody any more",
      OPTION_FLAG(struct share_options, is_private) },
    OPTION_OUTPUT,
    OPTION_JSON,
    OPTION_QUIET,
    OPTION_HELP,
};

static const struct option_table share_table = { share_rows, ARRAY_SIZE(share_rows), NULL };

static bool share_parse(const struct command *command, struct share_options *options, int argc,
                        char **argv, int *ret_next, int *ret_status)
{
    static const struct operands operands = { 1, 1, "a NAME" };

    if (!command_parse(command, options, argc, argv, ret_next, ret_status))
        return false;
    *ret_status = STATUS_HOLT;
    if (!command_has_operands(command, &operands, argc - *ret_next))
        return false;
    if ((options->owner_count > 0) + options->is_public + options->is_private != 1) {
        *ret_status = command_misused(command, "takes --with OWNER, --public or --private");
        return false;
    }
    return true;
}

static int template_share_run(int argc, char **argv)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct holt_share_options request = HOLT_INIT(holt_share_options);
    cleanup_result struct holt_template *template = NULL;
    struct share_options options = { .owner_count = 0 };
    struct holt_error error;
    int next, status;

    if (!share_parse(&command_template_share, &options, argc, argv, &next, &status))
        return status;
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    request.owners = options.owners;
    request.is_public = options.is_public;
    if (holt_template_share(connection.holt, argv[next], &request, HOLT_NO_DEADLINE, &template,
                            &error) < 0)
        return report_holt_error(&error);
    return output_id(&options.output, template, "template", template->name);
}

static int volume_share_run(int argc, char **argv)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct holt_share_options request = HOLT_INIT(holt_share_options);
    cleanup_result struct holt_volume *volume = NULL;
    struct share_options options = { .owner_count = 0 };
    struct holt_error error;
    int next, status;

    if (!share_parse(&command_volume_share, &options, argc, argv, &next, &status))
        return status;
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    request.owners = options.owners;
    request.is_public = options.is_public;
    if (holt_volume_share(connection.holt, argv[next], &request, HOLT_NO_DEADLINE, &volume,
                          &error) < 0)
        return report_holt_error(&error);
    return output_id(&options.output, volume, "volume", volume->name);
}

const struct command command_template_share = {
    .group = "Templates",
    .name = "template share",
    .operands = "TEMPLATE",
    .summary = "Let other owners use a template",
    .example = "holt template share base --public",
    .options = &share_table,
    .run = template_share_run,
};

const struct command command_volume_share = {
    .group = "Volumes",
    .name = "volume share",
    .operands = "VOLUME",
    .summary = "Let other owners mount a volume read-only",
    .example = "holt volume share data --with ann --with bob",
    .options = &share_table,
    .run = volume_share_run,
};
