// SPDX-License-Identifier: Apache-2.0
#include "cli/connect.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "cli/daemon.h"
#include "cli/report.h"
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

/* The daemon that won the race for the lock may not listen yet. */
static int open_patiently(const char *host, struct holt **ret, struct holt_error *error)
{
    const struct timespec delay = { .tv_nsec = RETRY_DELAY_MS * 1000000L };

    for (int i = 0; i < RETRY_COUNT; i++) {
        if (holt_open(host, NULL, ret, error) == 0)
            return 0;
        (void)nanosleep(&delay, NULL);
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
    if ((r < 0 ? open_patiently(host, ret, &error) : holt_open(host, NULL, ret, &error)) == 0)
        return 0;
    (void)report_holt_error(&error);
    return -1;
}

static int open_local(const char *run_dir, const char *host, struct holt **ret)
{
    struct holt_error error;
    bool is_absent, is_forbidden;

    if (holt_open(host, NULL, ret, &error) == 0)
        return 0;
    is_absent = strcmp(error.code, "unavailable") == 0;
    is_forbidden = strcmp(error.code, "permission_denied") == 0;
    if (is_absent && geteuid() == 0)
        return start_and_open(run_dir, host, ret);
    if (is_absent || is_forbidden)
        (void)report("%s; you must be root to %s, or name another daemon in HOLT_HOST",
                     error.message, is_absent ? "start one" : "use it");
    else
        (void)report_holt_error(&error);
    return -1;
}

static int open_named(const char *host, struct holt **ret)
{
    struct holt_error error;

    if (holt_open(host, NULL, ret, &error) == 0)
        return 0;
    (void)report("HOLT_HOST: %s", error.message);
    return -1;
}

int connection_open(struct connection *ret)
{
    const char *named = environment("HOLT_HOST"), *run = environment("HOLT_RUN");
    const char *run_dir = run ? run : "/run/holt";
    cleanup_free char *host = named ? xstrdup(named) : xasprintf("unix://%s/holt.sock", run_dir);
    struct holt *holt = NULL;

    if ((named ? open_named(host, &holt) : open_local(run_dir, host, &holt)) < 0)
        return -1;
    *ret = (struct connection){ .holt = holt, .host = TAKE_PTR(host) };
    return 0;
}

void connection_close(struct connection *connection)
{
    holt_close(connection->holt);
    free(connection->host);
    *connection = (struct connection){ .holt = NULL };
}
