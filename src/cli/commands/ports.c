// SPDX-License-Identifier: Apache-2.0
#include "base/cleanup.h"
#include "base/err.h"
#include "base/text/parse.h"
#include "cli/core/command.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "holt.h"

struct port_options {
    struct common_options common;
    const char *listen;
};

static int set_listen(void *into, const char *value, struct err *err)
{
    struct port_options *options = into;

    (void)err;
    options->listen = value;
    return 0;
}

static const struct option_row rows[] = {
    { "listen", 'l', "ADDR:PORT", "where to listen; :PORT for the usual address", set_listen },
    OPTION_HELP,
};

static const struct option_table table = { rows, ARRAY_SIZE(rows), NULL };

static int print_address(const json_t *message, void *context)
{
    (void)context;
    (void)printf("%s\n", call_text(message, "address"));
    return command_printed();
}

/* Goes on until a signal ends it, and then says so like any command: the daemon sees that the
 * connection is gone. So a script can tell that from a sandbox that has ended. */
static int port_run(int argc, char **argv)
{
    static const struct operands operands = { 2, 2, "an ID and a PORT" };
    struct port_options options = { .listen = "" };
    struct holt_error error;
    uint64_t port;
    int next, status;

    if (!command_parse(&command_port, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_port, &operands, argc - next))
        return STATUS_HOLT;
    if (parse_u64(argv[next + 1], &port) < 0 || port < 1 || port > UINT16_MAX)
        return command_misused(&command_port, "PORT is a number from 1 to 65535");
    status = call_stream("holt.v1.PortService/Forward",
                         json_pack("{s:s, s:I, s:s}", "sandboxId", argv[next], "port",
                                   (json_int_t)port, "listen", options.listen),
                         print_address, NULL, &error);
    return status < 0 ? report_holt_error(&error) : status;
}

const struct command command_port = {
    .group = "Processes",
    .name = "port",
    .operands = "ID PORT",
    .summary = "Forward a port of a sandbox until interrupted",
    .example = "holt port -l :8080 work 8000",
    .options = &table,
    .run = port_run,
};
