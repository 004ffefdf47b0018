/* Requests from any JSON: a typed refusal, or a message that has kept every rule. */
#pragma once

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "host/sandbox/info.h"
#include "wire/holt_v1.h"

static inline void refusal_check(int r, const struct err *err)
{
    assert(r == 0 || err->kind == ERR_INVALID || err->kind == ERR_EXHAUSTED);
    assert(r == 0 || (*err->msg && !strpbrk(err->msg, "\n\r\033")));
}

static inline bool decode(const struct schema *schema, void *message, const json_t *object,
                          struct arena *arena)
{
    struct err err = { 0 };
    int r = schema_decode(schema, message, object, DECODE_REQUEST, arena, &err);

    refusal_check(r, &err);
    return r == 0;
}

static inline void sandbox_check(const char *id)
{
    assert(is_handle(id, SANDBOX_NAME_MAX) && !strstr(id, ".."));
}

/* A tag or a key, or "". */
static inline void word_check(const char *word, size_t max)
{
    assert(strlen(word) <= max && !strpbrk(word, "\n\r\t\x1b\x7f"));
}

static inline void snapshot_check(const char *name)
{
    assert(*name == '\0' || is_handle(name, SNAPSHOT_NAME_MAX));
}
