// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/random.h"
#include "client/client_internal.h"
#include "client/error.h"
#include "client/message/methods.h"
#include "client/message/request.h"
#include "client/transport/deadline.h"
#include "client/transport/handle.h"
#include "holt.h"

enum {
    REPLY_MAX = 32 * 1024 * 1024,
    PAUSE_FIRST_MS = 50, /* between attempts, doubled each time */
    PAUSE_MAX_MS = 2000,
};

int options_take(void *into, size_t size, const void *given, struct holt_error *error)
{
    size_t given_size;

    if (!given)
        return 0;
    memcpy(&given_size, given, sizeof(given_size));
    if (given_size < sizeof(given_size))
        return error_set(error, "invalid_argument", "options must begin with their size");
    memcpy(into, given, given_size < size ? given_size : size);
    return 0;
}

static int take_body(struct connection *connection, char **ret, struct holt_error *error)
{
    struct buf *body = &connection->http.body;

    if (buf_reserve(body, 0) < 0)
        return error_set(error, "resource_exhausted", "no memory for the reply");
    body->data[body->len] = '\0';
    *ret = TAKE_PTR(body->data);
    body->len = body->cap = 0;
    return 0;
}

static int read_reply(struct connection *connection, char **ret, struct holt_error *error)
{
    const struct buf *body = &connection->http.body;
    unsigned status;

    if (http_read_head(&connection->http, &status, error) < 0 ||
        connection_read_all(connection, error) < 0)
        return -1;
    if (status != HTTP_STATUS_OK) {
        error_from_reply(error, status, body->data, body->len);
        return -1;
    }
    return take_body(connection, ret, error);
}

int holt_call(struct holt *holt, const char *method, const char *request, int64_t deadline,
              char **ret_reply, struct holt_error *error)
{
    struct http_request http_request = {
        .content_type = "application/json",
        .body = request,
        .len = strlen(request),
        .reply_max = REPLY_MAX,
        .deadline = deadline,
    };
    struct connection *connection;
    int r;

    if (handle_send(holt, method, &http_request, &connection, error) < 0)
        return -1;
    r = read_reply(connection, ret_reply, error);
    if (r < 0)
        connection_failed(connection, error);
    handle_give(connection);
    return r;
}

/* Returns between half and all of the pause, so that clients that failed together do not retry
 * together. */
static int64_t jitter(int64_t pause_ms)
{
    return pause_ms / 2 + (int64_t)(random_u64() % (uint64_t)(pause_ms / 2 + 1));
}

/* Returns whether the call can be sent again, after the pause before that. */
static bool can_repeat(const struct client_call *call, int64_t *pause_ms,
                       const struct holt_error *error)
{
    if (!call->can_be_repeated || strcmp(error->code, "unavailable") != 0 ||
        deadline_left(call->deadline) == 0)
        return false;
    deadline_sleep(jitter(*pause_ms), call->deadline);
    *pause_ms = *pause_ms < PAUSE_MAX_MS / 2 ? *pause_ms * 2 : PAUSE_MAX_MS;
    return deadline_left(call->deadline) != 0;
}

/* Sends the request until it succeeds or must not be repeated. */
static int client_send(struct holt *holt, const struct client_call *call, char **ret_reply,
                       struct holt_error *error)
{
    cleanup_with(buf_done) struct buf request = BUF_INIT(REQUEST_BYTES_MAX);
    int64_t pause_ms = PAUSE_FIRST_MS;
    int r;

    if (request_encode(call->method->request, call->request, &request, error) < 0)
        return -1;
    for (unsigned attempt = 1;; attempt++) {
        r = holt_call(holt, call->method->path, request.data, call->deadline, ret_reply, error);
        if (r == 0 || attempt == holt->attempts || !can_repeat(call, &pause_ms, error))
            return r;
    }
}

int client_call(struct holt *holt, const struct client_call *call, json_t **ret_reply,
                struct holt_error *error)
{
    cleanup_free char *text = NULL;
    struct err err;

    if (client_send(holt, call, &text, error) < 0)
        return -1;
    if (json_parse_with_nul(text, strlen(text), ret_reply, &err) < 0)
        return error_set(error, "internal", "cannot read the reply of the daemon: %s", err.msg);
    return 0;
}

int client_call_void(struct holt *holt, const struct client_call *call, struct holt_error *error)
{
    cleanup_json json_t *reply = NULL;

    return client_call(holt, call, &reply, error);
}

int client_call_for(struct holt *holt, const struct client_call *call, size_t size, fill_fn fill,
                    void *ret, struct holt_error *error)
{
    cleanup_result void *result = NULL;
    const void *message;
    json_t *reply;

    if (!ret)
        return client_call_void(holt, call, error);
    if (client_call(holt, call, &reply, error) < 0)
        return -1;
    result = result_new(size, reply);
    message = result_decode(result, call->method->reply, reply, error);
    if (!message || fill(result, message, error) < 0)
        return -1;
    memcpy(ret, &result, sizeof(result));
    result = NULL;
    return 0;
}
