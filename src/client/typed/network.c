// SPDX-License-Identifier: Apache-2.0
#include "client/client_internal.h"
#include "client/error.h"
#include "client/message/messages.h"
#include "client/message/request.h"
#include "holt.h"

static void layer_fill(void *result, struct holt_network_layer *layer,
                       const struct msg_network_layer *message)
{
    (void)result;
    *layer = (struct holt_network_layer){ .source = message->source,
                                          .mode = message->mode,
                                          .allow = message->allow,
                                          .allow_count = message->allow_count,
                                          .deny = message->deny,
                                          .deny_count = message->deny_count,
                                          .is_allow_first = message->allow_wins,
                                          .proxy = message->proxy,
                                          .models = message->models,
                                          .model_count = message->models_count };
}

static int network_fill(void *result, const struct msg_network *message, struct holt_error *error)
{
    struct holt_network *network = result;

    if (!message)
        return reply_lacks("network", error);
    network->mode = message->mode;
    network->layers = RESULT_LIST(result, struct holt_network_layer, layer_fill, message->layers,
                                  message->layers_count);
    network->layer_count = message->layers_count;
    network->is_learning = message->learning;
    return 0;
}

static int got_fill(void *result, const void *message, struct holt_error *error)
{
    return network_fill(result, ((const struct msg_network_get_response *)message)->network, error);
}

int holt_network_get(struct holt *holt, const char *sandbox, int64_t deadline,
                     struct holt_network **ret, struct holt_error *error)
{
    const struct msg_network_get_request request = { .sandbox_id = sandbox };
    const struct client_call call = { &method_network_service_get, &request, true, deadline };

    return client_call_for(holt, &call, sizeof(**ret), got_fill, ret, error);
}

static int set_fill(void *result, const void *message, struct holt_error *error)
{
    return network_fill(result, ((const struct msg_network_set_response *)message)->network, error);
}

int holt_network_set(struct holt *holt, const char *sandbox,
                     const struct holt_network_options *options, int64_t deadline,
                     struct holt_network **ret, struct holt_error *error)
{
    struct holt_network_options given = HOLT_INIT(holt_network_options);
    struct msg_network_policy policy;
    struct msg_network_set_request request;
    const struct client_call call = { &method_network_service_set, &request, false, deadline };

    if (options_take(&given, sizeof(given), options, error) < 0)
        return -1;
    policy = (struct msg_network_policy){ .mode = given.mode,
                                          .allow = given.allow,
                                          .allow_count = request_count(given.allow),
                                          .deny = given.deny,
                                          .deny_count = request_count(given.deny) };
    request = (struct msg_network_set_request){ .sandbox_id = sandbox,
                                                .policy = given.mode ? &policy : NULL,
                                                .remove = given.remove,
                                                .remove_count = request_count(given.remove),
                                                .proxy = given.proxy };
    if (!given.mode) {
        request.allow = policy.allow;
        request.allow_count = policy.allow_count;
        request.deny = policy.deny;
        request.deny_count = policy.deny_count;
    }
    return client_call_for(holt, &call, sizeof(**ret), set_fill, ret, error);
}

static int got_template_fill(void *result, const void *message, struct holt_error *error)
{
    return network_fill(
        result, ((const struct msg_network_get_template_response *)message)->network, error);
}

int holt_network_get_template(struct holt *holt, const char *template_name, int64_t deadline,
                              struct holt_network **ret, struct holt_error *error)
{
    const struct msg_network_get_template_request request = { .template = template_name };
    const struct client_call call = { &method_network_service_get_template, &request, true,
                                      deadline };

    return client_call_for(holt, &call, sizeof(**ret), got_template_fill, ret, error);
}

static int set_template_fill(void *result, const void *message, struct holt_error *error)
{
    return network_fill(
        result, ((const struct msg_network_set_template_response *)message)->network, error);
}

int holt_network_set_template(struct holt *holt, const char *template_name,
                              const struct holt_network_rules *rules, int64_t deadline,
                              struct holt_network **ret, struct holt_error *error)
{
    struct msg_network_policy policy;
    const struct msg_network_set_template_request request = { .template = template_name,
                                                              .policy = rules ? &policy : NULL };
    const struct client_call call = { &method_network_service_set_template, &request, false,
                                      deadline };

