// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/text/base64.h"
#include "base/text/parse.h"
#include "base/xalloc.h"

static int parse_with_flags(const char *text, size_t len, size_t flags, json_t **ret_object,
                            struct err *err)
{
    json_error_t why;
    json_t *value = json_loadb(text, len, flags, &why);

    if (!value)
        return err_set(err, ERR_INVALID, "not valid JSON at byte %d: %s", why.position, why.text);
    if (!json_is_object(value)) {
        json_decref(value);
        return err_set(err, ERR_INVALID, "the message is not a JSON object");
    }
    *ret_object = value;
    return 0;
}

int json_parse_object(const char *text, size_t len, json_t **ret_object, struct err *err)
{
    return parse_with_flags(text, len, JSON_REJECT_DUPLICATES, ret_object, err);
}

int json_parse_with_nul(const char *text, size_t len, json_t **ret_object, struct err *err)
{
    return parse_with_flags(text, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, ret_object, err);
}

static int type_error(const char *name, const char *wanted, struct err *err)
{
    return err_set(err, ERR_INVALID, "field '%s' must be %s", name, wanted);
}

/* Returns whether key is the .proto spelling of name: sandbox_id for sandboxId. */
static bool is_proto_name(const char *key, const char *name)
{
    for (; *name; name++) {
        bool is_upper = *name >= 'A' && *name <= 'Z';

        if (is_upper && *key++ != '_')
            return false;
        if (*key++ != (is_upper ? *name | 0x20 : *name))
            return false;
    }
    return *key == '\0';
}

/* Returns the value under the .proto name, or NULL. */
static json_t *find_proto_name(const json_t *object, const char *name)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)object, key, value) {
        if (is_proto_name(key, name))
            return value;
    }
    return NULL;
}

json_t *json_field(const json_t *object, const char *name)
{
    json_t *value = json_object_get(object, name);

    if (!value)
        value = find_proto_name(object, name);
    return json_is_null(value) ? NULL : value;
}

int json_get_text(const json_t *object, const char *name, const char **ret, struct err *err)
{
    json_t *value = json_field(object, name);

    if (!value)
        return 0;
    if (!json_is_string(value))
        return type_error(name, "text", err);
    *ret = json_string_value(value);
    return 0;
}

/* 1.0 and 1e3 are whole numbers too, as far as a double is exact. */
static bool is_whole(double value)
{
    return value >= 0 && value <= (double)(1ULL << 53) && (double)(uint64_t)value == value;
}

int json_get_u64(const json_t *object, const char *name, uint64_t *ret, struct err *err)
{
    json_t *value = json_field(object, name);

    if (!value)
        return 0;
    if (json_is_integer(value) && json_integer_value(value) >= 0)
        *ret = (uint64_t)json_integer_value(value);
    else if (json_is_real(value) && is_whole(json_real_value(value)))
        *ret = (uint64_t)json_real_value(value);
    else if (!json_is_string(value) || parse_u64(json_string_value(value), ret) < 0)
        return type_error(name, "a whole number, not negative", err);
    return 0;
}

int json_get_u32(const json_t *object, const char *name, uint32_t *ret, struct err *err)
{
    uint64_t wide = *ret;
    int r = json_get_u64(object, name, &wide, err);

    if (r < 0)
        return r;
    if (wide > UINT32_MAX)
        return err_set(err, ERR_INVALID, "field '%s' is too large", name);
    *ret = (uint32_t)wide;
    return 0;
}

int json_get_bool(const json_t *object, const char *name, bool *ret, struct err *err)
{
    json_t *value = json_field(object, name);

    if (!value)
        return 0;
    if (!json_is_boolean(value))
        return type_error(name, "true or false", err);
    *ret = json_is_true(value);
    return 0;
}

int json_get_object(const json_t *object, const char *name, const json_t **ret, struct err *err)
{
    json_t *value = json_field(object, name);

    if (!value)
        return 0;
    if (!json_is_object(value))
        return type_error(name, "an object", err);
    *ret = value;
    return 0;
}

int json_get_array(const json_t *object, const char *name, const json_t **ret, struct err *err)
{
    json_t *value = json_field(object, name);

    if (!value)
        return 0;
    if (!json_is_array(value))
        return type_error(name, "a list", err);
    *ret = value;
    return 0;
}

