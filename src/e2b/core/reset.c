// SPDX-License-Identifier: Apache-2.0
#include "e2b/core/reset.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "base/thread.h"
#include "base/xalloc.h"
#include "host/observe/event.h"
#include "host/observe/event_ring.h"
#include "http/tls/front.h"

struct e2b_resets {
    struct host *host;
    int stop_fds[2]; /* a socket pair; closing the first stops the thread */

    struct lock lock; /* protects everything below */
    struct event_reader *reader;
    struct thread thread;
    struct e2b_reset *first;
};

void e2b_connection_reset(int fd)
{
    const struct sockaddr nobody = { .sa_family = AF_UNSPEC };

    if (tls_front_reset(fd))
        return;
    /* Disconnecting with AF_UNSPEC sends RST. SO_LINGER would not: libmicrohttpd shuts the socket
     * down first, which sends FIN. */
    if (connect(fd, &nobody, sizeof(nobody)) < 0)
        (void)shutdown(fd, SHUT_RDWR);
}

void e2b_connection_cut(int fd)
{
    (void)shutdown(fd, SHUT_RDWR);
}

/* Breaks the connections of one sandbox; NULL: of all. */
static void reset_all(struct e2b_resets *resets, const char *sandbox)
{
    lock_take(&resets->lock);
    for (const struct e2b_reset *each = resets->first; each; each = each->next)
        if (!sandbox || strcmp(each->sandbox, sandbox) == 0)
            (each->is_stream ? e2b_connection_cut : e2b_connection_reset)(each->fd);
    lock_release(&resets->lock);
}

static void events_handle(struct e2b_resets *resets)
{
    struct event *event;
    uint64_t lost = 0;

    while ((event = event_reader_take(resets->reader, &lost))) {
        /* The lost events may have been about any sandbox. */
        if (lost > 0)
            log_warn("%llu events were missed: connections to sandboxes are reset",
                     (unsigned long long)lost);
        reset_all(resets, lost > 0 ? NULL : event->sandbox);
        event_unref(event);
        lost = 0;
    }
}

static void resets_main(void *argument)
{
    struct e2b_resets *resets = argument;

    while (event_reader_wait(resets->reader, resets->stop_fds[1], -1) == 0)
        events_handle(resets);
}

struct e2b_resets *e2b_resets_new(struct host *host)
{
    struct e2b_resets *resets = xcalloc(1, sizeof(*resets));

    resets->host = host;
    resets->stop_fds[0] = resets->stop_fds[1] = -EBADF;
    lock_init(&resets->lock, LOCK_E2B_RESETS);
    return resets;
}

/* Needs the lock. */
static int resets_start(struct e2b_resets *resets, struct err *err)
{
    const struct event_reader_spec spec = {
        .start = EVENT_FROM_NOW,
        .types = UINT64_C(1) << EVENT_SANDBOX_PAUSED | UINT64_C(1) << EVENT_SANDBOX_STOPPED |
                 UINT64_C(1) << EVENT_SANDBOX_LOST | UINT64_C(1) << EVENT_SANDBOX_FAILED |
                 UINT64_C(1) << EVENT_SANDBOX_ROLLED_BACK | UINT64_C(1) << EVENT_SANDBOX_DESTROYED,
    };
    int r;

    if (resets->stop_fds[0] < 0 &&
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, resets->stop_fds) < 0)
        return err_sys(err, -errno, "make a socket");
    r = resets->reader ? 0 : host_watch(resets->host, &caller_root, &spec, &resets->reader, err);
    if (r < 0)
        return r;
    r = thread_start(&resets->thread, "holt-resets", resets_main, resets);
    return r < 0 ? err_sys(err, r, "start the thread that resets connections") : 0;
}

void e2b_resets_free(struct e2b_resets *resets)
{
    if (!resets)
        return;
    (void)fd_close(resets->stop_fds[0]);
    thread_join(&resets->thread);
    (void)fd_close(resets->stop_fds[1]);
    event_reader_close(resets->reader);
    lock_destroy(&resets->lock);
    free(resets);
}

void e2b_reset_add(struct e2b_resets *resets, struct e2b_reset *reset, const char *sandbox, int fd)
{
    struct err err = { 0 };

    (void)snprintf(reset->sandbox, sizeof(reset->sandbox), "%s", sandbox);
    reset->fd = fd;
    reset->is_listed = true;
    lock_take(&resets->lock);
    if (!resets->thread.is_started && resets_start(resets, &err) < 0)
        log_warn("connections to sandboxes will not be reset: %s", err.msg);
    reset->next = resets->first;
    reset->slot = &resets->first;
    if (resets->first)
        resets->first->slot = &reset->next;
    resets->first = reset;
    lock_release(&resets->lock);
}

void e2b_reset_remove(struct e2b_resets *resets, struct e2b_reset *reset)
{
    if (!reset->is_listed)
        return;
    lock_take(&resets->lock);
    *reset->slot = reset->next;
    if (reset->next)
        reset->next->slot = reset->slot;
    lock_release(&resets->lock);
    reset->is_listed = false;
}
