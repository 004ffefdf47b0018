// SPDX-License-Identifier: Apache-2.0
#include "client/client_internal.h"
#include "client/error.h"
#include "client/message/request.h"
#include "holt.h"

static int login_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_console_create_login_response *reply = message;
    struct holt_console_login *login = result;

    (void)error;
    *login = (struct holt_console_login){
        .code = reply->code,
        .expires_ms = (int64_t)reply->expires_at_ms,
        .url = reply->url,
    };
    return 0;
}

int holt_console_login(struct holt *holt, int64_t deadline, struct holt_console_login **ret,
                       struct holt_error *error)
{
    const struct msg_console_create_login_request request = { 0 };
    const struct client_call call = { &method_console_service_create_login, &request, false,
                                      deadline };

    return client_call_for(holt, &call, sizeof(**ret), login_fill, ret, error);
}

static void session_fill(void *result, struct holt_console_session *session,
                         const struct msg_console_session *message)
{
    (void)result;
    *session = (struct holt_console_session){
        .id = message->id,
        .owner = message->owner,
        .role = message->role,
        .token_id = message->token_id,
        .address = message->address,
        .user_agent = message->user_agent,
        .created_ms = (int64_t)message->created_at_ms,
        .expires_ms = (int64_t)message->expires_at_ms,
        .last_used_ms = (int64_t)message->last_used_at_ms,
        .sandbox_id = message->sandbox_id,
        .port = message->port,
    };
}

static int list_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_console_list_sessions_response *reply = message;
    struct holt_console_session_list *list = result;

    (void)error;
    list->count = reply->sessions_count;
    list->items = RESULT_LIST(result, struct holt_console_session, session_fill, reply->sessions,
                              reply->sessions_count);
    return 0;
}

int holt_console_session_list(struct holt *holt, int64_t deadline,
                              struct holt_console_session_list **ret, struct holt_error *error)
{
    const struct msg_console_list_sessions_request request = { 0 };
    const struct client_call call = { &method_console_service_list_sessions, &request, true,
                                      deadline };

    return client_call_for(holt, &call, sizeof(**ret), list_fill, ret, error);
}

int holt_console_session_revoke(struct holt *holt, const char *id, int64_t deadline,
                                struct holt_error *error)
{
    const struct msg_console_revoke_session_request request = { .id = id };
    const struct client_call call = { &method_console_service_revoke_session, &request, false,
                                      deadline };

    return client_call_void(holt, &call, error);
}
