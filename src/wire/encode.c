// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/text/base64.h"
#include "base/text/parse.h"
#include "base/text/utf8.h"
#include "wire/schema.h"

/* The years 1 to 9999, which a google.protobuf.Timestamp can hold. */
static const int64_t time_min = -62135596800, time_max = 253402300799;

struct encoder {
    struct buf *out;
    enum encode_mode mode;
};

static int message_put(const struct encoder *encoder, const struct schema *schema,
                       const void *message);

/* --- values ----------------------------------------------------------------------------------- */

static int u64_put(struct buf *out, uint64_t value, bool is_negative)
{
    char text[24], *at = text + sizeof(text);

    do
        *--at = (char)('0' + value % 10);
    while (value /= 10);
    if (is_negative)
        *--at = '-';
    return buf_add(out, at, (size_t)(text + sizeof(text) - at));
}

static int i64_put(struct buf *out, int64_t value)
{
    return u64_put(out, value < 0 ? -(uint64_t)value : (uint64_t)value, value < 0);
}

static int quote_put(struct buf *out)
{
    return buf_add(out, "\"", 1);
}

static bool is_utf8(const char *text, size_t len)
{
    while (len > 0) {
        size_t valid = utf8_valid(text, len);

        if (valid < len && text[valid] == '\0')
            valid++;
        if (valid == 0)
            return false;
        text += valid;
        len -= valid;
    }
    return true;
}

static int ascii_put(struct buf *out, const char *text, size_t len)
{
    cleanup_with(buf_done) struct buf ascii = BUF_INIT(len);
    int r = buf_add(&ascii, text, len);

    if (r < 0)
        return r;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)ascii.data[i] >= 0x80)
            ascii.data[i] = '?';
    return json_add_text(out, ascii.data, len);
}

static int text_put(struct buf *out, const char *text, size_t len)
{
    return is_utf8(text, len) ? json_add_text(out, text, len) : ascii_put(out, text, len);
}

static int bytes_put(struct buf *out, const struct span *bytes)
{
    int r = quote_put(out);

    if (r == 0)
        r = base64_encode(out, bytes->data, bytes->len);
    return r < 0 ? r : quote_put(out);
}

static int time_put(struct buf *out, const struct timestamp *when)
{
    int64_t seconds = when->seconds < time_min   ? time_min
                      : when->seconds > time_max ? time_max
                                                 : when->seconds;
    time_t moment = (time_t)seconds;
    struct tm tm;

    (void)gmtime_r(&moment, &tm);
    return buf_printf(out, "\"%04d-%02d-%02dT%02d:%02d:%02d.%09uZ\"", tm.tm_year + 1900,
                      tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
                      when->nanoseconds);
}

static int time_ms_put(struct buf *out, uint64_t ms)
{
    char text[TIME_TEXT_SIZE];
    int r = quote_put(out);

    format_time_ms(ms, text);
    if (r == 0)
        r = buf_add_str(out, text);
    return r < 0 ? r : quote_put(out);
}

static int enum_put(struct buf *out, const struct schema_enum *names, int value)
{
    const char *name = value >= 0 && (size_t)value < names->count ? names->names[value] : NULL;

    return name ? json_add_text(out, name, strlen(name)) : i64_put(out, value);
}

static int double_put(struct buf *out, double value)
{
    return isfinite(value) ? buf_printf(out, "%.17g", value) : buf_add_str(out, "0");
}

static int wide_put(struct buf *out, const struct schema_field *field, const void *value)
{
    int r = quote_put(out);

    if (r == 0)
        r = field->kind == FIELD_U64 ? u64_put(out, *(const uint64_t *)value, false)
                                     : i64_put(out, *(const int64_t *)value);
    return r < 0 ? r : quote_put(out);
}

/* Any value but a message, a list or a map. */
static int scalar_put(struct buf *out, const struct schema_field *field, const void *value)
{
    const char *text;

    switch ((int)field->kind) {
    case FIELD_BOOL:
        return buf_add_str(out, *(const bool *)value ? "true" : "false");
    case FIELD_I32:
        return i64_put(out, *(const int32_t *)value);
    case FIELD_U32:
        return u64_put(out, *(const uint32_t *)value, false);
    case FIELD_I64:
    case FIELD_U64:
        return wide_put(out, field, value);
    case FIELD_DOUBLE:
        return double_put(out, *(const double *)value);
    case FIELD_TEXT:
        text = *(const char *const *)value;
        return text ? text_put(out, text, strlen(text)) : buf_add_str(out, "\"\"");
    case FIELD_SIZED:
        return text_put(out, ((const struct span *)value)->data, ((const struct span *)value)->len);
    case FIELD_BYTES:
        return bytes_put(out, value);
    case FIELD_ENUM:
        return enum_put(out, field->of, *(const int *)value);
    case FIELD_TIME_MS:
        return time_ms_put(out, *(const uint64_t *)value);
    case FIELD_TIME:
        return time_put(out, value);
    case FIELD_OBJECT:
        return json_write(*(const json_t *const *)value, out);
    default:
        return -EINVAL;
    }
}

/* --- lists and maps --------------------------------------------------------------------------- */

static int pairs_put(struct buf *out, const struct pair *pairs, size_t count)
{
    int r = buf_add_str(out, "{");

    for (size_t i = 0; r == 0 && i < count; i++) {
        if (i > 0)
            r = buf_add_str(out, ",");
        if (r == 0)
            r = text_put(out, pairs[i].key, strlen(pairs[i].key));
        if (r == 0)
            r = buf_add_str(out, ":");
        if (r == 0)
            r = text_put(out, pairs[i].value, strlen(pairs[i].value));
    }
    return r < 0 ? r : buf_add_str(out, "}");
}

