// SPDX-License-Identifier: Apache-2.0
#include "http/tls/front.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "http/limits.h"
#include "http/tls/context.h"
#include "http/tls/front_internal.h"

enum { EVENTS = 64, TICK_MS = 500, STOPPING_MS = 1000 };

/* A process has one listener with TLS. */
static _Atomic(struct tls_front *) only;

/* The newest one is meant: a number may be used again before the end of an older one was seen. */
bool tls_front_reset(int fd)
{
    struct tls_front *front = atomic_load(&only);
    struct front_connection *each;

    if (!front)
        return false;
    lock_take(&front->lock);
    for (each = front->open; each && each->server_fd != fd; each = each->next_open)
        ;
    if (each) {
        each->is_reset = true;
        (void)shutdown(fd, SHUT_RDWR);
    }
    lock_release(&front->lock);
    return each != NULL;
}

/* --- new connections -------------------------------------------------------------------------- */

static bool has_same_address(const struct front_connection *connection,
                             const struct sockaddr_storage *address)
{
    const struct sockaddr_in *one = (const void *)&connection->address,
                             *other = (const void *)address;
    const struct sockaddr_in6 *one6 = (const void *)&connection->address,
                              *other6 = (const void *)address;

    if (connection->address.ss_family != address->ss_family)
        return false;
    if (address->ss_family == AF_INET)
        return one->sin_addr.s_addr == other->sin_addr.s_addr;
    return memcmp(&one6->sin6_addr, &other6->sin6_addr, sizeof(one6->sin6_addr)) == 0;
}

/* Closes the oldest connection without a completed handshake if there are too many of them, in all
 * or of this address. The server limits those that have completed it. */
static void room_make(const struct front_loop *loop, const struct sockaddr_storage *address)
{
    const struct tls_front_options *options = &loop->front->options;
    struct front_connection *oldest = NULL, *oldest_same = NULL;
    size_t same = 0, all = 0;

    for (struct front_connection *each = loop->first; each; each = each->next) {
        if (each->stage != STAGE_HANDSHAKE || each->is_dead)
            continue;
        oldest = each;
        all++;
        if (has_same_address(each, address)) {
            oldest_same = each;
            same++;
        }
    }
    if (oldest_same && same >= options->handshakes_per_address / LOOPS)
        oldest_same->is_dead = true;
    else if (oldest && all >= options->handshakes_max / LOOPS)
        oldest->is_dead = true;
}

static void connection_add(struct front_loop *loop, int fd, const struct sockaddr_storage *address,
                           socklen_t len)
{
    struct front_connection *connection;
    SSL *ssl = SSL_new(loop->front->context);

    room_make(loop, address);
    if (!ssl || SSL_set_fd(ssl, fd) != 1) {
        SSL_free(ssl);
        (void)fd_close(fd);
        return;
    }
    SSL_set_accept_state(ssl);
    connection = xcalloc(1, sizeof(*connection));
    *connection = (struct front_connection){
        .next = loop->first,
        .slot = &loop->first,
        .loop = loop,
        .outer = { .connection = connection, .fd = fd },
        .inner = { .connection = connection, .fd = -EBADF },
        .server_fd = -EBADF,
        .ssl = ssl,
        .deadline_ms = clock_after_ms(CONNECTION_FIRST_MS),
        .address = *address,
        .address_len = len,
    };
    if (loop->first)
        loop->first->slot = &connection->next;
    loop->first = connection;
    front_connection_shake(connection);
}

static int listener_watch(struct front_loop *loop)
{
    struct epoll_event event = { .events = EPOLLIN | EPOLLEXCLUSIVE, .data.ptr = loop };
    int fd = loop->front->options.listen_fd;

    return epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static void listener_rest(struct front_loop *loop)
{
    (void)epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, loop->front->options.listen_fd, NULL);
    loop->is_resting = true;
}

/* The front may become quiet at the same time, and has then removed the listener before. */
static void listener_resume(struct front_loop *loop)
{
    loop->is_resting = listener_watch(loop) < 0;
    if (atomic_load(&loop->front->is_quiet))
        listener_rest(loop);
}

static void connections_accept(struct front_loop *loop)
{
    for (int i = 0; i < EVENTS && !atomic_load(&loop->front->is_quiet); i++) {
        struct sockaddr_storage address = { 0 };
        socklen_t len = sizeof(address);
        int fd = accept4(loop->front->options.listen_fd, (struct sockaddr *)&address, &len,
                         SOCK_CLOEXEC | SOCK_NONBLOCK);

        /* The listener stays readable if the connection cannot be taken. */
        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
            listener_rest(loop);
        if (fd < 0)
            return;
        connection_add(loop, fd, &address, len);
    }
}

