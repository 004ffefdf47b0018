// SPDX-License-Identifier: Apache-2.0
#include "host/sandbox/network.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "api/message/network_messages.h"
#include "api/service.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "host/core/host.h"
#include "host/core/owned_template.h"
#include "host/net/net.h"
#include "host/sandbox/sandbox.h"
#include "host/sandbox/template_network.h"
#include "http/stream.h"
#include "net/policy.h"
#include "net/proxy.h"
#include "net/target.h"

enum { LOG_STEP_MS = 250, LEARN_LINES_MAX = 64, LEARN_INTERVAL_MS = 250 };

static const char *const *rules_message(struct arena *arena, const struct net_rules *rules)
{
    const char **texts = arena_take(arena, rules->count, sizeof(*texts));

    for (size_t i = 0; i < rules->count; i++)
        texts[i] = rules->items[i].text;
    return texts;
}

/* The login stays here. */
static const char *proxy_message(struct arena *arena, const struct net_proxy *proxy)
{
    char *url;

    if (!proxy)
        return NULL;
    url = arena_take(arena, NET_PROXY_SHOW_SIZE, 1);
    net_proxy_show(proxy, url);
    return url;
}

static const char *const *models_message(struct arena *arena, const char *models, size_t *ret_count)
{
    const char **list = arena_take(arena, NET_MODELS_SIZE / 2, sizeof(*list));
    char *text = arena_take(arena, strlen(models) + 1, 1), *rest = text, *word;

    memcpy(text, models, strlen(models) + 1);
    *ret_count = 0;
    while ((word = strsep(&rest, " ")))
        if (*word)
            list[(*ret_count)++] = word;
    return list;
}

/* The message refers to the policy. */
static struct msg_network network_message(struct arena *arena, const struct net_policy *policy)
{
    struct msg_network_layer *layers = arena_take(arena, policy->count, sizeof(*layers));
    bool is_learning = false;

    for (size_t i = 0; i < policy->count; i++) {
        const struct net_layer *layer = &policy->layers[i];

        layers[i] = (struct msg_network_layer){ .source = net_source_name(layer->source),
                                                .mode = net_mode_name(layer->mode),
                                                .allow = rules_message(arena, &layer->allow),
                                                .allow_count = layer->allow.count,
                                                .deny = rules_message(arena, &layer->deny),
                                                .deny_count = layer->deny.count,
                                                .allow_wins = layer->allow_wins,
                                                .proxy = proxy_message(arena, layer->proxy) };
        layers[i].models = models_message(arena, layer->models, &layers[i].models_count);
    }
    for (size_t i = 0; i < policy->count; i++)
        is_learning = is_learning || policy->layers[i].inspects;
    return (struct msg_network){ .learning = is_learning,
                                 .mode = net_mode_name(policy->count > 0 ? net_policy_mode(policy)
                                                                         : NET_ANY),
                                 .layers = layers,
                                 .layers_count = policy->count };
}

int network_service_get(const struct call *call, const struct msg_network_get_request *request,
                        struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    cleanup_with(net_policy_done) struct net_policy policy = { 0 };
    struct msg_network network;
    int r = sandbox_find(call->host, call->caller, request->sandbox_id, &sandbox, err);

    if (r == 0)
        r = sandbox_network_policy(sandbox, &policy, err);
    if (r < 0)
        return r;
    network = network_message(call->arena, &policy);
    return call_reply(call, MESSAGE(msg_network_get_response, .network = &network), err);
}

static int rules_add(struct net_layer *layer, const char *const *rules, size_t count, bool is_deny,
                     struct err *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < count; i++)
        r = is_deny ? net_layer_deny(layer, rules[i], err) : net_layer_allow(layer, rules[i], err);
    return r;
}