static int list_put(const struct encoder *encoder, const struct schema_field *field,
                    const char *items, size_t count)
{
    const struct schema *schema = field->of;
    size_t size = field->kind == FIELD_MESSAGE ? schema->size : sizeof(const char *);
    int r = buf_add_str(encoder->out, "[");

    for (size_t i = 0; r == 0 && i < count; i++) {
        if (i > 0)
            r = buf_add_str(encoder->out, ",");
        if (r == 0)
            r = field->kind == FIELD_MESSAGE ? message_put(encoder, schema, items + i * size)
                                             : scalar_put(encoder->out, field, items + i * size);
    }
    return r < 0 ? r : buf_add_str(encoder->out, "]");
}

/* --- messages --------------------------------------------------------------------------------- */

static size_t count_of(const struct schema_field *field, const char *message)
{
    return *(const size_t *)(const void *)(message + field->aux);
}

/* Whether the value is the one that proto3 gives to an absent field. */
static bool is_default(const struct schema_field *field, const char *message)
{
    const void *value = message + field->offset;
    const char *text;

    switch (field->kind) {
    case FIELD_BOOL:
        return !*(const bool *)value;
    case FIELD_I32:
    case FIELD_U32:
    case FIELD_ENUM:
        return *(const uint32_t *)value == 0;
    case FIELD_I64:
    case FIELD_U64:
        return *(const uint64_t *)value == 0;
    case FIELD_DOUBLE:
        return *(const double *)value == 0;
    case FIELD_TEXT:
        text = *(const char *const *)value;
        return !text || !*text;
    case FIELD_SIZED:
        return ((const struct span *)value)->len == 0;
    case FIELD_BYTES:
    case FIELD_MESSAGE:
    case FIELD_TIME_MS:
    case FIELD_TIME:
    case FIELD_OBJECT:
    case FIELD_PAIRS:
        break;
    }
    return false;
}

/* Whether a field that knows its presence is absent. */
static bool is_absent(const struct schema_field *field, const char *message)
{
    const void *value = message + field->offset;

    switch ((int)field->kind) {
    case FIELD_TEXT:
        return (field->flags & FIELD_PRESENCE) && !*(const char *const *)value;
    case FIELD_SIZED:
        return (field->flags & FIELD_PRESENCE) && !((const struct span *)value)->data;
    case FIELD_BYTES:
        return !((const struct span *)value)->data;
    case FIELD_MESSAGE:
    case FIELD_OBJECT:
        return !*(const void *const *)value;
    case FIELD_TIME_MS:
        return *(const uint64_t *)value == 0;
    case FIELD_TIME:
        return !((const struct timestamp *)value)->is_set;
    default:
        return (field->flags & FIELD_PRESENCE) && !message[field->aux];
    }
}

static bool is_left_out(const struct encoder *encoder, const struct schema_field *field,
                        const char *message)
{
    bool is_sparse = encoder->mode == ENCODE_SOME || (field->flags & FIELD_OMIT);

    if ((field->flags & FIELD_LIST) || field->kind == FIELD_PAIRS)
        return is_sparse && count_of(field, message) == 0;
    if (is_absent(field, message))
        return true;
    return is_sparse && !(field->flags & FIELD_PRESENCE) && is_default(field, message);
}

static int field_put(const struct encoder *encoder, const struct schema_field *field,
                     const char *message)
{
    const void *value = message + field->offset;

    if (field->kind == FIELD_PAIRS)
        return pairs_put(encoder->out, *(const struct pair *const *)value,
                         count_of(field, message));
    if (field->flags & FIELD_LIST)
        return list_put(encoder, field, *(const char *const *)value, count_of(field, message));
    if (field->kind == FIELD_MESSAGE)
        return message_put(encoder, field->of, *(const void *const *)value);
    return scalar_put(encoder->out, field, value);
}

static int name_put(struct buf *out, const char *name, bool is_first)
{
    int r = buf_add_str(out, is_first ? "\"" : ",\"");

    if (r == 0)
        r = buf_add_str(out, name);
    return r < 0 ? r : buf_add(out, "\":", 2);
}

static int message_put(const struct encoder *encoder, const struct schema *schema,
                       const void *message)
{
    bool is_first = true;
    int r = buf_add(encoder->out, "{", 1);

    for (size_t i = 0; r == 0 && i < schema->field_count; i++) {
        const struct schema_field *field = &schema->fields[i];

        if (is_left_out(encoder, field, message))
            continue;
        r = name_put(encoder->out, field->json_name, is_first);
        if (r == 0)
            r = field_put(encoder, field, message);
        is_first = false;
    }
    return r < 0 ? r : buf_add(encoder->out, "}", 1);
}

int schema_encode(const struct schema *schema, const void *message, enum encode_mode mode,
                  struct buf *out)
{
    const struct encoder encoder = { out, mode };

    return message_put(&encoder, schema, message);
}

int list_encoder_begin(struct list_encoder *list, const struct schema *schema, struct buf *out)
{
    const struct schema_field *field = &schema->fields[0];
    int r = buf_add(out, "{", 1);

    *list = (struct list_encoder){ .out = out, .item = field->of };
    if (r == 0)
        r = name_put(out, field->json_name, true);
    return r < 0 ? r : buf_add(out, "[", 1);
}

int list_encoder_add(struct list_encoder *list, const void *item)
{
    int r = list->count++ > 0 ? buf_add(list->out, ",", 1) : 0;

    return r < 0 ? r : schema_encode(list->item, item, ENCODE_ALL, list->out);
}

int list_encoder_end(struct list_encoder *list)
{
    return buf_add(list->out, "]}", 2);
}
