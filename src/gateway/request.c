// SPDX-License-Identifier: Apache-2.0
#include "gateway/request.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/text/parse.h"

enum {
    BYTES_PER_TOKEN = 3,
    RETRY_SECONDS_MAX = 60,
    CHOICES_MAX = 128,
    OUTPUT_MAX = 10 * 1000 * 1000
};

/* --- calls --- */

static const struct {
    const char *method, *path;
    enum request_call call;
    enum provider_kind kind;
} request_calls[] = {
    { "POST", "/v1/messages", CALL_MODEL, PROVIDER_ANTHROPIC },
    { "POST", "/v1/messages/count_tokens", CALL_COUNT, PROVIDER_ANTHROPIC },
    { "POST", "/v1/chat/completions", CALL_MODEL, PROVIDER_OPENAI },
    { "POST", "/v1/responses", CALL_MODEL, PROVIDER_OPENAI },
    { "GET", "/v1/models", CALL_MODELS, PROVIDER_OPENAI },
    { "HEAD", "/", CALL_PROBE, PROVIDER_ANTHROPIC },
};

enum request_call request_classify(const char *method, const char *target, bool is_anthropic,
                                   enum provider_kind *ret_kind)
{
    size_t len = strcspn(target, "?");

    *ret_kind = is_anthropic ? PROVIDER_ANTHROPIC : PROVIDER_OPENAI;
    for (size_t i = 0; i < ARRAY_SIZE(request_calls); i++) {
        if (strcmp(request_calls[i].method, method) != 0 || strlen(request_calls[i].path) != len ||
            strncmp(request_calls[i].path, target, len) != 0)
            continue;
        if (request_calls[i].call != CALL_MODELS)
            *ret_kind = request_calls[i].kind;
        return request_calls[i].call;
    }
    return CALL_UNKNOWN;
}

/* --- bodies --- */

static void number_found(const struct json_scan_value *value, uint64_t max, uint64_t *slot,
                         struct request_body *body)
{
    uint64_t number;

    if (value->kind == JSON_SCAN_OTHER && strcmp(value->text, "null") == 0)
        return;
    if (*slot > 0 || value->kind != JSON_SCAN_OTHER || value->is_cut ||
        parse_u64(value->text, &number) < 0 || number == 0 || number > max)
        body->is_refused = true;
    else
        *slot = number;
}

static void model_found(const struct json_scan_value *value, struct request_body *body)
{
    size_t len = strlen(value->text);

    if (body->model[0] || value->kind != JSON_SCAN_STRING || value->has_escape || value->is_cut ||
        len == 0 || len > MODEL_NAME_MAX) {
        body->is_refused = true;
        return;
    }
    memcpy(body->model, value->text, len + 1);
    body->model_start = value->start;
    body->model_end = value->end;
}

/* A member that is there twice could be one thing here and another for the provider. */
static void member_found(void *data, const struct json_scan_value *value)
{
    struct request_body *body = data;

    if (strcmp(value->path, "model") == 0)
        model_found(value, body);
    else if (strcmp(value->path, "max_tokens") == 0 ||
             strcmp(value->path, "max_completion_tokens") == 0 ||
             strcmp(value->path, "max_output_tokens") == 0)
        number_found(value, OUTPUT_MAX, &body->max_output, body);
    else if (strcmp(value->path, "n") == 0)
        number_found(value, CHOICES_MAX, &body->choices, body);
    else if (strcmp(value->path, "stream") == 0)
        body->is_stream = strcmp(value->text, "true") == 0;
}

void request_body_init(struct request_body *body)
{
    memset(body, 0, sizeof(*body));
    json_scan_init(&body->scan, member_found, body);
}

int request_body_feed(struct request_body *body, const char *bytes, size_t len)
{
    int r = json_scan_feed(&body->scan, bytes, len);

    return r < 0 || body->is_refused || body->scan.has_odd_name ? -EBADMSG : 0;
}

bool request_body_is_whole(const struct request_body *body)
{
    return json_scan_is_done(&body->scan) && body->model[0] && !body->is_refused;
}

uint64_t request_estimate_input(size_t body_bytes)
{
    return body_bytes / BYTES_PER_TOKEN + 1;
}

int request_body_rename(const struct request_body *body, const char *bytes, size_t len,
                        const char *model, struct buf *out)
{
    size_t start = (size_t)body->model_start, end = (size_t)body->model_end;
    int r = buf_add(out, bytes, start);

    if (r == 0)
        r = buf_printf(out, "\"%s\"", model);
    if (r == 0)
        r = buf_add(out, bytes + end, len - end);
    return r;
}

/* --- errors --- */

static const struct {
    int status;
    const char *reason, *anthropic, *openai, *openai_code;
} error_shapes[] = {
    { 400, "Bad Request", "invalid_request_error", "invalid_request_error", NULL },
    { 401, "Unauthorized", "authentication_error", "invalid_request_error", "invalid_api_key" },
    { 403, "Forbidden", "permission_error", "invalid_request_error", "model_not_allowed" },
    { 404, "Not Found", "not_found_error", "invalid_request_error", "model_not_found" },
    { 413, "Content Too Large", "request_too_large", "invalid_request_error", "too_large" },
    { 429, "Too Many Requests", "rate_limit_error", "insufficient_quota", "insufficient_quota" },
    { 502, "Bad Gateway", "api_error", "server_error", NULL },
    { 503, "Service Unavailable", "overloaded_error", "server_error", NULL },
};

static json_t *error_make(enum provider_kind kind, size_t shape, const char *message)
{
    if (kind == PROVIDER_ANTHROPIC)
        return json_pack("{s:s, s:{s:s, s:o}}", "type", "error", "error", "type",
                         error_shapes[shape].anthropic, "message", json_text(message));
    return json_pack("{s:{s:o, s:s, s:n, s:s?}}", "error", "message", json_text(message), "type",
                     error_shapes[shape].openai, "param", "code", error_shapes[shape].openai_code);
}

int request_put_error(enum provider_kind kind, int status, const char *message,
                      uint64_t retry_seconds, struct buf *out)
{
    cleanup_json json_t *error = NULL;
    cleanup_free char *text = NULL;
    size_t shape = 0;
    int r;

    while (shape + 1 < ARRAY_SIZE(error_shapes) && error_shapes[shape].status != status)
        shape++;
    error = error_make(kind, shape, message);
    text = error ? json_dumps(error, JSON_COMPACT) : NULL;
    if (!text)
        return -ENOMEM;
    r = buf_printf(out,
                   "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n",
                   error_shapes[shape].status, error_shapes[shape].reason, strlen(text));
    if (r == 0 && retry_seconds > 0)
        r = buf_printf(out, "Retry-After: %llu\r\n", (unsigned long long)retry_seconds);
    if (r == 0) /* the SDKs try again by themselves, unless that would only be refused again */
        r = buf_printf(out, "%sX-Holt-Reason: gateway\r\n\r\n%s",
                       retry_seconds > RETRY_SECONDS_MAX ? "X-Should-Retry: false\r\n" : "", text);
    return r;
}
