// SPDX-License-Identifier: Apache-2.0
/* The messages of control.h. What holtd sends is trusted; a message that is not understood ends
 * this process, and holtd starts it anew. */
#include "egress/control.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "egress/agent.h"
#include "egress/egress_internal.h"
#include "egress/llm/llm.h"
#include "egress/tls/authority.h"
#include "kernel/fds.h"

enum {
    UNSENT_MAX = 4 * 1024 * 1024,
    DNS_PORT = 53,
    LIMIT_PAUSE_MS = 60 * 1000,
    ACTIVE_MAX = 4096, /* machines in one report */
    LEAKS_PER_SECOND = 20,
};

/* --- sending --- */

/* Sends one message; false if the socket is full. */
static bool message_send(struct egress *egress, const char *text, size_t len)
{
    ssize_t n = send(egress->control.fd, text, len, MSG_NOSIGNAL | MSG_DONTWAIT);

    if (n < 0 && errno != EAGAIN && errno != EINTR)
        egress->is_ending = true;
    return n >= 0 || egress->is_ending;
}

void control_flush(struct egress *egress)
{
    struct buf *unsent = &egress->unsent;

    while (unsent->len > 0) {
        uint32_t len;

        memcpy(&len, unsent->data, sizeof(len));
        if (!message_send(egress, unsent->data + sizeof(len), len))
            break;
        buf_consume(unsent, sizeof(len) + len);
    }
    watch_set(egress, &egress->control, EPOLLIN | (unsent->len > 0 ? EPOLLOUT : 0U));
}

void control_send(struct egress *egress, json_t *message)
{
    cleanup_json json_t *owned = message;
    cleanup_free char *text = owned ? json_dumps(owned, JSON_COMPACT) : NULL;
    uint32_t len = text ? (uint32_t)strlen(text) : 0;
    bool is_log = owned && json_object_get(owned, "line");

    if (!text || (egress->unsent.len == 0 && message_send(egress, text, len)))
        return;
    /* Lines are dropped when holtd does not read; everything else it has asked for. */
    if ((is_log && egress->unsent.len > UNSENT_MAX / 2) ||
        buf_add(&egress->unsent, &len, sizeof(len)) < 0)
        return;
    if (buf_add(&egress->unsent, text, len) < 0)
        egress->unsent.len -= sizeof(len);
}

static void line_send(struct guest *guest, const struct egress_line *line)
{
    char address[NET_PREFIX_TEXT_SIZE] = "";

    if (line->address)
        address_to_text(line->address, address);
    control_send(guest->egress,
                 json_pack("{s:s, s:I, s:{s:s, s:o, s:s, s:i, s:b, s:b, s:o, s:s, s:I, s:I, s:I}}",
                           "do", "log", "machine", (json_int_t)guest->number, "line", "protocol",
                           line->protocol, "name", json_text(line->name), "address", address,
                           "port", (int)line->port, "allowed", (int)line->is_allowed, "special",
                           (int)line->is_special, "rule", json_text(line->rule), "end", line->end,
                           "out", (json_int_t)line->bytes_out, "in", (json_int_t)line->bytes_in,
                           "ms", (json_int_t)line->duration_ms));
}

/* holtd reads the lines of all sandboxes in one thread, which also starts and stops them. */
void report_line(struct guest *guest, const struct egress_line *line)
{
    if (guest->lines < GUEST_LINES_PER_SECOND) {
        guest->lines++;
        line_send(guest, line);
    } else {
        guest->lines_dropped++;
    }
}

void report_dropped(struct guest *guest)
{
    char text[NET_VERDICT_SIZE];

    guest->lines = 0;
    if (guest->lines_dropped == 0)
        return;
    (void)snprintf(text, sizeof(text), "%llu more lines in one second were dropped (built in)",
                   (unsigned long long)guest->lines_dropped);
    guest->lines_dropped = 0;
    line_send(guest,
              &(struct egress_line){ .protocol = "", .name = "", .rule = text, .end = "limit" });
}

