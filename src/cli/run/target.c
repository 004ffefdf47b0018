// SPDX-License-Identifier: Apache-2.0
#include "cli/run/target.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/text/base64.h"
#include "holt.h"

enum { REQUEST_MAX = 128 * 1024 };

void run_target_done(struct run_target *target)
{
    holt_close(target->control);
    free(target->sandbox_id);
    free(target->process_id);
    *target = (struct run_target){ .host = NULL };
}

static int no_memory(struct holt_error *error)
{
    *error = (struct holt_error){ .code = "internal", .message = "no memory for a request" };
    return -1;
}

static int call_text(struct run_target *target, const char *method, const char *request,
                     struct holt_error *error)
{
    struct holt_options options = HOLT_INIT(holt_options);
    cleanup_free char *reply = NULL;

    options.host = target->host;
    if (!target->control && holt_open(&options, HOLT_NO_DEADLINE, &target->control, error) < 0)
        return -1;
    return holt_call(target->control, method, request, HOLT_NO_DEADLINE, &reply, error);
}

/* The text of a request to the target. Takes the rest of its fields; the caller frees the text. */
static char *request_text(const struct run_target *target, json_t *fields)
{
    cleanup_json json_t *request = fields;

    (void)json_object_set_new(request, "sandboxId", json_string(target->sandbox_id));
    (void)json_object_set_new(request, "processId", json_string(target->process_id));
    return json_dumps(request, JSON_COMPACT);
}

/* Takes the fields. */
static int call(struct run_target *target, const char *method, json_t *fields,
                struct holt_error *error)
{
    cleanup_free char *text = request_text(target, fields);

    return text ? call_text(target, method, text, error) : no_memory(error);
}

int run_target_signal(struct run_target *target, int number, bool is_for_tree,
                      struct holt_error *error)
{
    return call(target, "holt.v1.ProcessService/Signal",
                json_pack("{s:i,s:b}", "signal", number, "tree", is_for_tree), error);
}

int run_target_resize(struct run_target *target, uint32_t rows, uint32_t columns,
                      struct holt_error *error)
{
    return call(target, "holt.v1.ProcessService/Resize",
                json_pack("{s:{s:i,s:i}}", "size", "rows", (int)rows, "columns", (int)columns),
                error);
}

/* The data is put in front of the other fields by hand: jansson would look at each of its bytes
 * three times. */
int run_target_send(struct run_target *target, const void *data, size_t len, bool is_eof,
                    struct holt_error *error)
{
    cleanup_with(buf_done) struct buf request = BUF_INIT(REQUEST_MAX);
    cleanup_free char *rest = request_text(target, json_pack("{s:b}", "eof", is_eof));

    if (!rest || buf_add_str(&request, "{\"data\":\"") < 0 ||
        base64_encode(&request, data, len) < 0 || buf_printf(&request, "\",%s", rest + 1) < 0)
        return no_memory(error);
    return call_text(target, "holt.v1.ProcessService/SendInput", request.data, error);
}
