// SPDX-License-Identifier: Apache-2.0
/* The watch hub: many watches in one process on one inotify instance, because all sandboxes share
 * a small number of instances and one sandbox may have few workers. Each watch has its own socket.
 * The hub never blocks on a reader: events that a slow one does not read are dropped, and it
 * receives an overflow event. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "guest/files/file_internal.h"
#include "guest/files/watch.h"
#include "kernel/fds.h"

enum { CLIENT_OUT_MAX = 256 * 1024, CLIENT_CHUNK = 16 * 1024 };

/* One watch with its socket. */
struct client {
    struct dir_watch watch; /* first member: the hub's list links these */
    struct worker link;
    bool is_started; /* the request has been answered */
    bool is_failed;  /* the request failed; close after the reply */
};

struct hub {
    int fd; /* from the daemon: receives sockets of new watches */
    int inotify_fd;
    struct dir_watch *first;
    size_t count;
};

static struct client *client_of(struct dir_watch *watch)
{
    return (struct client *)watch;
}

static void client_free(struct hub *hub, struct client *client)
{
    struct dir_watch **slot = &hub->first;

    while (*slot != &client->watch)
        slot = &(*slot)->next;
    *slot = client->watch.next;
    hub->count--;
    dir_watch_done(&client->watch);
    client->link.fd = fd_close(client->link.fd);
    buf_done(&client->link.in);
    buf_done(&client->link.out);
    free(client);
}

static void client_add(struct hub *hub, int fd)
{
    struct client *client;

    if (hub->count == FILE_HUB_MAX) {
        (void)fd_close(fd);
        return;
    }
    client = xcalloc(1, sizeof(*client));
    client->link.fd = fd;
    client->link.in.max = FILE_HEADER_SIZE + FILE_WHOLE_MAX + CLIENT_CHUNK;
    client->link.out.max = CLIENT_OUT_MAX;
    client->watch = (struct dir_watch){ .next = hub->first,
                                        .all = &hub->first,
                                        .worker = &client->link,
                                        .fd = hub->inotify_fd,
                                        .may_drop = true };
    hub->first = &client->watch;
    hub->count++;
}

/* Receives one byte with a socket. Returns 0, or -errno if the daemon has hung up. */
static int hub_receive(struct hub *hub)
{
    int fds[FDS_MAX];
    size_t count;
    char byte;
    ssize_t n = fds_receive(hub->fd, &byte, 1, MSG_DONTWAIT, fds, &count);

    if (n < 0)
        return n == -EAGAIN ? 0 : (int)n;
    if (n == 0 || count != 1)
        return -EPIPE;
    client_add(hub, fds[0]);
    return 0;
}

/* Returns 0, or -errno if the client is to be freed. */
static int client_flush(struct client *client)
{
    struct buf *out = &client->link.out;
    int r = 0;

    while (r == 0 && out->len > 0) {
        ssize_t n = send(client->link.fd, out->data, out->len, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0)
            return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        buf_consume(out, (size_t)n);
        if (out->len == 0 && client->watch.has_dropped) {
            const struct file_event lost = { .kind = FILE_EVENT_OVERFLOW, .path = "" };

            client->watch.has_dropped = false;
            r = file_put_event(out, &lost);
        }
    }
    if (r == 0 && (client->watch.is_over || client->is_failed))
        return -EPIPE;
    return r;
}

static int client_start(struct client *client, const struct file_piece *piece)
{
    struct file_request request;
    int r;

    if (!file_get_request(piece, &request) || request.type != FILE_WATCH)
        return -EPROTO;
    client->is_started = true;
    r = dir_watch_start(&client->watch, &request);
    if (r < 0) {
        const struct file_failure failure = { (uint32_t)-r, request.path, dir_watch_error_text(r) };

        client->is_failed = true;
        return file_put_failure(&client->link.out, FILE_FAILED, &failure);
    }
    return file_put_number(&client->link.out, FILE_END, 0);
}

/* Receives the request; after it, only a hang-up is valid. */
static int client_receive(struct client *client)
{
    struct buf *in = &client->link.in;
    struct file_piece piece;
    ssize_t n;

    if (client->is_started)
        return -EPIPE;
    if (buf_reserve(in, CLIENT_CHUNK) < 0)
        return -ENOBUFS;
    n = recv(client->link.fd, in->data + in->len, CLIENT_CHUNK, MSG_DONTWAIT);
    if (n <= 0)
        return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -EPIPE;
    in->len += (size_t)n;
    n = file_next(&client->link.parser, in->data, in->len, &piece);
    if (n <= 0)
        return (int)n;
    n = client_start(client, &piece);
    buf_done(in);
    return (int)n;
}

/* Events are sent before new requests are answered: an answer proves that everything which happened
 * before its request has been reported to all watches. */
static void hub_serve_clients(struct hub *hub, const struct pollfd *fds)
{
    struct dir_watch *each = hub->first, *next;

    for (struct dir_watch *watch = hub->first; watch; watch = watch->next)
        if (client_of(watch)->is_started)
            (void)client_flush(client_of(watch)); /* a failure comes again below */
    for (; each; each = next, fds++) {
        struct client *client = client_of(each);
        int r = fds->revents & (POLLIN | POLLHUP | POLLERR) ? client_receive(client) : 0;

        next = each->next;
        if (r == 0)
            r = client_flush(client);
        if (r < 0)
            client_free(hub, client);
    }
}

/* Discards events of watches that have ended. */
static int hub_discard(const struct hub *hub)
{
    char data[4096];

    return read(hub->inotify_fd, data, sizeof(data)) < 0 && errno != EAGAIN && errno != EINTR
               ? -errno
               : 0;
}

/* Clients are served before new ones are added, so that fds still matches the list. */
static int hub_turn(struct hub *hub, struct pollfd *fds)
{
    size_t count = 2;
    int r = 0;

    fds[0] = (struct pollfd){ .fd = hub->fd, .events = POLLIN };
    fds[1] = (struct pollfd){ .fd = hub->inotify_fd, .events = POLLIN };
    for (struct dir_watch *each = hub->first; each; each = each->next)
        fds[count++] = (struct pollfd){
            .fd = client_of(each)->link.fd,
            .events = POLLIN | (client_of(each)->link.out.len > 0 ? POLLOUT : 0),
        };
    if (poll(fds, count, -1) < 0)
        return errno == EINTR ? 0 : -errno;
    if (fds[1].revents)
        r = hub->first ? dir_watch_read(hub->first) : hub_discard(hub);
    hub_serve_clients(hub, fds + 2);
    return r == 0 && fds[0].revents ? hub_receive(hub) : r;
}

int file_hub(struct worker *worker, const struct file_request *request)
{
    static struct pollfd fds[2 + FILE_HUB_MAX];
    cleanup_close int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    struct hub hub = { .fd = worker->fd, .inotify_fd = fd };
    int r;

    if (fd < 0)
        return worker_fail(worker, -errno, request->path, "no inotify instance available");
    r = file_put_number(&worker->out, FILE_END, 0);
    if (r == 0)
        r = worker_flush(worker);
    while (r == 0)
        r = hub_turn(&hub, fds);
    while (hub.first)
        client_free(&hub, client_of(hub.first));
    return r;
}
