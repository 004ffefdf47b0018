// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "wire/schema.h"
#include "wire/schema_rule.h"

enum { WORDS_TEXT_MAX = 160, TIME_DIGITS = 9 };

struct decoder {
    enum decode_mode mode;
    struct arena *arena;
};

static int message_get(const struct decoder *decoder, const struct schema *schema, void *ret,
                       const json_t *object, struct err *err);

static int wrong_type(const struct schema_field *field, const char *wanted, struct err *err)
{
    return err_set(err, ERR_INVALID, "field '%s' must be %s", field->json_name, wanted);
}

static void *room(const struct decoder *decoder, const struct schema_field *field, size_t count,
                  size_t size, struct err *err)
{
    void *memory = arena_alloc(decoder->arena, count, size);

    if (!memory)
        (void)err_set(err, ERR_EXHAUSTED, "field '%s' is too large", field->json_name);
    return memory;
}

/* --- numbers ---------------------------------------------------------------------------------- */

/* 1.0 and 1e3 are whole numbers too, as far as a double can tell them apart. */
static bool is_whole(double value)
{
    const double limit = (double)(1ULL << 53);

    return value >= -limit && value <= limit && (double)(int64_t)value == value;
}

/* As a magnitude and a sign. */
static bool number_get(const json_t *value, uint64_t *ret, bool *ret_negative)
{
    int64_t number;

    *ret_negative = false;
    if (json_is_string(value)) {
        const char *text = json_string_value(value);

        *ret_negative = *text == '-';
        return parse_u64(text + *ret_negative, ret) == 0;
    }
    if (json_is_real(value) && is_whole(json_real_value(value)))
        number = (int64_t)json_real_value(value);
    else if (json_is_integer(value))
        number = json_integer_value(value);
    else
        return false;
    *ret_negative = number < 0;
    *ret = number < 0 ? -(uint64_t)number : (uint64_t)number;
    return true;
}

static int unsigned_get(const struct schema_field *field, void *ret, const json_t *value,
                        struct err *err)
{
    uint64_t number = 0;
    bool is_negative;

    if (!number_get(value, &number, &is_negative) || (is_negative && number > 0))
        return wrong_type(field, "a whole number, not negative", err);
    if (field->kind == FIELD_U32 && number > UINT32_MAX)
        return err_set(err, ERR_INVALID, "field '%s' is too large", field->json_name);
    if (field->kind == FIELD_U32)
        *(uint32_t *)ret = (uint32_t)number;
    else
        *(uint64_t *)ret = number;
    return 0;
}

static int signed_get(const struct schema_field *field, void *ret, const json_t *value,
                      struct err *err)
{
    uint64_t max = field->kind == FIELD_I32 ? INT32_MAX : INT64_MAX, number = 0;
    bool is_negative;
    int64_t result;

    if (!number_get(value, &number, &is_negative))
        return wrong_type(field, "a whole number", err);
    if (number > max + is_negative)
        return err_set(err, ERR_INVALID, "field '%s' is too large", field->json_name);
    result = (int64_t)(is_negative ? -number : number);
    if (field->kind == FIELD_I32)
        *(int32_t *)ret = (int32_t)result;
    else
        *(int64_t *)ret = result;
    return 0;
}

static int double_get(const struct schema_field *field, double *ret, const json_t *value,
                      struct err *err)
{
    if (!json_is_number(value))
        return wrong_type(field, "a number", err);
    *ret = json_number_value(value);
    return 0;
}

static int bool_get(const struct schema_field *field, bool *ret, const json_t *value,
                    struct err *err)
{
    if (!json_is_boolean(value))
        return wrong_type(field, "true or false", err);
    *ret = json_is_true(value);
    return 0;
}

/* --- texts ------------------------------------------------------------------------------------ */

static int text_get(const struct decoder *decoder, const struct schema_field *field,
                    const char **ret, const json_t *value, struct err *err)
{
    if (!json_is_string(value))
        return wrong_type(field, "text", err);
    *ret = json_string_value(value);
    if (decoder->mode != DECODE_REPLY && strlen(*ret) != json_string_length(value))
        return err_set(err, ERR_INVALID, "field '%s' has a NUL inside", field->json_name);
    return 0;
}

static int sized_get(const struct schema_field *field, struct span *ret, const json_t *value,
                     struct err *err)
{
    if (!json_is_string(value))
        return wrong_type(field, "text", err);
    *ret = (struct span){ json_string_value(value), json_string_length(value) };
    return 0;
}