    if (rules)
        policy = (struct msg_network_policy){ .mode = rules->mode,
                                              .allow = rules->allow,
                                              .allow_count = request_count(rules->allow),
                                              .deny = rules->deny,
                                              .deny_count = request_count(rules->deny) };
    return client_call_for(holt, &call, sizeof(**ret), set_template_fill, ret, error);
}

static void connection_fill(void *result, struct holt_connection *connection,
                            const struct msg_network_connection *message)
{
    (void)result;
    *connection = (struct holt_connection){ .number = message->number,
                                            .time_ms = (int64_t)message->time_ms,
                                            .protocol = message->protocol,
                                            .name = message->name,
                                            .address = message->address,
                                            .port = message->port,
                                            .is_allowed = message->allowed,
                                            .rule = message->rule,
                                            .end = message->end,
                                            .bytes_out = message->bytes_out,
                                            .bytes_in = message->bytes_in,
                                            .duration_ms = message->duration_ms,
                                            .is_special_address = message->special_address };
}

struct learner {
    holt_learn_fn fn;
    void *context;
};

static int learned_take(void *context, void **result, const void *message, struct holt_error *error)
{
    const struct msg_network_learn_response *reply = message;
    struct holt_connection_list *list = *result;
    const struct learner *learner = context;

    list->count = reply->connections_count;
    list->items = RESULT_LIST(*result, struct holt_connection, connection_fill, reply->connections,
                              reply->connections_count);
    if (learner->fn(learner->context, list) != 0)
        return error_set(error, "canceled", "the caller has learned enough");
    return 0;
}

int holt_network_learn(struct holt *holt, const char *sandbox, holt_learn_fn fn, void *context,
                       int64_t deadline, struct holt_error *error)
{
    const struct msg_network_learn_request request = { .sandbox_id = sandbox };
    struct learner learner = { fn, context };
    const struct messages_call call = {
        .method = &method_network_service_learn,
        .request = &request,
        .deadline = deadline,
        .each = learned_take,
        .context = &learner,
        .size = sizeof(struct holt_connection_list),
    };

    return messages_follow(holt, &call, error);
}

static int log_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_network_log_response *reply = message;
    struct holt_connection_list *list = result;

    (void)error;
    list->count = reply->connections_count;
    list->items = RESULT_LIST(result, struct holt_connection, connection_fill, reply->connections,
                              reply->connections_count);
    return 0;
}

int holt_network_log(struct holt *holt, const char *sandbox,
                     const struct holt_network_log_options *options, int64_t deadline,
                     struct holt_connection_list **ret, struct holt_error *error)
{
    struct holt_network_log_options given = HOLT_INIT(holt_network_log_options);
    struct msg_network_log_request request;
    const struct client_call call = { &method_network_service_log, &request, true, deadline };

    if (options_take(&given, sizeof(given), options, error) < 0)
        return -1;
    request = (struct msg_network_log_request){ .sandbox_id = sandbox,
                                                .after = given.after,
                                                .limit = given.limit ? given.limit : 512,
                                                .wait_ms = given.wait_ms };
    return client_call_for(holt, &call, sizeof(**ret), log_fill, ret, error);
}

static int test_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_network_test_response *reply = message;
    struct holt_network_verdict *verdict = result;

    (void)error;
    verdict->is_allowed = reply->allowed;
    verdict->rule = reply->rule;
    return 0;
}

int holt_network_test(struct holt *holt, const char *sandbox,
                      const struct holt_network_target *target, int64_t deadline,
                      struct holt_network_verdict **ret, struct holt_error *error)
{
    struct holt_network_target given = HOLT_INIT(holt_network_target);
    struct msg_network_test_request request;
    const struct client_call call = { &method_network_service_test, &request, true, deadline };

    if (options_take(&given, sizeof(given), target, error) < 0)
        return -1;
    request = (struct msg_network_test_request){ .sandbox_id = sandbox,
                                                 .target = given.target,
                                                 .address = given.address,
                                                 .method = given.method };
    return client_call_for(holt, &call, sizeof(**ret), test_fill, ret, error);
}
