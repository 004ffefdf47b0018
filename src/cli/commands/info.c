// SPDX-License-Identifier: Apache-2.0
/* The commands that show the state of the host. */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/daemon.h"
#include "cli/core/output.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "holt.h"

/* --- info ------------------------------------------------------------------------------------- */

enum { STATUS_DEGRADED = 1, STATUS_UNHEALTHY = 2, HEALTH_MS = 10 * 1000 };

static const struct option_row rows[] = {
    OPTION_BYTES,
    OPTION_OUTPUT,
    OPTION_JSON,
    OPTION_HELP,
};

static const struct option_table table = { rows, ARRAY_SIZE(rows), NULL };

static void print_health(const struct output_options *output, const struct holt_health *health)
{
    char used[CELL_SIZE], size[CELL_SIZE];

    output_size(output, used, health->storage_used_bytes);
    output_size(output, size, health->storage_size_bytes);
    (void)printf("Status:     %s\n", health->status);
    for (size_t i = 0; health->errors[i]; i++)
        (void)printf("            %s\n", health->errors[i]);
    (void)printf("Version:    %s, up for %" PRIu64 " s\n", health->version,
                 health->uptime_ms / 1000);
    (void)printf("Sandboxes:  %" PRIu32 ", with %" PRIu32 " processes\n", health->sandboxes,
                 health->processes);
    (void)printf("Warm pool:  %" PRIu32 " of %" PRIu32 " ready\n", health->pool_ready,
                 health->pool_size);
    (void)printf("Storage:    %s, %s, %s of %s used (%" PRIu32 "%%)\n", health->storage,
                 health->storage_state, used, size, health->storage_used_percent);
    if (*health->state_directory)
        (void)printf("State:      %s\n", health->state_directory);
}

static void print_runtimes(const struct holt_capabilities *can)
{
    (void)printf("Runtimes:  ");
    for (size_t i = 0; i < can->runtime_count; i++) {
        const struct holt_runtime *runtime = can->runtimes[i];
        bool is_default = strcmp(runtime->name, can->default_runtime) == 0;

        (void)printf("%s%s%s%s", i > 0 ? ", " : " ", runtime->name, is_default ? " (default)" : "",
                     runtime->works ? "" : " (does not work here)");
    }
    (void)printf("\nLimits:     by %s\n", can->limits_from);
}

/* Prints the names of the features that are supported, or of those that are not. */
static void print_features(const struct holt_capabilities *can, bool is_supported)
{
    const struct {
        const char *name;
        bool is_supported;
    } features[] = {
        { "snapshots", can->snapshots },
        { "rollback", can->rollback },
        { "fork", can->fork },
        { "atomicSnapshots", can->atomic_snapshots },
        { "quota", can->quota },
        { "pause", can->pause },
        { "deepPause", can->deep_pause },
        { "launch", can->launch },
        { "streamingProgress", can->streaming_progress },
        { "tierRouting", can->tier_routing },
        { "memoryLimit", can->memory_limit },
        { "cpuLimit", can->cpu_limit },
        { "pidsLimit", can->pids_limit },
    };
    const char *comma = " ";

    (void)printf(is_supported ? "Can:       " : "Cannot:    ");
    for (size_t i = 0; i < ARRAY_SIZE(features); i++) {
        if (features[i].is_supported != is_supported)
            continue;
        (void)printf("%s%s", comma, features[i].name);
        comma = ", ";
    }
    (void)printf("\n");
}

static int print_both_json(const struct holt_health *health, const struct holt_capabilities *can)
{
    cleanup_free char *text = xasprintf("{\"health\":%s,\"capabilities\":%s}",
                                        holt_result_json(health), holt_result_json(can));

    return output_json_text(text);
}

static int health_status(const struct holt_health *health)
{
    if (strcmp(health->status, "ok") == 0)
        return STATUS_OK;
    return strcmp(health->status, "degraded") == 0 ? STATUS_DEGRADED : STATUS_UNHEALTHY;
}

