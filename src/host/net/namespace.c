// SPDX-License-Identifier: Apache-2.0
/* Every function here that enters the namespace of a machine leaves it again before it returns.
 * They run on the thread of net.c alone, which starts no other work inside. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "host/llm/llm.h"
#include "host/machine/machine_internal.h"
#include "host/net/net_internal.h"
#include "kernel/netns_enter.h"
#include "kernel/sk_lookup.h"

enum {
    DNS_PORT = 53,
    BACKLOG = 1024,
    V4_BITS = 96,
    BIND_PAUSE_MS = 10,
};

void net_sockets_done(struct net_sockets *sockets)
{
    sockets->listener_fd = fd_close(sockets->listener_fd);
    sockets->resolver_fd = fd_close(sockets->resolver_fd);
}

/* --- routes --- */

static struct route_range range_of(const struct net_prefix *prefix)
{
    struct route_range range = { .bits = prefix->bits };

    if (prefix->address.family == AF_INET) {
        range.bits += V4_BITS;
        range.address.s6_addr[10] = range.address.s6_addr[11] = 0xff;
        memcpy(range.address.s6_addr + 12, prefix->address.bytes, 4);
    } else {
        memcpy(range.address.s6_addr, prefix->address.bytes, 16);
    }
    return range;
}

static bool ranges_equal(const struct route_range *one, const struct route_range *other)
{
    return one->bits == other->bits &&
           memcmp(&one->address, &other->address, sizeof(one->address)) == 0;
}

/* A later route replaces an earlier one of the same range. */
static void routes_add(struct net_routes *routes, enum route_kind kind,
                       const struct net_prefix *prefix)
{
    struct route_range range = range_of(prefix);

    for (size_t i = 0; i < routes->count; i++) {
        if (ranges_equal(&routes->list[i].range, &range)) {
            routes->list[i].kind = kind;
            return;
        }
    }
    routes->list = xreallocarray(routes->list, routes->count + 1, sizeof(*routes->list));
    routes->list[routes->count++] = (struct route_entry){ .kind = kind, .range = range };
}

static void routes_add_text(struct net_routes *routes, enum route_kind kind, const char *text)
{
    struct net_prefix prefix;

    if (net_prefix_parse(text, &prefix) == 0)
        routes_add(routes, kind, &prefix);
}

struct range_list {
    struct net_prefix *list;
    size_t count;
};

static void range_collect(void *data, const struct net_prefix *range)
{
    struct range_list *ranges = data;

    ranges->list = xreallocarray(ranges->list, ranges->count + 1, sizeof(*ranges->list));
    ranges->list[ranges->count++] = *range;
}

static bool ranges_cover(const struct range_list *ranges, const struct net_prefix *prefix)
{
    for (size_t i = 0; i < ranges->count; i++)
        if (ranges->list[i].bits <= prefix->bits &&
            net_prefix_has(&ranges->list[i], &prefix->address))
            return true;
    return false;
}

/* Loopback keeps the routes of the kernel. */
static bool is_loopback(const struct net_prefix *prefix)
{
    static const unsigned char v6[16] = { [15] = 1 };

    return prefix->address.family == AF_INET
               ? prefix->address.bytes[0] == 127
               : prefix->bits == 128 && memcmp(prefix->address.bytes, v6, 16) == 0;
}

/* Collects the ranges that are denied on all ports. In a list of E2B a rule for a name may allow an
 * address in them. */
static void denied_collect(const struct net_policy *policy, struct range_list *ret)
{
    for (size_t i = 0; i < policy->count; i++) {
        const struct net_layer *layer = &policy->layers[i];

        for (size_t j = 0; j < layer->deny.count && !layer->allow_wins; j++) {
            const struct net_rule *rule = &layer->deny.items[j];

            if (rule->is_range && rule->port_count == 0 && rule->scheme == NET_ANY_SCHEME &&
                !rule->method[0] && !rule->path[0])
                range_collect(ret, &rule->range);
        }
    }
}

/* The addresses of the host, as they are now. A later one is refused by holt-net alone. */
static void routes_add_own(struct net_routes *routes)
{
    struct ifaddrs *list = NULL;
    const char *reason;

    if (getifaddrs(&list) < 0)
        return;
    for (const struct ifaddrs *each = list; each; each = each->ifa_next) {
        struct net_prefix own = { .bits = 0 };

        if (each->ifa_addr)
            own.address = net_address_of(each->ifa_addr);
        if (net_address_class(&own.address, &reason) != NET_PUBLIC)
            continue;
        own.bits = own.address.family == AF_INET ? 32 : 128;
        routes_add(routes, ROUTE_PROHIBIT, &own);
    }
    freeifaddrs(list);
}

/* A range that is wider than a special one does not allow it. */
static void routes_add_specials(struct net_routes *routes, bool is_allow,
                                const struct range_list *ranges)
{
    for (const struct net_prefix *each = net_special_prefixes(); each->address.family != AF_UNSPEC;
         each++)
        if (each->bits > 0 && !is_loopback(each) && (!is_allow || ranges_cover(ranges, each)))
            routes_add(routes, ROUTE_PROHIBIT, each);
}

