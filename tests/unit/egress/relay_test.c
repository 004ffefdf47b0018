// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "check.h"
#include "egress/egress_internal.h"

enum { MANY = 1000, BYTES = 1024 * 1024 };

static struct egress egress = { .slice_until_ns = UINT64_MAX };

static void never_ready(struct watch *watch, uint32_t events)
{
    (void)watch;
    (void)events;
}

static struct guest *guest_make(uint64_t number, const char *owner)
{
    return egress_guest_add(&egress, number, "sb-1", owner);
}

/* Borrows all pipes that the owner gets. Returns how many. */
static size_t pipes_take(struct guest *guest, struct pipe **list)
{
    size_t count = 0;

    for (struct pipe *pipe; count < MANY && (pipe = pipe_borrow(guest)); count++) {
        pipe->next = *list;
        *list = pipe;
    }
    return count;
}

static void pipes_give_back(struct guest *guest, struct pipe *list)
{
    while (list) {
        struct pipe *pipe = list;

        list = pipe->next;
        pipe_discard(guest, pipe);
    }
    CHECK(guest->owner->pipes == 0);
}

/* Makes one side of a connection; returns the other end of its socket. */
static int side_make(struct side *side)
{
    int fds[2];

    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
    *side = (struct side){ .watch = { .fd = fds[0], .ready = never_ready } };
    return fds[1];
}

static void no_owner_gets_all_pipes(void)
{
    struct guest *greedy = guest_make(1, "greedy"), *other = guest_make(2, "other");
    struct pipe *of_greedy = NULL, *of_other = NULL;
    size_t first = pipes_take(greedy, &of_greedy), second = pipes_take(other, &of_other);

    CHECK(first > 0 && first < MANY);
    CHECK(second >= 64);
    CHECK(egress.pipes_lent == first + second && greedy->owner->pipes == first);
    pipes_give_back(greedy, of_greedy);
    pipes_give_back(other, of_other);
    CHECK(egress.pipes_lent == 0 && egress.pipe_count == 0);
}

static void bytes_pass_without_a_pipe(void)
{
    struct connection connection = { .guest = guest_make(1, "owner"), .is_raw = true };
    int client = side_make(&connection.client), server = side_make(&connection.server);
    char *sent = xcalloc(1, BYTES), *got = xcalloc(1, BYTES);
    size_t sent_len = 0, got_len = 0;
    bool was_blocked = false;
    struct pipe *pipes = NULL;

    connection.state = CONNECTION_RELAY;
    CHECK(pipes_take(connection.guest, &pipes) < MANY);
    for (size_t i = 0; i < BYTES; i++)
        sent[i] = (char)(i * 2654435761U >> 13);
    while (got_len < BYTES) {
        ssize_t n = send(server, sent + sent_len, BYTES - sent_len, MSG_NOSIGNAL);

        sent_len += n > 0 ? (size_t)n : 0;
        relay_pump(&connection);
        CHECK(!connection.is_dead && !connection.down.pipe);
        if (connection.down.is_blocked) {
            was_blocked = true;
            CHECK(connection.client.watch.events & EPOLLOUT);
            CHECK(!(connection.server.watch.events & EPOLLIN));
        }
        /* Both buffers become full before the client reads. */
        if (n < 0 || sent_len == BYTES)
            while ((n = recv(client, got + got_len, BYTES - got_len, 0)) > 0)
                got_len += (size_t)n;
    }
    CHECK(was_blocked && memcmp(sent, got, BYTES) == 0 && connection.down.total == BYTES);
    CHECK(shutdown(server, SHUT_WR) == 0);
    relay_pump(&connection);
    CHECK(!connection.is_dead && recv(client, got, 1, 0) == 0);
    watch_close(&egress, &connection.client.watch);
    watch_close(&egress, &connection.server.watch);
    (void)close(client);
    (void)close(server);
    pipes_give_back(connection.guest, pipes);
    free(sent);
    free(got);
}

/* The first bytes of the reply may come one by one, and the sandbox gets each at once. */
static void an_upgrade_is_seen_in_pieces(void)
{
    static const char *const replies[] = { "HTTP/1.1 101 S\r\n", "HTTP/1.1 200 O\r\n" };

    for (size_t i = 0; i < 2; i++) {
        struct connection connection = { .guest = guest_make(1, "owner"), .awaits_upgrade = true };
        int client = side_make(&connection.client), server = side_make(&connection.server);

        connection.state = CONNECTION_RELAY;
        connection.in = (struct buf)BUF_INIT(64 * 1024);
        for (const char *c = replies[i]; *c; c++) {
            char got = 0;

            CHECK(send(server, c, 1, MSG_NOSIGNAL) == 1);
            relay_pump(&connection);
            CHECK(recv(client, &got, 1, 0) == 1 && got == *c);
        }
        CHECK(connection.is_raw == (i == 0) && !connection.awaits_upgrade);
        CHECK(connection.down.total == strlen(replies[i]));
        watch_close(&egress, &connection.client.watch);
        watch_close(&egress, &connection.server.watch);
        (void)close(client);
        (void)close(server);
        buf_done(&connection.in);
    }
}

int main(void)
{
    struct rlimit limit;

    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = limit.rlim_max;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    egress.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    CHECK(egress.epoll_fd >= 0);
    RUN(no_owner_gets_all_pipes);
    RUN(bytes_pass_without_a_pipe);
    RUN(an_upgrade_is_seen_in_pieces);
    return 0;
}
