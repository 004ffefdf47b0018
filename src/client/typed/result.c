// SPDX-License-Identifier: Apache-2.0
#include "client/typed/result.h"

#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "client/error.h"
#include "holt.h"
#include "wire/envelope.h"

struct part {
    alignas(max_align_t) struct part *next;
};

/* Stands in front of the struct that the caller has. */
struct result {
    alignas(max_align_t) json_t *reply;
    struct part *parts;
    char *text; /* the reply as JSON, once somebody has asked for it */
};

void *result_new(size_t size, json_t *reply)
{
    struct result *result = xcalloc(1, sizeof(*result) + size);

    result->reply = reply;
    return result + 1;
}

static struct result *result_of(void *payload)
{
    return (struct result *)payload - 1;
}

void *result_part(void *result, size_t count, size_t size)
{
    struct result *owner = result_of(result);
    struct part *part = xcalloc(1, sizeof(*part) + (count ? count : 1) * size);

    part->next = owner->parts;
    owner->parts = part;
    return part + 1;
}

char *result_bytes(void *result, const void *data, size_t len)
{
    char *copy = result_part(result, len + 1, 1);

    if (len > 0)
        memcpy(copy, data, len);
    return copy;
}

void holt_free(void *result)
{
    struct result *owner;
    struct part *next;

    if (!result)
        return;
    owner = result_of(result);
    for (struct part *part = owner->parts; part; part = next) {
        next = part->next;
        free(part);
    }
    json_decref(owner->reply);
    free(owner->text);
    free(owner);
}

const char *holt_result_json(const void *result)
{
    struct result *owner = result_of((void *)(uintptr_t)result);

    if (!owner->text && owner->reply)
        owner->text = json_dumps(owner->reply, JSON_COMPACT);
    return owner->text ? owner->text : "";
}

void result_free_slot(void *slot)
{
    holt_free(*(void **)slot);
}

static void note(struct reading *reading, int r, const struct err *err)
{
    if (r >= 0 || reading->is_wrong)
        return;
    reading->is_wrong = true;
    reading->err = *err;
}

const char *read_text(struct reading *reading, const json_t *object, const char *name)
{
    const char *text = "";
    struct err err;

    note(reading, json_get_text(object, name, &text, &err), &err);
    return text;
}

uint64_t read_u64(struct reading *reading, const json_t *object, const char *name)
{
    uint64_t number = 0;
    struct err err;

    note(reading, json_get_u64(object, name, &number, &err), &err);
    return number;
}

uint32_t read_u32(struct reading *reading, const json_t *object, const char *name)
{
    uint32_t number = 0;
    struct err err;

    note(reading, json_get_u32(object, name, &number, &err), &err);
    return number;
}

bool read_bool(struct reading *reading, const json_t *object, const char *name)
{
    bool value = false;
    struct err err;

    note(reading, json_get_bool(object, name, &value, &err), &err);
    return value;
}

const json_t *read_object(struct reading *reading, const json_t *object, const char *name)
{
    const json_t *found = NULL;
    struct err err;

    note(reading, json_get_object(object, name, &found, &err), &err);
    return found;
}

const json_t *read_array(struct reading *reading, const json_t *object, const char *name)
{
    const json_t *found = NULL;
    struct err err;

    note(reading, json_get_array(object, name, &found, &err), &err);
    return found;
}

int64_t read_time(struct reading *reading, const json_t *object, const char *name)
{
    const char *text = read_text(reading, object, name), *rest;
    struct tm moment = { 0 };
    double fraction = 0;
    struct err err;

    if (!*text)
        return 0;
    rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &moment);
    if (rest && *rest == '.')
        fraction = strtod(rest, NULL);
    if (!rest)
        note(reading, err_set(&err, ERR_INVALID, "field '%s' is not a time", name), &err);
    return rest ? (int64_t)timegm(&moment) * 1000 + (int64_t)(fraction * 1000 + 0.5) : 0;
}

const char *const *read_texts(struct reading *reading, const json_t *object, const char *name)
{
    const json_t *list = read_array(reading, object, name);
    size_t count = json_array_size(list);
    const char **texts = result_part(reading->result, count + 1, sizeof(*texts));
    struct err err;

    for (size_t i = 0; i < count; i++) {
        texts[i] = json_string_value(json_array_get(list, i));
        if (!texts[i]) {
            note(reading, err_set(&err, ERR_INVALID, "field '%s' is not a list of texts", name),
                 &err);
            texts[i] = "";
        }
    }
    return texts;
}

const char *read_bytes(struct reading *reading, const json_t *object, const char *name,
                       size_t *ret_len)
{
    cleanup_with(buf_done) struct buf bytes = BUF_INIT(ENVELOPE_LARGE_MAX);
    struct err err;

    note(reading, json_get_bytes(object, name, &bytes, &err), &err);
    *ret_len = bytes.len;
    return bytes.len ? result_bytes(reading->result, bytes.data, bytes.len) : "";
}

const char *read_path(struct reading *reading, const json_t *object, const char *name,
                      const char *raw_name)
{
    size_t len;
    const char *raw = read_bytes(reading, object, raw_name, &len);

    return len ? raw : read_text(reading, object, name);
}

const void *const *read_list(struct reading *reading, const json_t *list, size_t size, read_fn read)
{
    size_t count = json_array_size(list);
    const void **items = result_part(reading->result, count + 1, sizeof(*items));

    for (size_t i = 0; i < count; i++) {
        void *item = result_part(reading->result, 1, size);

        read(reading, json_array_get(list, i), item);
        items[i] = item;
    }
    return items;
}

int reading_end(const struct reading *reading, struct holt_error *error)
{
    if (!reading->is_wrong)
        return 0;
    return error_set(error, "internal", "the daemon's answer cannot be read: %s", reading->err.msg);
}
