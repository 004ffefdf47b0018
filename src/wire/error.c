// SPDX-License-Identifier: Apache-2.0
#include "wire/error.h"

#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/base64.h"

enum {
    INFO_MAX = 512,
    TEXT_MAX = 2 * INFO_MAX, /* base64 */
    FIELD_CAUSE = 1,
    FIELD_REMEDY = 2,
    FIELD_RETRYABLE = 3,
    WIRE_VARINT = 0,
    WIRE_BYTES = 2,
};

/* The length fits into two varint bytes: texts here are shorter than 16384 bytes. */
static int field_add_text(struct buf *out, unsigned field, const char *text)
{
    size_t len = text ? strlen(text) : 0;
    const unsigned char head[] = {
        (unsigned char)(field << 3 | WIRE_BYTES),
        (unsigned char)(len < 0x80 ? len : len | 0x80),
        (unsigned char)(len >> 7),
    };
    int r;

    if (len == 0)
        return 0;
    r = buf_add(out, head, len < 0x80 ? 2 : sizeof(head));
    return r < 0 ? r : buf_add(out, text, len);
}

static int field_add_true(struct buf *out, unsigned field, bool value)
{
    const unsigned char bytes[] = { (unsigned char)(field << 3 | WIRE_VARINT), 1 };

    return value ? buf_add(out, bytes, sizeof(bytes)) : 0;
}

/* Returns [{"type":"holt.v1.ErrorInfo", ...}], or NULL if it would be empty. */
static json_t *error_details(const char *cause, const char *remedy, bool is_retryable)
{
    cleanup_with(buf_done) struct buf info = BUF_INIT(INFO_MAX);
    cleanup_with(buf_done) struct buf text = BUF_INIT(TEXT_MAX);

    if (field_add_text(&info, FIELD_CAUSE, cause) < 0 ||
        field_add_text(&info, FIELD_REMEDY, remedy) < 0 ||
        field_add_true(&info, FIELD_RETRYABLE, is_retryable) < 0 || info.len == 0 ||
        base64_encode(&text, info.data, info.len) < 0)
        return NULL;
    while (text.data[text.len - 1] == '=')
        text.len--;
    return json_pack("[{s:s,s:s%}]", "type", "holt.v1.ErrorInfo", "value", text.data, text.len);
}

json_t *error_object(const struct err *err)
{
    const char *cause = err_cause_name(err->cause), *known = err_remedy_of(err);
    cleanup_json json_t *remedy = known ? json_text(known) : NULL;
    bool is_retryable = err_is_retryable(err);

    return json_pack("{s:s,s:o,s:s*,s:O*,s:b,s:o*}", "code", err_kind_row(err->kind)->code,
                     "message", json_text(err->msg), "cause", cause, "remedy", remedy, "retryable",
                     is_retryable, "details",
                     error_details(cause, json_string_value(remedy), is_retryable));
}
