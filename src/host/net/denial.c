// SPDX-License-Identifier: Apache-2.0
/* What the network of a sandbox has refused, for the audit log. A sandbox can cause as many
 * refusals as it likes, so a line sums up those of a minute: how many, and the first targets. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "host/net/net_internal.h"
#include "host/observe/event_internal.h"

enum {
    DENIALS_FIRST_MS = 1000, /* collected before the first line */
    DENIALS_PAUSE_MS = 60000,
};

static void text_take(char *ret, size_t size, const json_t *line, const char *field)
{
    const char *text = json_string_value(json_object_get(line, field));

    (void)snprintf(ret, size, "%s", text ? text : "");
}

static bool targets_equal(const struct net_denied_target *one,
                          const struct net_denied_target *other)
{
    return one->port == other->port && strcmp(one->host, other->host) == 0 &&
           strcmp(one->rule, other->rule) == 0;
}

static void target_count(struct net_denials *denials, const struct net_denied_target *target)
{
    for (size_t i = 0; i < denials->target_count; i++) {
        if (!targets_equal(&denials->targets[i], target))
            continue;
        denials->targets[i].count++;
        return;
    }
    if (denials->target_count == NET_DENIED_TARGETS_MAX)
        return;
    denials->targets[denials->target_count] = *target;
    denials->targets[denials->target_count++].count = 1;
}

void net_denials_note(struct net *net, struct net_guest *guest, const json_t *line)
{
    struct net_denials *denials = &guest->denials;
    const char *end = json_string_value(json_object_get(line, "end"));
    struct net_denied_target target = { .port = (uint16_t)json_integer_value(
                                            json_object_get(line, "port")) };

    if (json_is_true(json_object_get(line, "allowed")) || !end || strcmp(end, "denied") != 0)
        return;
    text_take(target.host, sizeof(target.host), line, "name");
    if (!target.host[0])
        text_take(target.host, sizeof(target.host), line, "address");
    text_take(target.rule, sizeof(target.rule), line, "rule");
    if (denials->count++ == 0) {
        uint64_t first_ms = clock_ms() + DENIALS_FIRST_MS;
        uint64_t next_ms = denials->written_ms > 0 ? denials->written_ms + DENIALS_PAUSE_MS : 0;

        denials->due_ms = next_ms > first_ms ? next_ms : first_ms;
        if (net->denials_due_ms == 0 || denials->due_ms < net->denials_due_ms)
            net->denials_due_ms = denials->due_ms;
    }
    target_count(denials, &target);
}

void net_denials_write(struct net *net, struct net_guest *guest)
{
    struct net_denials *denials = &guest->denials;
    json_t *targets = json_array();

    if (denials->count > 0) {
        for (size_t i = 0; i < denials->target_count; i++) {
            const struct net_denied_target *each = &denials->targets[i];

            (void)json_array_append_new(
                targets, json_pack("{s:o, s:i, s:o, s:I}", "host", json_text(each->host), "port",
                                   (int)each->port, "rule", json_text(each->rule), "count",
                                   (json_int_t)each->count));
        }
        host_note(net->host, "network-denied", guest->owner, guest->id,
                  json_pack("{s:I, s:O}", "count", (json_int_t)denials->count, "targets", targets));
        *denials = (struct net_denials){ .written_ms = clock_ms() };
    }
    json_decref(targets);
}

void net_denials_tick(struct net *net)
{
    uint64_t now_ms = clock_ms(), next_ms = 0;

    if (net->denials_due_ms == 0 || now_ms < net->denials_due_ms)
        return;
    for (struct net_guest *guest = net->guests; guest; guest = guest->next) {
        struct net_denials *denials = &guest->denials;

        if (denials->count > 0 && now_ms >= denials->due_ms)
            net_denials_write(net, guest);
        else if (denials->count > 0 && (next_ms == 0 || denials->due_ms < next_ms))
            next_ms = denials->due_ms;
    }
    net->denials_due_ms = next_ms;
}
