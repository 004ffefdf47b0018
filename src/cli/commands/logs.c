// SPDX-License-Identifier: Apache-2.0
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/report.h"
#include "cli/run/attach.h"
#include "cli/run/session.h"

struct logs_options {
    struct common_options common;
    bool is_following;
    bool has_since, has_tail;
    uint64_t since;
    uint64_t stderr_since;
    uint64_t tail_bytes;
};

static int set_follow(void *into, const char *value, struct err *err)
{
    struct logs_options *options = into;

    (void)value;
    (void)err;
    options->is_following = true;
    return 0;
}

static int set_since(void *into, const char *value, struct err *err)
{
    struct logs_options *options = into;

    if (parse_u64(value, &options->since) < 0)
        return err_set(err, ERR_INVALID, "--since '%.100s' is not a number of bytes", value);
    options->has_since = true;
    return 0;
}

static int set_stderr_since(void *into, const char *value, struct err *err)
{
    struct logs_options *options = into;

    if (parse_u64(value, &options->stderr_since) < 0)
        return err_set(err, ERR_INVALID, "--stderr-since '%.100s' is not a number of bytes", value);
    options->has_since = true;
    return 0;
}

static int set_tail(void *into, const char *value, struct err *err)
{
    struct logs_options *options = into;

    if (parse_size(value, &options->tail_bytes) < 0)
        return err_set(err, ERR_INVALID, "--tail '%.100s' is not a size like 64K", value);
    options->has_tail = true;
    return 0;
}

static const struct option_row rows[] = {
    { "follow", 'f', NULL, "go on to the end of the process", set_follow },
    { "since", 0, "OFFSET", "begin stdout behind so many bytes", set_since },
    { "stderr-since", 0, "OFFSET", "the same for stderr", set_stderr_since },
    { "tail", 0, "SIZE", "begin so many bytes before the end of each", set_tail },
    OPTION_HELP,
};

static const struct option_table table = { rows, ARRAY_SIZE(rows), NULL };

static json_t *make_request(const struct logs_options *options, char **operands)
{
    json_t *request = json_pack("{s:s, s:s, s:b}", "sandboxId", operands[0], "processId",
                                operands[1], "follow", options->is_following);

    if (!request)
        return NULL;
    if (options->has_tail) {
        (void)json_object_set_new(request, "replayBytes", json_u64(options->tail_bytes));
        return request;
    }
    (void)json_object_set_new(request, "stdoutOffset", json_u64(options->since));
    (void)json_object_set_new(request, "stderrOffset", json_u64(options->stderr_since));
    return request;
}

static int logs_run(int argc, char **argv)
{
    static const struct operands operands = { 2, 2, "an ID and a PROCESS" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct logs_options options = { .is_following = false };
    struct run_setup setup = { .role = RUN_VIEWER, .signal_fd = -1 };
    int next, status;

    if (!command_parse(&command_logs, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_logs, &operands, argc - next))
        return STATUS_HOLT;
    if (options.has_tail && options.has_since)
        return command_misused(&command_logs, "begins either at --tail or at --since");
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    return attach_session(&connection, make_request(&options, argv + next), &setup);
}

const struct command command_logs = {
    .group = "Processes",
    .name = "logs",
    .operands = "ID PROCESS",
    .summary = "Show what a process has written",
    .example = "holt logs -f --tail 4K work p4",
    .options = &table,
    .run = logs_run,
};