void report_limit(struct guest *guest, enum egress_bound bound)
{
    static const char *const names[BOUND_COUNT] = { "connections", "connects", "queries",
                                                    "bytes-out", "host-connections" };
    uint64_t now_ms = guest->egress->now_ms, *told_ms = &guest->limited_ms[bound];

    if (*told_ms > 0 && now_ms < *told_ms + LIMIT_PAUSE_MS)
        return;
    *told_ms = now_ms;
    if (bound == BOUND_BYTES_OUT) /* the next holt-net must not begin anew */
        report_active(guest->egress);
    control_send(guest->egress, json_pack("{s:s, s:I, s:s}", "do", "limit", "machine",
                                          (json_int_t)guest->number, "resource", names[bound]));
}

void report_leak(struct guest *guest, const struct egress_leak *leak)
{
    guest->egress->counters.leaks++;
    if (guest->leaks++ >= LEAKS_PER_SECOND)
        return;
    control_send(guest->egress,
                 json_pack("{s:s, s:I, s:s, s:s, s:o, s:i, s:s, s:b}", "do", "leak", "machine",
                           (json_int_t)guest->number, "secret", leak->secret, "id",
                           leak->id ? leak->id : "", "host", json_text(leak->host), "port",
                           (int)leak->port, "where", leak->where, "cut", 1));
}

void report_counters(struct egress *egress)
{
    const struct egress_counters *counters = &egress->counters;

    if (memcmp(counters, &egress->reported, sizeof(*counters)) == 0)
        return;
    egress->reported = *counters;
    control_send(egress,
                 json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "do", "counters",
                           "connections", (json_int_t)counters->connections, "open",
                           (json_int_t)counters->open, "denied", (json_int_t)counters->denied,
                           "failedDials", (json_int_t)counters->failed_dials, "limited",
                           (json_int_t)counters->limited, "queries", (json_int_t)counters->queries,
                           "out", (json_int_t)counters->bytes_out, "in",
                           (json_int_t)counters->bytes_in, "leaks", (json_int_t)counters->leaks));
}

void report_active(struct egress *egress)
{
    cleanup_json json_t *machines = json_array(), *out = json_array();

    for (struct guest *guest = egress->guests; guest; guest = guest->next) {
        if (guest->is_active && json_array_size(machines) < ACTIVE_MAX) {
            (void)json_array_append_new(machines, json_integer((json_int_t)guest->number));
            (void)json_array_append_new(out, json_integer((json_int_t)guest->bytes_out));
            guest->is_active = false;
        }
    }
    if (json_array_size(machines) > 0)
        control_send(
            egress, json_pack("{s:s, s:O, s:O}", "do", "active", "machines", machines, "out", out));
}

static void done_send(struct egress *egress, uint64_t number)
{
    control_send(egress, json_pack("{s:s, s:I}", "do", "done", "machine", (json_int_t)number));
}

/* --- receiving --- */

/* Adds a name server to a list. */
static void server_add(const char *text, struct sockaddr_storage *list, size_t *count, size_t max)
{
    struct sockaddr_storage *slot = &list[*count];
    struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(DNS_PORT) };
    struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(DNS_PORT) };

    if (!text || *count == max)
        return;
    memset(slot, 0, sizeof(*slot));
    if (inet_pton(AF_INET, text, &in.sin_addr) == 1)
        memcpy(slot, &in, sizeof(in));
    else if (inet_pton(AF_INET6, text, &in6.sin6_addr) == 1)
        memcpy(slot, &in6, sizeof(in6));
    else
        return;
    (*count)++;
}

static void servers_read(const json_t *list, struct sockaddr_storage *ret, size_t *ret_count,
                         size_t max)
{
    *ret_count = 0;
    for (size_t i = 0; i < json_array_size(list); i++)
        server_add(json_string_value(json_array_get(list, i)), ret, ret_count, max);
}

static int zones_read(struct egress *egress, const json_t *zones)
{
    egress->zone_count = 0;
    for (size_t i = 0; i < json_array_size(zones); i++) {
        const json_t *item = json_array_get(zones, i);
        struct zone *zone = &egress->zones[egress->zone_count];
        const char *name = json_string_value(json_object_get(item, "name"));

        if (!name || egress->zone_count == ZONES_MAX ||
            net_name_normalize(name, strlen(name), zone->name))
            return -EPROTO;
        servers_read(json_object_get(item, "servers"), zone->servers, &zone->server_count,
                     ZONE_SERVERS_MAX);
        egress->zone_count++;
    }
    return 0;
}

