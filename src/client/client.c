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
#include "client/transport/deadline.h"
#include "client/transport/handle.h"
#include "holt.h"

enum {
    REPLY_MAX = 32 * 1024 * 1024,
    METHOD_MAX = 128,
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

/* Waits between half and all of the pause, so that clients that failed together do not retry
 * together. */
static int64_t jitter(int64_t pause_ms)
{
    return pause_ms / 2 + (int64_t)(random_u64() % (uint64_t)(pause_ms / 2 + 1));
}

/* Whether trying again makes sense; the pause before it is over then. */
static bool may_repeat(const struct client_call *call, int64_t *pause_ms,
                       const struct holt_error *error)
{
    if (!call->can_be_repeated || strcmp(error->code, "unavailable") != 0 ||
        deadline_left(call->deadline) == 0)
        return false;
    deadline_sleep(jitter(*pause_ms), call->deadline);
    *pause_ms = *pause_ms < PAUSE_MAX_MS / 2 ? *pause_ms * 2 : PAUSE_MAX_MS;
    return deadline_left(call->deadline) != 0;
}

int client_call(struct holt *holt, const struct client_call *call, json_t **ret_reply,
                struct holt_error *error)
{
    cleanup_json json_t *request = call->request;
    cleanup_free char *text = request ? json_dumps(request, JSON_COMPACT) : NULL, *answer = NULL;
    int64_t pause_ms = PAUSE_FIRST_MS;
    char method[METHOD_MAX];
    struct err err;
    int r;

    if (!text)
        return error_set(error, "invalid_argument", "an argument is missing or not UTF-8");
    (void)snprintf(method, sizeof(method), "holt.v1.%s", call->method);
    for (unsigned attempt = 1;; attempt++) {
        r = holt_call(holt, method, text, call->deadline, &answer, error);
        if (r == 0 || attempt == holt->attempts || !may_repeat(call, &pause_ms, error))
            break;
    }
    if (r < 0)
        return -1;
    if (json_parse_with_nul(answer, strlen(answer), ret_reply, &err) < 0)
        return error_set(error, "internal", "the daemon's answer cannot be read: %s", err.msg);
    return 0;
}

int client_call_void(struct holt *holt, const struct client_call *call, struct holt_error *error)
{
    cleanup_json json_t *reply = NULL;

    return client_call(holt, call, &reply, error);
}

int client_call_for(struct holt *holt, const struct client_call *call,
                    const struct client_answer *answer, void *ret, struct holt_error *error)
{
    struct reading reading = { .is_wrong = false };
    cleanup_result void *result = NULL;
    const json_t *object;
    json_t *reply;

    if (!ret)
        return client_call_void(holt, call, error);
    if (client_call(holt, call, &reply, error) < 0)
        return -1;
    reading.result = result = result_new(answer->size, reply);
    object = answer->field ? read_object(&reading, reply, answer->field) : reply;
    if (!object && !reading.is_wrong)
        return error_set(error, "internal", "the daemon's answer has no '%s'", answer->field);
    if (object)
        answer->read(&reading, object, result);
    if (reading_end(&reading, error) < 0)
        return -1;
    memcpy(ret, &result, sizeof(result));
    result = NULL;
    return 0;
}
