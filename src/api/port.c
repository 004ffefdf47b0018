// SPDX-License-Identifier: Apache-2.0
#include "host/port/port.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/service.h"
#include "auth/session_store.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/text/parse.h"
#include "base/xalloc.h"
#include "host/machine/machine.h"
#include "host/sandbox/sandbox.h"
#include "http/exchange.h"
#include "http/stream.h"

enum { SYSTEM_PORTS = 1024 };

/* A forward that lives as long as its client listens to the stream. */
struct forward_stream {
    struct stream stream;
    int connection_fd;
    bool is_announced;
    struct sandbox *sandbox; /* a reference, attached */
    struct port_forward *forward;
};

static int forward_next(struct stream *stream, struct buf *out, struct err *err)
{
    struct forward_stream *self = (struct forward_stream *)stream;
    const struct port_forward *forward = self->forward;
    int r;

    if (!self->is_announced) {
        self->is_announced = true;
        r = message_add(out, MESSAGE(msg_forward_response, .address = port_forward_address(forward),
                                     .host = port_forward_host(forward),
                                     .port = port_forward_port(forward)));
        return r < 0 ? err_sys(err, r, "write the address") : 1;
    }
    r = port_forward_wait(forward, self->connection_fd);
    if (r == -ECANCELED)
        return r;
    if (r < 0)
        return err_sys(err, r, "wait for the end of the sandbox");
    return err_refuse(err, CAUSE_INVALID_STATE, "the sandbox has ended, and its ports with it");
}

static void forward_close(struct stream *stream)
{
    struct forward_stream *self = (struct forward_stream *)stream;

    port_forward_close(self->forward);
    if (self->sandbox)
        sandbox_detach(self->sandbox, NULL);
    sandbox_unref(self->sandbox);
    free(self);
}

static void forward_close_slot(struct forward_stream **self)
{
    if (*self)
        forward_close(&(*self)->stream);
}

int listen_port_check(const struct caller *caller, uint64_t port, struct err *err)
{
    if (caller->role == ROLE_ADMIN || port == 0 || port >= SYSTEM_PORTS)
        return 0;
    return err_set(err, ERR_DENIED, "only an admin can listen on a port below %d", SYSTEM_PORTS);
}

/* The daemon listens with its own rights, so others than admins get neither an address of the host
 * that is not configured for ports, nor a port of the system. */
static int listen_check(const struct caller *caller, const char *listen, struct err *err)
{
    uint64_t port = 0;

    if (caller->role == ROLE_ADMIN || *listen == '\0')
        return 0;
    if (*listen != ':') {
        (void)err_set(err, ERR_DENIED, "only an admin can choose the address '%.100s'", listen);
        return err_remedy(err, "use :PORT, which listens on the configured address");
    }
    return parse_u64(listen + 1, &port) == 0 ? listen_port_check(caller, port, err) : 0;
}

int port_service_forward(const struct call *call, const struct msg_forward_request *request,
                         struct stream **ret, struct err *err)
{
    static const struct stream_ops ops = { forward_next, forward_close };
    cleanup_with(forward_close_slot) struct forward_stream *self = xcalloc(1, sizeof(*self));
    int r;

    self->stream.ops = &ops;
    self->connection_fd = call->connection_fd;
    r = sandbox_find(call->host, call->caller, request->sandbox_id, &self->sandbox, err);
    if (r == 0)
        r = listen_check(call->caller, request->listen, err);
    if (r < 0)
        return r;
    sandbox_attach(self->sandbox); /* forwarding a port counts as use of the sandbox */
    r = sandbox_forward(self->sandbox, (uint16_t)request->port, text_or_null(request->listen),
                        &self->forward, err);
    if (r < 0)
        return r;
    *ret = &TAKE_PTR(self)->stream;
    return 0;
}

enum { PREVIEW_URL_SIZE = LISTENER_ADDRESS_SIZE + SESSION_SECRET_SIZE };

/* Writes the host name of a port, which has the id without its dash, then the address with the
 * code. Fails with ERR_UNSUPPORTED if no browser can reach it. */
static int preview_write(const struct call *call, const struct login *login, const char *code,
                         char host[LISTENER_ADDRESS_SIZE], char url[PREVIEW_URL_SIZE],
                         struct err *err)
{
    const char *id = login->preview.sandbox, *dash = strchrnul(id, '-');
    char domain[LISTENER_ADDRESS_SIZE / 2];
    bool is_tls;

