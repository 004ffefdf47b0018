/* Results: a struct for the caller, together with the reply and the memory that it points to. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "wire/schema.h"

struct holt_error;
struct holt_label;
struct pair;

/* Returns a zeroed result of this size. Takes the reply (NULL: none). */
void *result_new(size_t size, json_t *reply);

/* Returns zeroed memory for count elements that lives as long as the result. */
void *result_part(void *result, size_t count, size_t size);

/* Returns the labels of these pairs, which live as long as the result. */
const struct holt_label *result_labels(void *result, const struct pair *pairs, size_t count);

/* Returns a copy of bytes, NUL-terminated, that lives as long as the result. */
char *result_bytes(void *result, const void *data, size_t len);

/* Decodes an object of the reply into a message that lives as long as the result. Returns NULL with
 * error set if it is malformed. */
const void *result_decode(void *result, const struct schema *schema, const json_t *object,
                          struct holt_error *error);

void result_free_slot(void *slot);
#define cleanup_result cleanup_with(result_free_slot)

/* Returns the items of a public list: pointers to new structs of this type, each filled in with
 * fill(result, item, message) from one of count messages. */
#define RESULT_LIST(result, type, fill, messages, message_count)                                   \
    ({                                                                                             \
        type **items_ = result_part((result), (message_count) + 1, sizeof(*items_));               \
                                                                                                   \
        for (size_t i_ = 0; i_ < (message_count); i_++) {                                          \
            items_[i_] = result_part((result), 1, sizeof(**items_));                               \
            fill((result), items_[i_], &(messages)[i_]);                                           \
        }                                                                                          \
        (const type *const *)items_;                                                               \
    })
