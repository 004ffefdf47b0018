// SPDX-License-Identifier: Apache-2.0
#include "host/port/port.h"

#include <errno.h>
#include <stdlib.h>

#include "api/message/fields.h"
#include "api/message/sandbox_ref.h"
#include "api/service.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "host/sandbox/sandbox.h"
#include "http/stream.h"

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
        r = message_add_take(
            out, json_pack("{s:s, s:s, s:i}", "address", port_forward_address(forward), "host",
                           port_forward_host(forward), "port", (int)port_forward_port(forward)));
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

static int port_get(const json_t *request, uint16_t *ret, struct err *err)
{
    uint32_t port = 0;
    int r = json_get_u32(request, "port", &port, err);

    if (r == 0 && (port < 1 || port > UINT16_MAX))
        r = err_set(err, ERR_INVALID, "field 'port' must be from 1 to %d", UINT16_MAX);
    *ret = (uint16_t)port;
    return r;
}

int port_service_forward(const struct call *call, const json_t *request, struct stream **ret,
                         struct err *err)
{
    static const struct stream_ops ops = { forward_next, forward_close };
    static const char *const fields[] = { "sandboxId", "port", "listen", NULL };
    cleanup_with(forward_close_slot) struct forward_stream *self = xcalloc(1, sizeof(*self));
    const char *listen = NULL;
    uint16_t port = 0;
    int r = json_only_fields(request, fields, err);

    self->stream.ops = &ops;
    self->connection_fd = call->connection_fd;
    if (r == 0)
        r = port_get(request, &port, err);
    if (r == 0)
        r = field_text(request, "listen", &listen, err);
    if (r == 0)
        r = sandbox_ref_find(call, request, &self->sandbox, err);
    if (r < 0)
        return r;
    sandbox_attach(self->sandbox); /* forwarding a port counts as use of the sandbox */
    r = sandbox_forward(self->sandbox, port, listen, &self->forward, err);
    if (r < 0)
        return r;
    *ret = &TAKE_PTR(self)->stream;
    return 0;
}

static json_t *port_json(const struct port_info *info)
{
    return json_pack("{s:s, s:i, s:s, s:i}", "sandboxId", info->owner, "port", (int)info->port,
                     "address", info->address, "connections", (int)info->connections);
}

/* The id of the sandbox that the request names, or NULL. */
static int owner_get(const struct call *call, const json_t *request, struct sandbox_info *ret,
                     const char **ret_id, struct err *err)
{
    cleanup_with(sandbox_ref_drop) struct sandbox *sandbox = NULL;
    const char *id = NULL;
    int r = field_text(request, "sandboxId", &id, err);

    if (r < 0 || !id)
        return r;
    r = sandbox_ref_find(call, request, &sandbox, err);
    if (r < 0)
        return r;
    sandbox_get_info(sandbox, false, ret);
    *ret_id = ret->id;
    return 0;
}

int port_service_list(const struct call *call, const json_t *request, json_t **ret_reply,
                      struct err *err)
{
    static const char *const fields[] = { "sandboxId", NULL };
    cleanup_with(sandbox_info_done) struct sandbox_info owner = { 0 };
    cleanup_free struct port_info *ports = NULL;
    cleanup_json json_t *list = json_array();
    const char *id = NULL;
    size_t count = 0;
    int r = json_only_fields(request, fields, err);

    if (r == 0)
        r = owner_get(call, request, &owner, &id, err);
    if (r < 0)
        return r;
    port_list(call->host, id, &ports, &count);
    for (size_t i = 0; i < count; i++)
        if (json_array_append_new(list, port_json(&ports[i])) < 0)
            return err_sys(err, -ENOMEM, "list ports");
    *ret_reply = json_pack("{s:O}", "ports", list);
    return *ret_reply ? 0 : err_sys(err, -ENOMEM, "list ports");
}
