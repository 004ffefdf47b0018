// SPDX-License-Identifier: Apache-2.0
#include "gateway/request.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/text/parse.h"

enum { BYTES_PER_TOKEN = 3, CHOICES_MAX = 128, OUTPUT_MAX = 10 * 1000 * 1000 };

/* --- calls --- */

static const struct {
    const char *method, *path;
    enum request_call call;
    enum provider_kind kind;
} request_calls[] = {
    { "POST", "/v1/messages", CALL_MESSAGES, PROVIDER_ANTHROPIC },
    { "POST", "/v1/messages/count_tokens", CALL_COUNT, PROVIDER_ANTHROPIC },
    { "POST", "/v1/chat/completions", CALL_CHAT, PROVIDER_OPENAI },
    { "POST", "/v1/responses", CALL_RESPONSES, PROVIDER_OPENAI },
    { "GET", "/v1/models", CALL_MODELS, PROVIDER_OPENAI },
    { "HEAD", "/", CALL_PROBE, PROVIDER_ANTHROPIC },
};

static const char entry_prefix[] = "/v1/models/";

enum request_call request_classify(const char *method, const char *target, bool is_anthropic,
                                   enum provider_kind *ret_kind)
{
    size_t len = strcspn(target, "?");

    *ret_kind = is_anthropic || strncmp(target, "/v1/messages", 12) == 0 ? PROVIDER_ANTHROPIC
                                                                         : PROVIDER_OPENAI;
    if (strcmp(method, "GET") == 0 && strncmp(target, entry_prefix, strlen(entry_prefix)) == 0)
        return CALL_ENTRY;
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

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *found = c ? strchr(digits, c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c) : NULL;

    return found ? (int)(found - digits) : -1;
}

