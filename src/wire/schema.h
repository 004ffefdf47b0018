/* Messages as tables: one decoder and one encoder for every message that proto/ describes.
 *
 * tools/generate-messages writes "wire/holt_v1.h" at build time. For holt.v1.Sandbox it has a
 * struct msg_sandbox and a table msg_sandbox_schema:
 *
 *     struct arena arena = ARENA_INIT(MESSAGE_BYTES_MAX);
 *     struct msg_sandbox_request in;
 *     r = schema_decode(SCHEMA(msg_sandbox_request, &in), json, DECODE_REQUEST, &arena, err);
 *     ...
 *     arena_done(&arena);
 *
 *     r = schema_encode(MESSAGE(msg_volume, .id = id, .name = name), ENCODE_ALL, out);
 *
 * Fields become members of the same name:
 *     bool, numbers  the C type; "optional" or in a oneof: a bool has_NAME beside it
 *     string         const char *, "" when absent; "optional" or in a oneof: NULL when absent
 *     bytes          struct span; data is NULL when absent, and has a NUL behind it
 *     enum           enum PREFIX_NAME
 *     message        a pointer, NULL when absent
 *     repeated       a pointer and NAME_count; a list of texts ends with NULL
 *     map            struct pair * and NAME_count
 *     Timestamp      uint64_t NAME_ms, 0 when absent; (rule).nanoseconds: struct timestamp
 *     Struct         const json_t *, NULL when absent
 * Decoded texts and objects point into the json_t, everything else into the arena. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct buf;
struct err;

/* Bytes of lists, maps and decoded bytes that one message may need. */
enum { MESSAGE_BYTES_MAX = 64 * 1024 * 1024 };

struct span {
    const char *data;
    size_t len;
};

struct pair {
    const char *key;
    const char *value;
};

struct timestamp {
    bool is_set;
    uint32_t nanoseconds;
    int64_t seconds; /* since 1970 */
};

enum field_kind {
    FIELD_BOOL,
    FIELD_I32,
    FIELD_U32,
    FIELD_I64,
    FIELD_U64,
    FIELD_DOUBLE,
    FIELD_TEXT,
    FIELD_SIZED, /* a text that may have NUL inside */
    FIELD_BYTES,
    FIELD_ENUM,
    FIELD_MESSAGE,
    FIELD_TIME_MS,
    FIELD_TIME,
    FIELD_OBJECT, /* any JSON object */
    FIELD_PAIRS,
};

/* As proto/holt/v1/options.proto describes them. */
enum field_flag {
    FIELD_LIST = 1 << 0,
    FIELD_PRESENCE = 1 << 1, /* absent and empty differ */
    FIELD_REQUIRED = 1 << 2,
    FIELD_OMIT = 1 << 3,
    FIELD_EXHAUSTED = 1 << 4,
    FIELD_ZERO = 1 << 5,
    FIELD_NO_EMPTY_ITEMS = 1 << 6,
    FIELD_NO_NUL = 1 << 7,
};

enum field_syntax {
    SYNTAX_ANY,
    SYNTAX_NAME,
    SYNTAX_HANDLE,
    SYNTAX_SANDBOX,
    SYNTAX_WORD,
    SYNTAX_ABSOLUTE,
    SYNTAX_LABELS,
    SYNTAX_VARIABLES,
    SYNTAX_TEMPLATE,
};

struct schema_field {
    const char *json_name;
    const char *proto_name;
    enum field_kind kind : 8;
    unsigned flags : 16; /* of enum field_flag */
    enum field_syntax syntax : 8;
    uint16_t offset;
    uint16_t aux;   /* offset of the count or of has_NAME; 0: there is none */
    const void *of; /* struct schema of a message, struct schema_enum of an enum */
    uint32_t max_bytes, max_items;
    uint64_t min, max, initial;
    const char *const *words; /* NULL: any; else ends with NULL */
};

struct schema {
    const char *name;
    size_t size; /* of the struct */
    const struct schema_field *fields;
    size_t field_count;
};

struct schema_enum {
    const char *const *names;  /* by number; NULL where there is none */
    const char *const *others; /* names that are also read, by number; NULL: none */
    size_t count;
};

/* A message and its table, with a check that they belong together. */
#define SCHEMA(type, message)                                                                      \
    &type##_schema, (struct type *)                                                                \
    {                                                                                              \
        message                                                                                    \
    }
#define SCHEMA_OF(type, message)                                                                   \
    &type##_schema, (const struct type *)                                                          \
    {                                                                                              \
        message                                                                                    \
    }

/* The same with a message made here: MESSAGE(msg_volume, .id = id, .name = name). */
#define MESSAGE(type, ...)                                                                         \
    &type##_schema, &(const struct type)                                                           \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

enum decode_mode {
    DECODE_REQUEST, /* refuses unknown fields, and values that break a rule */
    DECODE_LENIENT, /* ignores unknown fields, and refuses values that break a rule */
    DECODE_REPLY,   /* ignores unknown fields, and checks only types: the daemon may be newer */
};

/* Fills a message from a JSON object: 0, or a negative errno with err set, which names the field.
 * null is the same as absent; fields are known by both names, as proto3 asks of readers. What the
 * message points to lives as long as the object and the arena. */
int schema_decode(const struct schema *schema, void *ret_message, const json_t *object,
                  enum decode_mode mode, struct arena *arena, struct err *err);

enum encode_mode {
    ENCODE_ALL,  /* fields with default values too, but for those with (rule).omit */
    ENCODE_SOME, /* no field with a default value */
};

/* Appends a message as JSON: 0, -ENOBUFS or -ENOMEM. Texts that are not UTF-8 have "?" for every
 * byte outside ASCII. */
int schema_encode(const struct schema *schema, const void *message, enum encode_mode mode,
                  struct buf *out);

/* A message whose first field is a list of messages, written item by item with ENCODE_ALL, so that
 * the items need not be in memory together. Each call returns 0, -ENOBUFS or -ENOMEM. */
struct list_encoder {
    struct buf *out;
    const struct schema *item;
    size_t count;
};

int list_encoder_begin(struct list_encoder *list, const struct schema *schema, struct buf *out);
int list_encoder_add(struct list_encoder *list, const void *item);
int list_encoder_end(struct list_encoder *list);

/* The text, or NULL where it is empty. */
static inline const char *text_or_null(const char *text)
{
    return text && *text ? text : NULL;
}
