// SPDX-License-Identifier: Apache-2.0
#include "wire/schema_rule.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/access/caller.h"
#include "base/err.h"
#include "base/text/image_ref.h"
#include "base/text/parse.h"
#include "wire/schema.h"

enum {
    WORDS_TEXT_MAX = 100,
    SANDBOX_TEXT_MAX = 128,
    LABEL_KEY_BYTES = 63,
    LABEL_VALUE_BYTES = 255,
};

static enum err_kind limit_kind(const struct schema_field *field)
{
    return field->flags & FIELD_EXHAUSTED ? ERR_EXHAUSTED : ERR_INVALID;
}

int rule_check_count(const struct schema_field *field, size_t count, struct err *err)
{
    if (field->max_items == 0 || count <= field->max_items)
        return 0;
    return err_set(err, limit_kind(field), "field '%s' has more than %u items", field->json_name,
                   field->max_items);
}

/* --- texts ------------------------------------------------------------------------------------ */

static bool has_control(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            return true;
    return false;
}

static int name_check(const struct schema_field *field, const char *text, struct err *err)
{
    if (is_name(text))
        return 0;
    return err_set(err, ERR_INVALID, "field '%s': '%.100s' is not a valid name", field->json_name,
                   text);
}

/* The host checks the part that is a name in the store. */
static int template_check(const struct schema_field *field, const char *text, struct err *err)
{
    const char *slash = strchr(text, '/');
    char owner[OWNER_NAME_MAX + 1];
    size_t len = slash ? (size_t)(slash - text) : 0;

    if (image_ref_is(text))
        return 0;
    if (!slash)
        return name_check(field, text, err);
    (void)snprintf(owner, sizeof(owner), "%.*s", (int)len, text);
    if (len < sizeof(owner) && is_handle(owner, OWNER_NAME_MAX) &&
        is_handle(slash + 1, OWNER_NAME_MAX))
        return 0;
    return err_set(err, ERR_INVALID, "field '%s': '%.100s' is not a valid name", field->json_name,
                   text);
}

static int handle_check(const struct schema_field *field, const char *text, size_t max,
                        struct err *err)
{
    if (is_handle(text, max))
        return 0;
    return err_set(err, ERR_INVALID,
                   "field '%s': '%.60s' is not a valid name: letters, digits, '.', '_' and '-', a "
                   "letter or digit first, at most %zu",
                   field->json_name, text, max);
}

static int sandbox_check(const struct schema_field *field, const char *text, struct err *err)
{
    if (is_handle(text, SANDBOX_TEXT_MAX) && !strstr(text, ".."))
        return 0;
    return err_set(err, ERR_INVALID,
                   "field '%s': '%.60s' cannot be the id or the name of a sandbox: letters, "
                   "digits, '.', '_' and '-', a letter or digit first, no '..', at most %d",
                   field->json_name, text, SANDBOX_TEXT_MAX);
}

static int word_check(const struct schema_field *field, const char *text, struct err *err)
{
    if (!has_control(text))
        return 0;
    return err_set(err, ERR_INVALID, "field '%s' has a control character", field->json_name);
}

static int absolute_check(const struct schema_field *field, const char *text, struct err *err)
{
    if (*text == '/')
        return 0;
    return err_set(err, ERR_INVALID, "field '%s' must be an absolute path", field->json_name);
}

static int syntax_check(const struct schema_field *field, const char *text, struct err *err)
{
    switch ((int)field->syntax) {
    case SYNTAX_NAME:
        return name_check(field, text, err);
    case SYNTAX_TEMPLATE:
        return template_check(field, text, err);
    case SYNTAX_HANDLE:
        return handle_check(field, text, field->max_bytes, err);
    case SYNTAX_SANDBOX:
        return sandbox_check(field, text, err);
    case SYNTAX_WORD:
        return word_check(field, text, err);
    case SYNTAX_ABSOLUTE:
        return absolute_check(field, text, err);
    default:
        return 0;
    }
}

/* "a, b or c". */
static void words_format(const char *const *words, char ret[WORDS_TEXT_MAX])
{
    size_t len = 0;

    ret[0] = '\0';
    for (size_t i = 0; words[i] && len < WORDS_TEXT_MAX; i++)
        len += (size_t)snprintf(ret + len, WORDS_TEXT_MAX - len, "%s%s",
                                i == 0         ? ""
                                : words[i + 1] ? ", "
                                               : " or ",
                                words[i]);
}

static int words_check(const struct schema_field *field, const char *text, struct err *err)
{
    char words[WORDS_TEXT_MAX];

    for (const char *const *word = field->words; *word; word++)
        if (strcmp(*word, text) == 0)
            return 0;
    words_format(field->words, words);
    return err_set(err, ERR_INVALID, "field '%s' must be %s", field->json_name, words);
}

static int length_check(const struct schema_field *field, size_t len, struct err *err)
{
    if (field->max_bytes == 0 || len <= field->max_bytes)
        return 0;
    return err_set(err, limit_kind(field), "field '%s' is longer than %u bytes", field->json_name,
                   field->max_bytes);
}

static int missing(const struct schema_field *field, struct err *err)
{
    return err_set(err, ERR_INVALID, "field '%s' is missing", field->json_name);
}

/* A text that is empty, and so perhaps absent, breaks no rule but one: that it must be there. */
static int text_check(const struct schema_field *field, const char *text, struct err *err)
{
    int r;

    if (!text || (!*text && !(field->flags & FIELD_PRESENCE)))
        return field->flags & FIELD_REQUIRED ? missing(field, err) : 0;
    r = field->syntax == SYNTAX_HANDLE ? 0 : length_check(field, strlen(text), err);
    if (r == 0 && field->words)
        r = words_check(field, text, err);
    return r < 0 ? r : syntax_check(field, text, err);
}

