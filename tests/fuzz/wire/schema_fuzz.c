// SPDX-License-Identifier: Apache-2.0
/* Any JSON as any message: refused with a type, or a message that is the same when it is written
 * and read again. The first byte chooses the message, the second how it is read. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "wire/holt_v1.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_MAX = 16 << 20 };

#define SCHEMAS(kind, path, function, request, response, ...) &request##_schema, &response##_schema,
static const struct schema *const schemas[] = { MSG_METHODS(SCHEMAS) };

/* Decodes the object and appends it as text: 0, or a negative errno. */
static int rewrite(const struct schema *schema, const json_t *object, enum decode_mode mode,
                   struct buf *out)
{
    cleanup_with(arena_done) struct arena arena = ARENA_INIT(MESSAGE_BYTES_MAX);
    cleanup_free void *message = malloc(schema->size);
    struct err err = { 0 };
    int r = schema_decode(schema, message, object, mode, &arena, &err);

    assert(r == 0 || err.kind == ERR_INVALID || err.kind == ERR_EXHAUSTED);
    assert(r == 0 || (*err.msg && !strpbrk(err.msg, "\n\r\033")));
    return r < 0 ? r : schema_encode(schema, message, ENCODE_ALL, out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_with(buf_done) struct buf once = BUF_INIT(TEXT_MAX);
    cleanup_with(buf_done) struct buf twice = BUF_INIT(TEXT_MAX);
    cleanup_json json_t *object = NULL, *again = NULL;
    const struct schema *schema;
    enum decode_mode mode;
    struct err err = { 0 };

    if (size < 2 || json_parse_with_nul((const char *)data + 2, size - 2, &object, &err) < 0)
        return 0;
    schema = schemas[data[0] % ARRAY_SIZE(schemas)];
    mode = data[1] % 2 ? DECODE_REPLY : DECODE_REQUEST;
    if (rewrite(schema, object, mode, &once) < 0)
        return 0;
    assert(json_parse_with_nul(once.data, once.len, &again, &err) == 0);
    assert(rewrite(schema, again, DECODE_REPLY, &twice) == 0);
    assert(strcmp(once.data, twice.data) == 0);
    return 0;
}
