/* Reading foreign JSON with the noun in every error, and writing proto3's JSON mapping. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct buf;
struct err;

static inline void json_unref_slot(json_t **value)
{
    json_decref(*value);
}

#define cleanup_json cleanup_with(json_unref_slot)

/* Parses one JSON object and nothing behind it. */
int json_parse_object(const char *text, size_t len, json_t **ret_object, struct err *err);

/* The same where texts may have a NUL inside: who takes one for a C text must look for it. */
int json_parse_with_nul(const char *text, size_t len, json_t **ret_object, struct err *err);

/* A field by its JSON name ("sandboxId") or the one in the .proto ("sandbox_id"), as proto3 asks of
 * readers; NULL where it is absent or null, which are alike. */
json_t *json_field(const json_t *object, const char *name);

/* Fields of an object. An absent or null field leaves *ret as it was; a wrong type is ERR_INVALID.
 */
int json_get_text(const json_t *object, const char *name, const char **ret, struct err *err);
int json_get_u64(const json_t *object, const char *name, uint64_t *ret, struct err *err);
int json_get_u32(const json_t *object, const char *name, uint32_t *ret, struct err *err);
int json_get_bool(const json_t *object, const char *name, bool *ret, struct err *err);
int json_get_object(const json_t *object, const char *name, const json_t **ret, struct err *err);
int json_get_array(const json_t *object, const char *name, const json_t **ret, struct err *err);

/* Appends the bytes that base64 text stands for, of either alphabet, with padding or without: 0,
 * -EINVAL, -ENOBUFS or -ENOMEM. */
int json_decode_bytes(const char *text, struct buf *ret);

/* Decodes a base64 field onto ret: of either alphabet, with padding or without. */
int json_get_bytes(const json_t *object, const char *name, struct buf *ret, struct err *err);

/* Fails with ERR_INVALID if the object has a field that is not in the NULL-terminated list, under
 * either name. */
int json_only_fields(const json_t *object, const char *const *names, struct err *err);

/* proto3 writes 64-bit numbers as strings, so that JavaScript does not round them. */
json_t *json_u64(uint64_t value);

/* Text that may quote foreign bytes or have been cut without regard for UTF-8: where it is not
 * valid, everything outside ASCII becomes "?". */
json_t *json_text(const char *text);

/* A moment, in milliseconds since 1970, as a google.protobuf.Timestamp. */
json_t *json_time(uint64_t ms);

/* Appends UTF-8 text as a JSON string: 0, -ENOBUFS or -ENOMEM. For what is long: it is read once.
 */
int json_add_text(struct buf *out, const char *text, size_t len);

/* Appends compact text of the value. */
int json_write(const json_t *value, struct buf *out);

/* "name=value" of each text in an object (NULL: none), with NULL behind the last; cleaned up with
 * cleanup_with(json_words_free). */
char **json_words(const json_t *object);
void json_words_free(char ***words);