/* Into memory of the arena, which the buffer never has to grow. */
static int bytes_get(const struct decoder *decoder, const struct schema_field *field,
                     struct span *ret, const json_t *value, struct err *err)
{
    size_t most = (json_string_length(value) / 4 + 1) * 3;
    struct buf bytes = { .max = most, .cap = most + 1 };

    if (!json_is_string(value))
        return wrong_type(field, "text", err);
    bytes.data = room(decoder, field, bytes.cap, 1, err);
    if (!bytes.data)
        return -ENOMEM;
    if (json_decode_bytes(json_string_value(value), &bytes) < 0)
        return wrong_type(field, "base64", err);
    *ret = (struct span){ bytes.data, bytes.len };
    return 0;
}

/* "A, B or C". */
static void words_format(const struct schema_enum *names, char ret[WORDS_TEXT_MAX])
{
    size_t len = 0;

    ret[0] = '\0';
    for (size_t i = 0; i < names->count && len < WORDS_TEXT_MAX; i++)
        if (names->names[i])
            len += (size_t)snprintf(ret + len, WORDS_TEXT_MAX - len, "%s%s",
                                    len == 0                ? ""
                                    : i + 1 == names->count ? " or "
                                                            : ", ",
                                    names->names[i]);
}

static bool is_enum_name(const struct schema_enum *names, size_t number, const char *text)
{
    return (names->names[number] && strcmp(names->names[number], text) == 0) ||
           (names->others && names->others[number] && strcmp(names->others[number], text) == 0);
}

/* A name or its number. A reply may have a name that is newer than this program: that is 0. */
static int enum_get(const struct decoder *decoder, const struct schema_field *field, int *ret,
                    const json_t *value, struct err *err)
{
    const struct schema_enum *names = field->of;
    char words[WORDS_TEXT_MAX];

    if (json_is_integer(value) && json_integer_value(value) >= 0 &&
        json_integer_value(value) < (json_int_t)names->count) {
        *ret = (int)json_integer_value(value);
        return 0;
    }
    if (!json_is_string(value))
        return wrong_type(field, "text", err);
    for (size_t i = 0; i < names->count; i++) {
        if (is_enum_name(names, i, json_string_value(value))) {
            *ret = (int)i;
            return 0;
        }
    }
    if (decoder->mode == DECODE_REPLY)
        return 0;
    words_format(names, words);
    return err_set(err, ERR_INVALID, "field '%s' must be %s, not '%.40s'", field->json_name, words,
                   json_string_value(value));
}

/* Takes so many digits and the character behind them (0: any). */
static bool digits_take(const char **text, int digits, char behind, int *ret)
{
    *ret = 0;
    for (int i = 0; i < digits; i++, (*text)++) {
        if (**text < '0' || **text > '9')
            return false;
        *ret = *ret * 10 + (**text - '0');
    }
    return !behind || *(*text)++ == behind;
}

/* "2026-11-15T10:00:00.123456789Z", with any number of digits behind the point up to nine. */
static bool time_parse(const char *text, struct timestamp *ret)
{
    struct tm tm = { 0 };

    if (!digits_take(&text, 4, '-', &tm.tm_year) || !digits_take(&text, 2, '-', &tm.tm_mon) ||
        !digits_take(&text, 2, 'T', &tm.tm_mday) || !digits_take(&text, 2, ':', &tm.tm_hour) ||
        !digits_take(&text, 2, ':', &tm.tm_min) || !digits_take(&text, 2, 0, &tm.tm_sec))
        return false;
    ret->nanoseconds = 0;
    if (*text == '.') {
        size_t digits = strspn(++text, "0123456789");

        if (digits < 1 || digits > TIME_DIGITS)
            return false;
        for (size_t i = 0; i < TIME_DIGITS; i++)
            ret->nanoseconds = ret->nanoseconds * 10 + (i < digits ? (uint32_t)(text[i] - '0') : 0);
        text += digits;
    }
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    ret->seconds = timegm(&tm);
    ret->is_set = true;
    return strcmp(text, "Z") == 0;
}

static int time_refuse(const struct schema_field *field, const char *text, struct err *err)
{
    return err_set(err, ERR_INVALID, "field '%s' must be like 2026-01-31T12:00:00Z, not '%.40s'",
                   field->json_name, text);
}