/* Changes the proxy of a layer by a text: a URL, "none", or "", which leaves it. */
static int proxy_read(const char *text, struct net_layer *layer, struct err *err)
{
    struct net_proxy proxy;
    int r;

    if (!*text)
        return 0;
    if (strcmp(text, "none") == 0) {
        net_layer_set_proxy(layer, NULL);
        return 0;
    }
    r = net_proxy_parse(text, &proxy, err);
    if (r == 0 && layer->mode == NET_NONE)
        r = err_set(err, ERR_INVALID, "network mode none has no proxy; use allow or open");
    if (r == 0)
        net_layer_set_proxy(layer, &proxy);
    return r;
}

int network_layer_read(const struct msg_network_policy *message, struct net_layer *ret,
                       struct err *err)
{
    cleanup_with(net_layer_done) struct net_layer layer = { .source = NET_FROM_SANDBOX };
    bool has_rules = message->allow_count + message->deny_count > 0;
    int r = 0;

    if (*message->mode)
        r = net_mode_parse(message->mode, &layer.mode, err);
    else if (has_rules)
        layer.mode = NET_ALLOW;
    if (r == 0 && has_rules && layer.mode == NET_NONE)
        r = err_set(err, ERR_INVALID, "network mode none has no rules; use allow or open");
    if (r == 0)
        r = rules_add(&layer, message->allow, message->allow_count, false, err);
    if (r == 0)
        r = rules_add(&layer, message->deny, message->deny_count, true, err);
    if (r == 0)
        r = proxy_read(message->proxy, &layer, err);
    for (size_t i = 0; r == 0 && i < message->models_count; i++)
        if (strcmp(message->models[i], "none") != 0)
            r = net_layer_add_model(&layer, message->models[i], err);
    if (r < 0)
        return r;
    *ret = layer;
    layer = (struct net_layer){ 0 };
    return 0;
}

bool network_layer_is_given(const struct msg_network_policy *message)
{
    return message && (*message->mode || message->allow_count > 0 || message->deny_count > 0 ||
                       message->models_count > 0 || *message->proxy);
}

/* Changes the lists of a layer, or those of the layer that replaces it. */
static int layer_change(const void *data, struct net_layer *layer, struct err *err)
{
    const struct msg_network_set_request *request = data;
    struct net_layer replaced;
    int r;

    if (request->policy) {
        r = network_layer_read(request->policy, &replaced, err);
        if (r < 0)
            return r;
        if (request->policy->models_count == 0)
            memcpy(replaced.models, layer->models, sizeof(replaced.models));
        if (!*request->policy->proxy && replaced.mode != NET_NONE)
            net_layer_set_proxy(&replaced, layer->proxy);
        net_layer_set_headers(&replaced, layer->headers);
        net_layer_set_ca_bundle(&replaced, layer->ca_bundle);
        net_layer_done(layer);
        *layer = replaced;
    }
    for (size_t i = 0; i < request->remove_count; i++) {
        if (!net_layer_remove(layer, request->remove[i]))
            return err_set(err, ERR_NOT_FOUND, "the sandbox has no rule '%.100s'",
                           request->remove[i]);
    }
    if (layer->mode == NET_NONE && request->allow_count > 0)
        layer->mode = NET_ALLOW;
    r = rules_add(layer, request->allow, request->allow_count, false, err);
    if (r == 0)
        r = rules_add(layer, request->deny, request->deny_count, true, err);
    if (r == 0 && layer->mode == NET_NONE && request->deny_count > 0) {
        (void)err_set(err, ERR_INVALID, "the sandbox has no network, so there is nothing to deny");
        return err_remedy(err, "set the mode and the rules together: holt net set ID --net open "
                               "--deny RULE");
    }
    return r == 0 ? proxy_read(request->proxy, layer, err) : r;
}

int network_service_set(const struct call *call, const struct msg_network_set_request *request,
                        struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    cleanup_with(net_policy_done) struct net_policy policy = { 0 };
    struct msg_network network;
    int r = sandbox_find(call->host, call->caller, request->sandbox_id, &sandbox, err);

    if (r == 0)
        r = sandbox_network_change(sandbox, layer_change, request, err);
    if (r == 0)
        r = sandbox_network_policy(sandbox, &policy, err);
    if (r < 0)
        return call_result(call, r, err);
    network = network_message(call->arena, &policy);
    return call_reply(call, MESSAGE(msg_network_set_response, .network = &network), err);
}

