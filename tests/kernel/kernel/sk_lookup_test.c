// SPDX-License-Identifier: Apache-2.0
/* Routes and the program that leads connections to a listener, in a network namespace. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "check.h"
#include "kernel/netns.h"
#include "kernel/route.h"
#include "kernel/sk_lookup.h"

#define RESOLVER "192.0.2.53"

static struct sockaddr_in6 address_of(const char *text, uint16_t port)
{
    struct sockaddr_in6 address = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

    CHECK(inet_pton(AF_INET6, text, &address.sin6_addr) == 1);
    return address;
}

static struct route_range range_of(const char *text, unsigned bits)
{
    return (struct route_range){ .address = address_of(text, 0).sin6_addr, .bits = bits };
}

/* Returns the error of a connection (0: none). */
static int try_connect(const char *text, uint16_t port, int type)
{
    struct sockaddr_in6 address = address_of(text, port);
    cleanup_close int fd = socket(AF_INET6, type | SOCK_CLOEXEC, 0);

    return connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ? errno : 0;
}

static int listener_open(void)
{
    struct sockaddr_in6 address = address_of("::ffff:" RESOLVER, 53);
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK(setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &(int){ 0 }, sizeof(int)) == 0);
    CHECK(bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0);
    CHECK(listen(fd, 16) == 0);
    return fd;
}

/* Checks that the next connection of the listener is one to this address. */
static void check_destination(int listener_fd, const char *text, uint16_t port)
{
    cleanup_close int fd = accept4(listener_fd, NULL, NULL, SOCK_CLOEXEC);
    struct sockaddr_in6 wanted = address_of(text, port), got = { 0 };
    socklen_t len = sizeof(got);

    CHECK(getsockname(fd, (struct sockaddr *)&got, &len) == 0);
    CHECK(got.sin6_port == wanted.sin6_port);
    CHECK(memcmp(&got.sin6_addr, &wanted.sin6_addr, sizeof(got.sin6_addr)) == 0);
}

static void connections_to_granted_addresses_reach_the_listener(void)
{
    static const char *const granted[] = { "::ffff:93.184.216.34", "2606:2800::34" };
    struct route_range all = range_of("::ffff:0.0.0.0", 96), all6 = range_of("::", 0);
    struct route_range resolver = range_of("::ffff:" RESOLVER, 128);
    cleanup_close int routes = route_open(), listener = -EBADF, link = -EBADF;
    cleanup_close int netns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    struct in_addr resolver4;

    CHECK(inet_pton(AF_INET, RESOLVER, &resolver4) == 1);
    CHECK(route_add(routes, ROUTE_PROHIBIT, &all) == 0);
    CHECK(route_add(routes, ROUTE_PROHIBIT, &all6) == 0);
    CHECK(route_add(routes, ROUTE_LOCAL, &resolver) == 0);
    listener = listener_open();
    link = sk_lookup_attach(netns, listener, resolver4);
    CHECK(link >= 0);
    for (size_t i = 0; i < ARRAY_SIZE(granted); i++) {
        struct route_range range = range_of(granted[i], 128);

        CHECK(try_connect(granted[i], 80, SOCK_STREAM) == EACCES);
        CHECK(try_connect(granted[i], 80, SOCK_DGRAM) == EACCES);
        CHECK(route_add(routes, ROUTE_LOCAL, &range) == 0);
        CHECK(route_add(routes, ROUTE_LOCAL, &range) == 0);
        CHECK(try_connect(granted[i], 80, SOCK_STREAM) == 0);
        check_destination(listener, granted[i], 80);
        CHECK(route_remove(routes, ROUTE_LOCAL, &range) == 0);
        CHECK(route_remove(routes, ROUTE_LOCAL, &range) == 0);
        CHECK(try_connect(granted[i], 80, SOCK_STREAM) == EACCES);
        CHECK(route_add(routes, ROUTE_LOCAL, &range) == 0);
    }
    CHECK(try_connect("::ffff:127.0.0.1", 80, SOCK_STREAM) == ECONNREFUSED);
    CHECK(try_connect("::1", 80, SOCK_STREAM) == ECONNREFUSED);
    listener = fd_close(listener);
    CHECK(try_connect(granted[0], 80, SOCK_STREAM) == ECONNREFUSED);
    link = fd_close(link);
    CHECK(try_connect(granted[0], 80, SOCK_STREAM) == ECONNREFUSED);
    CHECK(route_flush(routes) == 0);
    CHECK(try_connect(granted[0], 80, SOCK_STREAM) == ENETUNREACH);
    CHECK(try_connect(granted[1], 80, SOCK_STREAM) == ENETUNREACH);
}

