// SPDX-License-Identifier: Apache-2.0
#include "cli/core/result.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "cli/core/command.h"
#include "cli/core/connect.h"
#include "cli/core/report.h"
#include "holt.h"

static int fail(struct holt_error *error, const char *code, const char *message)
{
    *error = (struct holt_error){ .code = "" };
    (void)snprintf(error->code, sizeof(error->code), "%s", code);
    (void)snprintf(error->message, sizeof(error->message), "%s", message);
    return -1;
}

int call_try(struct holt *holt, const char *method, json_t *request, json_t **ret_reply,
             struct holt_error *error)
{
    cleanup_json json_t *owned = request;
    cleanup_free char *text = owned ? json_dumps(owned, JSON_COMPACT) : NULL, *answer = NULL;
    cleanup_json json_t *reply = NULL;
    struct err err;

    if (!text)
        return fail(error, "invalid_argument", "an argument is not UTF-8");
    if (holt_call(holt, method, text, HOLT_NO_DEADLINE, &answer, error) < 0)
        return -1;
    if (json_parse_with_nul(answer, strlen(answer), &reply, &err) < 0)
        return fail(error, "internal", "the daemon's answer cannot be read");
    if (ret_reply)
        *ret_reply = TAKE_PTR(reply);
    return 0;
}

int call_once(const char *method, json_t *request, json_t **ret_reply)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_json json_t *owned = request;
    struct holt_error error;

    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (call_try(connection.holt, method, TAKE_PTR(owned), ret_reply, &error) < 0)
        return report_holt_error(&error);
    return STATUS_OK;
}

static int follow(struct holt_stream *stream, call_fn each, void *context, struct holt_error *error)
{
    const char *text;
    size_t len;
    int r;

    while ((r = holt_stream_next(stream, &text, &len, error)) > 0) {
        cleanup_json json_t *message = NULL;
        struct err err;
        int status;

        if (json_parse_with_nul(text, len, &message, &err) < 0)
            return report_unreadable(err.msg);
        status = each(message, context);
        if (status != STATUS_OK)
            return status;
    }
    return r;
}

int call_stream(const char *method, json_t *request, call_fn each, void *context,
                struct holt_error *error)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_json json_t *owned = request;
    cleanup_free char *text = owned ? json_dumps(owned, JSON_COMPACT) : NULL;
    struct holt_stream *stream;
    int r;

    if (!text)
        return fail(error, "invalid_argument", "an argument is not UTF-8");
    if (connection_open(&connection) < 0)
        return STATUS_HOLT;
    if (holt_stream_open(connection.holt, method, text, HOLT_NO_DEADLINE, &stream, error) < 0)
        return -1;
    r = follow(stream, each, context, error);
    holt_stream_close(stream);
    return r;
}

int report_unreadable(const char *why)
{
    return report("the daemon's answer cannot be read: %s", why);
}

const json_t *call_object(const json_t *reply, const char *name)
{
    const json_t *object = NULL;
    struct err err;

    if (json_get_object(reply, name, &object, &err) < 0)
        (void)report_unreadable(err.msg);
    else if (!object)
        (void)report("the daemon's answer has no '%s'", name);
    return object;
}

bool call_list(const json_t *reply, const char *name, const json_t **ret)
{
    struct err err;

    if (json_get_array(reply, name, ret, &err) == 0)
        return true;
    (void)report_unreadable(err.msg);
    return false;
}

int call_and_print(const char *method, json_t *request, const char *object)
{
    cleanup_json json_t *reply = NULL;
    const json_t *made;
    int status = call_once(method, request, &reply);

    if (status != STATUS_OK)
        return status;
    made = call_object(reply, object);
    if (!made)
        return STATUS_HOLT;
    (void)printf("%s\n", call_text(made, "name"));
    return command_printed();
}

int print_texts(const json_t *list, const char *name)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        (void)printf("%s\n", call_text(json_array_get(list, i), name));
    return command_printed();
}

int print_json(const json_t *value)
{
    if (!value)
        (void)printf("[]");
    else
        (void)json_dumpf(value, stdout, JSON_INDENT(2));
    (void)printf("\n");
    return command_printed();
}

const char *call_text(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text ? text : "";
}

uint64_t call_number(const json_t *object, const char *name)
{
    uint64_t value = 0;
    struct err ignored;

    (void)json_get_u64(object, name, &value, &ignored);
    return value;
}
