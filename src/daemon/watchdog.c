// SPDX-License-Identifier: Apache-2.0
/* Before each WATCHDOG=1 the central threads are checked, and the API's /healthz. If one of them
 * does not respond, the message is not sent and systemd restarts the daemon; sandboxes keep
 * running. */
#include "daemon/watchdog.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/thread.h"
#include "base/xalloc.h"
#include "daemon/notify.h"
#include "host/core/host.h"

enum { US_PER_MS = 1000, PARTS = 4 }; /* a message, and a check, in each quarter of the interval */

struct watchdog {
    struct host *host;
    char *socket_path;
    uint64_t part_ms;
    struct worker worker;
};

static int healthz_get(int fd, uint64_t patience_ms)
{
    static const char request[] =
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    const struct timeval patience = { .tv_sec = (time_t)(patience_ms / 1000),
                                      .tv_usec = (suseconds_t)(patience_ms % 1000) * 1000 };
    char answer[16] = "";

    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    if (send(fd, request, strlen(request), MSG_NOSIGNAL) != (ssize_t)strlen(request))
        return -EIO;
    if (recv(fd, answer, strlen("HTTP/1.1 200"), MSG_WAITALL) != (ssize_t)strlen("HTTP/1.1 200"))
        return -EIO;
    return strcmp(answer, "HTTP/1.1 200") == 0 ? 0 : -EIO;
}

/* With socket activation the socket may be elsewhere; there is nothing to check then. */
static int check_api(const struct watchdog *watchdog, struct err *err)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return err_sys(err, -errno, "create a socket");
    if (strlen(watchdog->socket_path) >= sizeof(address.sun_path))
        return 0;
    memcpy(address.sun_path, watchdog->socket_path, strlen(watchdog->socket_path) + 1);
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
        return errno == ENOENT ? 0 : err_sys(err, -errno, "connect to the API");
    return healthz_get(fd, watchdog->part_ms) < 0
               ? err_set(err, ERR_INTERNAL, "the API does not respond")
               : 0;
}

static void watchdog_notify(const struct watchdog *watchdog)
{
    struct err err = { 0 };
    int r = host_check_threads(watchdog->host, (unsigned)watchdog->part_ms, &err);

    if (r == 0)
        r = check_api(watchdog, &err);
    if (r == 0)
        notify_systemd("WATCHDOG=1");
    else
        log_error("watchdog: not notifying systemd: %s", err.msg);
}

static void watchdog_main(void *argument)
{
    struct watchdog *watchdog = argument;

    do
        watchdog_notify(watchdog);
    while (worker_rest(&watchdog->worker, watchdog->part_ms, 0));
}

static void watchdog_free(struct watchdog *watchdog)
{
    worker_destroy(&watchdog->worker);
    free(watchdog->socket_path);
    free(watchdog);
}

int watchdog_start(struct host *host, const char *run_dir, struct watchdog **ret, struct err *err)
{
    uint64_t us = notify_watchdog_us();
    struct watchdog *watchdog;
    int r;

    *ret = NULL;
    if (us == 0)
        return 0;
    watchdog = xcalloc(1, sizeof(*watchdog));
    watchdog->host = host;
    watchdog->socket_path = xasprintf("%s/holt.sock", run_dir);
    watchdog->part_ms = us / PARTS / US_PER_MS > 0 ? us / PARTS / US_PER_MS : 1;
    worker_init(&watchdog->worker, LOCK_WATCHDOG);
    r = thread_start(&watchdog->worker.thread, "holt-watchdog", watchdog_main, watchdog);
    if (r < 0) {
        watchdog_free(watchdog);
        return err_sys(err, r, "start the watchdog");
    }
    *ret = watchdog;
    return 0;
}

void watchdog_stop(struct watchdog *watchdog)
{
    if (!watchdog)
        return;
    worker_stop(&watchdog->worker);
    watchdog_free(watchdog);
}
