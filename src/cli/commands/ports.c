// SPDX-License-Identifier: Apache-2.0
/* The commands that forward ports of sandboxes and list the forwards. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/output.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "holt.h"

struct port_options {
    struct output_options output;
    const char *listen;
    bool is_preview;
};

static const struct option_row port_rows[] = {
    { "listen", 'l', "ADDR:PORT", "where to listen; :PORT for the default address",
      OPTION_TEXT(struct port_options, listen) },
    { "preview", 0, NULL, "print a link that opens it in a browser, once, within a minute",
      OPTION_FLAG(struct port_options, is_preview) },
    OPTION_OUTPUT,
    OPTION_JSON,
    { "quiet", 'q', NULL, "print only the address (the default)", OPTION_CALL(option_set_quiet) },
    OPTION_HELP,
};

static const struct option_table port_table = { port_rows, ARRAY_SIZE(port_rows), NULL };

/* The forward is the client's own, so there is no message of the API to print. */
static int forward_print(const struct output_options *output, uint32_t port, const char *address)
{
    cleanup_json json_t *object = NULL;
    cleanup_free char *text = NULL;

    if (!output->wants_json) {
        (void)printf("%s\n", address);
        return command_printed();
    }
    object = json_pack("{s:i, s:s}", "port", (int)port, "address", address);
    text = json_dumps(object, JSON_COMPACT);
    return text ? output_json_text(text) : report("no memory");
}

static int forward(const struct holt_forward_options *options, const struct output_options *output)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct holt_forward *forward;
    struct holt_error error;
    int r, status;

    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (holt_forward_open(connection.holt, options, HOLT_NO_DEADLINE, &forward, &error) < 0)
        return report_holt_error(&error);
    status = forward_print(output, options->port, holt_forward_address(forward));
    r = status == STATUS_OK ? holt_forward_wait(forward, &error) : 0;
    holt_forward_close(forward);
    return r < 0 ? report_holt_error(&error) : status;
}

static int preview(const struct port_options *options, const char *sandbox, uint32_t port)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_result struct holt_preview *preview = NULL;
    struct holt_error error;

    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (holt_preview_create(connection.holt, sandbox, port, HOLT_NO_DEADLINE, &preview, &error) < 0)
        return report_holt_error(&error);
    if (options->output.wants_json)
        return output_json(preview, NULL);
    (void)printf("%s\n", preview->url);
    return command_printed();
}

/* A signal ends the forward and this process, which then has the exit status of a signal; so a
 * script can tell it from the stop of the sandbox. */
static int port_run(int argc, char **argv)
{
    static const struct operands operands = { 2, 2, "an ID and a PORT" };
    struct holt_forward_options request = HOLT_INIT(holt_forward_options);
    struct port_options options = { .listen = NULL };
    uint64_t port;
    int next, status;

    if (!command_parse(&command_port, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_port, &operands, argc - next))
        return STATUS_HOLT;
    if (parse_u64(argv[next + 1], &port) < 0 || port < 1 || port > UINT16_MAX)
        return command_misused(&command_port, "PORT is a number from 1 to 65535");
    if (options.is_preview && options.listen)
        return command_misused(&command_port, "--preview listens nowhere");
    if (options.is_preview)
        return preview(&options, argv[next], (uint32_t)port);
    request.sandbox = argv[next];
    request.port = (uint32_t)port;
    request.listen = options.listen;
    return forward(&request, &options.output);
}

const struct command command_port = {
    .group = "Processes",
    .name = "port",
    .operands = "ID PORT",
    .summary = "Forward a port of a sandbox until interrupted",
    .example = "holt port -l :8080 work 8000",
    .options = &port_table,
    .run = port_run,
};

static const struct holt_port *port_at(const void *result, size_t row)
{
    return ((const struct holt_port_list *)result)->items[row];
}

static const char *row_id(const void *result, size_t row)
{
    return port_at(result, row)->address;
}

static void row_add(struct table *cells, const void *options, const void *result, size_t row)
{
    const struct holt_port *port = port_at(result, row);

    (void)options;
    table_add(cells, "%s", port->sandbox_id);
    table_add(cells, "%" PRIu32, port->port);
    table_add(cells, "%s", port->address);
    table_add(cells, "%" PRIu32, port->connections);
}

static int ports_print(const struct output_options *options, const struct holt_port_list *list)
{
    static const char *const titles[] = { "SANDBOX", "PORT", "ADDRESS", "CONNECTIONS" };
    const struct listing listing = {
        .result = list,
        .field = "ports",
        .count = list->count,
        .titles = titles,
        .columns = ARRAY_SIZE(titles),
        .right = 0xa,
        .spare = 0x5,
        .id = row_id,
        .add = row_add,
    };

    return listing_print(&listing, options);
}

static const struct option_row ls_rows[] = {
    OPTION_OUTPUT,
    OPTION_JSON,
    { "quiet", 'q', NULL, "print only addresses", OPTION_CALL(option_set_quiet) },
    OPTION_HELP,
};

static const struct option_table ls_table = { ls_rows, ARRAY_SIZE(ls_rows), NULL };

static int port_ls_run(int argc, char **argv)
{
    static const struct operands operands = { 0, 1, "one ID or none" };
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    struct output_options options = { .wants_json = false };
    cleanup_result struct holt_port_list *list = NULL;
    struct holt_error error;
    int next, status;

    if (!command_parse(&command_port_ls, &options, argc, argv, &next, &status))
        return status;
    if (!command_has_operands(&command_port_ls, &operands, argc - next) ||
        connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (holt_port_list(connection.holt, next < argc ? argv[next] : NULL, HOLT_NO_DEADLINE, &list,
                       &error) < 0)
        return report_holt_error(&error);
    return ports_print(&options, list);
}

const struct command command_port_ls = {
    .group = "Processes",
    .name = "port ls",
    .operands = "[ID]",
    .summary = "List the forwarded ports",
    .options = &ls_table,
    .run = port_ls_run,
};
