// SPDX-License-Identifier: Apache-2.0
/* read_file: lines of a file of any size, which is read in chunks. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "tools/path.h"
#include "tools/search/finder.h"
#include "tools/text.h"

enum {
    LINES_STANDARD = 2000,
    SHOWN_MAX = 10 * 1024 * 1024, /* bytes of lines */
    IMAGE_MAX = 5 * 1024 * 1024,
    CHUNK = 256 * 1024,
    COUNT_MAX = 64 * 1024 * 1024, /* the lines of a larger file are not counted */
};

struct reading {
    int fd;
    uint64_t size;                 /* of the file, as fstat returns it */
    uint64_t first, last;          /* numbers of the requested lines, from 1; last is exclusive */
    uint64_t lines;                /* complete lines so far */
    uint64_t line_bytes;           /* of the current line so far */
    uint64_t shown;                /* lines in the content */
    char kept[LINE_BYTES_MAX + 4]; /* beginning of the current line, which may span chunks */
    size_t kept_len;
    uint64_t done;  /* bytes read */
    bool is_cut;    /* the content is full */
    bool is_crlf;   /* the first line shown ends with CRLF */
    char last_byte; /* of the current line */
    struct buf *out;
};

static bool reading_wants_line(const struct reading *reading)
{
    return reading->lines + 1 >= reading->first && reading->lines + 1 < reading->last &&
           !reading->is_cut;
}

static int reading_end_line(struct reading *reading, bool has_newline)
{
    int r = 0;

    if (reading_wants_line(reading)) {
        bool is_crlf = has_newline && reading->line_bytes > 0 && reading->last_byte == '\r';
        uint64_t bytes = reading->line_bytes - is_crlf;
        size_t kept = reading->kept_len < bytes ? reading->kept_len : (size_t)bytes;

        if (reading->out->len + kept + 64 > SHOWN_MAX) {
            reading->is_cut = true;
        } else {
            if (reading->shown == 0)
                reading->is_crlf = is_crlf;
            r = text_add_line(reading->out, reading->lines + 1, reading->kept, kept, bytes);
            reading->shown++;
        }
    }
    reading->lines++;
    reading->line_bytes = reading->kept_len = 0;
    return r;
}

static void reading_keep(struct reading *reading, const char *data, size_t len)
{
    size_t room = sizeof(reading->kept) - reading->kept_len;
    size_t part = len < room ? len : room;

    if (len == 0)
        return;
    memcpy(reading->kept + reading->kept_len, data, part);
    reading->kept_len += part;
    reading->line_bytes += len;
    reading->last_byte = data[len - 1];
}

/* Only counts the lines if none in these bytes is requested; returns whether that is so. */
static bool reading_skip(struct reading *reading, const char *data, size_t len)
{
    bool is_behind = reading->lines + 1 >= reading->last || reading->is_cut;
    uint64_t lines = newline_count(data, data + len);
    const char *newline;

    if (!is_behind && reading->lines + lines + 1 >= reading->first)
        return false;
    newline = lines > 0 ? memrchr(data, '\n', len) : NULL;
    reading->lines += lines;
    reading->line_bytes =
        newline ? (uint64_t)(data + len - newline - 1) : reading->line_bytes + len;
    return true;
}

static int reading_take(struct reading *reading, const char *data, size_t len)
{
    const char *end = data + len;
    int r = 0;

    if (reading_skip(reading, data, len))
        return 0;

    while (r == 0 && data < end) {
        const char *newline = memchr(data, '\n', (size_t)(end - data));

        if (reading_wants_line(reading))
            reading_keep(reading, data, (size_t)((newline ? newline : end) - data));
        else
            reading->line_bytes += (uint64_t)((newline ? newline : end) - data);
        if (newline)
            r = reading_end_line(reading, true);
        data = newline ? newline + 1 : end;
    }
    return r;
}

/* A size of 0, as in /proc, means that only read tells the end. */
static bool reading_is_at_end(const struct reading *reading)
{
    return reading->size > 0 && reading->done == reading->size;
}

/* Returns whether only the count of lines is missing and the file is too large for it. */
static bool reading_has_enough(const struct reading *reading)
{
    return reading->size > COUNT_MAX && (reading->lines + 1 >= reading->last || reading->is_cut);
}

static ssize_t reading_read(struct reading *reading, char *chunk, size_t len)
{
    ssize_t n;

    do
        n = read(reading->fd, chunk, len);
    while (n < 0 && errno == EINTR);
    if (n > 0)
        reading->done += (uint64_t)n;
    return n < 0 ? -errno : n;
}

