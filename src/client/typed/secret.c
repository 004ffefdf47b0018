// SPDX-License-Identifier: Apache-2.0
#include "client/client_internal.h"
#include "client/error.h"
#include "client/message/request.h"
#include "holt.h"

static void secret_fill(void *result, struct holt_secret *secret, const struct msg_secret *message)
{
    (void)result;
    secret->id = message->id;
    secret->name = message->name;
    secret->owner = message->owner;
    secret->host_count = message->hosts_count;
    secret->hosts = message->hosts;
    secret->place = message->place;
    secret->field = message->field;
    secret->template_text = message->template;
    secret->env = message->env;
    secret->created_ms = (int64_t)message->created_at_ms;
    secret->changed_ms = (int64_t)message->changed_at_ms;
    secret->host_key_count = message->host_keys_count;
    secret->host_keys = message->host_keys;
}

static int set_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_secret_set_response *reply = message;

    if (!reply->secret)
        return reply_lacks("secret", error);
    secret_fill(result, result, reply->secret);
    return 0;
}

int holt_secret_set(struct holt *holt, const char *name, const struct holt_secret_options *options,
                    int64_t deadline, struct holt_secret **ret, struct holt_error *error)
{
    struct holt_secret_options given = HOLT_INIT(holt_secret_options);
    struct msg_secret_set_request request;
    const struct client_call call = { &method_secret_service_set, &request, false, deadline };

    if (options_take(&given, sizeof(given), options, error) < 0)
        return -1;
    request = (struct msg_secret_set_request){
        .name = name,
        .value = given.value,
        .hosts = given.hosts,
        .hosts_count = request_count(given.hosts),
        .header = given.header,
        .query = given.query,
        .json = given.json,
        .basic = given.is_basic,
        .env = given.env,
        .host_keys = given.host_keys,
        .host_keys_count = request_count(given.host_keys),
    };
    return client_call_for(holt, &call, sizeof(**ret), set_fill, ret, error);
}

static int rotate_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_secret_rotate_response *reply = message;

    if (!reply->secret)
        return reply_lacks("secret", error);
    secret_fill(result, result, reply->secret);
    return 0;
}

int holt_secret_rotate(struct holt *holt, const char *secret, const char *value, int64_t deadline,
                       struct holt_secret **ret, struct holt_error *error)
{
    const struct msg_secret_rotate_request request = { .secret = secret, .value = value };
    const struct client_call call = { &method_secret_service_rotate, &request, false, deadline };

    return client_call_for(holt, &call, sizeof(**ret), rotate_fill, ret, error);
}

static int list_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_secret_list_response *reply = message;
    struct holt_secret_list *list = result;

    (void)error;
    list->count = reply->secrets_count;
    list->items =
        RESULT_LIST(result, struct holt_secret, secret_fill, reply->secrets, reply->secrets_count);
    return 0;
}

int holt_secret_list(struct holt *holt, int64_t deadline, struct holt_secret_list **ret,
                     struct holt_error *error)
{
    const struct msg_secret_list_request request = { 0 };
    const struct client_call call = { &method_secret_service_list, &request, true, deadline };

    return client_call_for(holt, &call, sizeof(**ret), list_fill, ret, error);
}

int holt_secret_remove(struct holt *holt, const char *secret, int64_t deadline,
                       struct holt_error *error)
{
    const struct msg_secret_remove_request request = { .secret = secret };
    const struct client_call call = { &method_secret_service_remove, &request, false, deadline };

    return client_call_void(holt, &call, error);
}
