// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/core/table.h"
#include "holt.h"

enum { STATUS_DEGRADED = 1, STATUS_UNHEALTHY = 2 };

static const struct option_row rows[] = {
    OPTION_OUTPUT,
    OPTION_JSON,
    OPTION_HELP,
};

static const struct option_table table = { rows, ARRAY_SIZE(rows), NULL };

static void print_health(const json_t *health)
{
    const json_t *storage = json_object_get(health, "storage");
    const json_t *errors = json_object_get(health, "errors");
    char used[CELL_SIZE], size[CELL_SIZE];

    format_size(used, call_number(storage, "usedBytes"));
    format_size(size, call_number(storage, "sizeBytes"));
    (void)printf("Status:     %s\n", call_text(health, "status"));
    for (size_t i = 0; i < json_array_size(errors); i++)
        (void)printf("            %s\n", json_string_value(json_array_get(errors, i)));
    (void)printf("Version:    %s, up for %" PRIu64 " s\n", call_text(health, "version"),
                 call_number(health, "uptimeMs") / 1000);
    (void)printf("Sandboxes:  %" PRIu64 ", with %" PRIu64 " processes\n",
                 call_number(health, "sandboxes"), call_number(health, "processes"));
    (void)printf("Warm pool:  %" PRIu64 " of %" PRIu64 " ready\n", call_number(health, "poolReady"),
                 call_number(health, "poolSize"));
    (void)printf("Storage:    %s, %s, %s of %s used (%" PRIu64 "%%)\n",
                 call_text(storage, "backend"), call_text(storage, "state"), used, size,
                 call_number(storage, "usedPercent"));
}

static void print_runtimes(const json_t *answer)
{
    const json_t *list = json_object_get(answer, "runtimes");

    (void)printf("Runtimes:  ");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *runtime = json_array_get(list, i);
        const char *name = call_text(runtime, "name");
        bool is_default = strcmp(name, call_text(answer, "defaultRuntime")) == 0;

        (void)printf("%s%s%s%s", i > 0 ? ", " : " ", name, is_default ? " (default)" : "",
                     json_is_true(json_object_get(runtime, "works")) ? ""
                                                                     : " (does not work here)");
    }
    (void)printf("\nLimits:     by %s\n", call_text(answer, "limitsFrom"));
}

/* What is true, and what is not, as words. */
static void print_can(const json_t *can)
{
    for (int wanted = 1; wanted >= 0; wanted--) {
        const char *name, *comma = " ";
        json_t *value;

        (void)printf(wanted ? "Can:       " : "Cannot:    ");
        json_object_foreach((json_t *)(uintptr_t)can, name, value)
        {
            if (!json_is_boolean(value) || json_is_true(value) != wanted)
                continue;
            (void)printf("%s%s", comma, name);
            comma = ", ";
        }
        (void)printf("\n");
    }
}

static int status_of(const json_t *health)
{
    const char *status = call_text(health, "status");

    if (strcmp(status, "ok") == 0)
        return STATUS_OK;
    return strcmp(status, "degraded") == 0 ? STATUS_DEGRADED : STATUS_UNHEALTHY;
}

static int show(const struct output_options *output, const json_t *health, const json_t *answer)
{
    cleanup_json json_t *both = NULL;
    int status;

    if (output->wants_json) {
        both = json_pack("{s:O, s:O}", "health", health, "capabilities", answer);
        status = print_json(both);
    } else {
        print_health(health);
        print_runtimes(answer);
        print_can(json_object_get(answer, "capabilities"));
        status = command_printed();
    }
    return status == STATUS_OK ? status_of(health) : status;
}

static int info_run(int argc, char **argv)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_json json_t *health = NULL, *answer = NULL;
    struct output_options options = { .is_quiet = false };
    struct holt_error error;
    int next, status;

    if (!command_parse(&command_info, &options, argc, argv, &next, &status))
        return status;
    if (next != argc)
        return command_misused(&command_info, "takes no arguments");
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (call_try(connection.holt, "holt.v1.HostService/Health", json_object(), &health, &error) <
            0 ||
        call_try(connection.holt, "holt.v1.HostService/Capabilities", json_object(), &answer,
                 &error) < 0)
        return report_holt_error(&error);
    return show(&options, health, answer);
}

const struct command command_info = {
    .group = "Host",
    .name = "info",
    .operands = "",
    .summary = "Show how the host is, and what it can do",
    .options = &table,
    .run = info_run,
};
