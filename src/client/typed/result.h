/* Results of the typed layer: a struct that the caller reads, and behind it the reply that its
 * texts are in. One holt_free lets go of everything. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct holt_error;

/* A zeroed result of this size. Takes the reply (NULL: none). */
void *result_new(size_t size, json_t *reply);

/* Memory that goes with the result: count zeroed elements. */
void *result_part(void *result, size_t count, size_t size);

/* A copy of bytes that goes with the result, with a NUL behind it. */
char *result_bytes(void *result, const void *data, size_t len);

void result_free_slot(void *slot);
#define cleanup_result cleanup_with(result_free_slot)

/* Reads fields of a reply. What is absent is 0 or ""; the first field of a wrong type is
 * remembered, so that many can be read before anybody asks. */
struct reading {
    void *result; /* that parts and decoded bytes go with */
    bool is_wrong;
    struct err err;
};

const char *read_text(struct reading *reading, const json_t *object, const char *name);
uint64_t read_u64(struct reading *reading, const json_t *object, const char *name);
uint32_t read_u32(struct reading *reading, const json_t *object, const char *name);
bool read_bool(struct reading *reading, const json_t *object, const char *name);
const json_t *read_object(struct reading *reading, const json_t *object, const char *name);
const json_t *read_array(struct reading *reading, const json_t *object, const char *name);

/* Milliseconds since 1970 of a google.protobuf.Timestamp. */
int64_t read_time(struct reading *reading, const json_t *object, const char *name);

/* The texts of a list, with NULL behind the last. */
const char *const *read_texts(struct reading *reading, const json_t *object, const char *name);

/* Bytes that are exact in raw_name where name could not hold them. */
const char *read_path(struct reading *reading, const json_t *object, const char *name,
                      const char *raw_name);

/* The bytes of a field; "" and 0 where it is absent. */
const char *read_bytes(struct reading *reading, const json_t *object, const char *name,
                       size_t *ret_len);

/* The objects of a list, each turned into a result of its own size by read: pointers to them. */
typedef void (*read_fn)(struct reading *reading, const json_t *object, void *into);
const void *const *read_list(struct reading *reading, const json_t *list, size_t size,
                             read_fn read);

/* 0, or -1 where something was wrong. */
int reading_end(const struct reading *reading, struct holt_error *error);