    if (!call->has_port_names || !call->sessions)
        return err_set(err, ERR_UNSUPPORTED, "this daemon was built without host names of ports");
    if (!listener_preview(call->listener, domain, sizeof(domain), &is_tls))
        return err_set(err, ERR_UNSUPPORTED, "a preview needs a daemon that listens on TCP");
    (void)snprintf(host, LISTENER_ADDRESS_SIZE, "%u-%.*s%s.%s", login->preview.port,
                   (int)(dash - id), id, dash + (*dash == '-'), domain);
    (void)snprintf(url, PREVIEW_URL_SIZE, "%s://%s/?holt-preview=%s", is_tls ? "https" : "http",
                   host, code);
    host[strcspn(host, ":")] = '\0';
    return 0;
}

int port_service_preview(const struct call *call, const struct msg_preview_request *request,
                         struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    struct login login = {
        .caller = *call->caller,
        .is_main =
            !call->is_local && call->caller->token[0] == '\0' && call->caller->session[0] == '\0',
        .preview.port = (uint16_t)request->port,
    };
    char code[SESSION_SECRET_SIZE] = "", host[LISTENER_ADDRESS_SIZE], url[PREVIEW_URL_SIZE];
    uint64_t expires_ms = 0;
    int r = sandbox_find(call->host, call->caller, request->sandbox_id, &sandbox, err);

    if (r < 0)
        return r;
    (void)snprintf(login.preview.sandbox, sizeof(login.preview.sandbox), "%s", sandbox_id(sandbox));
    r = preview_write(call, &login, code, host, url, err); /* no code if it fails */
    if (r == 0)
        r = session_store_create_code(call->sessions, &login, code, &expires_ms, err);
    if (r == 0)
        r = preview_write(call, &login, code, host, url, err);
    if (r < 0)
        return r;
    return call_reply(call,
                      MESSAGE(msg_preview_response, .url = url, .host = host, .code = code,
                              .expires_at_ms = expires_ms),
                      err);
}

/* Finds the id of the sandbox that the request names; NULL: none is named. */
static int owner_id_find(const struct call *call, const char *sandbox_id, struct sandbox_info *ret,
                         const char **ret_id, struct err *err)
{
    cleanup_with(sandbox_unref_slot) struct sandbox *sandbox = NULL;
    int r;

    if (*sandbox_id == '\0')
        return 0;
    r = sandbox_find(call->host, call->caller, sandbox_id, &sandbox, err);
    if (r < 0)
        return r;
    sandbox_get_info(sandbox, false, ret);
    *ret_id = ret->id;
    return 0;
}

/* Its owner is a sandbox or a throw-away machine. */
static bool port_is_seen(const struct call *call, const struct port_info *info)
{
    struct sandbox *sandbox = NULL;
    struct machine *machine = NULL;
    struct err ignored;

    if (sandbox_find(call->host, call->caller, info->owner, &sandbox, &ignored) == 0) {
        sandbox_unref(sandbox);
        return true;
    }
    if (machine_find(call->host, call->caller, info->owner, &machine, &ignored) < 0)
        return false;
    machine_unref(machine);
    return true;
}

int port_service_list(const struct call *call, const struct msg_list_ports_request *request,
                      struct err *err)
{
    cleanup_with(sandbox_info_done) struct sandbox_info owner = { 0 };
    cleanup_free struct port_info *infos = NULL;
    struct msg_forwarded_port *ports;
    const char *id = NULL;
    size_t count = 0, shown = 0;
    int r = owner_id_find(call, request->sandbox_id, &owner, &id, err);

    if (r < 0)
        return r;
    port_list(call->host, id, &infos, &count);
    ports = arena_take(call->arena, count, sizeof(*ports));
    for (size_t i = 0; i < count; i++)
        if (id || port_is_seen(call, &infos[i]))
            ports[shown++] = (struct msg_forwarded_port){ .sandbox_id = infos[i].owner,
                                                          .port = infos[i].port,
                                                          .address = infos[i].address,
                                                          .connections = infos[i].connections };
    return call_reply(call, MESSAGE(msg_list_ports_response, .ports = ports, .ports_count = shown),
                      err);
}