static struct msg_network_connection connection_message(const struct net_log_line *line)
{
    return (struct msg_network_connection){
        .number = line->number,
        .time_ms = line->time_ms,
        .protocol = line->protocol,
        .name = line->name,
        .address = line->address,
        .port = line->port,
        .allowed = line->is_allowed,
        .rule = line->rule,
        .end = line->end,
        .bytes_out = line->bytes_out,
        .bytes_in = line->bytes_in,
        .duration_ms = line->duration_ms,
        .special_address = line->is_special,
    };
}

/* Waits for lines in steps, so that a wait ends with its client and with the daemon. */
static size_t log_wait(const struct call *call, struct sandbox *sandbox,
                       const struct msg_network_log_request *request, struct net_log_line *ret)
{
    struct pollfd client = { .fd = call->connection_fd, .events = POLLRDHUP };
    uint64_t deadline_ms = clock_after_ms(request->wait_ms);
    struct err ignored;

    for (;;) {
        uint64_t now_ms = clock_ms();
        uint64_t left_ms = now_ms < deadline_ms ? deadline_ms - now_ms : 0;
        size_t count =
            sandbox_network_log(sandbox, request->after,
                                left_ms < LOG_STEP_MS ? left_ms : LOG_STEP_MS, ret, request->limit);

        if (count > 0 || left_ms == 0 || poll(&client, 1, 0) != 0 ||
            host_is_open(call->host, &ignored) < 0)
            return count;
    }
}

int network_service_log(const struct call *call, const struct msg_network_log_request *request,
                        struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    struct msg_network_connection *connections;
    struct net_log_line *lines;
    size_t count;
    int r = sandbox_find(call->host, call->caller, request->sandbox_id, &sandbox, err);

    if (r < 0)
        return r;
    lines = arena_take(call->arena, request->limit, sizeof(*lines));
    count = log_wait(call, sandbox, request, lines);
    connections = arena_take(call->arena, count, sizeof(*connections));
    for (size_t i = 0; i < count; i++)
        connections[i] = connection_message(&lines[i]);
    return call_reply(
        call,
        MESSAGE(msg_network_log_response, .connections = connections, .connections_count = count),
        err);
}

/* --- learning -----------------------------------------------------------------------------------
 */

struct learn_stream {
    struct stream stream;
    struct sandbox *sandbox;
    uint64_t after; /* the number of the last line that was sent */
    bool has_begun;
    struct net_log_line lines[LEARN_LINES_MAX];
};

/* A message comes even without a line: only a write detects a client that has gone. */
static int learn_next(struct stream *stream, struct buf *out, struct err *err)
{
    struct learn_stream *self = (struct learn_stream *)stream;
    struct msg_network_connection connections[LEARN_LINES_MAX];
    uint64_t wait_ms = self->has_begun ? LEARN_INTERVAL_MS : 0;
    size_t count = sandbox_network_log(self->sandbox, self->after, wait_ms, self->lines,
                                       self->has_begun ? LEARN_LINES_MAX : 0);
    int r;

    self->has_begun = true;
    for (size_t i = 0; i < count; i++) {
        connections[i] = connection_message(&self->lines[i]);
        self->after = self->lines[i].number;
    }
    r = message_add(out, MESSAGE(msg_network_learn_response, .connections = connections,
                                 .connections_count = count));
    return r < 0 ? err_sys(err, r, "write the connections of a sandbox") : 1;
}

static void learn_close(struct stream *stream)
{
    struct learn_stream *self = (struct learn_stream *)stream;

    sandbox_network_learn_end(self->sandbox);
    sandbox_unref(self->sandbox);
    free(self);
}

