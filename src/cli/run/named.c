// SPDX-License-Identifier: Apache-2.0
#include "cli/run/named.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "cli/core/connect.h"
#include "cli/core/output.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/run/outcome.h"
#include "cli/run/run.h"
#include "holt.h"

enum {
    PORTS_MAX = 16,
    IDLE_MS = 60000, /* after a kill of holt, the sandbox is removed when it was idle for so long */
};

bool run_named_is_wanted(const struct run_named *options)
{
    return options->name || options->volumes.count > 0 || options->ports.count > 0 ||
           options->is_detached;
}

void run_named_done(struct run_named *options)
{
    run_options_done(&options->run);
    words_done(&options->volumes);
    words_done(&options->ports);
}

static int sandbox_make(struct holt *holt, struct run_named *options, struct holt_sandbox **ret,
                        struct holt_error *error)
{
    struct holt_sandbox_options sandbox = HOLT_INIT(holt_sandbox_options);

    run_sandbox_set(&options->run, &sandbox);
    sandbox.name = options->name;
    sandbox.volumes = (const char *const *)options->volumes.items;
    if (!options->is_detached) {
        sandbox.idle_timeout_ms = IDLE_MS;
        sandbox.idle_action = "kill";
    }
    return holt_sandbox_create(holt, &sandbox, HOLT_NO_DEADLINE, ret, error);
}

/* --- detached --------------------------------------------------------------------------------- */

static int detached_start(struct holt *holt, const char *sandbox, const struct run_named *options,
                          const struct holt_command *command, struct holt_process_info **ret,
                          struct holt_error *error)
{
    struct holt_service service = HOLT_INIT(holt_service);
    struct run_port port;

    if (options->ports.count == 0)
        return holt_process_start(holt, sandbox, command, HOLT_NO_DEADLINE, ret, error);
    (void)run_port_parse(options->ports.items[0], &port);
    service.command = command;
    service.port = port.inside;
    service.host_port = port.host;
    service.waits = true;
    return holt_process_launch(holt, sandbox, &service, HOLT_NO_DEADLINE, ret, error);
}

/* Prints the id of the sandbox, and the address of its port if it is ready, on one line; or both as
 * JSON. */
static int detached_print(const struct output_options *output, const struct holt_sandbox *sandbox,
                          const struct holt_process_info *process)
{
    const char *address = output->is_quiet || !process->is_ready ? "" : process->address;
    size_t sandbox_len, process_len;
    const char *sandbox_text = output_json_find(sandbox, "sandbox", &sandbox_len);
    const char *process_text = output_json_find(process, "process", &process_len);
    cleanup_free char *text = NULL;

    if (!output->wants_json) {
        (void)printf("%s%s%s\n", sandbox->id, *address ? " " : "", address);
        return command_printed();
    }
    if (!sandbox_text || !process_text)
        return report("cannot read the reply of the daemon");
    text = xasprintf("{\"sandbox\":%.*s,\"process\":%.*s}", (int)sandbox_len, sandbox_text,
                     (int)process_len, process_text);
    return output_json_text(text);
}

static int run_detached(struct holt *holt, struct run_named *options, char **args)
{
    cleanup_result struct holt_process_info *process = NULL;
    cleanup_result struct holt_sandbox *sandbox = NULL;
    struct holt_command command = HOLT_INIT(holt_command);
    struct holt_error error, ignored;
    struct err err;
    int status;

    if (run_command_set(&options->run, args, options->run.tty == TTY_ALWAYS, &command, &err) < 0)
        return report("run: %s", err.msg);
    if (sandbox_make(holt, options, &sandbox, &error) < 0)
        return report_holt_error(&error);
    if (detached_start(holt, sandbox->id, options, &command, &process, &error) < 0) {
        (void)holt_sandbox_destroy(holt, sandbox->id, HOLT_NO_DEADLINE, &ignored);
        return report_holt_error(&error);
    }
    status = detached_print(&options->run.output, sandbox, process);
    return status == STATUS_OK && options->ports.count > 0
               ? run_ready_status("run", args[0], process)
               : status;
}

/* --- attached --------------------------------------------------------------------------------- */

struct forwards {
    struct holt_forward *open[PORTS_MAX];
    size_t count;
};

static void forwards_close(struct forwards *forwards)
{
    while (forwards->count > 0)
        holt_forward_close(forwards->open[--forwards->count]);
}

static int forward_open(struct holt *holt, const char *sandbox, const char *port,
                        struct forwards *forwards)
{
    struct holt_forward_options request = HOLT_INIT(holt_forward_options);
    cleanup_free char *listen = NULL;
    struct holt_forward **slot = &forwards->open[forwards->count];
    struct holt_error error;
    struct run_port ports;

    (void)run_port_parse(port, &ports);
    listen = xasprintf(":%u", ports.host);
    request.sandbox = sandbox;
    request.port = ports.inside;
    request.listen = listen;
    if (holt_forward_open(holt, &request, HOLT_NO_DEADLINE, slot, &error) < 0)
        return report_holt_error(&error);
    forwards->count++;
    report_note("port %u is at %s", request.port, holt_forward_address(*slot));
    return STATUS_OK;
}

static int run_attached(struct holt *holt, const char *sandbox, struct run_named *options,
                        char **args)
{
    cleanup_with(forwards_close) struct forwards forwards = { .count = 0 };
    const struct run_request request = {
        .command = &command_run,
        .sandbox = sandbox,
        .options = &options->run,
        .args = args,
        .has_stdin = true,
    };
    int status = STATUS_OK;

    for (size_t i = 0; i < options->ports.count && status == STATUS_OK; i++)
        status = forward_open(holt, sandbox, options->ports.items[i], &forwards);
    return status == STATUS_OK ? run_follow(&request) : status;
}

int run_named(struct run_named *options, char **args)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_result struct holt_sandbox *sandbox = NULL;
    struct holt_error error;
    int status;

    if (options->ports.count > PORTS_MAX)
        return command_misused(&command_run, "forwards at most 16 ports");
    if (options->is_detached && options->ports.count > 1)
        return command_misused(&command_run, "with --detach, only one port can be published");
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (options->is_detached)
        return run_detached(connection.holt, options, args);
    if (sandbox_make(connection.holt, options, &sandbox, &error) < 0)
        return report_holt_error(&error);
    status = run_attached(connection.holt, sandbox->id, options, args);
    if (holt_sandbox_destroy(connection.holt, sandbox->id, HOLT_NO_DEADLINE, &error) < 0)
        (void)report_holt_error(&error);
    return status;
}