static void servers_behind_the_program_are_not_reached(void)
{
    struct route_range all = range_of("::ffff:0.0.0.0", 96);
    struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_port = htons(80) };
    struct route_range resolver = range_of("::ffff:" RESOLVER, 128);
    cleanup_close int routes = route_open(), listener = -EBADF, link = -EBADF;
    cleanup_close int netns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    cleanup_close int server = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct in_addr resolver4;

    CHECK(inet_pton(AF_INET, RESOLVER, &resolver4) == 1);
    CHECK(bind(server, (const struct sockaddr *)&any, sizeof(any)) == 0 && listen(server, 4) == 0);
    CHECK(route_add(routes, ROUTE_LOCAL, &all) == 0);
    CHECK(route_add(routes, ROUTE_LOCAL, &resolver) == 0);
    listener = listener_open();
    link = sk_lookup_attach(netns, listener, resolver4);
    CHECK(try_connect("::ffff:1.2.3.4", 80, SOCK_STREAM) == 0);
    check_destination(listener, "::ffff:1.2.3.4", 80);
    listener = fd_close(listener); /* holt-net has died: refused, and not answered by the server */
    CHECK(try_connect("::ffff:1.2.3.4", 80, SOCK_STREAM) == ECONNREFUSED);
    CHECK(try_connect("::ffff:127.0.0.1", 80, SOCK_STREAM) == 0);
    CHECK(route_flush(routes) == 0);
}

static bool is_taken(int listener_fd)
{
    cleanup_close int fd = -EBADF;

    if (try_connect("::ffff:1.2.3.4", 80, SOCK_STREAM) != 0)
        return false;
    fd = accept4(listener_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    return fd >= 0;
}

static void a_program_stays_attached_without_a_descriptor(void)
{
    struct route_range all = range_of("::ffff:0.0.0.0", 96);
    cleanup_close int routes = route_open(), listener = -EBADF, link = -EBADF, pins = -EBADF;
    cleanup_close int netns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    struct in_addr resolver4;

    CHECK(inet_pton(AF_INET, RESOLVER, &resolver4) == 1);
    CHECK(route_add(routes, ROUTE_LOCAL, &all) == 0);
    listener = listener_open();
    pins = sk_lookup_pins_open();
    CHECK(pins >= 0);
    sk_lookup_unpin(pins, 7); /* there is none yet */
    for (int i = 0; i < 3; i++) {
        link = sk_lookup_attach(netns, listener, resolver4);
        CHECK(sk_lookup_pin(pins, 7, link) == 0);
        CHECK(sk_lookup_pin(pins, 7, link) == -EEXIST);
        link = fd_close(link);
        CHECK(is_taken(listener));
        sk_lookup_unpin(pins, 7);
        CHECK(!is_taken(listener));
    }
    link = sk_lookup_attach(netns, listener, resolver4);
    CHECK(sk_lookup_pin(pins, 8, link) == 0);
    link = fd_close(link);
    CHECK(is_taken(listener));
    pins = fd_close(pins); /* the daemon has died */
    for (int i = 0; i < 1000 && is_taken(listener); i++)
        (void)usleep(10000);
    CHECK(!is_taken(listener));
    CHECK(route_flush(routes) == 0);
}

static void lists_of_routes_are_added_whole(void)
{
    struct route_entry list[150];
    cleanup_close int routes = route_open();
    char text[32];

    for (size_t i = 0; i < ARRAY_SIZE(list); i++) {
        (void)snprintf(text, sizeof(text), "::ffff:203.0.113.%zu", i);
        list[i] = (struct route_entry){ .kind = ROUTE_LOCAL, .range = range_of(text, 128) };
        CHECK(try_connect(text, 80, SOCK_STREAM) == ENETUNREACH);
    }
    CHECK(route_add_all(routes, list, 0) == 0);
    CHECK(route_add_all(routes, list, ARRAY_SIZE(list)) == 0);
    for (size_t i = 0; i < ARRAY_SIZE(list); i++) {
        (void)snprintf(text, sizeof(text), "::ffff:203.0.113.%zu", i);
        CHECK(try_connect(text, 80, SOCK_STREAM) == ECONNREFUSED);
    }
    CHECK(route_flush(routes) == 0);
    CHECK(try_connect(text, 80, SOCK_STREAM) == ENETUNREACH);
    list[70].range.bits = 129 + 96; /* longer than an address */
    CHECK(route_add_all(routes, list, ARRAY_SIZE(list)) == -EINVAL);
    CHECK(route_add(routes, ROUTE_LOCAL, &list[0].range) == 0); /* no answer is left over */
    CHECK(route_flush(routes) == 0);
}

int main(void)
{
    if (unshare(CLONE_NEWNET) < 0 || netns_loopback_up() < 0) {
        TEST_SKIP("no network namespaces");
        return 0;
    }
    RUN(connections_to_granted_addresses_reach_the_listener);
    RUN(servers_behind_the_program_are_not_reached);
    RUN(a_program_stays_attached_without_a_descriptor);
    RUN(lists_of_routes_are_added_whole);
    return 0;
}