/* Returns the number of the last line of the log. */
static uint64_t log_end(struct learn_stream *self)
{
    uint64_t last = 0;
    size_t count;

    do {
        count = sandbox_network_log(self->sandbox, last, 0, self->lines, LEARN_LINES_MAX);
        if (count > 0)
            last = self->lines[count - 1].number;
    } while (count == LEARN_LINES_MAX);
    return last;
}

int network_service_learn(const struct call *call, const struct msg_network_learn_request *request,
                          struct stream **ret, struct err *err)
{
    static const struct stream_ops ops = { learn_next, learn_close };
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    struct learn_stream *self;
    int r = sandbox_find(call->host, call->caller, request->sandbox_id, &sandbox, err);

    if (r == 0)
        r = sandbox_network_learn(sandbox, err);
    if (r < 0)
        return r;
    self = xcalloc(1, sizeof(*self));
    self->stream.ops = &ops;
    self->sandbox = TAKE_PTR(sandbox);
    self->after = log_end(self);
    *ret = &self->stream;
    return 0;
}

int network_service_test(const struct call *call, const struct msg_network_test_request *request,
                         struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    cleanup_with(net_policy_done) struct net_policy policy = { 0 };
    struct net_verdict verdict;
    struct net_target target = { 0 };
    int r = sandbox_find(call->host, call->caller, request->sandbox_id, &sandbox, err);

    if (r == 0)
        r = sandbox_network_policy(sandbox, &policy, err);
    if (r == 0)
        r = net_target_parse(request->target, request->address, &target, err);
    if (r < 0)
        return r;
    target.request.is_own_address = network_is_own_address(&target.request.address);
    if (target.request.protocol == NET_HTTP)
        target.request.method = *request->method ? request->method : "GET";
    net_target_decide(&policy, &target, &verdict);
    return call_reply(
        call,
        MESSAGE(msg_network_test_response, .allowed = verdict.is_allowed, .rule = verdict.text),
        err);
}

/* Reads the layer of a template as a policy with one layer, or with none. */
static int template_policy(struct host *host, const char *store_name, struct net_policy *ret,
                           struct err *err)
{
    struct net_layer layer;
    bool has_layer;
    int r = template_network_read(host, store_name, &layer, &has_layer, err);

    return r == 0 && has_layer ? net_policy_add(ret, &layer, err) : r;
}

int network_service_get_template(const struct call *call,
                                 const struct msg_network_get_template_request *request,
                                 struct err *err)
{
    cleanup_with(net_policy_done) struct net_policy policy = { 0 };
    struct template_record record;
    struct msg_network network;
    int r = owned_template_find(call->host, call->caller, request->template, &record, err);

    if (r == 0)
        r = template_policy(call->host, record.store_name, &policy, err);
    if (r < 0)
        return r;
    network = network_message(call->arena, &policy);
    return call_reply(call, MESSAGE(msg_network_get_template_response, .network = &network), err);
}

int network_service_set_template(const struct call *call,
                                 const struct msg_network_set_template_request *request,
                                 struct err *err)
{
    cleanup_with(net_layer_done) struct net_layer layer = { 0 };
    cleanup_with(net_policy_done) struct net_policy policy = { 0 };
    bool is_given = network_layer_is_given(request->policy);
    struct template_record record;
    struct msg_network network;
    int r = owned_template_find_own(call->host, call->caller, request->template, &record, err);

    if (r == 0 && is_given)
        r = network_layer_read(request->policy, &layer, err);
    if (r == 0 && layer.proxy) /* others may use the template, and with it the login */
        r = err_set(err, ERR_INVALID, "a template cannot have a proxy; sandboxes can");
    layer.source = NET_FROM_TEMPLATE;
    if (r == 0)
        r = template_network_write(call->host, record.store_name, is_given ? &layer : NULL, err);
    if (r == 0)
        r = template_policy(call->host, record.store_name, &policy, err);
    if (r < 0)
        return r;
    network = network_message(call->arena, &policy);
    return call_reply(call, MESSAGE(msg_network_set_template_response, .network = &network), err);
}