/* Returns 1 when the file was read to its end, 0 when there is more, or -errno. */
static int reading_read_lines(struct reading *reading, char *chunk, ssize_t n)
{
    int r = 0;

    while (n > 0 && r == 0) {
        r = reading_take(reading, chunk, (size_t)n);
        if (reading_has_enough(reading))
            return 0;
        if (reading_is_at_end(reading))
            break;
        n = reading_read(reading, chunk, CHUNK);
    }
    if (r == 0 && n < 0)
        r = (int)n;
    if (r == 0 && reading->line_bytes > 0)
        r = reading_end_line(reading, false);
    return r < 0 ? r : 1;
}

static void return_image(const char *path, struct reading *reading, const char *type,
                         struct tool_reply *reply, const char *chunk)
{
    size_t len = (size_t)reading->done;

    if (reading->size > IMAGE_MAX) {
        tool_reply_set_error(reply,
                             "'%s' is an image (%s) of %" PRIu64
                             " bytes; the limit is %d. Make the image "
                             "smaller first.",
                             path, type, reading->size, IMAGE_MAX);
        return;
    }
    (void)buf_add(&reply->content, chunk, len);
    while (reply->content.len < reading->size) {
        size_t left = (size_t)reading->size - reply->content.len;
        ssize_t n;

        if (buf_reserve(&reply->content, left) < 0)
            break;
        n = reading_read(reading, reply->content.data + reply->content.len, left);
        if (n <= 0)
            break;
        reply->content.len += (size_t)n;
    }
    reply->outcome.flags = TOOL_IS_IMAGE;
    (void)snprintf(reply->outcome.mime, sizeof(reply->outcome.mime), "%s", type);
}

static void add_footer(const struct reading *reading, bool is_whole, struct tool_reply *reply)
{
    uint64_t first = reading->first, last = reading->first + reading->shown - 1;
    bool has_more = !is_whole || last < reading->lines;

    if (has_more)
        reply->outcome.flags |= TOOL_IS_CUT;
    if (is_whole && (has_more || first > 1))
        (void)buf_printf(&reply->content, "(lines %" PRIu64 "-%" PRIu64 " of %" PRIu64, first, last,
                         reading->lines);
    else if (!is_whole)
        (void)buf_printf(&reply->content,
                         "(lines %" PRIu64 "-%" PRIu64 " of a file of %" PRIu64 " bytes", first,
                         last, reading->size);
    if (has_more)
        (void)buf_printf(&reply->content, "; continue with offset %" PRIu64, last);
    if (has_more || first > 1)
        (void)buf_add_str(&reply->content, ")\n");
    if (reading->is_crlf)
        (void)buf_add_str(&reply->content, "(lines end with CRLF; edit_file keeps this)\n");
}

static void return_lines(const char *path, struct reading *reading, struct tool_reply *reply,
                         char *chunk)
{
    int r = reading_read_lines(reading, chunk, (ssize_t)reading->done);

    if (r < 0)
        tool_reply_set_error(reply, "Cannot read '%s': %s.", path, strerror(-r));
    else if (reading->shown > 0)
        add_footer(reading, r == 1, reply);
    else if (reading->lines == 0)
        (void)buf_printf(&reply->content, "(the file '%s' is empty)\n", path);
    else
        tool_reply_set_error(reply, "'%s' has %s; offset %" PRIu64 " is past the end.", path,
                             text_count(reading->lines, "line"), reading->first - 1);
}

void tool_read_file(const struct tool_values *values, struct tool_reply *reply)
{
    static char chunk[CHUNK];
    const char *path = values->at[READ_PATH].text.data, *type;
    int64_t offset = values->at[READ_OFFSET].number, limit = values->at[READ_LIMIT].number;
    struct reading reading = { .out = &reply->content };
    cleanup_close int fd = -EBADF;
    char full[PATH_MAX];
    struct stat st;
    ssize_t n;

    if (!path_full(&values->at[READ_PATH].text, full, reply))
        return;
    fd = path_open_file(path, full, &st, reply);
    if (fd < 0)
        return;
    if (limit <= 0)
        limit = LINES_STANDARD;
    reading.fd = fd;
    reading.size = (uint64_t)st.st_size;
    reading.first = (uint64_t)offset + 1;
    reading.last = reading.first + (uint64_t)limit;
    n = reading_read(&reading, chunk, sizeof(chunk));
    if (n < 0) {
        (void)path_refuse(reply, "read", path, full, (int)n);
        return;
    }
    type = text_image_type(chunk, (size_t)n);
    if (type)
        return_image(path, &reading, type, reply, chunk);
    else if (text_is_binary(chunk, (size_t)n))
        tool_reply_set_error(reply,
                             "'%s' is a binary file of %" PRIu64
                             " bytes, not text. Use bash with file, "
                             "strings or xxd to inspect it.",
                             path, reading.size);
    else
        return_lines(path, &reading, reply, chunk);
}
