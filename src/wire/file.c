// SPDX-License-Identifier: Apache-2.0
#include "wire/file.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "wire/frame.h"
#include "wire/tool.h"

void file_header(char header[FILE_HEADER_SIZE], enum file_message_type type, size_t size)
{
    for (int i = 0; i < 4; i++) {
        header[i] = (char)(unsigned char)(size >> (8 * i));
        header[4 + i] = (char)(unsigned char)((unsigned)type >> (8 * i));
    }
}

/* Reserves a header. Returns the start of the message, or -1. */
static size_t message_start(struct buf *out)
{
    static const char nothing[FILE_HEADER_SIZE];
    size_t start = out->len;

    return buf_add(out, nothing, sizeof(nothing)) < 0 ? (size_t)-1 : start;
}

/* Completes the message that starts at start, or removes it. */
static int message_finish(struct buf *out, size_t start, enum file_message_type type, bool is_whole)
{
    size_t size;

    if (start == (size_t)-1)
        return -ENOBUFS;
    size = out->len - start - FILE_HEADER_SIZE;
    if (!is_whole || size > FILE_WHOLE_MAX) {
        out->len = start;
        return is_whole ? -EMSGSIZE : -ENOBUFS;
    }
    file_header(out->data + start, type, size);
    return 0;
}

static const char *text_or_empty(const char *text)
{
    return text ? text : "";
}

/* Omitted if there is none, so that older workers accept the request. */
static bool put_meta(struct buf *out, const struct file_request *request)
{
    return !(request->flags & FILE_HAS_META) || put_bytes(out, request->meta, request->meta_len);
}

static bool put_details(struct buf *out, const struct file_entry *entry)
{
    return !entry->meta ||
           (put_u32(out, entry->end_type) && put_u32(out, entry->end_mode) &&
            put_text(out, entry->end_path) && put_bytes(out, entry->meta, entry->meta_len));
}

int file_put_request(struct buf *out, const struct file_request *request)
{
    size_t start = message_start(out);

    return message_finish(out, start, request->type,
                          put_u32(out, request->flags) && put_u32(out, request->mode) &&
                              put_u32(out, request->depth) && put_u32(out, request->limit) &&
                              put_u64(out, request->offset) && put_u64(out, request->length) &&
                              put_text(out, text_or_empty(request->path)) &&
                              put_text(out, text_or_empty(request->to)) &&
                              put_text(out, text_or_empty(request->after)) &&
                              put_text(out, text_or_empty(request->user)) &&
                              put_meta(out, request));
}

int file_put_entry(struct buf *out, const struct file_entry *entry)
{
    size_t start = message_start(out);

    return message_finish(
        out, start, FILE_ENTRY,
        put_u32(out, entry->type) && put_u32(out, entry->mode) && put_u32(out, entry->uid) &&
            put_u32(out, entry->gid) && put_u32(out, entry->links) && put_u64(out, entry->size) &&
            put_u64(out, entry->inode) && put_u64(out, (uint64_t)entry->mtime_s) &&
            put_u32(out, entry->mtime_ns) && put_text(out, entry->path) &&
            put_text(out, entry->target) && put_text(out, entry->same_as) &&
            put_text(out, entry->user_name) && put_text(out, entry->group_name) &&
            put_details(out, entry));
}

int file_put_failure(struct buf *out, enum file_message_type type,
                     const struct file_failure *failure)
{
    size_t start = message_start(out);

    return message_finish(out, start, type,
                          put_u32(out, failure->errnum) && put_text(out, failure->path) &&
                              put_text(out, text_or_empty(failure->why)));
}

int file_put_event(struct buf *out, const struct file_event *event)
{
    size_t start = message_start(out);

    return message_finish(out, start, FILE_EVENT,
                          put_u32(out, event->kind) && put_text(out, event->path));
}

int file_put_number(struct buf *out, enum file_message_type type, uint32_t number)
{
    size_t start = message_start(out);

    return message_finish(out, start, type, put_u32(out, number));
}

