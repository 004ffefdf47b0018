// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "client/client_internal.h"
#include "client/error.h"
#include "client/typed/request.h"
#include "holt.h"

static void port_read(struct reading *reading, const json_t *object, void *into)
{
    struct holt_port *port = into;

    port->sandbox_id = read_text(reading, object, "sandboxId");
    port->port = read_u32(reading, object, "port");
    port->address = read_text(reading, object, "address");
    port->connections = read_u32(reading, object, "connections");
}

static void list_read(struct reading *reading, const json_t *object, void *into)
{
    const json_t *ports = read_array(reading, object, "ports");
    struct holt_port_list *list = into;

    list->count = json_array_size(ports);
    list->items = (const struct holt_port *const *)read_list(reading, ports, sizeof(**list->items),
                                                             port_read);
}

int holt_port_list(struct holt *holt, const char *sandbox, int64_t deadline,
                   struct holt_port_list **ret, struct holt_error *error)
{
    const struct client_answer answer = { NULL, sizeof(**ret), list_read };
    const struct client_call call = { "PortService/List",
                                      request_text(json_object(), "sandboxId", sandbox), true,
                                      deadline };

    return client_call_for(holt, &call, &answer, ret, error);
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
    cleanup_json json_t *message = NULL;
    const char *text, *address = "";
    struct err err;
    size_t len;
    int r = holt_stream_next(forward->stream, &text, &len, error);

    if (r < 0)
        return -1;
    if (r == 0)
        return error_set(error, "internal", "the daemon ended the forward without an address");
    if (json_parse_object(text, len, &message, &err) < 0 ||
        json_get_text(message, "address", &address, &err) < 0)
        return error_set(error, "internal", "the daemon's answer cannot be read: %s", err.msg);
    forward->address = xstrdup(address);
    return 0;
}

static json_t *request_forward(const struct holt_forward_options *options)
{
    json_t *request =
        request_value(request_for(options->sandbox), "port", json_integer(options->port));

    return request_text(request, "listen", options->listen);
}

int holt_forward_open(struct holt *holt, const struct holt_forward_options *options,
                      int64_t deadline, struct holt_forward **ret, struct holt_error *error)
{
    cleanup_with(holt_forward_close_slot) struct holt_forward *forward =
        xcalloc(1, sizeof(*forward));
    struct holt_forward_options given = HOLT_INIT(holt_forward_options);
    cleanup_json json_t *request = NULL;
    cleanup_free char *text = NULL;

    if (options_take(&given, sizeof(given), options, error) < 0)
        return -1;
    request = request_forward(&given);
    text = request ? json_dumps(request, JSON_COMPACT) : NULL;
    if (!text)
        return error_set(error, "invalid_argument", "an argument is missing or not UTF-8");
    if (holt_stream_open(holt, "holt.v1.PortService/Forward", text, deadline, &forward->stream,
                         error) < 0 ||
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
