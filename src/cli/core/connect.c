// SPDX-License-Identifier: Apache-2.0
#include "cli/core/connect.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "cli/core/command.h"
#include "cli/core/daemon.h"
#include "cli/core/report.h"
#include "holt.h"

enum {
    RETRY_DELAY_MS = 10,
    RETRY_COUNT = 1000,
};

static const char *environment(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

static int open_host(const char *host, struct holt **ret, struct holt_error *error)
{
    struct holt_options options = HOLT_INIT(holt_options);

    options.host = host;
    options.attempts = 1; /* a person sees the error and decides */
    return holt_open(&options, HOLT_NO_DEADLINE, ret, error);
}

/* The daemon that won the race for the lock may not listen yet. */
static int open_patiently(const char *host, struct holt **ret, struct holt_error *error)
{
    for (int i = 0; i < RETRY_COUNT; i++) {
        if (open_host(host, ret, error) == 0)
            return 0;
        clock_sleep_ms(RETRY_DELAY_MS);
    }
    return -1;
}

static int start_and_open(const char *run_dir, const char *host, struct holt **ret)
{
    struct holt_error error;
    struct err err;
    int r = daemon_start(run_dir, &err);

    if (r < 0 && err.kind != ERR_EXISTS) {
        (void)report_err(&err);
        return -1;
    }
    if ((r < 0 ? open_patiently(host, ret, &error) : open_host(host, ret, &error)) == 0)
        return 0;
    (void)report_holt_error(&error);
    return -1;
}

/* The caller reports the remedy, as it knows how the user came here. */
static int report_absence(struct holt_error *error, const char *remedy)
{
    if (!error->remedy[0])
        (void)snprintf(error->remedy, sizeof(error->remedy), "%s", remedy);
    (void)report_holt_error(error);
    return -1;
}

static int open_local(const char *run_dir, const char *host, struct holt **ret)
{
    struct holt_error error;
    bool is_absent, is_forbidden;

    if (open_host(host, ret, &error) == 0)
        return 0;
    is_absent = strcmp(error.code, "unavailable") == 0;
    is_forbidden = strcmp(error.code, "permission_denied") == 0;
    if (is_absent && geteuid() == 0)
        return start_and_open(run_dir, host, ret);
    if (is_absent)
        return report_absence(&error,
                              "become root to start one, or name another daemon in HOLT_HOST");
    return report_absence(&error, is_forbidden
                                      ? "become root or a member of the socket's group, or "
                                        "name another daemon in HOLT_HOST"
                                      : "");
}

static int open_named(const char *host, struct holt **ret)
{
    struct holt_error error, named;

    if (open_host(host, ret, &error) == 0)
        return 0;
    named = error;
    (void)snprintf(named.message, sizeof(named.message), "HOLT_HOST: %.400s", error.message);
    return report_absence(&named, "");
}

static const char *run_directory(void)
{
    const char *run = environment("HOLT_RUN");

    return run ? run : "/run/holt";
}

static char *host_choose(void)
{
    const char *named = environment("HOLT_HOST");

    return named ? xstrdup(named) : xasprintf("unix://%s/holt.sock", run_directory());
}

int connection_open_quietly(struct connection *ret)
{
    cleanup_free char *host = host_choose();
    struct holt_error error;

    return open_host(host, &ret->holt, &error);
}

int connection_open(struct connection *ret)
{
    const char *named = environment("HOLT_HOST"), *run_dir = run_directory();
    cleanup_free char *host = host_choose();

    return named ? open_named(host, &ret->holt) : open_local(run_dir, host, &ret->holt);
}

bool connection_open_for(const struct command *command, void *options, int argc, char **argv,
                         struct connection *ret, int *ret_status)
{
    int next;

    if (!command_parse(command, options, argc, argv, &next, ret_status))
        return false;
    if (next != argc)
        *ret_status = command_misused(command, "takes no arguments");
    else if (connection_open(ret) < 0)
        *ret_status = STATUS_HOLT;
    else
        return true;
    return false;
}

void connection_close(struct connection *connection)
{
    holt_close(connection->holt);
    connection->holt = NULL;
}