/* --- threads ---------------------------------------------------------------------------------- */

/* Frees the dead and the late. A connection is freed here only: events of one round may name it. */
static void connections_sweep(struct front_loop *loop)
{
    uint64_t now_ms = clock_ms();
    bool is_due = loop->check_ms <= now_ms;
    struct front_connection *next;

    for (struct front_connection *each = loop->first; each; each = next) {
        next = each->next;
        if (is_due)
            front_connection_check(each, now_ms);
        if (each->is_dead || (each->stage != STAGE_OPEN && each->deadline_ms <= now_ms))
            front_connection_free(each);
    }
    if (!is_due)
        return;
    loop->check_ms = now_ms + TICK_MS;
    if (loop->is_resting && !atomic_load(&loop->front->is_quiet))
        listener_resume(loop);
}

/* Returns false once the front stops. */
static bool loop_turn(struct front_loop *loop)
{
    struct epoll_event events[EVENTS];
    int count = epoll_wait(loop->epoll_fd, events, EVENTS, TICK_MS);
    bool goes_on = true;

    for (int i = 0; i < count; i++) {
        if (events[i].data.ptr == loop)
            connections_accept(loop);
        else if (events[i].data.ptr == loop->front)
            goes_on = false;
        else
            front_side_handle(events[i].data.ptr, events[i].events);
    }
    connections_sweep(loop);
    return goes_on;
}

/* When the front stops, what is under way to clients is sent first. */
static void loop_main(void *argument)
{
    struct front_loop *loop = argument;
    uint64_t end_ms;

    while (loop_turn(loop))
        ;
    (void)epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, loop->front->wake_fd, NULL);
    end_ms = clock_after_ms(STOPPING_MS);
    while (loop->first && clock_ms() < end_ms)
        (void)loop_turn(loop);
    while (loop->first)
        front_connection_free(loop->first);
}

static int loop_start(struct front_loop *loop, struct tls_front *front)
{
    struct epoll_event wakes = { .events = EPOLLIN, .data.ptr = front };

    loop->front = front;
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (loop->epoll_fd < 0 ||
        epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, front->wake_fd, &wakes) < 0 ||
        listener_watch(loop) < 0)
        return -errno;
    return thread_start(&loop->thread, "holt-tls", loop_main, loop);
}

int tls_front_start(const struct tls_front_options *options, struct tls_front **ret,
                    struct err *err)
{
    struct tls_front *front = xcalloc(1, sizeof(*front));
    int r = 0;

    front->options = *options;
    lock_init(&front->lock, LOCK_TLS_FRONT);
    for (int i = 0; i < LOOPS; i++)
        front->loops[i].epoll_fd = -EBADF;
    front->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    front->context = tls_context_new(options->tls);
    if (!front->context)
        r = err_set(err, ERR_INVALID, "OpenSSL cannot use the certificate or its key");
    else if (front->wake_fd < 0)
        r = err_sys(err, -errno, "make an eventfd");
    atomic_store(&only, front);
    for (int i = 0; i < LOOPS && r == 0; i++) {
        r = loop_start(&front->loops[i], front);
        if (r < 0)
            (void)err_sys(err, r, "start a thread for TLS");
    }
    if (r < 0) {
        tls_front_stop(front);
        return r;
    }
    *ret = front;
    return 0;
}

void tls_front_quiesce(struct tls_front *front)
{
    atomic_store(&front->is_quiet, true);
    for (int i = 0; i < LOOPS; i++)
        (void)epoll_ctl(front->loops[i].epoll_fd, EPOLL_CTL_DEL, front->options.listen_fd, NULL);
}

void tls_front_stop(struct tls_front *front)
{
    const uint64_t one = 1;

    if (!front)
        return;
    atomic_store(&front->is_quiet, true);
    (void)!write(front->wake_fd, &one, sizeof(one));
    for (int i = 0; i < LOOPS; i++) {
        thread_join(&front->loops[i].thread);
        front->loops[i].epoll_fd = fd_close(front->loops[i].epoll_fd);
    }
    atomic_store(&only, NULL);
    SSL_CTX_free(front->context);
    (void)fd_close(front->wake_fd);
    lock_destroy(&front->lock);
    free(front);
}
