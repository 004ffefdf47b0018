// SPDX-License-Identifier: Apache-2.0
/* The JSON bodies about files and events: whatever the bytes, a typed refusal, or what workers and
 * rings may rely on. The first byte says which method of FileService it is. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "api/message/fields.h"
#include "api/message/file_request.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/parse.h"
#include "host/sandbox/info.h"
#include "wire/file_json.h"
#include "wire/holt_v1.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void refusal_check(int r, const struct err *err)
{
    assert(r == 0 || err->kind == ERR_INVALID || err->kind == ERR_EXHAUSTED);
    assert(r == 0 || (*err->msg && !strpbrk(err->msg, "\n\r\033")));
}

static void path_check(const char *path)
{
    char absolute[ENTRY_PATH_MAX + 1];

    assert(strlen(path) <= ENTRY_PATH_MAX);
    if (file_call_request_absolute(path, absolute) == 0)
        assert(absolute[0] == '/' && strlen(absolute) <= ENTRY_PATH_MAX);
}

static void request_check(const json_t *object, enum file_message_type type)
{
    struct file_call_request wish = { .sandbox = NULL };
    struct err err = { 0 };
    int r = file_call_request_parse(object, type, &wish, &err);

    refusal_check(r, &err);
    if (r < 0)
        return;
    assert(wish.sandbox && is_handle(wish.sandbox, SANDBOX_NAME_MAX));
    path_check(wish.path);
    path_check(wish.to);
    assert(strlen(wish.after) <= ENTRY_PATH_MAX);
}

static void watch_check(const json_t *object)
{
    cleanup_with(arena_done) struct arena arena = ARENA_INIT(MESSAGE_BYTES_MAX);
    struct msg_watch_request request;
    struct err err = { 0 };

    refusal_check(
        schema_decode(SCHEMA(msg_watch_request, &request), object, DECODE_REQUEST, &arena, &err),
        &err);
}

/* An entry that is read can be written, and then says the same. */
static void entry_check(const json_t *object)
{
    static struct file_json_texts texts, again_texts;
    cleanup_json json_t *message = NULL;
    struct file_entry entry, again;
    struct err err = { 0 };
    int r = file_json_get(object, &texts, &entry, &err);

    refusal_check(r, &err);
    if (r < 0)
        return;
    message = file_json_of(&entry);
    assert(message);
    assert(file_json_get(message, &again_texts, &again, &err) == 0);
    assert(strcmp(entry.path, again.path) == 0 && strcmp(entry.target, again.target) == 0 &&
           strcmp(entry.same_as, again.same_as) == 0);
    assert(entry.type == again.type && entry.mode == again.mode && entry.size == again.size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_json json_t *object = NULL;
    struct err err = { 0 };

    if (size == 0 || json_parse_object((const char *)data + 1, size - 1, &object, &err) < 0)
        return 0;
    request_check(object, (enum file_message_type)(FILE_STAT + data[0] % (FILE_ABORT - FILE_STAT)));
    watch_check(object);
    entry_check(object);
    return 0;
}
