// SPDX-License-Identifier: Apache-2.0
/* Ports of sandboxes on a whole host: forwards and probes. */
#include <pthread.h>
#include <stdatomic.h>

#include "kernel/host/port_world.h"

enum {
    MANY = 1000,
    CROWD = 200,
    PIECE = 1024 * 1024,
    BLOCK = 64 * 1024,
    RSS_GROWTH_KIB = 16 * 1024,
    STILL_MS = 300,
};

/* Returns whether the server, on port 0x1b58, has a connection. */
#define CONNECTED "/bin/busybox grep -q ':1B58 .* 01 ' /proc/net/tcp"

#define GIB (UINT64_C(1) << 30)

static struct sandbox *sandbox; /* with servers in it */
static struct port_forward *served;

static void bytes_pass_both_ways(void)
{
    for (int i = 0; i < 3; i++)
        check_echo(served);
}

static void what_a_client_says_last_arrives_and_is_answered(void)
{
    cleanup_free char *data = calloc(1, PIECE);
    uint64_t answer[2], sum = 0;
    int fd = client_of(served);

    for (size_t i = 0; i < PIECE; i++)
        data[i] = (char)(i * 7);
    for (size_t i = 0; i < PIECE; i++)
        sum = sum * 31 + (unsigned char)data[i];
    put(fd, "s", 1);
    put(fd, data, PIECE);
    (void)shutdown(fd, SHUT_WR);
    want(fd, answer, sizeof(answer));
    CHECK(answer[0] == PIECE && answer[1] == sum, "(%llu bytes)", (unsigned long long)answer[0]);
    want_end(fd);
}

static void a_server_may_end_first_and_still_listen(void)
{
    cleanup_free char *data = calloc(1, PIECE);
    int fd = client_of(served);
    char byte;

    put(fd, "h", 1);
    want_text(fd, "hello");
    CHECK(recv(fd, &byte, 1, 0) == 0);
    put(fd, data, PIECE);
    (void)close(fd);
    EVENTUALLY(strcmp(world_cat(sandbox, "/tmp/heard"), "1048576") == 0);
}

static void a_broken_connection_is_no_orderly_end(void)
{
    int fd = client_of(served);

    put(fd, "r", 1);
    want_text(fd, "x");
    want_reset(fd);
}

static void break_off(int fd)
{
    const struct linger at_once = { .l_onoff = 1 };

    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    (void)close(fd);
}

static void a_client_that_breaks_off_ends_the_server(void)
{
    int fd = client_of(served);

    put(fd, "q", 1);
    EVENTUALLY(world_sh(sandbox, CONNECTED, NULL) == 0);
    break_off(fd);
    EVENTUALLY(world_sh(sandbox, CONNECTED, NULL) == 1);
}

static void nobody_listening_ends_a_connection_at_once(void)
{
    struct port_forward *early = forward(sandbox, LATER_PORT);

    for (int i = 0; i < 10; i++)
        want_reset(client_of(early));
    serve_on(sandbox, "127.0.0.1", LATER_PORT);
    check_echo(early);
    port_forward_close(early);
    CHECK(world_sh(sandbox, "kill $(cat /tmp/server-7003)", NULL) == 0);
}

static void a_server_on_the_ipv6_loopback_is_found(void)
{
    struct port_forward *forwarded = forward(sandbox, IPV6_PORT);

    check_echo(forwarded);
    port_forward_close(forwarded);
}

static void a_thousand_connections_one_after_the_other(void)
{
    for (int i = 0; i < MANY; i++)
        check_echo(served);
}

