// SPDX-License-Identifier: Apache-2.0
#include "egress/http/message.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"

enum { STATUS_LINE_MIN = 12, LENGTH_DIGITS_MAX = 18, CHUNK_DIGITS_MAX = 15 };

bool http_text_is(struct http_text text, const char *word)
{
    return text.len == strlen(word) && strncasecmp(text.at, word, text.len) == 0;
}

static struct http_text text_trim(struct http_text text)
{
    while (text.len > 0 && (text.at[0] == ' ' || text.at[0] == '\t')) {
        text.at++;
        text.len--;
    }
    while (text.len > 0 && (text.at[text.len - 1] == ' ' || text.at[text.len - 1] == '\t'))
        text.len--;
    return text;
}

bool http_list_has(struct http_text list, const char *word)
{
    while (list.len > 0) {
        const char *comma = memchr(list.at, ',', list.len);
        struct http_text item = { list.at, comma ? (size_t)(comma - list.at) : list.len };

        if (http_text_is(text_trim(item), word))
            return true;
        list.at += item.len + (comma ? 1 : 0);
        list.len -= item.len + (comma ? 1 : 0);
    }
    return false;
}

const struct http_field *http_field_find(const struct http_fields *fields, const char *name)
{
    for (size_t i = 0; i < fields->count; i++)
        if (http_text_is(fields->items[i].name, name))
            return &fields->items[i];
    return NULL;
}

bool http_field_is_hop(const struct http_fields *fields, struct http_text name)
{
    static const char *const hops[] = { "Connection",
                                        "Keep-Alive",
                                        "Proxy-Connection",
                                        "TE",
                                        "Trailer",
                                        "Transfer-Encoding",
                                        "Upgrade",
                                        "Proxy-Authenticate",
                                        "Proxy-Authorization" };
    char word[128];

    for (size_t i = 0; i < ARRAY_SIZE(hops); i++)
        if (http_text_is(name, hops[i]))
            return true;
    if (name.len >= sizeof(word))
        return false;
    memcpy(word, name.at, name.len);
    word[name.len] = '\0';
    for (size_t i = 0; i < fields->count; i++)
        if (http_text_is(fields->items[i].name, "Connection") &&
            http_list_has(fields->items[i].value, word))
            return true;
    return false;
}

static bool is_token(struct http_text text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];

        if (c <= ' ' || c >= 0x7f || strchr("()<>@,;:\\\"/[]?={}", c))
            return false;
    }
    return text.len > 0;
}

static bool is_clean(struct http_text text)
{
    for (size_t i = 0; i < text.len; i++)
        if (((unsigned char)text.at[i] < ' ' && text.at[i] != '\t') || text.at[i] == 0x7f)
            return false;
    return true;
}

int http_fields_parse(const char *head, size_t size, struct http_fields *ret)
{
    const char *end = head + size, *next = memchr(head, '\n', size);

    ret->count = 0;
    if (!next)
        return -EBADMSG;
    for (next++; next < end;) {
        const char *lf = memchr(next, '\n', (size_t)(end - next)), *colon;
        struct http_text line;

        if (!lf || lf == next || lf[-1] != '\r')
            return -EBADMSG;
        line = (struct http_text){ next, (size_t)(lf - 1 - next) };
        next = lf + 1;
        if (line.len == 0)
            return next == end ? 0 : -EBADMSG;
        colon = memchr(line.at, ':', line.len);
        if (!colon || ret->count == HTTP_FIELDS_MAX || !is_clean(line))
            return -EBADMSG;
        ret->items[ret->count] = (struct http_field){
            .name = { line.at, (size_t)(colon - line.at) },
            .value = text_trim(
                (struct http_text){ colon + 1, line.len - (size_t)(colon - line.at) - 1 }),
        };
        if (!is_token(ret->items[ret->count++].name))
            return -EBADMSG;
    }
    return -EBADMSG;
}

static int length_read(struct http_text value, uint64_t *ret)
{
    *ret = 0;
    if (value.len == 0 || value.len > LENGTH_DIGITS_MAX)
        return -EBADMSG;
    for (size_t i = 0; i < value.len; i++) {
        if (value.at[i] < '0' || value.at[i] > '9')
            return -EBADMSG;
        *ret = *ret * 10 + (uint64_t)(value.at[i] - '0');
    }
    return 0;
}

/* What the fields say of the body. Two lengths that differ, or a length beside chunks, could be
 * read in two ways. */
