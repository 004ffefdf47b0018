// SPDX-License-Identifier: Apache-2.0
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/text/parse.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/options/when.h"
#include "cli/run/line_times.h"
#include "cli/run/session.h"
#include "cli/run/tail.h"
#include "holt.h"

struct logs_options {
    struct common_options common;
    bool is_following;
    bool has_times;    /* before each line */
    uint64_t since_ms; /* a time; 0: none */
    bool has_since, has_stderr_since, has_tail, has_lines;
    uint64_t since;
    uint64_t stderr_since;
    uint64_t tail_bytes;
    uint64_t tail_lines;
};

static int set_since(void *into, const char *value, struct err *err)
{
    struct logs_options *options = into;

    options->since_ms = 0;
    options->has_since = true;
    if (parse_u64(value, &options->since) == 0 || when_parse(value, &options->since_ms) == 0)
        return 0;
    return err_set(
        err, ERR_INVALID,
        "--since '%.100s' is not a time like 10m, a moment like 2026-01-31T12:00:00Z, or "
        "a number of bytes",
        value);
}

static int set_stderr_since(void *into, const char *value, struct err *err)
{
    struct logs_options *options = into;

    if (parse_u64(value, &options->stderr_since) < 0)
        return err_set(err, ERR_INVALID, "--stderr-since '%.100s' is not a number of bytes", value);
    options->has_since = options->has_stderr_since = true;
    return 0;
}

static int set_tail(void *into, const char *value, struct err *err)
{
    struct logs_options *options = into;

    options->has_tail = options->has_lines = false;
    if (parse_u64(value, &options->tail_lines) == 0 && options->tail_lines <= TAIL_LINES_MAX)
        options->has_lines = true;
    else if (parse_size(value, &options->tail_bytes) == 0)
        options->has_tail = true;
    else
        return err_set(err, ERR_INVALID,
                       "--tail '%.100s' is not a number of lines or a size like 64K", value);
    return 0;
}

static const struct option_row rows[] = {
    { "follow", 'f', NULL, "continue until the process ends",
      OPTION_FLAG(struct logs_options, is_following) },
    { "since", 0, "WHEN",
      "output since a time: 10m, 2026-01-31T12:00:00Z; or bytes of stdout to skip",
      OPTION_CALL(set_since) },
    { "stderr-since", 0, "OFFSET", "skip this many bytes of stderr",
      OPTION_CALL(set_stderr_since) },
    { "timestamps", 't', NULL, "write the time at which it came before each line",
      OPTION_FLAG(struct logs_options, has_times) },
    { "tail", 'n', "LINES", "only the last lines of each stream, or bytes: 20, 4K",
      OPTION_CALL(set_tail) },
    OPTION_HELP,
};

static const struct option_table table = { rows, ARRAY_SIZE(rows), NULL };

static void offset_raise(uint64_t *offset, uint64_t least)
{
    if (*offset < least)
        *offset = least;
}

/* Sets the offsets to the start of the last lines or bytes of what was asked for. */
static int tail_set(const struct logs_options *options, struct holt *holt,
                    struct holt_attach_options *request, struct holt_error *error)
{
    const uint64_t since = request->stdout_offset, stderr_since = request->stderr_offset;
    int r = 0;

    if (options->has_lines)
        r = tail_find(holt, request, (uint32_t)options->tail_lines, error);
    else if (options->has_tail && options->has_since)
        r = tail_find_bytes(holt, request, options->tail_bytes, error);
    else
        request->replays = options->has_tail;
    offset_raise(&request->stdout_offset, since);
    offset_raise(&request->stderr_offset, stderr_since);
    return r;
}

/* Finds the marks of time, and the offsets at the time to start from. */
static int times_find(const struct logs_options *options, struct holt *holt,
                      struct holt_attach_options *request, struct holt_process_info **ret,
                      struct holt_error *error)
{
    int r =
        holt_process_get(holt, request->sandbox, request->process_id, HOLT_NO_DEADLINE, ret, error);

    if (r < 0 || options->since_ms == 0)
        return r;
    request->stdout_offset = line_times_since(*ret, 0, (int64_t)options->since_ms);
    if (!options->has_stderr_since)
        request->stderr_offset = line_times_since(*ret, 1, (int64_t)options->since_ms);
    return 0;
}

static int logs_run(int argc, char **argv)
{
    static const struct operands operands = { 2, 2, "an ID and a PROCESS" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct holt_attach_options request = HOLT_INIT(holt_attach_options);
    struct logs_options options = { .is_following = false };
    cleanup_result struct holt_process_info *info = NULL;
    struct line_times line_times = { .info = NULL };
    struct run_setup setup = { .connection = &connection, .role = RUN_VIEWER, .signal_fd = -1 };
    struct holt_error error;
    int next, status;

    if (!command_parse(&command_logs, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_logs, &operands, argc - next))
        return STATUS_HOLT;
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    request.sandbox = argv[next];
    request.process_id = setup.command = argv[next + 1];
    request.follows = options.is_following;
    request.replay_bytes = options.tail_bytes;
    request.stdout_offset = options.since;
    request.stderr_offset = options.stderr_since;
    if ((options.has_times || options.since_ms > 0) &&
        times_find(&options, connection.holt, &request, &info, &error) < 0)
        return report_holt_error(&error);
    line_times.info = info;
    setup.line_times = options.has_times ? &line_times : NULL;
    if (tail_set(&options, connection.holt, &request, &error) < 0)
        return report_holt_error(&error);
    if (holt_process_attach(connection.holt, &request, HOLT_NO_DEADLINE, &setup.process, &error) <
        0)
        return report_holt_error(&error);
    return run_session(&setup);
}

const struct command command_logs = {
    .group = "Processes",
    .name = "logs",
    .operands = "ID PROCESS",
    .summary = "Show the output of a process",
    .example = "holt logs -f --tail 20 work p4",
    .options = &table,
    .run = logs_run,
};