int file_put_outcome(struct buf *out, const struct tool_outcome *outcome)
{
    size_t start = message_start(out);

    return message_finish(out, start, FILE_RESULT,
                          put_u32(out, outcome->flags) && put_text(out, outcome->mime));
}

static uint32_t u32_at(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
           (uint32_t)bytes[3] << 24;
}

static ssize_t data_next(struct file_parser *parser, const char *data, size_t len,
                         struct file_piece *ret)
{
    size_t part = parser->left < len ? parser->left : len;

    *ret = (struct file_piece){ .type = FILE_DATA, .data = data, .len = part };
    parser->left -= part;
    return (ssize_t)part;
}

ssize_t file_next(struct file_parser *parser, const void *data, size_t len, struct file_piece *ret)
{
    const char *payload = (const char *)data + FILE_HEADER_SIZE;
    uint32_t size, type;

    if (len == 0)
        return 0;
    if (parser->left > 0)
        return data_next(parser, data, len, ret);
    if (len < FILE_HEADER_SIZE)
        return 0;
    size = u32_at(data);
    type = u32_at((const unsigned char *)data + 4);
    if (type == FILE_NONE || type >= FILE_MESSAGE_TYPES ||
        size > (type == FILE_DATA ? (uint32_t)FILE_DATA_MAX : (uint32_t)FILE_WHOLE_MAX))
        return -EPROTO;
    len -= FILE_HEADER_SIZE;
    if (type == FILE_DATA && (len > 0 || size == 0)) {
        parser->left = size;
        return FILE_HEADER_SIZE + data_next(parser, payload, len, ret);
    }
    if (type == FILE_DATA || len < size)
        return 0;
    *ret = (struct file_piece){ .type = type, .data = payload, .len = size };
    return FILE_HEADER_SIZE + (ssize_t)size;
}

static struct reader piece_reader(const struct file_piece *piece)
{
    return (struct reader){ .next = piece->data, .left = piece->len, .ok = true };
}

/* Reads a text of at most max bytes. */
static const char *get_text_up_to(struct reader *reader, size_t max)
{
    const char *text = get_text(reader);

    if (reader->ok && strlen(text) > max)
        reader->ok = false;
    return text;
}

/* Names and values alternate: an even number of strings. */
static const char *get_meta(struct reader *reader, size_t *ret_len)
{
    const char *meta = get_bytes(reader, ret_len);
    size_t texts = 0;

    for (size_t i = 0; reader->ok && i < *ret_len; i++)
        texts += meta[i] == '\0';
    if (*ret_len > FILE_META_MAX || texts % 2 != 0 || (*ret_len > 0 && meta[*ret_len - 1] != '\0'))
        reader->ok = false;
    return reader->ok ? meta : "";
}

static void get_details(struct reader *reader, struct file_entry *ret)
{
    uint32_t type = get_u32(reader);

    ret->end_mode = get_u32(reader);
    ret->end_path = get_text_up_to(reader, ENTRY_PATH_MAX);
    ret->meta = get_meta(reader, &ret->meta_len);
    ret->end_type = type < ENTRY_TYPES ? (enum entry_type)type : ENTRY_NONE;
    if (type >= ENTRY_TYPES || ret->end_mode > 07777)
        reader->ok = false;
}

bool file_get_request(const struct file_piece *piece, struct file_request *ret)
{
    struct reader reader = piece_reader(piece);

    if ((piece->type < FILE_STAT || piece->type > FILE_WATCH) && piece->type != FILE_HUB)
        return false;
    *ret = (struct file_request){ .type = piece->type };
    ret->flags = get_u32(&reader);
    ret->mode = get_u32(&reader);
    ret->depth = get_u32(&reader);
    ret->limit = get_u32(&reader);
    ret->offset = get_u64(&reader);
    ret->length = get_u64(&reader);
    ret->path = get_text_up_to(&reader, ENTRY_PATH_MAX);
    ret->to = get_text_up_to(&reader, ENTRY_PATH_MAX);
    ret->after = get_text_up_to(&reader, ENTRY_PATH_MAX);
    ret->user = get_text_up_to(&reader, FILE_USER_MAX);
    if (ret->flags & FILE_HAS_META)
        ret->meta = get_meta(&reader, &ret->meta_len);
    return reader_is_done(&reader) && !(ret->flags & ~(uint32_t)FILE_ALL_FLAGS) &&
           ret->mode <= 07777 && ret->offset <= INT64_MAX && ret->length <= INT64_MAX;
}