static int framing_read(struct http_reply *ret)
{
    bool is_chunked = false;

    for (size_t i = 0; i < ret->fields.count; i++) {
        const struct http_field *field = &ret->fields.items[i];
        uint64_t length;

        if (http_text_is(field->name, "Content-Length")) {
            if (length_read(field->value, &length) < 0 ||
                (ret->has_length && length != ret->length))
                return -EBADMSG;
            ret->has_length = true;
            ret->length = length;
        } else if (http_text_is(field->name, "Transfer-Encoding")) {
            if (is_chunked || !http_text_is(field->value, "chunked"))
                return -EBADMSG;
            is_chunked = true;
        } else if (http_text_is(field->name, "Connection") &&
                   http_list_has(field->value, "close")) {
            ret->ends = true;
        }
    }
    if (is_chunked && ret->has_length)
        return -EBADMSG;
    ret->framing = is_chunked ? HTTP_CHUNKS : ret->has_length ? HTTP_SIZED : HTTP_UNTIL_CLOSE;
    return 0;
}

static int status_read(const char *data, struct http_reply *ret)
{
    const char *lf = memchr(data, '\n', ret->size);
    size_t len = lf ? (size_t)(lf - data) : 0;

    if (len < STATUS_LINE_MIN + 1 || lf[-1] != '\r' || memcmp(data, "HTTP/1.", 7) != 0 ||
        (data[7] != '0' && data[7] != '1') || data[8] != ' ')
        return -EBADMSG;
    for (size_t i = 9; i < STATUS_LINE_MIN; i++) {
        if (data[i] < '0' || data[i] > '9')
            return -EBADMSG;
        ret->status = ret->status * 10 + (unsigned)(data[i] - '0');
    }
    ret->ends = data[7] == '0';
    ret->reason = (struct http_text){ data + STATUS_LINE_MIN, len - 1 - STATUS_LINE_MIN };
    if (ret->status < 100 || (ret->reason.len > 0 && ret->reason.at[0] != ' '))
        return -EBADMSG;
    ret->reason = text_trim(ret->reason);
    return is_clean(ret->reason) ? 0 : -EBADMSG;
}

int http_reply_parse(const char *data, size_t len, bool is_head, struct http_reply *ret)
{
    const char *end = memmem(data, len, "\r\n\r\n", 4);

    if (!end)
        return len >= HTTP_MESSAGE_MAX ? -EBADMSG : 0;
    ret->size = (size_t)(end - data) + 4;
    ret->status = 0;
    ret->length = 0;
    ret->has_length = false;
    if (status_read(data, ret) < 0 || http_fields_parse(data, ret->size, &ret->fields) < 0 ||
        framing_read(ret) < 0)
        return -EBADMSG;
    if (is_head || ret->status < 200 || ret->status == 204 || ret->status == 304)
        ret->framing = HTTP_EMPTY;
    return 1;
}

/* --- bodies --- */

enum chunk_state {
    CHUNK_SIZE,
    CHUNK_EXTENSION,
    CHUNK_SIZE_LF,
    CHUNK_DATA,
    CHUNK_DATA_CR,
    CHUNK_DATA_LF,
    CHUNK_TRAILER,
    CHUNK_TRAILER_LF,
};