/* Returns the next character of a path, with %XX decoded, or -1. */
static int path_next(const char **path, const char *end)
{
    const char *at = *path;
    int high, low;

    if (*at != '%') {
        *path = at + 1;
        return (unsigned char)*at;
    }
    if (end - at < 3)
        return -1;
    high = hex_digit(at[1]);
    low = hex_digit(at[2]);
    *path = at + 3;
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

int request_entry_name(const char *target, char ret[MODEL_NAME_MAX + 1])
{
    const char *at = target + strlen(entry_prefix), *end = at + strcspn(at, "?");
    size_t len = 0;

    while (at < end) {
        int c = path_next(&at, end);

        if (c <= ' ' || len == MODEL_NAME_MAX)
            return -EINVAL;
        ret[len++] = (char)c;
    }
    ret[len] = '\0';
    return len > 0 ? 0 : -EINVAL;
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

static void background_found(const struct json_scan_value *value, struct request_body *body)
{
    body->is_background |= strcmp(value->text, "false") != 0 && strcmp(value->text, "null") != 0;
}

enum member { MEMBER_MODEL, MEMBER_OUTPUT, MEMBER_CHOICES, MEMBER_STREAM, MEMBER_BACKGROUND };

enum {
    IN_MESSAGES = 1 << CALL_MESSAGES,
    IN_CHAT = 1 << CALL_CHAT,
    IN_RESPONSES = 1 << CALL_RESPONSES,
    IN_ALL = -1,
};

/* Where a format does not have a member its providers pass over it, so it limits nothing there. */
static const struct {
    const char *name;
    enum member member;
    int calls;
} members[] = {
    { "model", MEMBER_MODEL, IN_ALL },
    { "max_tokens", MEMBER_OUTPUT, IN_MESSAGES | IN_CHAT },
    { "max_completion_tokens", MEMBER_OUTPUT, IN_CHAT },
    { "max_output_tokens", MEMBER_OUTPUT, IN_RESPONSES },
    { "n", MEMBER_CHOICES, IN_CHAT },
    { "stream", MEMBER_STREAM, IN_ALL },
    { "background", MEMBER_BACKGROUND, IN_ALL },
};

static void member_take(enum member member, const struct json_scan_value *value,
                        struct request_body *body)
{
    switch (member) {
    case MEMBER_MODEL:
        model_found(value, body);
        break;
    case MEMBER_OUTPUT:
        number_found(value, OUTPUT_MAX, &body->max_output, body);
        break;
    case MEMBER_CHOICES:
        number_found(value, CHOICES_MAX, &body->choices, body);
        break;
    case MEMBER_STREAM:
        body->is_stream = strcmp(value->text, "true") == 0;
        break;
    case MEMBER_BACKGROUND:
        background_found(value, body);
        break;
    }
}

/* A member that is there twice could be one thing here and another for the provider. So could
 * "Model": some parsers do not tell capitals from small letters. */
static void member_found(void *data, const struct json_scan_value *value)
{
    struct request_body *body = data;

    for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
        if (strcasecmp(value->path, members[i].name) != 0)
            continue;
        if (strcmp(value->path, members[i].name) != 0)
            body->is_refused = true;
        else if (members[i].calls & (1 << body->call))
            member_take(members[i].member, value, body);
    }
}

void request_body_init(struct request_body *body, enum request_call call)
{
    memset(body, 0, sizeof(*body));
    body->call = call;
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

static const struct error_shape {
    int status;
    const char *reason, *anthropic, *openai, *openai_code;
} error_shapes[] = {
    [ERROR_MALFORMED] = { 400, "Bad Request", "invalid_request_error", "invalid_request_error",
                          NULL },
    [ERROR_KEY] = { 401, "Unauthorized", "authentication_error", "invalid_request_error",
                    "invalid_api_key" },
    [ERROR_PATH] = { 404, "Not Found", "not_found_error", "invalid_request_error", "unknown_url" },
    [ERROR_MODEL] = { 404, "Not Found", "not_found_error", "invalid_request_error",
                      "model_not_found" },
    [ERROR_LATE] = { 408, "Request Timeout", "timeout_error", "invalid_request_error", NULL },
    [ERROR_SIZE] = { 413, "Content Too Large", "request_too_large", "invalid_request_error",
                     "too_large" },
    [ERROR_RATE] = { 429, "Too Many Requests", "rate_limit_error", "requests",
                     "rate_limit_exceeded" },
    [ERROR_QUOTA] = { 429, "Too Many Requests", "rate_limit_error", "insufficient_quota",
                      "insufficient_quota" },
    [ERROR_PROVIDER] = { 502, "Bad Gateway", "api_error", "server_error", NULL },
    [ERROR_SHORTAGE] = { 503, "Service Unavailable", "overloaded_error", "server_error", NULL },
};

static json_t *error_make(enum provider_kind kind, const struct error_shape *shape,
                          const char *message)
{
    if (kind == PROVIDER_ANTHROPIC)
        return json_pack("{s:s, s:{s:s, s:o}}", "type", "error", "error", "type", shape->anthropic,
                         "message", json_text(message));
    return json_pack("{s:{s:o, s:s, s:n, s:s?}}", "error", "message", json_text(message), "type",
                     shape->openai, "param", "code", shape->openai_code);
}

int request_put_error(enum provider_kind kind, enum request_error error, const char *message,
                      uint64_t retry_seconds, struct buf *out)
{
    const struct error_shape *shape = &error_shapes[error];
    cleanup_json json_t *json = error_make(kind, shape, message);
    cleanup_free char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    int r;

    if (!text)
        return -ENOMEM;
    r = buf_printf(out,
                   "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n",
                   shape->status, shape->reason, strlen(text));
    if (r == 0 && retry_seconds > 0)
        r = buf_printf(out, "Retry-After: %llu\r\n", (unsigned long long)retry_seconds);
    if (r == 0) /* the SDKs try again by themselves, unless that would only be refused again */
        r = buf_printf(out, "%sX-Holt-Reason: gateway\r\n\r\n%s",
                       error == ERROR_QUOTA ? "X-Should-Retry: false\r\n" : "", text);
    return r;
}