/* Routes make refusals quick; holt-net still decides every connection. */
void net_routes_fill(const struct net_policy *policy, struct net_routes *ret)
{
    bool is_allow = net_policy_mode(policy) == NET_ALLOW;
    enum route_kind rest = is_allow ? ROUTE_PROHIBIT : ROUTE_LOCAL;
    struct range_list ranges = { .list = NULL }, denied = { .list = NULL };

    *ret = (struct net_routes){ .count = 0 };
    if (net_policy_mode(policy) == NET_NONE) { /* everything else has no route at all */
        routes_add_text(ret, ROUTE_LOCAL, NET_RESOLVER);
        routes_add_text(ret, ROUTE_LOCAL, LLM_ADDRESS);
        return;
    }
    net_policy_each_range(policy, range_collect, &ranges);
    denied_collect(policy, &denied);
    routes_add_text(ret, rest, "0.0.0.0/0");
    routes_add_text(ret, rest, "::/0");
    routes_add_specials(ret, is_allow, &ranges);
    if (!is_allow)
        routes_add_own(ret);
    for (size_t i = 0; i < ranges.count; i++)
        if (!is_loopback(&ranges.list[i]) && !ranges_cover(&denied, &ranges.list[i]))
            routes_add(ret, ROUTE_LOCAL, &ranges.list[i]);
    for (size_t i = 0; i < denied.count; i++)
        if (!is_loopback(&denied.list[i]))
            routes_add(ret, ROUTE_PROHIBIT, &denied.list[i]);
    routes_add_text(ret, ROUTE_LOCAL, NET_RESOLVER);
    if (net_policy_models(policy)[0])
        routes_add_text(ret, ROUTE_LOCAL, LLM_ADDRESS);
    free(ranges.list);
    free(denied.list);
}

void net_routes_done(struct net_routes *routes)
{
    free(routes->list);
    *routes = (struct net_routes){ .count = 0 };
}

/* --- entering --- */

/* Enters the namespace of the machine. A runtime may leave its first process in the namespace of
 * the daemon, whose routes must not be touched. */
static int namespace_enter(const struct net *net, const struct net_guest *guest)
{
    int r = netns_enter(guest->machine->guest.pidfd);
    ino_t here = r < 0 ? 0 : netns_id();

    if (r == 0 && (here == 0 || here == net->home)) {
        (void)netns_enter(net->home_fd);
        return -EOPNOTSUPP;
    }
    return r;
}

/* The daemon cannot go on with a thread that is in the wrong namespace. */
static void namespace_leave(const struct net *net)
{
    if (netns_enter(net->home_fd) < 0) {
        log_error("the daemon cannot return to its network namespace");
        abort();
    }
}

/* --- sockets --- */

/* Tries again until a time, but at least once more: all sandboxes wait for this thread, and a
 * process inside can have the port for as long as it likes. */
static int socket_bind(int fd, const struct sockaddr *address, socklen_t len, uint64_t until_ms)
{
    for (bool is_last = false;; clock_sleep_ms(BIND_PAUSE_MS)) {
        if (bind(fd, address, len) == 0)
            return 0;
        if (errno != EADDRINUSE || is_last)
            return -errno;
        is_last = clock_ms() >= until_ms;
    }
}

/* One socket for both families. It listens on the resolver's own port, for DNS over TCP; the BPF
 * program leads all other connections to it. */
static int listener_open(uint64_t until_ms)
{
    cleanup_close int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_in6 address = { .sin6_family = AF_INET6, .sin6_port = htons(DNS_PORT) };
    int r;

    (void)inet_pton(AF_INET6, "::ffff:" NET_RESOLVER, &address.sin6_addr);
    if (fd < 0 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &(int){ 0 }, sizeof(int)) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)) < 0)
        return -errno;
    r = socket_bind(fd, (const struct sockaddr *)&address, sizeof(address), until_ms);
    if (r < 0)
        return r;
    return listen(fd, BACKLOG) < 0 ? -errno : TAKE_FD(fd);
}

static int resolver_open(uint64_t until_ms)
{
    cleanup_close int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(DNS_PORT) };
    int r;

    (void)inet_pton(AF_INET, NET_RESOLVER, &address.sin_addr);
    if (fd < 0)
        return -errno;
    r = socket_bind(fd, (const struct sockaddr *)&address, sizeof(address), until_ms);
    return r < 0 ? r : TAKE_FD(fd);
}

/* --- what net.c calls --- */

/* Runs inside. Local routes would make the namespace answer pings for any host. */
static int inside_prepare(const struct net_routes *routes, uint64_t until_ms,
                          struct net_sockets *ret, int *ret_netns_fd, const char **ret_step)
{
    cleanup_close int fd = -EBADF;
    int r;

