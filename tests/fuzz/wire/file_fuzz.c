// SPDX-License-Identifier: Apache-2.0
/* Messages between the daemon and a file worker, in both directions, and every payload in them. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "wire/file.h"
#include "wire/tool.h"

enum { CONTENT_MAX = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t sum; /* so that no read is optimised away */

static void touch(const char *text)
{
    for (; *text; text++)
        sum ^= (uint8_t)*text;
}

static void touch_request(const struct file_request *request)
{
    touch(request->path);
    touch(request->to);
    touch(request->after);
    touch(request->user);
    if (strlen(request->path) > ENTRY_PATH_MAX || request->flags & ~(uint32_t)FILE_ALL_FLAGS)
        abort();
}

static void touch_entry(const struct file_entry *entry)
{
    touch(entry->path);
    touch(entry->target);
    touch(entry->same_as);
    touch(entry->user_name);
    touch(entry->group_name);
    touch(entry_type_name(entry->type));
    sum ^= entry_path_is_below(entry->path);
    if (entry->type == ENTRY_NONE || entry->mode > 07777)
        abort();
}

/* Parses the piece by its type and encodes it again. Returns false if it is invalid. */
static bool encode_again(const struct file_piece *piece, struct buf *out)
{
    struct file_request request;
    struct file_entry entry;
    struct file_failure failure;
    struct tool_outcome outcome;
    struct file_event event;
    uint32_t number;

    if (piece->type <= FILE_WATCH) {
        if (!file_get_request(piece, &request))
            return false;
        touch_request(&request);
        return file_put_request(out, &request) == 0;
    }
    switch ((int)piece->type) {
    case FILE_ENTRY:
        if (!file_get_entry(piece, &entry))
            return false;
        touch_entry(&entry);
        return file_put_entry(out, &entry) == 0;
    case FILE_FAILED:
    case FILE_TROUBLE:
        if (!file_get_failure(piece, &failure))
            return false;
        touch(failure.path);
        touch(failure.why);
        return file_put_failure(out, piece->type, &failure) == 0;
    case FILE_EVENT:
        if (!file_get_event(piece, &event))
            return false;
        touch(event.path);
        return file_put_event(out, &event) == 0;
    case FILE_RESULT:
        return file_get_outcome(piece, &outcome) && file_put_outcome(out, &outcome) == 0;
    case FILE_END:
    case FILE_TOOL:
    case FILE_HELLO:
        return file_get_number(piece, &number) && file_put_number(out, piece->type, number) == 0;
    default:
        return false;
    }
}

/* A valid piece is encoded to the same bytes. */
static void piece_check(const struct file_piece *piece, const uint8_t *start, size_t used)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(2 * (FILE_HEADER_SIZE + FILE_WHOLE_MAX));

    if (piece->len > used)
        abort();
    if (piece->type == FILE_DATA || !encode_again(piece, &out))
        return;
    if (out.len != used || memcmp(out.data, start, used) != 0)
        abort();
}

/* Receives at most step bytes at a time and appends the contents. */
static ssize_t parse(const uint8_t *data, size_t size, size_t step, struct buf *content)
{
    struct file_parser parser = { 0 };
    struct file_piece piece;
    size_t at = 0, end = step < size ? step : size;
    ssize_t n = 0;

    while (at < size) {
        n = file_next(&parser, data + at, end - at, &piece);
        if (n < 0 || (n == 0 && end == size))
            break;
        if (n > 0) {
            if ((size_t)n > end - at)
                abort();
            piece_check(&piece, data + at, (size_t)n);
            if (buf_add(content, piece.data, piece.len) < 0)
                abort();
        }
        at += (size_t)n;
        if (n == 0 || at == end)
            end = size - end < step ? size : end + step;
    }
    return n < 0 ? n : 0;
}

/* The result does not depend on how the bytes arrive. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_with(buf_done) struct buf at_once = BUF_INIT(CONTENT_MAX);
    cleanup_with(buf_done) struct buf in_steps = BUF_INIT(CONTENT_MAX);

    if (size > CONTENT_MAX)
        return 0;
    if (parse(data, size, size, &at_once) != parse(data, size, 1, &in_steps) ||
        at_once.len != in_steps.len ||
        (at_once.len > 0 && memcmp(at_once.data, in_steps.data, at_once.len) != 0))
        abort();
    return 0;
}