bool file_get_entry(const struct file_piece *piece, struct file_entry *ret)
{
    struct reader reader = piece_reader(piece);
    uint32_t type = get_u32(&reader);

    if (piece->type != FILE_ENTRY || type == ENTRY_NONE || type >= ENTRY_TYPES)
        return false;
    *ret = (struct file_entry){ .type = (enum entry_type)type, .end_path = "" };
    ret->mode = get_u32(&reader);
    ret->uid = get_u32(&reader);
    ret->gid = get_u32(&reader);
    ret->links = get_u32(&reader);
    ret->size = get_u64(&reader);
    ret->inode = get_u64(&reader);
    ret->mtime_s = (int64_t)get_u64(&reader);
    ret->mtime_ns = get_u32(&reader);
    ret->path = get_text_up_to(&reader, ENTRY_PATH_MAX);
    ret->target = get_text_up_to(&reader, ENTRY_PATH_MAX);
    ret->same_as = get_text_up_to(&reader, ENTRY_PATH_MAX);
    ret->user_name = get_text_up_to(&reader, FILE_USER_MAX);
    ret->group_name = get_text_up_to(&reader, FILE_USER_MAX);
    if (reader.left > 0)
        get_details(&reader, ret);
    return reader_is_done(&reader) && ret->mode <= 07777 && ret->mtime_ns < 1000000000 &&
           ret->size <= INT64_MAX;
}

bool file_get_failure(const struct file_piece *piece, struct file_failure *ret)
{
    struct reader reader = piece_reader(piece);

    ret->errnum = get_u32(&reader);
    ret->path = get_text_up_to(&reader, ENTRY_PATH_MAX);
    ret->why = get_text_up_to(&reader, FILE_WHY_MAX);
    return reader_is_done(&reader) && ret->errnum > 0 && ret->errnum < 4096;
}

bool file_get_event(const struct file_piece *piece, struct file_event *ret)
{
    struct reader reader = piece_reader(piece);
    uint32_t kind = get_u32(&reader);

    ret->path = get_text_up_to(&reader, ENTRY_PATH_MAX);
    ret->kind = kind < FILE_EVENT_KINDS ? (enum file_event_kind)kind : FILE_EVENT_NONE;
    return reader_is_done(&reader) && piece->type == FILE_EVENT && ret->kind != FILE_EVENT_NONE;
}

bool file_get_number(const struct file_piece *piece, uint32_t *ret)
{
    struct reader reader = piece_reader(piece);

    *ret = get_u32(&reader);
    return reader_is_done(&reader);
}

/* Only an image has a MIME type. */
bool file_get_outcome(const struct file_piece *piece, struct tool_outcome *ret)
{
    static const char type_letters[] = "abcdefghijklmnopqrstuvwxyz0123456789/+.-";
    struct reader reader = piece_reader(piece);
    uint32_t flags = get_u32(&reader);
    const char *mime = get_text_up_to(&reader, TOOL_MIME_MAX);
    bool is_image = flags & TOOL_IS_IMAGE;

    if (piece->type != FILE_RESULT || !reader_is_done(&reader) ||
        flags & ~(uint32_t)TOOL_ALL_FLAGS || (is_image && flags & TOOL_IS_ERROR) ||
        (is_image ? strncmp(mime, "image/", 6) != 0 : mime[0] != '\0') ||
        mime[strspn(mime, type_letters)])
        return false;
    ret->flags = flags;
    memcpy(ret->mime, mime, strlen(mime) + 1);
    return true;
}
