// SPDX-License-Identifier: Apache-2.0
#include "client/message/gather.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "client/error.h"
#include "client/message/result.h"

enum { OUTPUT_MAX = 16 * 1024 * 1024 };

void gather_init(struct gather *gather, holt_output_fn on_output, void *context, size_t output_max)
{
    *gather = (struct gather){ .on_output = on_output, .context = context };
    for (size_t i = 0; i < ARRAY_SIZE(gather->kept); i++)
        gather->kept[i].max = output_max ? output_max : OUTPUT_MAX;
}

void gather_done(struct gather *gather)
{
    for (size_t i = 0; i < ARRAY_SIZE(gather->kept); i++)
        buf_done(&gather->kept[i]);
    free((char *)(uintptr_t)gather->end.reason);
    free((char *)(uintptr_t)gather->end.killed_by);
}

int gather_take(struct gather *gather, enum holt_piece_kind kind, const char *data, size_t len,
                struct holt_error *error)
{
    struct buf *kept = &gather->kept[kind == HOLT_STDERR];

    if (gather->on_output)
        return gather->on_output(gather->context, kind, data, len) == 0
                   ? 0
                   : error_set(error, "canceled", "the caller wanted no more output");
    if (len > kept->max - kept->len) {
        len = kept->max - kept->len;
        gather->is_cut = true;
    }
    if (buf_add(kept, data, len) < 0)
        return error_set(error, "resource_exhausted", "no memory for output");
    return 0;
}

void gather_end(struct gather *gather, const struct holt_end *end)
{
    if (gather->has_end)
        return;
    gather->has_end = true;
    gather->end = *end;
    gather->end.reason = xstrdup(end->reason);
    gather->end.killed_by = xstrdup(end->killed_by);
}

int gather_result(const struct gather *gather, const char *sandbox_id, const char *process_id,
                  struct holt_result **ret, struct holt_error *error)
{
    const struct buf *out = &gather->kept[0], *err = &gather->kept[1];
    struct holt_result *result;
    struct holt_end *end;

    if (!gather->has_end)
        return error_set(error, "internal", "the daemon ended the stream without an outcome");
    result = result_new(sizeof(*result), NULL);
    end = result_part(result, 1, sizeof(*end));
    *end = gather->end;
    end->reason = result_bytes(result, end->reason, strlen(end->reason));
    end->killed_by = result_bytes(result, end->killed_by, strlen(end->killed_by));
    *result = (struct holt_result){
        .sandbox_id = result_bytes(result, sandbox_id, strlen(sandbox_id)),
        .process_id = result_bytes(result, process_id, strlen(process_id)),
        .end = end,
        .stdout_data = result_bytes(result, out->data, out->len),
        .stdout_len = out->len,
        .stderr_data = result_bytes(result, err->data, err->len),
        .stderr_len = err->len,
        .is_cut = gather->is_cut,
    };
    *ret = result;
    return 0;
}
