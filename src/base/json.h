/* Reads untrusted JSON with errors that name the field, and writes proto3's JSON mapping. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

struct buf;
struct err;

DEFINE_CLEANUP(json_decref, json_t *);

#define cleanup_json cleanup_with(json_decref_slot)

/* Parses exactly one JSON object. */
int json_parse_object(const char *text, size_t len, json_t **ret_object, struct err *err);

/* Does the same but allows NUL inside strings; callers that use them as C strings must check. */
int json_parse_with_nul(const char *text, size_t len, json_t **ret_object, struct err *err);

/* Returns a field by its JSON name ("sandboxId") or its .proto name ("sandbox_id"), as proto3
 * requires of readers; NULL if it is absent or null, which are equivalent. */
json_t *json_field(const json_t *object, const char *name);

/* Read a field of an object. An absent or null field leaves *ret unchanged; a wrong type is
 * ERR_INVALID. */
int json_get_text(const json_t *object, const char *name, const char **ret, struct err *err);
int json_get_u64(const json_t *object, const char *name, uint64_t *ret, struct err *err);
int json_get_u32(const json_t *object, const char *name, uint32_t *ret, struct err *err);
int json_get_bool(const json_t *object, const char *name, bool *ret, struct err *err);
int json_get_object(const json_t *object, const char *name, const json_t **ret, struct err *err);
int json_get_array(const json_t *object, const char *name, const json_t **ret, struct err *err);

/* Appends the bytes of base64 text, in either alphabet, with or without padding. Returns 0,
 * -EINVAL, -ENOBUFS or -ENOMEM. */
int json_decode_bytes(const char *text, struct buf *ret);

/* Decodes a base64 field onto ret: in either alphabet, with or without padding. */
int json_get_bytes(const json_t *object, const char *name, struct buf *ret, struct err *err);

/* Fails with ERR_INVALID if the object has a field that is not in the NULL-terminated list, under
 * either name. */
int json_only_fields(const json_t *object, const char *const *names, struct err *err);

/* Writes a 64-bit number as a string, as proto3 does, so that JavaScript does not round it. */
json_t *json_u64(uint64_t value);

/* Makes a string of text that may contain foreign bytes or a truncated character: if it is not
 * valid UTF-8, every byte outside ASCII becomes "?". */
json_t *json_text(const char *text);

/* Writes milliseconds since 1970 as a google.protobuf.Timestamp. */
json_t *json_time(uint64_t ms);

/* Appends UTF-8 text as a JSON string in one pass, for long text. Returns 0, -ENOBUFS or -ENOMEM.
 */
int json_add_text(struct buf *out, const char *text, size_t len);

/* Appends the value as compact text. */
int json_write(const json_t *value, struct buf *out);

/* Returns "name=value" for each string of an object (NULL: none), NULL-terminated; freed by
 * cleanup_with(json_words_free). */
char **json_words(const json_t *object);
void json_words_free(char ***words);
