// SPDX-License-Identifier: Apache-2.0
#include <stdint.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/run/outcome.h"
#include "holt.h"

enum { STATUS_TIMED_OUT = 124 };

struct wait_options {
    struct common_options common;
    uint64_t timeout_ms; /* 0: none */
};

static int set_timeout(void *into, const char *value, struct err *err)
{
    struct wait_options *options = into;

    if (parse_duration_ms(value, &options->timeout_ms) < 0)
        return err_set(err, ERR_INVALID, "--timeout '%.100s' is not a time like 30s", value);
    return 0;
}

static const struct option_row rows[] = {
    { "timeout", 0, "TIME", "give up after this time: 30s, 5m", set_timeout },
    OPTION_HELP,
};

static const struct option_table table = { rows, ARRAY_SIZE(rows), NULL };

/* The exit status of one; *ret_ended says whether it has one of its own. */
static int wait_one(struct holt *holt, const char *sandbox, const char *process,
                    uint64_t timeout_ms, bool *ret_ended)
{
    cleanup_json json_t *reply = NULL;
    json_t *request = json_pack("{s:s, s:s, s:o}", "sandboxId", sandbox, "processId", process,
                                "timeoutMs", json_u64(timeout_ms));
    struct holt_error error;
    const json_t *ended;

    *ret_ended = false;
    if (call_try(holt, "holt.v1.ProcessService/Wait", request, &reply, &error) < 0)
        return report_holt_error(&error);
    if (json_is_true(json_object_get(reply, "timedOut")))
        return STATUS_TIMED_OUT;
    ended = call_object(reply, "ended");
    *ret_ended = ended;
    return ended ? run_outcome(process, ended) : STATUS_HOLT;
}

/* Stops at the first that is not there or does not end in time. */
static int wait_run(int argc, char **argv)
{
    static const struct operands operands = { 2, 0, "an ID and a PROCESS" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct wait_options options = { .timeout_ms = 0 };
    const uint64_t start_ms = clock_ms();
    bool has_ended = true;
    int next, status;

    if (!command_parse(&command_wait, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_wait, &operands, argc - next) ||
        connection_open(&connection) < 0)
        return STATUS_HOLT;
    for (int i = next + 1; i < argc && has_ended; i++) {
        uint64_t passed_ms = clock_ms() - start_ms, left_ms = 0;

        /* 0 would be for ever. */
        if (options.timeout_ms > 0)
            left_ms = options.timeout_ms > passed_ms ? options.timeout_ms - passed_ms : 1;
        status = wait_one(connection.holt, argv[next], argv[i], left_ms, &has_ended);
    }
    return status;
}

const struct command command_wait = {
    .group = "Processes",
    .name = "wait",
    .operands = "ID PROCESS...",
    .summary = "Wait for processes to end; the exit status is that of the last",
    .example = "holt wait --timeout 5m work p4",
    .options = &table,
    .passes_status = true,
    .run = wait_run,
};