void http_body_start(struct http_body_reader *reader, enum http_framing framing, uint64_t length)
{
    *reader = (struct http_body_reader){
        .framing = framing,
        .left = framing == HTTP_SIZED ? length : 0,
        .is_done = framing == HTTP_EMPTY || (framing == HTTP_SIZED && length == 0),
    };
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int size_byte(struct http_body_reader *reader, char c)
{
    if (c == '\r' && reader->digits > 0)
        reader->state = CHUNK_SIZE_LF;
    else if ((c == ';' || c == ' ' || c == '\t') && reader->digits > 0)
        reader->state = CHUNK_EXTENSION;
    else if (hex_digit(c) < 0 || ++reader->digits > CHUNK_DIGITS_MAX)
        return -EBADMSG;
    else
        reader->left = reader->left << 4 | (uint64_t)hex_digit(c);
    return 0;
}

/* Lines up to the empty one; line_len counts their bytes in its high part. */
static int trailer_byte(struct http_body_reader *reader, char c)
{
    if (++reader->line_len > HTTP_TRAILER_MAX || c == '\n' || c == '\0')
        return -EBADMSG;
    if (c == '\r')
        reader->state = CHUNK_TRAILER_LF;
    else
        reader->digits = 1; /* the line is not empty */
    return 0;
}

static int chunk_byte(struct http_body_reader *reader, char c)
{
    switch ((enum chunk_state)reader->state) {
    case CHUNK_SIZE:
        return size_byte(reader, c);
    case CHUNK_EXTENSION:
        if (c == '\n' || c == '\0' || ++reader->line_len > HTTP_TRAILER_MAX)
            return -EBADMSG;
        if (c == '\r')
            reader->state = CHUNK_SIZE_LF;
        return 0;
    case CHUNK_SIZE_LF:
        reader->state = reader->left > 0 ? CHUNK_DATA : CHUNK_TRAILER;
        reader->digits = 0;
        return c == '\n' ? 0 : -EBADMSG;
    case CHUNK_DATA_CR:
        reader->state = CHUNK_DATA_LF;
        return c == '\r' ? 0 : -EBADMSG;
    case CHUNK_DATA_LF:
        reader->state = CHUNK_SIZE;
        reader->line_len = 0;
        return c == '\n' ? 0 : -EBADMSG;
    case CHUNK_TRAILER:
        return trailer_byte(reader, c);
    case CHUNK_TRAILER_LF:
        reader->is_done = reader->digits == 0;
        reader->digits = 0;
        reader->state = CHUNK_TRAILER;
        return c == '\n' ? 0 : -EBADMSG;
    case CHUNK_DATA:
        break;
    }
    return -EBADMSG;
}

static size_t content_take(struct http_body_reader *reader, const char *data, size_t len,
                           struct http_text *ret_data)
{
    size_t part = len < reader->left ? len : (size_t)reader->left;

    reader->left -= part;
    *ret_data = (struct http_text){ data, part };
    return part;
}

long http_body_take(struct http_body_reader *reader, const char *data, size_t len,
                    struct http_text *ret_data)
{
    size_t used = 0;

    *ret_data = (struct http_text){ data, 0 };
    if (reader->is_done)
        return 0;
    if (reader->framing == HTTP_UNTIL_CLOSE) {
        ret_data->len = len;
        return (long)len;
    }
    if (reader->framing == HTTP_SIZED) {
        used = content_take(reader, data, len, ret_data);
        reader->is_done = reader->left == 0;
        return (long)used;
    }
    while (used < len && !reader->is_done) {
        if (reader->state == CHUNK_DATA) {
            used += content_take(reader, data + used, len - used, ret_data);
            if (reader->left == 0)
                reader->state = CHUNK_DATA_CR;
            break;
        }
        if (chunk_byte(reader, data[used++]) < 0)
            return -EBADMSG;
    }
    return (long)used;
}

int http_chunk_add(struct buf *out, const char *data, size_t len)
{
    int r;

    if (len == 0)
        return buf_add_str(out, "0\r\n\r\n");
    r = buf_printf(out, "%zx\r\n", len);
    if (r == 0)
        r = buf_add(out, data, len);
    return r == 0 ? buf_add_str(out, "\r\n") : r;
}

/* --- drafts --- */

void http_draft_init(struct http_draft *draft)
{
    draft->text = (struct buf)BUF_INIT((size_t)2 * HTTP_MESSAGE_MAX);
    draft->count = 0;
}

void http_draft_done(struct http_draft *draft)
{
    if (draft->text.data)
        explicit_bzero(draft->text.data, draft->text.len);
    buf_done(&draft->text);
    draft->count = 0;
}

int http_draft_add(struct http_draft *draft, struct http_text name, struct http_text value)
{
    size_t at = draft->text.len;

    if (draft->count == ARRAY_SIZE(draft->items) || buf_add(&draft->text, name.at, name.len) < 0)
        return -ENOBUFS;
    if (value.len > 0 && buf_add(&draft->text, value.at, value.len) < 0)
        return -ENOBUFS;
    draft->items[draft->count].name = at;
    draft->items[draft->count].name_len = name.len;
    draft->items[draft->count].value = at + name.len;
    draft->items[draft->count++].value_len = value.len;
    return 0;
}

int http_draft_add_text(struct http_draft *draft, const char *name, const char *value)
{
    return http_draft_add(draft, (struct http_text){ name, strlen(name) },
                          (struct http_text){ value, strlen(value) });
}

struct http_text http_draft_name(const struct http_draft *draft, size_t i)
{
    return (struct http_text){ draft->text.data + draft->items[i].name, draft->items[i].name_len };
}

struct http_text http_draft_value(const struct http_draft *draft, size_t i)
{
    return (struct http_text){ draft->text.data + draft->items[i].value,
                               draft->items[i].value_len };
}

void http_draft_remove(struct http_draft *draft, const char *name)
{
    size_t kept = 0;

    for (size_t i = 0; i < draft->count; i++)
        if (!http_text_is(http_draft_name(draft, i), name))
            draft->items[kept++] = draft->items[i];
    draft->count = kept;
}

int http_draft_write(const struct http_draft *draft, struct buf *out)
{
    int r = buf_reserve(out, draft->text.len + 4 * draft->count + 2);

    for (size_t i = 0; r == 0 && i < draft->count; i++) {
        struct http_text name = http_draft_name(draft, i), value = http_draft_value(draft, i);

        r = buf_add(out, name.at, name.len);
        if (r == 0)
            r = buf_add(out, ": ", 2);
        if (r == 0 && value.len > 0)
            r = buf_add(out, value.at, value.len);
        if (r == 0)
            r = buf_add(out, "\r\n", 2);
    }
    return r == 0 ? buf_add(out, "\r\n", 2) : r;
}