    *ret_step = "turn off replies to pings";
    r = file_write_at(AT_FDCWD, "/proc/sys/net/ipv4/icmp_echo_ignore_all", "1");
    if (r == 0)
        r = file_write_at(AT_FDCWD, "/proc/sys/net/ipv6/icmp/echo_ignore_all", "1");
    if (r < 0)
        return r;
    *ret_step = "set the routes";
    fd = route_open();
    if (fd < 0)
        return fd;
    r = route_flush(fd);
    if (r == 0)
        r = route_add_all(fd, routes->list, routes->count);
    if (r < 0)
        return r;
    *ret_step = "listen";
    ret->listener_fd = listener_open(until_ms);
    if (ret->listener_fd < 0)
        return ret->listener_fd;
    *ret_step = "open the socket of the resolver";
    ret->resolver_fd = resolver_open(until_ms);
    if (ret->resolver_fd < 0)
        return ret->resolver_fd;
    *ret_step = "open the network namespace";
    *ret_netns_fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    return *ret_netns_fd < 0 ? -errno : 0;
}

int net_namespace_prepare(struct net *net, struct net_guest *guest, struct net_sockets *ret,
                          struct err *err)
{
    cleanup_with(net_sockets_done) struct net_sockets sockets = { -EBADF, -EBADF };
    cleanup_close int netns_fd = -EBADF, link_fd = -EBADF;
    struct in_addr resolver;
    const char *step = "enter the network namespace";
    int r;

    (void)inet_pton(AF_INET, NET_RESOLVER, &resolver);
    sk_lookup_unpin(net->pins_fd, guest->number);
    net_routes_done(&guest->routes);
    net_routes_fill(&guest->policy, &guest->routes);
    r = namespace_enter(net, guest);
    if (r == 0) {
        r = inside_prepare(&guest->routes, net->ports_until_ms, &sockets, &netns_fd, &step);
        namespace_leave(net);
    }
    if (r == -EADDRINUSE) {
        (void)err_set(err, ERR_BUSY,
                      "sandbox '%s' cannot have a network: a process in it uses port %d, which the "
                      "resolver needs",
                      guest->id, DNS_PORT);
        return err_remedy(err, "end that process, or let it use another port");
    }
    if (r < 0)
        return err_sys(err, r, "%s of sandbox '%s'", step, guest->id);
    link_fd = sk_lookup_attach(netns_fd, sockets.listener_fd, resolver);
    r = link_fd < 0 ? link_fd : sk_lookup_pin(net->pins_fd, guest->number, link_fd);
    if (r < 0) {
        (void)err_set(err, ERR_UNSUPPORTED,
                      "a sandbox cannot have a network: the kernel refuses a BPF program of the "
                      "kind sk_lookup: %s",
                      strerror(-r));
        return err_remedy(err, "use --net none, or a kernel with CONFIG_BPF_SYSCALL and let holtd "
                               "have CAP_BPF and CAP_NET_ADMIN");
    }
    *ret = sockets;
    sockets = (struct net_sockets){ -EBADF, -EBADF };
    return 0;
}

static bool routes_have(const struct net_routes *routes, const struct route_entry *route)
{
    for (size_t i = 0; i < routes->count; i++)
        if (ranges_equal(&routes->list[i].range, &route->range))
            return true;
    return false;
}

/* Adds before it removes, so that connections which stay have a route all the time. */
static int inside_reroute(const struct net_routes *old, const struct net_routes *new)
{
    cleanup_close int fd = route_open();
    int r = fd < 0 ? fd : route_add_all(fd, new->list, new->count);

    for (size_t i = 0; r == 0 && i < old->count; i++)
        if (!routes_have(new, &old->list[i]))
            r = route_remove(fd, old->list[i].kind, &old->list[i].range);
    return r;
}

int net_namespace_reroute(struct net *net, struct net_guest *guest, struct net_routes *routes,
                          struct err *err)
{
    int r = namespace_enter(net, guest);

    if (r == 0) {
        r = inside_reroute(&guest->routes, routes);
        namespace_leave(net);
    }
    net_routes_done(&guest->routes);
    guest->routes = *routes;
    *routes = (struct net_routes){ .count = 0 };
    return r < 0 ? err_sys(err, r, "set the routes of sandbox '%s'", guest->id) : 0;
}

void net_namespace_clear(struct net *net, const struct net_guest *guest)
{
    cleanup_close int fd = -EBADF;

    if (namespace_enter(net, guest) < 0)
        return;
    fd = route_open();
    if (fd >= 0)
        (void)route_flush(fd);
    namespace_leave(net);
}

int net_namespace_grant(struct net *net, const struct net_guest *guest, const json_t *addresses,
                        bool is_granted)
{
    cleanup_close int fd = -EBADF;
    const json_t *each;
    size_t i;
    int r = namespace_enter(net, guest);

    if (r < 0)
        return r;
    fd = route_open();
    r = fd < 0 ? fd : 0;
    json_array_foreach(addresses, i, each) {
        struct net_prefix prefix;
        struct route_entry route = { .kind = ROUTE_LOCAL };

        if (r < 0 || !json_is_string(each) ||
            net_prefix_parse(json_string_value(each), &prefix) < 0)
            continue;
        route.range = range_of(&prefix);
        if (is_granted)
            r = route_add(fd, ROUTE_LOCAL, &route.range);
        else if (!routes_have(&guest->routes, &route))
            r = route_remove(fd, ROUTE_LOCAL, &route.range);
    }
    namespace_leave(net);
    return r;
}
