// SPDX-License-Identifier: Apache-2.0
#include "client/error.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "holt.h"

void error_fill(struct holt_error *error, const char *code, const char *format, ...)
{
    va_list args;

    *error =
        (struct holt_error){ .is_retryable = err_kind_row(err_kind_of_code(code))->is_retryable };
    (void)snprintf(error->code, sizeof(error->code), "%s", code);
    va_start(args, format);
    (void)vsnprintf(error->message, sizeof(error->message), format, args);
    va_end(args);
}

/* Returns the Connect code that the protocol assigns to an HTTP status without a body. */
static const char *code_of_status(unsigned status)
{
    static const struct {
        unsigned status;
        const char *code;
    } codes[] = {
        { 400, "internal" },      { 401, "unauthenticated" }, { 403, "permission_denied" },
        { 404, "unimplemented" }, { 429, "unavailable" },     { 502, "unavailable" },
        { 503, "unavailable" },   { 504, "unavailable" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
        if (codes[i].status == status)
            return codes[i].code;
    return "unknown";
}

/* Returns whether object is an error in Connect's form, and stores it in error. */
static bool take_error(struct holt_error *error, const json_t *object)
{
    const char *code = NULL, *message = "the daemon gave no reason", *cause = "", *remedy = "";
    struct err ignored;

    if (json_get_text(object, "code", &code, &ignored) < 0 || !code ||
        json_get_text(object, "message", &message, &ignored) < 0 ||
        json_get_text(object, "cause", &cause, &ignored) < 0 ||
        json_get_text(object, "remedy", &remedy, &ignored) < 0)
        return false;
    error_fill(error, code, "%s", message);
    (void)snprintf(error->cause, sizeof(error->cause), "%s", cause);
    (void)snprintf(error->remedy, sizeof(error->remedy), "%s", remedy);
    return json_get_bool(object, "retryable", &error->is_retryable, &ignored) == 0;
}

void error_from_reply(struct holt_error *error, unsigned status, const char *body, size_t len)
{
    cleanup_json json_t *object = NULL;
    struct err ignored;

    if (len > 0 && json_parse_object(body, len, &object, &ignored) == 0 &&
        take_error(error, object))
        return;
    error_fill(error, code_of_status(status), "the daemon replied with HTTP status %u", status);
}

int error_from_end(struct holt_error *error, const char *payload, size_t len)
{
    cleanup_json json_t *object = NULL;
    const json_t *inner = NULL;
    struct err err;

    if (json_parse_object(payload, len, &object, &err) < 0 ||
        json_get_object(object, "error", &inner, &err) < 0)
        return error_set(error, "internal", "the end of the stream cannot be read: %s", err.msg);
    if (!inner)
        return 0;
    if (!take_error(error, inner))
        return error_set(error, "unknown", "the stream ended with an error that cannot be read");
    return -1;
}
