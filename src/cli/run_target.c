// SPDX-License-Identifier: Apache-2.0
#include "cli/run_target.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "holt.h"

enum { BASE64_MAX = 128 * 1024 };

void run_target_done(struct run_target *target)
{
    holt_close(target->control);
    free(target->sandbox_id);
    free(target->process_id);
    *target = (struct run_target){ .host = NULL };
}

/* Takes the request. */
static int call(struct run_target *target, const char *method, json_t *request,
                struct holt_error *error)
{
    cleanup_json json_t *message = request;
    cleanup_free char *text = NULL, *reply = NULL;

    if (!target->control && holt_open(target->host, NULL, &target->control, error) < 0)
        return -1;
    (void)json_object_set_new(message, "sandboxId", json_string(target->sandbox_id));
    (void)json_object_set_new(message, "processId", json_string(target->process_id));
    text = json_dumps(message, JSON_COMPACT);
    if (!text) {
        *error = (struct holt_error){ .code = "internal", .message = "no memory for a request" };
        return -1;
    }
    return holt_call(target->control, method, text, &reply, error);
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

int run_target_send(struct run_target *target, const void *data, size_t len, bool is_eof,
                    struct holt_error *error)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(BASE64_MAX);
    json_t *request = json_object();

    if (len > 0 && base64_encode(&text, data, len) == 0)
        (void)json_object_set_new(request, "data", json_stringn(text.data, text.len));
    if (is_eof)
        (void)json_object_set_new(request, "eof", json_true());
    return call(target, "holt.v1.ProcessService/SendInput", request, error);
}