/* The proxy of the host and what is dialed without it. Connections that would go another way now
 * are cut. */
static int upstream_read(struct egress *egress, const json_t *config)
{
    const char *text = json_string_value(json_object_get(config, "proxy"));
    cleanup_with(net_layer_done) struct net_layer direct = { 0 };
    const json_t *list = json_object_get(config, "direct");
    struct net_proxy proxy;
    struct err err = { 0 };

    if (text && net_proxy_parse(text, &proxy, &err) < 0)
        return -EPROTO;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *rule = json_string_value(json_array_get(list, i));

        if (!rule || net_layer_deny(&direct, rule, &err) < 0)
            return -EPROTO;
    }
    free(egress->direct.items);
    egress->direct = direct.deny;
    direct.deny = (struct net_rules){ .items = NULL };
    (void)upstream_set(egress, &egress->upstream, text ? &proxy : NULL);
    for (struct guest *guest = egress->guests; guest; guest = guest->next) {
        for (struct connection *each = guest->connections, *next; each; each = next) {
            next = each->next;
            upstream_review(each);
        }
    }
    return 0;
}

static void bound_read(const json_t *bounds, const char *name, uint32_t *ret)
{
    const json_t *value = json_object_get(bounds, name);

    if (json_is_integer(value) && json_integer_value(value) > 0)
        *ret = (uint32_t)json_integer_value(value);
}

/* Certificates that were made by another authority are not trusted by new sandboxes. */
static int authority_read(struct egress *egress, const json_t *ca)
{
    const char *certificate = json_string_value(json_object_get(ca, "certificate"));
    const char *key = json_string_value(json_object_get(ca, "key"));
    struct authority *authority = NULL;

    if (ca && (!certificate || !key))
        return -EPROTO;
    if (ca) {
        authority = authority_new(certificate, key);
        if (!authority)
            return -EPROTO;
    }
    authority_free(egress->authority);
    egress->authority = authority;
    return 0;
}

static int hello_handle(struct egress *egress, const json_t *message)
{
    const json_t *config = json_object_get(message, "config"), *bounds;

    servers_read(json_object_get(config, "resolvers"), egress->resolvers, &egress->resolver_count,
                 RESOLVERS_MAX);
    if (zones_read(egress, json_object_get(config, "zones")) < 0 ||
        upstream_read(egress, config) < 0 ||
        authority_read(egress, json_object_get(config, "ca")) < 0 ||
        llm_table_read(egress, json_object_get(config, "llm")) < 0)
        return -EPROTO;
    egress->has_ipv6 = json_is_true(json_object_get(config, "hasIpv6"));
    bounds = json_object_get(config, "bounds");
    bound_read(bounds, "connections", &egress->bounds.connections);
    bound_read(bounds, "connectsPerSecond", &egress->bounds.connects_per_second);
    bound_read(bounds, "queriesPerSecond", &egress->bounds.queries_per_second);
    bound_read(bounds, "idleSeconds", &egress->bounds.idle_seconds);
    bound_read(bounds, "totalSeconds", &egress->bounds.total_seconds);
    egress->bounds.bytes_out = (uint64_t)json_integer_value(json_object_get(bounds, "bytesOut"));
    return json_is_object(config) ? 0 : -EPROTO;
}

static int policy_read(const json_t *message, struct net_policy *ret)
{
    struct err err = { 0 };

    if (net_policy_from_json(json_object_get(message, "policy"), ret, &err) == 0)
        return 0;
    log_error("a policy cannot be read: %s", err.msg);
    return -EPROTO;
}

/* What "add" and "set" say besides the policy. */
static void https_read(struct guest *guest, const json_t *message)
{
    const char *bundle = json_string_value(json_object_get(message, "caBundle"));

    egress_guest_set_bundle(guest, bundle);
    egress_guest_set_secrets(guest, broker_secrets_read(json_object_get(message, "secrets")));
}

