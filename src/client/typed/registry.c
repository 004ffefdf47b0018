// SPDX-License-Identifier: Apache-2.0
#include "client/client_internal.h"
#include "client/error.h"
#include "client/message/request.h"
#include "holt.h"

static void login_fill(void *result, struct holt_registry_login *login,
                       const struct msg_registry_login *message)
{
    (void)result;
    login->registry = message->registry;
    login->owner = message->owner;
    login->username = message->username;
    login->changed_ms = (int64_t)message->changed_at_ms;
}

static int reply_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_registry_login_response *reply = message;

    if (!reply->login)
        return reply_lacks("login", error);
    login_fill(result, result, reply->login);
    return 0;
}

int holt_registry_login(struct holt *holt, const struct holt_registry_options *options,
                        int64_t deadline, struct holt_registry_login **ret,
                        struct holt_error *error)
{
    struct holt_registry_options given = HOLT_INIT(holt_registry_options);
    struct msg_registry_login_request request;
    const struct client_call call = { &method_registry_service_login, &request, false, deadline };

    if (options_take(&given, sizeof(given), options, error) < 0)
        return -1;
    request = (struct msg_registry_login_request){
        .registry = given.registry,
        .username = given.username,
        .password = given.password,
    };
    return client_call_for(holt, &call, sizeof(**ret), reply_fill, ret, error);
}

int holt_registry_logout(struct holt *holt, const char *registry, int64_t deadline,
                         struct holt_error *error)
{
    const struct msg_registry_logout_request request = { .registry = registry };
    const struct client_call call = { &method_registry_service_logout, &request, false, deadline };

    return client_call_void(holt, &call, error);
}

static int list_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_registry_list_response *reply = message;
    struct holt_registry_login_list *list = result;

    (void)error;
    list->count = reply->logins_count;
    list->items = RESULT_LIST(result, struct holt_registry_login, login_fill, reply->logins,
                              reply->logins_count);
    return 0;
}

int holt_registry_list(struct holt *holt, int64_t deadline, struct holt_registry_login_list **ret,
                       struct holt_error *error)
{
    const struct msg_registry_list_request request = { 0 };
    const struct client_call call = { &method_registry_service_list, &request, true, deadline };

    return client_call_for(holt, &call, sizeof(**ret), list_fill, ret, error);
}
