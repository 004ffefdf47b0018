// SPDX-License-Identifier: Apache-2.0
/* Tools about the network of a sandbox: expose_port and network_status.
 *
 * A port is exposed by a service that does nothing but run: its forward is found again by the next
 * daemon process, ends with the sandbox, and can be ended with process_kill. */
#include "host/port/port.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "host/process/record.h"
#include "host/process/service.h"
#include "host/sandbox/network.h"
#include "host/sandbox/sandbox.h"
#include "toolbox/tool_internal.h"

enum { EXPOSE_PORT };

static bool is_exposing(struct record *record, uint16_t port)
{
    struct record_info info;

    record_get(record, &info);
    return !info.is_over && info.address && info.spec->port == port;
}

/* Returns the running process whose port is forwarded, with a reference; NULL: none. */
static struct record *find_exposing(struct tool_job *job, uint16_t port)
{
    struct record **list = NULL, *found = NULL;
    size_t count = 0;

    sandbox_list_records(job->sandbox, &list, &count);
    for (size_t i = 0; i < count; i++) {
        if (!found && is_exposing(list[i], port))
            found = list[i];
        else
            record_unref(list[i]);
    }
    free(list);
    return found;
}

static int expose(struct tool_job *job, uint16_t port, struct record **ret, struct err *err)
{
    char *args[] = { (char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-c",
                     (char *)(uintptr_t) "exec sleep 2147483647", NULL };
    const struct process_spec spec = { .args = args, .port = port, .is_detached = true };

    *ret = find_exposing(job, port);
    return *ret ? 0 : service_launch(job->sandbox, &spec, ret, err);
}

int tool_expose_port(struct tool_job *job, struct err *err)
{
    cleanup_with(record_unref_slot) struct record *record = NULL;
    uint16_t port = (uint16_t)tool_number_at(job, EXPOSE_PORT);
    struct record_info info;
    int r = expose(job, port, &record, err);

    if (r < 0)
        return tool_job_fail(job, r, err);
    record_get(record, &info);
    (void)buf_printf(&job->text,
                     "port %u of the sandbox is %s on the machine of the daemon; over HTTP: "
                     "http://%s/. process_kill process_id=%s ends that.",
                     port, info.address, info.address, info.id);
    return 0;
}

static void rules_describe(const char *title, const struct net_rules *rules, struct buf *out)
{
    for (size_t i = 0; i < rules->count; i++)
        (void)buf_printf(out, "  %s %s\n", title, rules->items[i].text);
}

static bool layer_limits(const struct net_layer *layer)
{
    return layer->mode != NET_ANY || layer->allow.count + layer->deny.count > 0;
}

static void layer_describe(const struct net_layer *layer, struct buf *out)
{
    static const char *const reach[] = {
        [NET_NONE] = "nothing",
        [NET_OPEN] = "public addresses",
        [NET_ALLOW] = "only what is allowed here",
        [NET_ANY] = "public and private addresses",
    };
    bool has_rules = layer->allow.count + layer->deny.count > 0;

    (void)buf_printf(out, "%s: %s%s\n", net_source_name(layer->source), reach[layer->mode],
                     has_rules ? "" : ", without rules");
    rules_describe("allow", &layer->allow, out);
    rules_describe("deny", &layer->deny, out);
    if (layer->allow.count > 0 && layer->deny.count > 0)
        (void)buf_printf(out, "  of both, %s wins\n", layer->allow_wins ? "allow" : "deny");
}

static void policy_describe(const struct net_policy *policy, struct buf *out)
{
    enum net_mode mode = net_policy_mode(policy);
    size_t count = 0;

    if (mode == NET_NONE)
        (void)buf_add_str(
            out, "The sandbox has no network: its only device is lo. Other machines, the internet "
                 "and the machine of the user cannot be reached, and no names are resolved; "
                 "package managers and git remotes outside fail. ");
    else if (mode == NET_OPEN)
        (void)buf_add_str(
            out, "The sandbox has a network: it reaches public addresses over TCP, but not "
                 "private ones and not the machine of the user, unless rules below say so. ");
    else
        (void)buf_add_str(
            out, "The sandbox has a network with a list: it reaches only what the rules below "
                 "allow, over TCP. Other names do not exist for it. Ask the user for more. ");
    (void)buf_add_str(out, "Servers in the sandbox are reached at 127.0.0.1 inside, and from "
                           "outside if expose_port made them so.\n");
    for (size_t i = 0; i < policy->count; i++)
        count += layer_limits(&policy->layers[i]);
    if (mode != NET_NONE && count > 1)
        (void)buf_add_str(out, "A connection needs the consent of each of these:\n");
    for (size_t i = 0; mode != NET_NONE && i < policy->count; i++)
        if (layer_limits(&policy->layers[i]))
            layer_describe(&policy->layers[i], out);
}

int tool_network_status(struct tool_job *job, struct err *err)
{
    cleanup_free struct port_info *ports = NULL;
    size_t count = 0;

    cleanup_with(net_policy_done) struct net_policy policy = { 0 };
    int r = sandbox_network_policy(job->sandbox, &policy, err);

    if (r < 0)
        return r;
    policy_describe(&policy, &job->text);
    port_list(sandbox_host(job->sandbox), sandbox_id(job->sandbox), &ports, &count);
    for (size_t i = 0; i < count; i++)
        (void)buf_printf(&job->text, "port %u is %s outside\n", ports[i].port, ports[i].address);
    return 0;
}
