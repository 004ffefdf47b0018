// SPDX-License-Identifier: Apache-2.0
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "cli/core/command.h"
#include "cli/core/report.h"
#include "cli/core/result.h"

struct fork_options {
    struct common_options common;
    uint32_t count;
    const char *from;
};

static int set_count(void *into, const char *value, struct err *err)
{
    struct fork_options *options = into;
    uint64_t count;

    if (parse_u64(value, &count) < 0 || count == 0 || count > UINT32_MAX)
        return err_set(err, ERR_INVALID, "--count '%.100s' is not a number like 8", value);
    options->count = (uint32_t)count;
    return 0;
}

static int set_from(void *into, const char *value, struct err *err)
{
    struct fork_options *options = into;

    (void)err;
    options->from = value;
    return 0;
}

static const struct option_row rows[] = {
    { "count", 'n', "NUMBER", "how many to make, all or none", set_count },
    { "from", 0, "SNAPSHOT", "with the files of a snapshot, not those of now", set_from },
    OPTION_HELP,
};

static const struct option_table table = { rows, ARRAY_SIZE(rows), NULL };

static int fork_run(int argc, char **argv)
{
    static const struct operands operands = { 1, 1, "an ID" };
    struct fork_options options = { .count = 1, .from = "" };
    cleanup_json json_t *reply = NULL;
    const json_t *sandboxes = NULL;
    int next, status;

    if (!command_parse(&command_fork, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_fork, &operands, argc - next))
        return STATUS_HOLT;
    status = call_once("holt.v1.SandboxService/Fork",
                       json_pack("{s:s, s:s, s:I}", "sandboxId", argv[next], "from", options.from,
                                 "count", (json_int_t)options.count),
                       &reply);
    if (status != STATUS_OK)
        return status;
    return call_list(reply, "sandboxes", &sandboxes) ? print_texts(sandboxes, "id") : STATUS_HOLT;
}

const struct command command_fork = {
    .group = "Turns",
    .name = "fork",
    .operands = "ID",
    .summary = "Make new sandboxes with the files of one",
    .example = "holt fork work --from turn-0003 --count 8",
    .options = &table,
    .run = fork_run,
};