static int time_get(const struct schema_field *field, struct timestamp *ret, const json_t *value,
                    struct err *err)
{
    const char *text = json_string_value(value);

    if (!text)
        return wrong_type(field, "text", err);
    return time_parse(text, ret) ? 0 : time_refuse(field, text, err);
}

/* Empty text stands for no time. */
static int time_ms_get(const struct schema_field *field, uint64_t *ret, const json_t *value,
                       struct err *err)
{
    const char *text = json_string_value(value);

    if (!text)
        return wrong_type(field, "text", err);
    return *text == '\0' || parse_time_ms(text, ret) == 0 ? 0 : time_refuse(field, text, err);
}

static int object_get(const struct schema_field *field, const json_t **ret, const json_t *value,
                      struct err *err)
{
    if (!json_is_object(value))
        return wrong_type(field, "an object", err);
    *ret = value;
    return 0;
}

/* --- lists, maps and messages ----------------------------------------------------------------- */

static int texts_get(const struct decoder *decoder, const struct schema_field *field,
                     const char *const **ret, const json_t *list, struct err *err)
{
    size_t count = json_array_size(list);
    const char **texts = room(decoder, field, count + 1, sizeof(*texts), err);
    int r = texts ? 0 : -ENOMEM;

    for (size_t i = 0; r == 0 && i < count; i++) {
        const json_t *item = json_array_get(list, i);

        if (!json_is_string(item))
            return wrong_type(field, "a list of text", err);
        r = text_get(decoder, field, &texts[i], item, err);
    }
    *ret = texts;
    return r;
}

static int messages_get(const struct decoder *decoder, const struct schema_field *field,
                        const void **ret, const json_t *list, struct err *err)
{
    const struct schema *schema = field->of;
    char *messages = room(decoder, field, json_array_size(list), schema->size, err);
    int r = messages ? 0 : -ENOMEM;

    for (size_t i = 0; r == 0 && i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);

        if (!json_is_object(item))
            return wrong_type(field, "a list of objects", err);
        r = message_get(decoder, schema, messages + i * schema->size, item, err);
    }
    *ret = messages;
    return r;
}

static int list_get(const struct decoder *decoder, const struct schema_field *field, char *message,
                    const json_t *list, struct err *err)
{
    void *slot = message + field->offset;
    int r;

    if (!json_is_array(list))
        return wrong_type(field, "a list", err);
    r = decoder->mode != DECODE_REPLY ? rule_check_count(field, json_array_size(list), err) : 0;
    if (r < 0)
        return r;
    *(size_t *)(void *)(message + field->aux) = json_array_size(list);
    return field->kind == FIELD_TEXT ? texts_get(decoder, field, slot, list, err)
                                     : messages_get(decoder, field, slot, list, err);
}

static int pairs_get(const struct decoder *decoder, const struct schema_field *field, char *message,
                     const json_t *map, struct err *err)
{
    size_t count = 0;
    struct pair *pairs;
    const char *key;
    json_t *value;
    int r;

    if (!json_is_object(map))
        return wrong_type(field, "an object", err);
    r = decoder->mode != DECODE_REPLY ? rule_check_count(field, json_object_size(map), err) : 0;
    pairs = r == 0 ? room(decoder, field, json_object_size(map), sizeof(*pairs), err) : NULL;
    if (!pairs)
        return r < 0 ? r : -ENOMEM;
    json_object_foreach((json_t *)(uintptr_t)map, key, value) {
        if (!json_is_string(value))
            return err_set(err, ERR_INVALID, "field '%s': the value of '%.100s' must be text",
                           field->json_name, key);
        pairs[count] = (struct pair){ .key = key };
        r = text_get(decoder, field, &pairs[count++].value, value, err);
        if (r < 0)
            return r;
    }
    *(struct pair **)(void *)(message + field->offset) = pairs;
    *(size_t *)(void *)(message + field->aux) = count;
    return 0;
}

static int submessage_get(const struct decoder *decoder, const struct schema_field *field,
                          const void **ret, const json_t *object, struct err *err)
{
    const struct schema *schema = field->of;
    void *message;

    if (!json_is_object(object))
        return wrong_type(field, "an object", err);
    message = room(decoder, field, 1, schema->size, err);
    *ret = message;
    return message ? message_get(decoder, schema, message, object, err) : -ENOMEM;
}