static int bytes_check(const struct schema_field *field, const struct span *bytes, struct err *err)
{
    if (bytes->len == 0)
        return field->flags & FIELD_REQUIRED ? missing(field, err) : 0;
    if ((field->flags & FIELD_NO_NUL) && memchr(bytes->data, '\0', bytes->len))
        return err_set(err, ERR_INVALID, "field '%s' has a NUL inside", field->json_name);
    return length_check(field, bytes->len, err);
}

/* --- numbers ---------------------------------------------------------------------------------- */

static int range_refuse(const struct schema_field *field, struct err *err)
{
    if (field->min > 0)
        return err_set(err, ERR_INVALID, "field '%s' must be from %" PRIu64 " to %" PRIu64,
                       field->json_name, field->min, field->max);
    return err_set(err, ERR_INVALID, "field '%s' must be at most %" PRIu64, field->json_name,
                   field->max);
}

static int range_check(const struct schema_field *field, uint64_t value, struct err *err)
{
    if (value == 0 && (field->flags & FIELD_ZERO))
        return 0;
    if (value < field->min || (field->max > 0 && value > field->max))
        return range_refuse(field, err);
    return 0;
}

static int signed_check(const struct schema_field *field, int64_t value, struct err *err)
{
    if (value < 0 && (field->min > 0 || field->max > 0))
        return range_refuse(field, err);
    return value < 0 ? 0 : range_check(field, (uint64_t)value, err);
}

static int double_check(const struct schema_field *field, double value, struct err *err)
{
    if (field->max == 0 || (value >= (double)field->min && value <= (double)field->max))
        return 0;
    return err_set(err, ERR_INVALID, "field '%s' must be a number from %" PRIu64 " to %" PRIu64,
                   field->json_name, field->min, field->max);
}

/* --- lists and maps --------------------------------------------------------------------------- */

static bool is_label_key(const char *text)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/-";
    size_t len = strlen(text);

    return len > 0 && len <= LABEL_KEY_BYTES && strspn(text, letters) == len;
}

static int label_check(const struct pair *label, struct err *err)
{
    if (!is_label_key(label->key))
        return err_set(err, ERR_INVALID,
                       "'%.100s' cannot be the key of a label: letters, digits, '.', '_', '/' and "
                       "'-', at most %d",
                       label->key, LABEL_KEY_BYTES);
    if (strlen(label->value) > LABEL_VALUE_BYTES || has_control(label->value))
        return err_set(err, ERR_INVALID,
                       "the value of label '%s' must be text of at most %d bytes without control "
                       "characters",
                       label->key, LABEL_VALUE_BYTES);
    return 0;
}

static int variable_check(const struct pair *variable, struct err *err)
{
    if (variable->key[0] != '\0' && !strchr(variable->key, '='))
        return 0;
    return err_set(err, ERR_INVALID, "'%.100s' cannot be the name of a variable", variable->key);
}

static int pairs_check(const struct schema_field *field, const struct pair *pairs, size_t count,
                       struct err *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < count; i++) {
        if (field->syntax == SYNTAX_LABELS)
            r = label_check(&pairs[i], err);
        else if (field->syntax == SYNTAX_VARIABLES)
            r = variable_check(&pairs[i], err);
    }
    return r;
}

static int texts_check(const struct schema_field *field, const char *const *texts, struct err *err)
{
    for (; field->flags & FIELD_NO_EMPTY_ITEMS && *texts; texts++)
        if (**texts == '\0')
            return err_set(err, ERR_INVALID, "field '%s' has an empty item", field->json_name);
    return 0;
}

static int items_check(const struct schema_field *field, const char *message, struct err *err)
{
    size_t count = *(const size_t *)(const void *)(message + field->aux);
    const void *const *slot = (const void *const *)(const void *)(message + field->offset);

    if (count == 0)
        return field->flags & FIELD_REQUIRED ? missing(field, err) : 0;
    if (field->kind == FIELD_PAIRS)
        return pairs_check(field, *slot, count, err);
    return field->kind == FIELD_TEXT ? texts_check(field, *slot, err) : 0;
}

/* --- all -------------------------------------------------------------------------------------- */

static bool is_present(const struct schema_field *field, const char *message)
{
    return !(field->flags & FIELD_PRESENCE) || field->aux == 0 || message[field->aux];
}

static int number_check(const struct schema_field *field, const void *value, struct err *err)
{
    switch ((int)field->kind) {
    case FIELD_I32:
        return signed_check(field, *(const int32_t *)value, err);
    case FIELD_I64:
        return signed_check(field, *(const int64_t *)value, err);
    case FIELD_U32:
        return range_check(field, *(const uint32_t *)value, err);
    case FIELD_U64:
        return range_check(field, *(const uint64_t *)value, err);
    case FIELD_DOUBLE:
        return double_check(field, *(const double *)value, err);
    default:
        return 0;
    }
}

int rule_check(const struct schema_field *field, const char *message, struct err *err)
{
    const void *value = message + field->offset;

    if ((field->flags & FIELD_LIST) || field->kind == FIELD_PAIRS)
        return items_check(field, message, err);
    switch ((int)field->kind) {
    case FIELD_TEXT:
        return text_check(field, *(const char *const *)value, err);
    case FIELD_BYTES:
        return bytes_check(field, value, err);
    case FIELD_MESSAGE:
        return (field->flags & FIELD_REQUIRED) && !*(const void *const *)value ? missing(field, err)
                                                                               : 0;
    default:
        return is_present(field, message) ? number_check(field, value, err) : 0;
    }
}
