// SPDX-License-Identifier: Apache-2.0
/* JSON from anywhere: refused with a type, or a value that can be written, read again and asked for
 * every kind of field. The first byte says which name is asked for. */
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_MAX = 16 << 20, BYTES_MAX = 4096 };

static void refusal_check(int r, const struct err *err)
{
    assert(r == 0 || err->kind == ERR_INVALID || err->kind == ERR_EXHAUSTED);
    assert(r == 0 || (*err->msg && !strpbrk(err->msg, "\n\r\033")));
}

static void numbers_check(const json_t *object, const char *name)
{
    const uint64_t unset = 0x5a5a5a5a5a5a5a5a;
    struct err err = { 0 };
    uint64_t wide = unset;
    uint32_t narrow = (uint32_t)unset;
    bool flag = true;
    int r = json_get_u64(object, name, &wide, &err),
        r32 = json_get_u32(object, name, &narrow, &err);

    assert(r == 0 || wide == unset);
    assert(r32 == 0 || narrow == (uint32_t)unset);
    assert(r32 < 0 || r == 0);
    assert(r32 < 0 || !json_field(object, name) || narrow == wide);
    refusal_check(r, &err);
    refusal_check(json_get_bool(object, name, &flag, &err), &err);
}

static void bytes_check(const json_t *object, const char *name)
{
    cleanup_with(buf_done) struct buf bytes = BUF_INIT(BYTES_MAX);
    struct err err = { 0 };

    refusal_check(json_get_bytes(object, name, &bytes, &err), &err);
    assert(bytes.len <= BYTES_MAX);
}

static void fields_check(const json_t *object, const char *name)
{
    const char *const names[] = { name, "timeoutMs", NULL };
    const json_t *value = NULL;
    const char *text = NULL;
    struct err err = { 0 };

    numbers_check(object, name);
    bytes_check(object, name);
    refusal_check(json_get_text(object, name, &text, &err), &err);
    refusal_check(json_get_object(object, name, &value, &err), &err);
    refusal_check(json_get_array(object, name, &value, &err), &err);
    refusal_check(json_only_fields(object, names, &err), &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = { "a", "sandboxId", "replayBytes", "", "aB" };
    cleanup_with(buf_done) struct buf text = BUF_INIT(TEXT_MAX);
    cleanup_json json_t *object = NULL, *again = NULL;
    struct err err = { 0 };

    if (size == 0)
        return 0;
    if (json_parse_object((const char *)data + 1, size - 1, &object, &err) < 0) {
        refusal_check(-1, &err);
        return 0;
    }
    fields_check(object, names[data[0] % ARRAY_SIZE(names)]);
    if (json_write(object, &text) == 0) {
        assert(json_parse_object(text.data, text.len, &again, &err) == 0);
        assert(json_equal(object, again));
    }
    return 0;
}
