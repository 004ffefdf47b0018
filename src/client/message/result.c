// SPDX-License-Identifier: Apache-2.0
#include "client/message/result.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "client/error.h"
#include "holt.h"

/* Precedes the struct that the caller gets. */
struct result {
    alignas(max_align_t) json_t *reply;
    struct arena arena;
    char *text; /* the reply as JSON; NULL: not needed so far */
};

void *result_new(size_t size, json_t *reply)
{
    struct result *result = xcalloc(1, sizeof(*result) + size);

    result->reply = reply;
    result->arena.max = SIZE_MAX;
    return result + 1;
}

static struct result *result_of(const void *payload)
{
    return (struct result *)(uintptr_t)payload - 1;
}

void *result_part(void *result, size_t count, size_t size)
{
    return arena_take(&result_of(result)->arena, count ? count : 1, size);
}

const struct holt_label *result_labels(void *result, const struct pair *pairs, size_t count)
{
    struct holt_label *labels = result_part(result, count, sizeof(*labels));

    for (size_t i = 0; i < count; i++)
        labels[i] = (struct holt_label){ pairs[i].key, pairs[i].value };
    return labels;
}

char *result_bytes(void *result, const void *data, size_t len)
{
    char *copy = result_part(result, len + 1, 1);

    if (len > 0)
        memcpy(copy, data, len);
    return copy;
}

const void *result_decode(void *result, const struct schema *schema, const json_t *object,
                          struct holt_error *error)
{
    void *message = result_part(result, 1, schema->size);
    struct err err;

    if (schema_decode(schema, message, object, DECODE_REPLY, &result_of(result)->arena, &err) < 0) {
        (void)error_set(error, "internal", "cannot read the reply of the daemon: %s", err.msg);
        return NULL;
    }
    return message;
}

void holt_free(void *result)
{
    struct result *owner;

    if (!result)
        return;
    owner = result_of(result);
    arena_done(&owner->arena);
    json_decref(owner->reply);
    free(owner->text);
    free(owner);
}

void result_free_slot(void *slot)
{
    holt_free(*(void **)slot);
}

const char *holt_result_json(const void *result)
{
    struct result *owner = result_of(result);

    if (!owner->text && owner->reply)
        owner->text = json_dumps(owner->reply, JSON_COMPACT);
    return owner->text ? owner->text : "";
}