static int add_handle(struct egress *egress, const json_t *message, int *fds, size_t fd_count)
{
    struct net_policy policy = { .count = 0 };
    uint64_t number = (uint64_t)json_integer_value(json_object_get(message, "machine"));
    const char *id = json_string_value(json_object_get(message, "id"));
    const char *owner = json_string_value(json_object_get(message, "owner"));
    const char *token = json_string_value(json_object_get(message, "llmToken"));
    const char *text = json_string_value(json_object_get(message, "llmAddress"));
    struct net_address address;
    struct guest *guest;

    if (!id || !owner || !token || !text || net_address_parse(text, &address) < 0 ||
        fd_count != CONTROL_FDS || egress_guest_find(egress, number) ||
        policy_read(message, &policy) < 0)
        return -EPROTO;
    guest = egress_guest_add(egress, number, id, owner);
    guest->llm_token = xstrdup(token);
    guest->llm_address = address;
    guest->bytes_out = (uint64_t)json_integer_value(json_object_get(message, "bytesOut"));
    https_read(guest, message);
    egress_guest_set(guest, &policy);
    egress_guest_start(guest, TAKE_FD(fds[0]), TAKE_FD(fds[1]));
    done_send(egress, number);
    return 0;
}

static int agent_handle(struct egress *egress, const json_t *message, int *fds, size_t fd_count)
{
    uint64_t number = (uint64_t)json_integer_value(json_object_get(message, "machine"));
    struct guest *guest = egress_guest_find(egress, number);

    if (!guest)
        return 0;
    return agent_set(guest, json_object_get(message, "keys"),
                     fd_count == 1 ? TAKE_FD(fds[0]) : -EBADF);
}

static int guest_handle(struct egress *egress, const char *what, const json_t *message)
{
    uint64_t number = (uint64_t)json_integer_value(json_object_get(message, "machine"));
    struct guest *guest = egress_guest_find(egress, number);
    struct net_policy policy = { .count = 0 };

    if (strcmp(what, "granted") == 0) {
        resolver_granted(egress, (uint64_t)json_integer_value(json_object_get(message, "ticket")),
                         json_is_true(json_object_get(message, "ok")));
        return 0;
    }
    if (strcmp(what, "llm-reserved") == 0) {
        llm_reserved(egress, message);
        return 0;
    }
    /* A sandbox that is not known has nothing to change: no reason to end those of others. */
    if (strcmp(what, "remove") == 0) {
        if (guest)
            egress_guest_remove(guest);
    } else if (strcmp(what, "set") == 0) {
        if (guest && policy_read(message, &policy) < 0)
            return -EPROTO;
        if (guest) {
            https_read(guest, message);
            egress_guest_set(guest, &policy);
        }
    } else if (strcmp(what, "secrets") == 0) {
        if (guest)
            https_read(guest, message);
    } else {
        return -EPROTO;
    }
    done_send(egress, number);
    return 0;
}

static int message_handle(struct egress *egress, const char *text, size_t len, int *fds,
                          size_t fd_count)
{
    cleanup_json json_t *message = NULL;
    struct err err = { 0 };
    const char *what;

    if (json_parse_object(text, len, &message, &err) < 0)
        return -EPROTO;
    what = json_string_value(json_object_get(message, "do"));
    if (!what)
        return -EPROTO;
    if (strcmp(what, "hello") == 0)
        return hello_handle(egress, message);
    if (strcmp(what, "add") == 0)
        return add_handle(egress, message, fds, fd_count);
    if (strcmp(what, "agent") == 0)
        return agent_handle(egress, message, fds, fd_count);
    return guest_handle(egress, what, message);
}

void control_ready(struct watch *watch, uint32_t events)
{
    struct egress *egress =
        (struct egress *)(void *)((char *)watch - offsetof(struct egress, control));
    char *text = egress->control_text;
    int fds[FDS_MAX];
    size_t count = 0;
    ssize_t n;

    if (events & EPOLLOUT)
        control_flush(egress);
    if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
        return;
    if (!text)
        text = egress->control_text = xcalloc(1, CONTROL_MESSAGE_MAX);
    n = fds_receive(watch->fd, text, CONTROL_MESSAGE_MAX, MSG_DONTWAIT, fds, &count);
    if (n == -EAGAIN || n == -EINTR)
        return;
    if (n <= 0 || message_handle(egress, text, (size_t)n, fds, count) < 0) {
        if (n > 0)
            log_error("holt-net: a message of holtd is not understood");
        egress->is_ending = true;
    }
    if (n > 0)
        explicit_bzero(text, (size_t)n); /* it may have values of secrets */
    for (size_t i = 0; i < count; i++)
        (void)fd_close(fds[i]);
}
