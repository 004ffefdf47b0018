// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "check.h"
#include "egress/egress_internal.h"
#include "kernel/route.h"

static struct egress egress = { .now_ms = 1000 };
static struct guest guest = { .egress = &egress, .mode = NET_ALLOW };

static bool decide(const char *address, const struct asked *asked)
{
    struct net_address parsed;
    struct net_verdict verdict;

    CHECK(net_address_parse(address, &parsed) == 0);
    return guest_decide(&guest, &parsed, 443, asked, &verdict);
}

/* The name stays valid for the connection that was decided for it, and for no other. */
static void a_granted_name_outlives_its_grant(void)
{
    struct asked fresh = { .name = "a.test", .protocol = NET_TLS };
    struct asked kept = { .name = "A.test", .protocol = NET_TLS, .granted_name = "a.test" };
    struct asked other = { .name = "b.test", .protocol = NET_TLS, .granted_name = "a.test" };
    struct net_address address;
    struct err err = { 0 };

    guest.policy.count = 1;
    guest.policy.layers[0] = (struct net_layer){ .source = NET_FROM_SANDBOX, .mode = NET_ALLOW };
    CHECK(net_layer_allow(&guest.policy.layers[0], "a.test", &err) == 0);
    CHECK(net_address_parse("93.184.216.34", &address) == 0);
    CHECK(!decide("93.184.216.34", &fresh));
    CHECK(grant_add(&guest, &address, "a.test", 1));
    CHECK(decide("93.184.216.34", &fresh) && decide("93.184.216.34", &kept));
    egress.now_ms += 3600 * 1000;
    CHECK(!decide("93.184.216.34", &fresh));
    CHECK(decide("93.184.216.34", &kept));
    CHECK(!decide("93.184.216.34", &other));
    CHECK(net_layer_remove(&guest.policy.layers[0], "a.test"));
    CHECK(!decide("93.184.216.34", &kept)); /* the policy counts all the same */
    grants_free(&guest);
    net_policy_done(&guest.policy);
}

/* A sandbox can hold thousands of silent connections: each is decided once, and again when bytes
 * have come or the policy has changed. */
static void silence_is_decided_once(void)
{
    struct connection connection = { .guest = &guest, .state = CONNECTION_PEEK, .port = 22 };
    struct err err = { 0 };

    guest.policy.count = 1;
    guest.policy.layers[0] = (struct net_layer){ .source = NET_FROM_SANDBOX, .mode = NET_ALLOW };
    CHECK(net_address_parse("93.184.216.34", &connection.destination) == 0);
    connection.began_ms = egress.now_ms;
    egress.now_ms += 299;
    connection_tick(&connection);
    CHECK(!connection.was_silent);
    egress.now_ms += 1;
    connection_tick(&connection);
    CHECK(connection.was_silent && connection.state == CONNECTION_PEEK);
    /* It would be dialed if it were decided again. */
    CHECK(net_layer_allow(&guest.policy.layers[0], "93.184.216.34:22", &err) == 0);
    egress.now_ms += 1000;
    connection_tick(&connection);
    CHECK(connection.state == CONNECTION_PEEK && !connection.is_allowed);
    connection_review(&connection);
    CHECK(!connection.was_silent);
    net_policy_done(&guest.policy);
}

static void queries_send(int fd, unsigned count)
{
    static const unsigned char query[] = { 0, 7,   1, 0,   0,   1,   0,   0, 0, 0, 0, 0,
                                           1, 'a', 4, 't', 'e', 's', 't', 0, 0, 1, 0, 1 };

    for (unsigned i = 0; i < count; i++)
        CHECK(send(fd, query, sizeof(query), 0) == sizeof(query));
}

static int datagram_socket(struct sockaddr_in *address)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    socklen_t len = sizeof(*address);

    *address = (struct sockaddr_in){ .sin_family = AF_INET };
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(fd >= 0 && bind(fd, (const struct sockaddr *)address, len) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)address, &len) == 0);
    return fd;
}

static unsigned lines_count(int fd)
{
    char line[4096];
    unsigned count = 0;

    while (recv(fd, line, sizeof(line), MSG_DONTWAIT) > 0)
        count++;
    return count;
}

static void a_flood_of_queries_and_lines_is_bounded(void)
{
    const struct egress_line line = { .protocol = "dns", .name = "", .rule = "", .end = "denied" };
    struct sockaddr_in address, other;
    int control[2], client = datagram_socket(&other);

    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) == 0);
    egress.control.fd = control[0];
    egress.unsent = (struct buf)BUF_INIT(1024 * 1024);
    guest.policy.count = 1;
    guest.policy.layers[0] = (struct net_layer){ .source = NET_FROM_SANDBOX, .mode = NET_ALLOW };
    guest.query_tokens = 3;
    guest.resolver = (struct watch){ .fd = datagram_socket(&address), .ready = resolver_ready };
    watch_set(&egress, &guest.resolver, EPOLLIN);
    CHECK(connect(client, (const struct sockaddr *)&address, sizeof(address)) == 0);
    queries_send(client, 5);
    for (int i = 0; i < 3; i++)
        resolver_ready(&guest.resolver, EPOLLIN);
    CHECK(egress.counters.queries == 3 && guest.resolver.events == 0);
    guest.query_tokens = 10; /* in the next second */
    resolver_resume(&guest);
    CHECK(guest.resolver.events == EPOLLIN);
    resolver_ready(&guest.resolver, EPOLLIN);
    CHECK(egress.counters.queries == 5 && guest.resolver.events == EPOLLIN);
    CHECK(lines_count(control[1]) == 6); /* five refusals, one bound */

    for (unsigned i = 0; i < 3 * GUEST_LINES_PER_SECOND; i++)
        report_line(&guest, &line);
    CHECK(guest.lines == GUEST_LINES_PER_SECOND);
    CHECK(guest.lines_dropped == 2 * GUEST_LINES_PER_SECOND + 5);
    report_dropped(&guest);
    CHECK(guest.lines == 0 && guest.lines_dropped == 0);
    (void)lines_count(control[1]);
    buf_clear(&egress.unsent);
    for (int i = 0; i < 100; i++)
        report_limit(&guest, BOUND_CONNECTS);
    CHECK(lines_count(control[1]) == 1);
    egress.now_ms += 60 * 1000;
    report_limit(&guest, BOUND_CONNECTS);
    CHECK(lines_count(control[1]) == 1);
    (void)close(client);
    (void)close(control[1]);
    watch_close(&egress, &guest.resolver);
    watch_close(&egress, &egress.control);
    buf_done(&egress.unsent);
}

int main(void)
{
    egress.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    egress.route_fd = route_open();
    CHECK(egress.route_fd >= 0 && egress.epoll_fd >= 0);
    RUN(a_granted_name_outlives_its_grant);
    RUN(silence_is_decided_once);
    RUN(a_flood_of_queries_and_lines_is_bounded);
    return 0;
}
