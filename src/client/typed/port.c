// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "client/client_internal.h"
#include "client/error.h"
#include "client/message/request.h"
#include "holt.h"

static void port_fill(void *result, struct holt_port *port,
                      const struct msg_forwarded_port *message)
{
    (void)result;
    port->sandbox_id = message->sandbox_id;
    port->port = message->port;
    port->address = message->address;
    port->connections = message->connections;
}

static int list_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_list_ports_response *reply = message;
    struct holt_port_list *list = result;

    (void)error;
    list->count = reply->ports_count;
    list->items =
        RESULT_LIST(result, struct holt_port, port_fill, reply->ports, reply->ports_count);
    return 0;
}

int holt_port_list(struct holt *holt, const char *sandbox, int64_t deadline,
                   struct holt_port_list **ret, struct holt_error *error)
{
    const struct msg_list_ports_request request = { .sandbox_id = sandbox };
    const struct client_call call = { &method_port_service_list, &request, true, deadline };

    return client_call_for(holt, &call, sizeof(**ret), list_fill, ret, error);
}

static int preview_fill(void *result, const void *message, struct holt_error *error)
{
    const struct msg_preview_response *reply = message;
    struct holt_preview *preview = result;

    (void)error;
    *preview = (struct holt_preview){ .url = reply->url,
                                      .host = reply->host,
                                      .code = reply->code,
                                      .expires_ms = (int64_t)reply->expires_at_ms };
    return 0;
}

int holt_preview_create(struct holt *holt, const char *sandbox, uint32_t port, int64_t deadline,
                        struct holt_preview **ret, struct holt_error *error)
{
    const struct msg_preview_request request = { .sandbox_id = sandbox, .port = port };
    const struct client_call call = { &method_port_service_preview, &request, false, deadline };

    return client_call_for(holt, &call, sizeof(**ret), preview_fill, ret, error);
}

struct holt_forward {
    struct holt_stream *stream;
    char *address;
};

void holt_forward_close(struct holt_forward *forward)
{
    if (!forward)
        return;
    holt_stream_close(forward->stream);
    free(forward->address);
    free(forward);
}

DEFINE_CLEANUP(holt_forward_close, struct holt_forward *);

/* Reads the first message, which has the address. */
static int address_read(struct holt_forward *forward, struct holt_error *error)
{
    cleanup_result void *result = NULL;
    const struct msg_forward_response *reply;
    const char *text;
    json_t *json;
    struct err err;
    size_t len;
    int r = holt_stream_next(forward->stream, &text, &len, error);

    if (r < 0)
        return -1;
    if (r == 0)
        return error_set(error, "internal", "the daemon ended the forward without an address");
    if (json_parse_object(text, len, &json, &err) < 0)
        return error_set(error, "internal", "cannot read the reply of the daemon: %s", err.msg);
    result = result_new(0, json);
    reply = result_decode(result, &msg_forward_response_schema, json, error);
    if (!reply)
        return -1;
    forward->address = xstrdup(reply->address);
    return 0;
}

int holt_forward_open(struct holt *holt, const struct holt_forward_options *options,
                      int64_t deadline, struct holt_forward **ret, struct holt_error *error)
{
    cleanup_with(holt_forward_close_slot) struct holt_forward *forward =
        xcalloc(1, sizeof(*forward));
    cleanup_with(buf_done) struct buf text = BUF_INIT(REQUEST_BYTES_MAX);
    struct holt_forward_options given = HOLT_INIT(holt_forward_options);
    struct msg_forward_request request;

    if (options_take(&given, sizeof(given), options, error) < 0)
        return -1;
    request = (struct msg_forward_request){
        .sandbox_id = given.sandbox,
        .port = given.port,
        .listen = given.listen,
    };
    if (request_encode(&msg_forward_request_schema, &request, &text, error) < 0 ||
        holt_stream_open(holt, method_port_service_forward.path, text.data, deadline,
                         &forward->stream, error) < 0 ||
        address_read(forward, error) < 0)
        return -1;
    *ret = TAKE_PTR(forward);
    return 0;
}

const char *holt_forward_address(const struct holt_forward *forward)
{
    return forward->address;
}

int holt_forward_wait(struct holt_forward *forward, struct holt_error *error)
{
    const char *text;
    size_t len;
    int r;

    do
        r = holt_stream_next(forward->stream, &text, &len, error);
    while (r > 0);
    return r;
}