/* Decodes base64 of the URL alphabet, or without padding. */
static int decode_lenient(struct buf *ret, const char *text)
{
    size_t len = strlen(text);
    cleanup_free char *copy = xcalloc(len + 4, 1);

    memcpy(copy, text, len + 1);
    for (char *next = copy; *next; next++)
        if (*next == '-')
            *next = '+';
        else if (*next == '_')
            *next = '/';
    if (!strchr(text, '='))
        while (len % 4 != 0)
            copy[len++] = '=';
    return base64_decode(ret, copy, len);
}

int json_decode_bytes(const char *text, struct buf *ret)
{
    int r = base64_decode(ret, text, strlen(text));

    return r == -EINVAL ? decode_lenient(ret, text) : r;
}

int json_get_bytes(const json_t *object, const char *name, struct buf *ret, struct err *err)
{
    const char *text = NULL;
    int r = json_get_text(object, name, &text, err);

    if (r < 0 || !text)
        return r;
    r = json_decode_bytes(text, ret);
    if (r == -ENOBUFS)
        return err_set(err, ERR_EXHAUSTED, "field '%s' is longer than %zu bytes", name, ret->max);
    if (r < 0)
        return type_error(name, "base64", err);
    return 0;
}

int json_only_fields(const json_t *object, const char *const *names, struct err *err)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)object, key, value) {
        const char *const *name = names;

        (void)value;
        while (*name && strcmp(*name, key) != 0 && !is_proto_name(key, *name))
            name++;
        if (!*name)
            return err_set(err, ERR_INVALID, "unknown field '%.100s'", key);
    }
    return 0;
}

json_t *json_u64(uint64_t value)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%" PRIu64, value);
    return json_string(text);
}

json_t *json_text(const char *text)
{
    json_t *value = json_string(text);
    cleanup_free char *ascii = NULL;

    if (value)
        return value;
    ascii = xstrdup(text);
    for (char *next = ascii; *next; next++)
        if ((unsigned char)*next >= 0x80)
            *next = '?';
    return json_string(ascii);
}

json_t *json_time(uint64_t ms)
{
    char text[TIME_TEXT_SIZE];

    format_time_ms(ms, text);
    return json_string(text);
}

/* Returns the length of the prefix that needs no escaping. */
static size_t plain_len(const char *text, size_t len)
{
    size_t i = 0;

    while (i < len && (unsigned char)text[i] >= ' ' && text[i] != '"' && text[i] != '\\')
        i++;
    return i;
}

static int add_escaped(struct buf *out, char letter)
{
    switch (letter) {
    case '\n':
        return buf_add(out, "\\n", 2);
    case '\t':
        return buf_add(out, "\\t", 2);
    case '\r':
        return buf_add(out, "\\r", 2);
    case '"':
        return buf_add(out, "\\\"", 2);
    case '\\':
        return buf_add(out, "\\\\", 2);
    default:
        return buf_printf(out, "\\u%04x", (unsigned char)letter);
    }
}

int json_add_text(struct buf *out, const char *text, size_t len)
{
    int r = buf_reserve(out, len + 2);

    if (r == 0)
        r = buf_add(out, "\"", 1);
    while (r == 0 && len > 0) {
        size_t plain = plain_len(text, len);

        r = buf_add(out, text, plain);
        if (r == 0 && plain < len)
            r = add_escaped(out, text[plain++]);
        text += plain;
        len -= plain;
    }
    return r < 0 ? r : buf_add(out, "\"", 1);
}

static int dump_append(const char *text, size_t len, void *out)
{
    return buf_add(out, text, len) < 0 ? -1 : 0;
}

int json_write(const json_t *value, struct buf *out)
{
    return json_dump_callback(value, dump_append, out, JSON_COMPACT) < 0 ? -ENOBUFS : 0;
}

char **json_words(const json_t *object)
{
    char **words = xcalloc(json_object_size(object) + 1, sizeof(*words));
    size_t count = 0;
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)object, name, value)
        words[count++] = xasprintf("%s=%s", name, json_string_value(value));
    return words;
}

void json_words_free(char ***words)
{
    for (char **word = *words; word && *word; word++)
        free(*word);
    free(*words);
}
