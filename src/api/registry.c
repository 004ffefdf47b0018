// SPDX-License-Identifier: Apache-2.0
#include "api/message/messages.h"
#include "api/service.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "host/image/login.h"

static void login_message(const struct image_login *login, struct msg_registry_login *ret)
{
    *ret = (struct msg_registry_login){
        .registry = login->registry,
        .owner = login->owner,
        .username = login->username,
        .changed_at_ms = login->changed_ms,
    };
}

int registry_service_login(const struct call *call,
                           const struct msg_registry_login_request *request, struct err *err)
{
    const struct image_login_request asked = { request->registry, request->username,
                                               request->password };
    struct msg_registry_login message;
    struct image_login login;
    int r = image_login_set(call->host, call->caller, &asked, &login, err);

    if (r < 0)
        return r;
    login_message(&login, &message);
    return call_reply(call, MESSAGE(msg_registry_login_response, .login = &message), err);
}

int registry_service_logout(const struct call *call,
                            const struct msg_registry_logout_request *request, struct err *err)
{
    return image_login_remove(call->host, call->caller, request->registry, err);
}

int registry_service_list(const struct call *call, const struct msg_registry_list_request *request,
                          struct err *err)
{
    cleanup_free struct image_login *list = NULL;
    struct msg_registry_login *logins;
    size_t count = 0;
    int r = image_login_list(call->host, call->caller, &list, &count, err);

    (void)request;
    if (r < 0)
        return r;
    logins = arena_take(call->arena, count, sizeof(*logins));
    for (size_t i = 0; i < count; i++)
        login_message(&list[i], &logins[i]);
    return call_reply(
        call, MESSAGE(msg_registry_list_response, .logins = logins, .logins_count = count), err);
}
