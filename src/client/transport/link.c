// SPDX-License-Identifier: Apache-2.0
#include "client/transport/link.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "client/transport/address.h"
#include "client/transport/deadline.h"
#include "client/transport/tls.h"
#include "holt.h"

struct link {
    atomic_uint refs;
    int fd;
    struct tls_session *session; /* NULL: plain */
};

struct link *link_new(int fd)
{
    struct link *link = xcalloc(1, sizeof(*link));

    atomic_init(&link->refs, 1);
    link->fd = fd;
    return link;
}

struct link *link_ref(struct link *link)
{
    (void)atomic_fetch_add(&link->refs, 1);
    return link;
}

void link_unref(struct link *link)
{
    if (!link || atomic_fetch_sub(&link->refs, 1) > 1)
        return;
    tls_session_free(link->session);
    (void)fd_close(link->fd);
    free(link);
}

DEFINE_CLEANUP(link_unref, struct link *);

int link_open(const struct address *address, struct tls *tls, int64_t deadline, struct link **ret,
              struct holt_error *error)
{
    cleanup_with(link_unref_slot) struct link *link = NULL;
    int fd = address_connect(address, deadline, error);

    if (fd < 0)
        return -1;
    link = link_new(fd);
    if (tls && tls_session_open(tls, address, fd, deadline, &link->session, error) < 0)
        return -1;
    *ret = TAKE_PTR(link);
    return 0;
}

static void parts_skip(struct msghdr *message, size_t done)
{
    while (message->msg_iovlen > 0 && done >= message->msg_iov->iov_len) {
        done -= message->msg_iov->iov_len;
        message->msg_iov++;
        message->msg_iovlen--;
    }
    if (message->msg_iovlen > 0) {
        message->msg_iov->iov_base = (char *)message->msg_iov->iov_base + done;
        message->msg_iov->iov_len -= done;
    }
}

/* Sends a part of the message. Returns the number of bytes, -EAGAIN with the events to wait for, or
 * another -errno. */
static ssize_t send_some(struct link *link, const struct msghdr *message, int flags,
                         short *ret_events)
{
    ssize_t n;

    *ret_events = POLLOUT;
    if (link->session)
        return tls_write(link->session, message->msg_iov->iov_base, message->msg_iov->iov_len,
                         ret_events);
    n = sendmsg(link->fd, message, MSG_NOSIGNAL | flags);
    return n < 0 ? -errno : n;
}

/* Without a deadline a blocking call saves a system call. */
static int flags_for(int64_t deadline)
{
    return deadline == HOLT_NO_DEADLINE ? 0 : MSG_DONTWAIT;
}

int link_send(struct link *link, struct iovec *parts, size_t count, int64_t deadline)
{
    struct msghdr message = { .msg_iov = parts, .msg_iovlen = count };

    parts_skip(&message, 0);
    while (message.msg_iovlen > 0) {
        short events;
        ssize_t n = send_some(link, &message, flags_for(deadline), &events);

        if (n == -EAGAIN)
            n = deadline_wait(link->fd, events, deadline) < 0 ? -ETIMEDOUT : 0;
        else if (n == -EINTR)
            n = 0;
        if (n < 0)
            return (int)n;
        parts_skip(&message, (size_t)n);
    }
    return 0;
}

/* Polls before recv: a blocking recv on a unix socket wakes up when the daemon reads what was sent;
 * poll does not. */
ssize_t link_receive(struct link *link, void *data, size_t size, int64_t deadline)
{
    for (;;) {
        short events = POLLIN;
        ssize_t n;

        if (link->session) {
            n = tls_read(link->session, data, size, &events);
        } else {
            n = recv(link->fd, data, size, MSG_DONTWAIT);
            n = n < 0 ? -errno : n;
        }
        if (n == -EINTR)
            continue;
        if (n != -EAGAIN)
            return n;
        n = deadline_wait(link->fd, events, deadline);
        if (n < 0)
            return n;
    }
}

bool link_is_quiet(struct link *link)
{
    char byte;

    if (link->session)
        return tls_is_quiet(link->session);
    return recv(link->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

int link_poll_fd(struct link *link)
{
    return link->session && tls_has_bytes(link->session) ? -1 : link->fd;
}

void link_hang_up(struct link *link)
{
    (void)shutdown(link->fd, SHUT_RDWR);
}
