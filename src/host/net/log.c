// SPDX-License-Identifier: Apache-2.0
/* The last connections of each sandbox. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "host/net/net_internal.h"

struct net_log_ring {
    struct net_log_ring *next;
    char id[NET_ID_MAX];
    uint64_t last;              /* number of the newest line */
    char *texts[NET_LOG_LINES]; /* JSON of line N at N % NET_LOG_LINES */
    uint64_t times_ms[NET_LOG_LINES];
};

static struct net_log_ring *ring_find(struct net *net, const char *id)
{
    struct net_log_ring *ring = net->logs;

    while (ring && strcmp(ring->id, id) != 0)
        ring = ring->next;
    return ring;
}

void net_log_add(struct net *net, const char *id, const json_t *line)
{
    struct net_log_ring *ring = ring_find(net, id);
    char *text = json_dumps(line, JSON_COMPACT);
    size_t slot;

    if (!text)
        return;
    if (!ring) {
        ring = xcalloc(1, sizeof(*ring));
        (void)snprintf(ring->id, sizeof(ring->id), "%s", id);
        ring->next = net->logs;
        net->logs = ring;
    }
    slot = ++ring->last % NET_LOG_LINES;
    free(ring->texts[slot]);
    ring->texts[slot] = text;
    ring->times_ms[slot] = clock_wall_ms();
    cond_broadcast(&net->changed);
}

static void text_copy(char *ret, size_t size, const json_t *line, const char *name)
{
    const char *text = json_string_value(json_object_get(line, name));

    (void)snprintf(ret, size, "%s", text ? text : "");
}

static uint64_t number_of(const json_t *line, const char *name)
{
    return (uint64_t)json_integer_value(json_object_get(line, name));
}

static void line_read(const char *text, struct net_log_line *ret)
{
    json_t *line = json_loads(text, 0, NULL);

    text_copy(ret->protocol, sizeof(ret->protocol), line, "protocol");
    text_copy(ret->name, sizeof(ret->name), line, "name");
    text_copy(ret->address, sizeof(ret->address), line, "address");
    text_copy(ret->rule, sizeof(ret->rule), line, "rule");
    text_copy(ret->end, sizeof(ret->end), line, "end");
    ret->port = (uint16_t)number_of(line, "port");
    ret->is_allowed = json_is_true(json_object_get(line, "allowed"));
    ret->bytes_out = number_of(line, "out");
    ret->bytes_in = number_of(line, "in");
    ret->duration_ms = number_of(line, "ms");
    ret->is_special = json_is_true(json_object_get(line, "special"));
    json_decref(line);
}

/* Locked. */
static size_t lines_copy(struct net *net, const char *id, uint64_t after, struct net_log_line *ret,
                         size_t max)
{
    const struct net_log_ring *ring = ring_find(net, id);
    uint64_t first = after + 1;
    size_t count = 0;

    if (!ring)
        return 0;
    if (ring->last >= NET_LOG_LINES && first <= ring->last - NET_LOG_LINES)
        first = ring->last - NET_LOG_LINES + 1;
    for (uint64_t number = first; number <= ring->last && count < max; number++) {
        struct net_log_line *line = &ret[count++];

        *line = (struct net_log_line){ .number = number };
        line->time_ms = ring->times_ms[number % NET_LOG_LINES];
        line_read(ring->texts[number % NET_LOG_LINES], line);
    }
    return count;
}

size_t net_log(struct net *net, const char *id, uint64_t after, uint64_t wait_ms,
               struct net_log_line *ret, size_t max)
{
    uint64_t deadline_ms = clock_after_ms(wait_ms);
    size_t count;
    lock_scope(&net->lock);

    for (;;) {
        count = lines_copy(net, id, after, ret, max);
        if (count > 0 || wait_ms == 0 || net->is_stopping ||
            !cond_wait_until(&net->changed, &net->lock, deadline_ms))
            return count;
    }
}

static void ring_free(struct net_log_ring *ring)
{
    for (size_t i = 0; i < NET_LOG_LINES; i++)
        free(ring->texts[i]);
    free(ring);
}

void net_forget(struct net *net, const char *id)
{
    lock_scope(&net->lock);

    for (struct net_log_ring **slot = &net->logs; *slot; slot = &(*slot)->next) {
        struct net_log_ring *ring = *slot;

        if (strcmp(ring->id, id) != 0)
            continue;
        *slot = ring->next;
        ring_free(ring);
        return;
    }
}

void net_logs_free(struct net *net)
{
    while (net->logs) {
        struct net_log_ring *ring = net->logs;

        net->logs = ring->next;
        ring_free(ring);
    }
}

void net_counters_read(struct net *net, const json_t *message)
{
    net->now = (struct net_counters){
        .connections = number_of(message, "connections"),
        .open = number_of(message, "open"),
        .denied = number_of(message, "denied"),
        .failed_dials = number_of(message, "failedDials"),
        .limited = number_of(message, "limited"),
        .leaks = number_of(message, "leaks"),
        .queries = number_of(message, "queries"),
        .bytes_out = number_of(message, "out"),
        .bytes_in = number_of(message, "in"),
    };
}

void net_count(struct net *net, struct net_counters *ret)
{
    lock_scope(&net->lock);

    *ret = net->past;
    ret->connections += net->now.connections;
    ret->open = net->now.open;
    ret->denied += net->now.denied;
    ret->failed_dials += net->now.failed_dials;
    ret->limited += net->now.limited;
    ret->leaks += net->now.leaks;
    ret->queries += net->now.queries;
    ret->bytes_out += net->now.bytes_out;
    ret->bytes_in += net->now.bytes_in;
}
