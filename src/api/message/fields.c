// SPDX-License-Identifier: Apache-2.0
#include "api/message/fields.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "base/xalloc.h"
#include "host/sandbox/info.h"

/* What still fits when it is turned into nanoseconds from now. */
static const uint64_t duration_ms_max = INT64_MAX / 2 / 1000000;

int field_text(const json_t *object, const char *name, const char **ret, struct err *err)
{
    const char *text = NULL;
    int r = json_get_text(object, name, &text, err);

    if (r == 0)
        *ret = text && *text ? text : NULL;
    return r;
}

int field_name(const json_t *object, const char *name, const char **ret, struct err *err)
{
    int r = field_text(object, name, ret, err);

    if (r == 0 && *ret && !is_name(*ret))
        return err_set(err, ERR_INVALID, "field '%s': '%.100s' is not a valid name", name, *ret);
    return r;
}

int field_needed(const json_t *object, const char *name, const char **ret, struct err *err)
{
    const char *text = NULL;
    int r = field_text(object, name, &text, err);

    if (r < 0)
        return r;
    if (!text)
        return err_set(err, ERR_INVALID, "field '%s' is missing", name);
    *ret = text;
    return 0;
}

int field_duration(const json_t *object, const char *name, uint64_t *ret, struct err *err)
{
    int r = json_get_u64(object, name, ret, err);

    if (r == 0 && *ret > duration_ms_max)
        return err_set(err, ERR_INVALID, "field '%s' is too large", name);
    return r;
}

static bool is_sandbox_name(const char *text)
{
    return is_handle(text, SANDBOX_NAME_MAX) && !strstr(text, "..");
}

int field_sandbox(const json_t *object, const char **ret, struct err *err)
{
    int r = field_needed(object, "sandboxId", ret, err);

    if (r == 0 && !is_sandbox_name(*ret))
        return err_set(err, ERR_INVALID, "'%.100s' cannot be the id or the name of a sandbox",
                       *ret);
    return r;
}

int field_sandbox_name(const json_t *object, const char **ret, struct err *err)
{
    int r = field_text(object, "name", ret, err);

    if (r == 0 && *ret && !is_sandbox_name(*ret))
        return err_set(err, ERR_INVALID,
                       "'%.100s' cannot name a sandbox: letters, digits, '.', '_' and '-', a "
                       "letter or digit first, no '..', at most %d",
                       *ret, SANDBOX_NAME_MAX);
    return r;
}

int field_word(const json_t *object, const char *name, size_t max, const char **ret,
               struct err *err)
{
    int r = field_text(object, name, ret, err);

    if (r < 0 || !*ret)
        return r;
    if (strlen(*ret) > max)
        return err_set(err, ERR_INVALID, "field '%s' is longer than %zu bytes", name, max);
    for (const char *c = *ret; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            return err_set(err, ERR_INVALID, "field '%s' has a control character", name);
    return 0;
}

int field_snapshot(const json_t *object, const char *name, const char **ret, struct err *err)
{
    int r = field_text(object, name, ret, err);

    if (r == 0 && *ret && !is_handle(*ret, SNAPSHOT_NAME_MAX))
        return err_set(err, ERR_INVALID,
                       "'%.100s' cannot name a snapshot: letters, digits, '.', '_' and '-', a "
                       "letter or digit first, at most %d",
                       *ret, SNAPSHOT_NAME_MAX);
    return r;
}

int field_snapshot_needed(const json_t *object, const char *name, const char **ret, struct err *err)
{
    int r = field_needed(object, name, ret, err);

    return r < 0 ? r : field_snapshot(object, name, ret, err);
}

static bool is_label_key(const char *text)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/-";
    size_t len = strlen(text);

    return len > 0 && len <= LABEL_KEY_MAX && strspn(text, letters) == len;
}

static bool is_label_value(const char *text)
{
    if (strlen(text) > LABEL_VALUE_MAX)
        return false;
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            return false;
    return true;
}

static int label_read(const char *key, const json_t *value, struct label *ret, struct err *err)
{
    if (!is_label_key(key))
        return err_set(err, ERR_INVALID,
                       "'%.100s' cannot be the key of a label: letters, digits, '.', '_', '/' and "
                       "'-', at most %d",
                       key, LABEL_KEY_MAX);
    if (!json_is_string(value) || !is_label_value(json_string_value(value)))
        return err_set(err, ERR_INVALID,
                       "the value of label '%s' must be text of at most %d bytes without control "
                       "characters",
                       key, LABEL_VALUE_MAX);
    (void)snprintf(ret->key, sizeof(ret->key), "%s", key);
    (void)snprintf(ret->value, sizeof(ret->value), "%s", json_string_value(value));
    return 0;
}

int field_labels(const json_t *object, struct label **ret, size_t *ret_count, struct err *err)
{
    cleanup_free struct label *labels = NULL;
    const json_t *map = NULL;
    size_t count = 0;
    const char *key;
    json_t *value;
    int r = json_get_object(object, "labels", &map, err);

    if (r < 0 || json_object_size(map) == 0)
        return r;
    if (json_object_size(map) > SANDBOX_LABELS_MAX)
        return err_set(err, ERR_EXHAUSTED, "more than %d labels", SANDBOX_LABELS_MAX);
    labels = xcalloc(json_object_size(map), sizeof(*labels));
    json_object_foreach((json_t *)(uintptr_t)map, key, value)
    {
        r = label_read(key, value, &labels[count++], err);
        if (r < 0)
            return r;
    }
    *ret = TAKE_PTR(labels);
    *ret_count = count;
    return 0;
}