static int value_get(const struct decoder *decoder, const struct schema_field *field, char *message,
                     const json_t *value, struct err *err)
{
    void *slot = message + field->offset;

    switch (field->kind) {
    case FIELD_BOOL:
        return bool_get(field, slot, value, err);
    case FIELD_I32:
    case FIELD_I64:
        return signed_get(field, slot, value, err);
    case FIELD_U32:
    case FIELD_U64:
        return unsigned_get(field, slot, value, err);
    case FIELD_DOUBLE:
        return double_get(field, slot, value, err);
    case FIELD_TEXT:
        return text_get(decoder, field, slot, value, err);
    case FIELD_SIZED:
        return sized_get(field, slot, value, err);
    case FIELD_BYTES:
        return bytes_get(decoder, field, slot, value, err);
    case FIELD_ENUM:
        return enum_get(decoder, field, slot, value, err);
    case FIELD_MESSAGE:
        return submessage_get(decoder, field, slot, value, err);
    case FIELD_TIME_MS:
        return time_ms_get(field, slot, value, err);
    case FIELD_TIME:
        return time_get(field, slot, value, err);
    case FIELD_OBJECT:
        return object_get(field, slot, value, err);
    case FIELD_PAIRS:
        return pairs_get(decoder, field, message, value, err);
    }
    return err_set(err, ERR_INTERNAL, "field '%s' has no kind", field->json_name);
}

static int field_get(const struct decoder *decoder, const struct schema_field *field, char *message,
                     const json_t *value, struct err *err)
{
    if (field->flags & FIELD_LIST)
        return list_get(decoder, field, message, value, err);
    if ((field->flags & FIELD_PRESENCE) && field->aux)
        *(bool *)(message + field->aux) = true;
    return value_get(decoder, field, message, value, err);
}

/* Stores the value of an absent field if it is not zero. */
static void field_reset(const struct schema_field *field, char *message)
{
    static const char *const nothing[1];
    void *slot = message + field->offset;

    if (field->kind == FIELD_TEXT && (field->flags & FIELD_LIST))
        *(const char *const **)slot = nothing;
    else if (field->kind == FIELD_TEXT && !(field->flags & FIELD_PRESENCE))
        *(const char **)slot = "";
    else if (field->kind == FIELD_U32)
        *(uint32_t *)slot = (uint32_t)field->initial;
    else if (field->kind == FIELD_U64)
        *(uint64_t *)slot = field->initial;
}

/* The field that a key names, by either name; NULL: none. */
static const struct schema_field *field_find(const struct schema *schema, const char *key,
                                             bool *ret_is_json_name)
{
    for (size_t i = 0; i < schema->field_count; i++) {
        const struct schema_field *field = &schema->fields[i];

        *ret_is_json_name = strcmp(field->json_name, key) == 0;
        if (*ret_is_json_name || strcmp(field->proto_name, key) == 0)
            return field;
    }
    return NULL;
}

/* Of two keys for one field, the one with the JSON name counts. */
static int keys_get(const struct decoder *decoder, const struct schema *schema, char *message,
                    const json_t *object, struct err *err)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)object, key, value) {
        bool is_json_name = true;
        const struct schema_field *field = field_find(schema, key, &is_json_name);
        int r;

        if (!field && decoder->mode == DECODE_REQUEST)
            return err_set(err, ERR_INVALID, "unknown field '%.100s'", key);
        if (!field || json_is_null(value) ||
            (!is_json_name && json_object_get(object, field->json_name)))
            continue;
        r = field_get(decoder, field, message, value, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int message_get(const struct decoder *decoder, const struct schema *schema, void *ret,
                       const json_t *object, struct err *err)
{
    int r;

    for (size_t i = 0; i < schema->field_count; i++)
        field_reset(&schema->fields[i], ret);
    r = keys_get(decoder, schema, ret, object, err);
    for (size_t i = 0; r == 0 && decoder->mode != DECODE_REPLY && i < schema->field_count; i++)
        r = rule_check(&schema->fields[i], ret, err);
    return r;
}

int schema_decode(const struct schema *schema, void *ret_message, const json_t *object,
                  enum decode_mode mode, struct arena *arena, struct err *err)
{
    const struct decoder decoder = { mode, arena };

    memset(ret_message, 0, schema->size);
    return message_get(&decoder, schema, ret_message, object, err);
}
