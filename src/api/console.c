// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/service.h"
#include "auth/session_store.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "host/observe/event.h"
#include "http/exchange.h"

enum { URL_SIZE = LISTENER_ADDRESS_SIZE + SESSION_SECRET_SIZE };

static int console_check(const struct call *call, struct err *err)
{
    if (call->sessions && session_store_has_logins(call->sessions))
        return 0;
    return err_set(err, ERR_UNSUPPORTED, "the console is off (console = off in holt.conf)");
}

/* Writes the address of the daemon for browsers of this machine; false: it does not listen on TCP.
 * An address is better than localhost, because previews of ports are below that name. */
static bool name_write(const struct listener *listener, char *ret, size_t size)
{
    bool is_loopback = strncmp(listener->tcp_address, "127.", 4) == 0;

    if (is_loopback && !listener->is_tcp_tls && *listener->origin_rules.hosts == '\0')
        return snprintf(ret, size, "%s", listener->tcp_address) < (int)size;
    return listener_name(listener, ret, size);
}

/* Writes "" if the daemon does not listen on TCP. */
static void url_write(const struct listener *listener, const char *code, char ret[URL_SIZE])
{
    char name[LISTENER_ADDRESS_SIZE / 2];

    ret[0] = '\0';
    if (name_write(listener, name, sizeof(name)))
        (void)snprintf(ret, URL_SIZE, "%s://%s/#login=%s", listener->is_tcp_tls ? "https" : "http",
                       name, code);
}

/* A login made by a login would outlive it. */
int console_service_create_login(const struct call *call,
                                 const struct msg_console_create_login_request *request,
                                 struct err *err)
{
    const struct login login = {
        .caller = *call->caller,
        .is_main = !call->is_local && call->caller->token[0] == '\0',
    };
    char code[SESSION_SECRET_SIZE], url[URL_SIZE];
    uint64_t expires_ms = 0;
    int r = console_check(call, err);

    (void)request;
    if (r == 0 && call->caller->session[0] != '\0')
        r = err_set(err, ERR_DENIED, "a session of the console cannot create logins");
    if (r == 0)
        r = session_store_create_code(call->sessions, &login, code, &expires_ms, err);
    if (r < 0)
        return r;
    url_write(call->listener, code, url);
    return call_reply(call,
                      MESSAGE(msg_console_create_login_response, .code = code,
                              .expires_at_ms = expires_ms, .url = url),
                      err);
}

static struct msg_console_session session_message(const struct session_info *info)
{
    return (struct msg_console_session){
        .id = info->id,
        .owner = info->login.caller.owner,
        .role = role_name(info->login.caller.role),
        .token_id = info->login.caller.token,
        .address = info->address,
        .user_agent = info->agent,
        .created_at_ms = info->created_ms,
        .expires_at_ms = info->expires_ms,
        .last_used_at_ms = info->used_ms,
        .sandbox_id = info->login.preview.sandbox,
        .port = info->login.preview.port,
    };
}

int console_service_list_sessions(const struct call *call,
                                  const struct msg_console_list_sessions_request *request,
                                  struct err *err)
{
    cleanup_free struct session_info *infos = NULL;
    struct msg_console_session *sessions;
    size_t count = 0;

    (void)request;
    if (call->sessions)
        session_store_list(call->sessions, call->caller, &infos, &count);
    sessions = arena_take(call->arena, count, sizeof(*sessions));
    for (size_t i = 0; i < count; i++)
        sessions[i] = session_message(&infos[i]);
    return call_reply(
        call,
        MESSAGE(msg_console_list_sessions_response, .sessions = sessions, .sessions_count = count),
        err);
}

int console_service_revoke_session(const struct call *call,
                                   const struct msg_console_revoke_session_request *request,
                                   struct err *err)
{
    if (!call->sessions)
        return err_set(err, ERR_NOT_FOUND, "no session '%.40s'", request->id);
    return session_store_remove(call->sessions, call->caller, request->id, "revoked", err);
}