static int info_print(const struct output_options *output, const struct holt_health *health,
                      const struct holt_capabilities *can)
{
    int status;

    if (output->wants_json) {
        status = print_both_json(health, can);
    } else {
        print_health(output, health);
        print_runtimes(can);
        print_features(can, true);
        print_features(can, false);
        status = command_printed();
    }
    return status == STATUS_OK ? health_status(health) : status;
}

static int info_run(int argc, char **argv)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_result struct holt_capabilities *can = NULL;
    cleanup_result struct holt_health *health = NULL;
    struct output_options options = { .is_quiet = false };
    struct holt_error error;
    int status;

    if (!connection_open_for(&command_info, &options, argc, argv, &connection, &status))
        return status;
    if (holt_health(connection.holt, HOLT_NO_DEADLINE, &health, &error) < 0 ||
        holt_capabilities(connection.holt, HOLT_NO_DEADLINE, &can, &error) < 0)
        return report_holt_error(&error);
    return info_print(&options, health, can);
}

const struct command command_info = {
    .group = "Host",
    .name = "info",
    .operands = "",
    .summary = "Show the health and the features of the host",
    .options = &table,
    .run = info_run,
};

/* --- doctor ----------------------------------------------------------------------------------- */

struct doctor_options {
    struct output_options output;
    bool fixes;
    bool proves;
};

static const struct option_row doctor_rows[] = {
    { "fix", 0, NULL, "apply remedies that are safe, and report them",
      OPTION_FLAG(struct doctor_options, fixes) },
    { "prove", 0, NULL, "try to escape from a sandbox of each runtime, and print what held",
      OPTION_FLAG(struct doctor_options, proves) },
    OPTION_OUTPUT,
    OPTION_JSON,
    OPTION_HELP,
};

static const struct option_table doctor_table = { doctor_rows, ARRAY_SIZE(doctor_rows), NULL };

/* Returns the state directory of the daemon that answers on this machine, for the caller to free;
 * NULL: none answers, or HOLT_STATE names another. */
static char *daemon_state(void)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_result struct holt_health *health = NULL;
    const char *chosen = getenv("HOLT_STATE");
    struct holt_error error;

    if ((chosen && *chosen) || connection_open_quietly(&connection) < 0 ||
        holt_health(connection.holt, holt_after(HEALTH_MS), &health, &error) < 0)
        return NULL;
    if (!*health->state_directory) {
        report_note("doctor: the daemon at HOLT_HOST may be on another machine; this one is "
                    "checked");
        return NULL;
    }
    return xstrdup(health->state_directory);
}

/* Runs holtd --doctor: the checks are needed most on a machine where the daemon does not start. */
static int doctor_run(int argc, char **argv)
{
    struct doctor_options options = { .fixes = false };
    cleanup_free char *binary = daemon_find(), *state = NULL;
    const char *words[8] = { "holtd", "--doctor" };
    size_t count = 2;
    int next, status;

    if (!command_parse(&command_doctor, &options, argc, argv, &next, &status))
        return status;
    if (next != argc)
        return command_misused(&command_doctor, "takes no arguments");
    if (options.fixes && options.proves)
        return command_misused(&command_doctor, "takes either --fix or --prove");
    state = daemon_state();
    if (options.output.wants_json)
        words[count++] = "--json";
    if (options.fixes)
        words[count++] = "--fix";
    if (options.proves)
        words[1] = "--prove";
    if (state) {
        words[count++] = "--state";
        words[count++] = state;
    }
    (void)execvp(binary, (char *const *)(uintptr_t)words);
    return errno == ENOENT ? report("holtd is neither beside holt nor in PATH")
                           : report("cannot run %s: %s", binary, strerror(errno));
}

const struct command command_doctor = {
    .group = "Host",
    .name = "doctor",
    .operands = "",
    .summary = "Check what this machine supports, with causes and remedies",
    .example = "holt doctor --fix    # sets sysctls until the next boot, makes directories",
    .options = &doctor_table,
    .run = doctor_run,
};
