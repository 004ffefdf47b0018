// SPDX-License-Identifier: Apache-2.0
/* The JSON bodies about files and events: whatever the bytes, a typed refusal, or what workers and
 * rings may rely on. The first byte chooses the method of FileService. */
#include <stdint.h>

#include "api/message/file_ask.h"
#include "base/buf.h"
#include "fuzz/api/decode.h"
#include "wire/file_message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_MAX = 1 << 20 };

static void path_check(const char *path)
{
    char absolute[ENTRY_PATH_MAX + 1];
    struct err err = { 0 };

    assert(strlen(path) <= ENTRY_PATH_MAX);
    if (file_ask_absolute(path, absolute, &err) == 0)
        assert(absolute[0] == '/' && strlen(absolute) <= ENTRY_PATH_MAX);
    else
        refusal_check(-1, &err);
}

#define CHECK_REQUEST(type)                                                                        \
    {                                                                                              \
        struct type request;                                                                       \
                                                                                                   \
        if (decode(SCHEMA(type, &request), object, arena)) {                                       \
            sandbox_check(request.sandbox_id);                                                     \
            path_check(path_of(request.path, &request.raw_path));                                  \
        }                                                                                          \
        return;                                                                                    \
    }

static void request_check(const json_t *object, unsigned method, struct arena *arena)
{
    switch (method) {
    case 0:
        CHECK_REQUEST(msg_stat_file_request)
    case 1:
        CHECK_REQUEST(msg_list_files_request)
    case 2:
        CHECK_REQUEST(msg_read_file_request)
    case 3:
        CHECK_REQUEST(msg_write_file_request)
    case 4:
        CHECK_REQUEST(msg_make_dir_request)
    case 5:
        CHECK_REQUEST(msg_move_file_request)
    case 6:
        CHECK_REQUEST(msg_remove_file_request)
    case 7:
        CHECK_REQUEST(msg_pull_files_request)
    case 8:
        CHECK_REQUEST(msg_push_files_request)
    default:
        CHECK_REQUEST(msg_watch_files_request)
    }
}

static void watch_check(const json_t *object, struct arena *arena)
{
    struct msg_watch_request request;

    (void)decode(SCHEMA(msg_watch_request, &request), object, arena);
}

static bool entry_get(const json_t *object, struct arena *arena, struct msg_file_entry *message,
                      struct file_entry *ret)
{
    struct err err = { 0 };
    int r;

    if (!decode(SCHEMA(msg_file_entry, message), object, arena))
        return false;
    r = file_entry_of(message, ret, &err);
    refusal_check(r, &err);
    return r == 0;
}

/* An entry that is read can be written, and then says the same. */
static void entry_check(const json_t *object, struct arena *arena)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(TEXT_MAX);
    struct msg_file_entry message, written, read;
    cleanup_json json_t *rewritten = NULL;
    struct file_entry entry, again;
    struct err err = { 0 };

    if (!entry_get(object, arena, &message, &entry))
        return;
    written = file_entry_message(&entry);
    assert(schema_encode(SCHEMA_OF(msg_file_entry, &written), ENCODE_ALL, &text) == 0);
    assert(json_parse_object(text.data, text.len, &rewritten, &err) == 0);
    assert(entry_get(rewritten, arena, &read, &again));
    assert(strcmp(entry.path, again.path) == 0 && strcmp(entry.target, again.target) == 0 &&
           strcmp(entry.same_as, again.same_as) == 0);
    assert(entry.type == again.type && entry.mode == again.mode && entry.size == again.size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_with(arena_done) struct arena arena = ARENA_INIT(MESSAGE_BYTES_MAX);
    cleanup_json json_t *object = NULL;
    struct err err = { 0 };

    if (size == 0 || json_parse_object((const char *)data + 1, size - 1, &object, &err) < 0)
        return 0;
    request_check(object, data[0] % 10, &arena);
    watch_check(object, &arena);
    entry_check(object, &arena);
    return 0;
}