static void *swap(void *argument)
{
    cleanup_free unsigned char *data = malloc(PIECE), *back = malloc(PIECE);
    unsigned seed = (unsigned)(uintptr_t)argument;
    int fd = client_of(served);
    size_t sent = 0, got = 0;

    for (size_t i = 0; i < PIECE; i++)
        data[i] = (unsigned char)((i * 2654435761u + seed * 40503u) >> 13);
    put(fd, "e", 1);
    while (got < PIECE) {
        struct pollfd wait = { .fd = fd, .events = POLLIN | (sent < PIECE ? POLLOUT : 0) };
        ssize_t n;

        CHECK(poll(&wait, 1, PATIENCE_MS) == 1);
        if (wait.revents & POLLOUT) {
            n = send(fd, data + sent, PIECE - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
            CHECK(n > 0 || errno == EAGAIN, "(%s)", strerror(errno));
            sent += n > 0 ? (size_t)n : 0;
            if (sent == PIECE)
                (void)shutdown(fd, SHUT_WR);
        }
        if (wait.revents & (POLLIN | POLLHUP)) {
            n = recv(fd, back + got, PIECE - got, MSG_DONTWAIT);
            CHECK(n > 0 || (n < 0 && errno == EAGAIN), "(%zd, %s)", n, strerror(errno));
            got += n > 0 ? (size_t)n : 0;
        }
    }
    want_end(fd);
    CHECK(memcmp(data, back, PIECE) == 0);
    return NULL;
}

static void a_crowd_does_not_mix_its_bytes(void)
{
    pthread_t threads[CROWD];

    for (uintptr_t i = 0; i < CROWD; i++)
        CHECK(pthread_create(&threads[i], NULL, swap, (void *)i) == 0);
    for (int i = 0; i < CROWD; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

static void ask_for(int fd, uint64_t size)
{
    put(fd, "d", 1);
    put(fd, &size, sizeof(size));
}

static void check_block(const char *block, uint64_t offset)
{
    uint64_t said;

    memcpy(&said, block, sizeof(said));
    CHECK(said == offset, "(%llu, not %llu)", (unsigned long long)said, (unsigned long long)offset);
    for (size_t i = sizeof(said); i < BLOCK; i += 13)
        CHECK(block[i] == (char)(i * 31 / 7));
}

static void a_slow_reader_stops_its_server_and_loses_nothing(void)
{
    static char block[BLOCK];
    long ours = rss_kib_of(getpid()), inits = rss_kib_of(init_pid_of(sandbox));
    int fd = client_of(served);

    ask_for(fd, GIB);
    for (uint64_t got = 0; got < GIB; got += BLOCK) {
        want(fd, block, sizeof(block));
        check_block(block, got);
        if (got % (GIB / 4) != 0)
            continue;
        pause_ms(STILL_MS);
        CHECK(rss_kib_of(getpid()) < ours + RSS_GROWTH_KIB);
        CHECK(rss_kib_of(init_pid_of(sandbox)) < inits + 1024);
    }
    want_end(fd);
}

static void a_client_that_nobody_reads_waits(void)
{
    static char data[64 * 1024];
    long ours = rss_kib_of(getpid()), inits = rss_kib_of(init_pid_of(sandbox));
    int fd = client_of(served);
    uint64_t sent = 0;
    ssize_t n;

    put(fd, "q", 1);
    do {
        struct pollfd wait = { .fd = fd, .events = POLLOUT };

        n = poll(&wait, 1, STILL_MS) == 1 ? send(fd, data, sizeof(data), MSG_DONTWAIT) : -1;
        sent += n > 0 ? (uint64_t)n : 0;
        CHECK(sent < 64 * PIECE);
    } while (n > 0);
    CHECK(rss_kib_of(getpid()) < ours + RSS_GROWTH_KIB);
    CHECK(rss_kib_of(init_pid_of(sandbox)) < inits + 1024);
    check_echo(served); /* others are not held up */
    break_off(fd);
    EVENTUALLY(world_sh(sandbox, CONNECTED, NULL) == 1);
}

static void more_than_the_most_wait_their_turn(void)
{
    static int fds[FRAME_CONNECTIONS_MAX + 20];
    char byte;

    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        fds[i] = client_of(served);
        put(fds[i], "e!", 2);
    }
    for (size_t i = 0; i < FRAME_CONNECTIONS_MAX; i++)
        want_text(fds[i], "!");
    pause_ms(STILL_MS);
    CHECK(recv(fds[ARRAY_SIZE(fds) - 1], &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
    CHECK(probe(sandbox, SERVER_PORT, NULL) < 0 && err.kind == ERR_BUSY);
    for (size_t i = 0; i < FRAME_CONNECTIONS_MAX; i++)
        (void)close(fds[i]);
    for (size_t i = FRAME_CONNECTIONS_MAX; i < ARRAY_SIZE(fds); i++) {
        want_text(fds[i], "!");
        (void)close(fds[i]);
    }
}

static void a_probe_says_whether_a_port_is_ready(void)
{
    struct port_patience brief = patience(STILL_MS), cancelled = patience(PATIENCE_MS);
    int ends[2];

    CHECK(probe(sandbox, NOBODY_PORT, NULL) < 0 && err.kind == ERR_BUSY);
    CHECK(strstr(err.msg, "refused"), "(%s)", err.msg);
    CHECK_OK(probe(sandbox, SERVER_PORT, NULL), &err);
    CHECK_OK(probe(sandbox, SERVER_PORT, "/ok"), &err);
    CHECK_OK(probe(sandbox, SERVER_PORT, "/moved"), &err);
    CHECK(probe(sandbox, SERVER_PORT, "/other") < 0 && err.kind == ERR_BUSY);
    CHECK(strstr(err.msg, "500"), "(%s)", err.msg);
    CHECK(probe(sandbox, SERVER_PORT, "/junk") < 0 && err.kind == ERR_BUSY);
    CHECK(probe(sandbox, SERVER_PORT, "no path") < 0 && err.kind == ERR_INVALID);
    CHECK(probe(sandbox, SERVER_PORT, "/a b") < 0 && err.kind == ERR_INVALID);
    CHECK(sandbox_probe(sandbox, SERVER_PORT, "/slow", &brief, &err) < 0 && err.kind == ERR_BUSY);
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    cancelled.cancel_fd = ends[0];
    (void)close(ends[1]);
    CHECK(sandbox_probe(sandbox, SERVER_PORT, "/slow", &cancelled, &err) == -ECANCELED);
    (void)close(ends[0]);
}

static void a_paused_sandbox_keeps_its_clients_waiting(void)
{
    int fd = client_of(served), late;
    char byte;

    put(fd, "e", 1);
    put(fd, "1", 1);
    want_text(fd, "1");
    CHECK_OK(sandbox_pause(sandbox, &err), &err);
    late = client_of(served);
    put(late, "e!", 2);
    put(fd, "2", 1);
    pause_ms(STILL_MS);
    CHECK(recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
    CHECK(recv(late, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
    CHECK(probe(sandbox, SERVER_PORT, NULL) < 0 && err.cause == CAUSE_SESSION_PAUSED);
    CHECK_OK(sandbox_resume(sandbox, &err), &err);
    want_text(fd, "2");
    want_text(late, "!");
    (void)close(fd);
    (void)close(late);
}

static void a_closed_forward_takes_its_connections_along(void)
{
    struct port_forward *brief = forward(sandbox, SERVER_PORT);
    uint16_t port = port_forward_port(brief);
    int fd = client_of(brief), other = client_of(served);
    struct port_info *list;
    size_t count;

    put(fd, "e!", 2);
    want_text(fd, "!");
    put(other, "e!", 2);
    want_text(other, "!");
    port_list(world.host, NULL, &list, &count);
    CHECK(count == 2 && list[1].connections == 1 && list[1].port == SERVER_PORT);
    CHECK_TEXT(list[1].address, port_forward_address(brief));
    free(list);
    port_forward_close(brief);
    want_reset(fd);
    CHECK(!connects(port, &fd));
    put(other, "?", 1);
    want_text(other, "?");
    (void)close(other);
}

static void forwards_listen_where_they_are_told(void)
{
    struct port_forward *first = NULL, *second = NULL;
    char where[64];

    CHECK_OK(sandbox_forward(sandbox, SERVER_PORT, "[::1]:0", &first, &err), &err);
    CHECK(strncmp(port_forward_address(first), "[::1]:", 6) == 0);
    CHECK_TEXT(port_forward_host(first), "::1");
    port_forward_close(first);
    CHECK_OK(sandbox_forward(sandbox, SERVER_PORT, "127.0.0.2:0", &first, &err), &err);
    (void)snprintf(where, sizeof(where), "127.0.0.2:%u", port_forward_port(first));
    CHECK_TEXT(port_forward_address(first), where);
    CHECK(sandbox_forward(sandbox, SERVER_PORT, where, &second, &err) < 0 &&
          err.kind == ERR_EXISTS);
    port_forward_close(first);
    CHECK_OK(sandbox_forward(sandbox, SERVER_PORT, where, &first, &err), &err);
    port_forward_close(first);
    CHECK(sandbox_forward(sandbox, SERVER_PORT, "192.0.2.1:0", &second, &err) < 0 &&
          err.kind == ERR_INVALID);
    CHECK(sandbox_forward(sandbox, SERVER_PORT, "localhost:0", &second, &err) < 0 &&
          err.kind == ERR_INVALID);
    CHECK(sandbox_forward(sandbox, SERVER_PORT, ":70000", &second, &err) < 0 &&
          err.kind == ERR_INVALID);
    CHECK(sandbox_forward(sandbox, 0, NULL, &second, &err) < 0 && err.kind == ERR_INVALID);
}

static void a_rollback_ends_connections_and_a_stop_the_forward(void)
{
    struct sandbox *brief = world_create(NULL);
    struct port_forward *forwarded = forward(brief, SERVER_PORT);
    struct snapshot_info turn;
    uint16_t port = port_forward_port(forwarded);
    int fd;

    CHECK_OK(sandbox_turn(brief, &turn, &err), &err);
    serve_on(brief, "127.0.0.1", SERVER_PORT);
    fd = client_of(forwarded);
    put(fd, "e!", 2);
    want_text(fd, "!");
    CHECK_OK(sandbox_rollback(brief, turn.name, false, &err), &err);
    want_end(fd);
    want_reset(client_of(forwarded));
    serve_on(brief, "127.0.0.1", SERVER_PORT);
    check_echo(forwarded);
    fd = client_of(forwarded);
    put(fd, "e!", 2);
    want_text(fd, "!");
    CHECK_OK(sandbox_stop(brief, &err), &err);
    CHECK(port_forward_wait(forwarded, -1) == 0);
    want_reset(fd);
    CHECK(!connects(port, &fd));
    port_forward_close(forwarded);
    CHECK(sandbox_forward(brief, SERVER_PORT, NULL, &forwarded, &err) < 0 &&
          err.cause == CAUSE_INVALID_STATE);
    world_destroy(brief);
}

static void connections_end_with_the_daemon_and_new_ones_are_made(void)
{
    int fd = client_of(served);
    char id[SANDBOX_ID_MAX];

    put(fd, "e!", 2);
    want_text(fd, "!");
    (void)snprintf(id, sizeof(id), "%s", sandbox->info.id);
    port_forward_close(served);
    want_reset(fd);
    sandbox_unref(sandbox);
    host_close(TAKE_PTR(world.host));
    world_start();
    CHECK_OK(sandbox_find(world.host, &caller_root, id, &sandbox, &err), &err);
    serve_on(sandbox, "::1", IPV6_PORT);
    served = forward(sandbox, SERVER_PORT);
    check_echo(served);
    EVENTUALLY(world_sh(sandbox, CONNECTED, NULL) == 1);
}

static size_t thread_count(void)
{
    return count_entries("/proc/self/task");
}

static bool is_pool_full(void)
{
    struct host_health health;

    host_health(world.host, &caller_root, &health);
    return health.pool_ready == world.config.pool_size;
}

static void all(void)
{
    struct host_counts before = host_count();
    size_t fds, threads;

    must_be_root();
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    world_open("auto");
    world_add_server();
    world_import("small");
    sandbox = world_create("served");
    serve_on(sandbox, "127.0.0.1", SERVER_PORT);
    serve_on(sandbox, "::1", IPV6_PORT);
    served = forward(sandbox, SERVER_PORT);
    check_echo(served);
    EVENTUALLY(is_pool_full());
    pause_ms(STILL_MS);
    fds = count_entries("/proc/self/fd");
    threads = thread_count();
    RUN(bytes_pass_both_ways);
    RUN(what_a_client_says_last_arrives_and_is_answered);
    RUN(a_server_may_end_first_and_still_listen);
    RUN(a_broken_connection_is_no_orderly_end);
    RUN(a_client_that_breaks_off_ends_the_server);
    RUN(nobody_listening_ends_a_connection_at_once);
    RUN(a_server_on_the_ipv6_loopback_is_found);
    RUN(a_thousand_connections_one_after_the_other);
    RUN(a_crowd_does_not_mix_its_bytes);
    RUN(a_slow_reader_stops_its_server_and_loses_nothing);
    RUN(a_client_that_nobody_reads_waits);
    RUN(more_than_the_most_wait_their_turn);
    RUN(a_probe_says_whether_a_port_is_ready);
    RUN(a_paused_sandbox_keeps_its_clients_waiting);
    RUN(a_closed_forward_takes_its_connections_along);
    RUN(forwards_listen_where_they_are_told);
    EVENTUALLY(count_entries("/proc/self/fd") <= fds);
    EVENTUALLY(thread_count() <= threads);
    RUN(a_rollback_ends_connections_and_a_stop_the_forward);
    RUN(connections_end_with_the_daemon_and_new_ones_are_made);
    port_forward_close(served);
    world_destroy(sandbox);
    world_close();
    CHECK(host_count().fds == before.fds);
}

int main(void)
{
    RUN(all);
    return 0;
}
