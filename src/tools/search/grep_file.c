// SPDX-License-Identifier: Apache-2.0
#include "tools/search/grep_file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "tools/search/finder.h"
#include "tools/search/grep_line.h"
#include "tools/search/regex.h"

enum {
    BUFFER_BYTES = 256 * 1024,           /* fits into the cache of a processor */
    BUFFER_BYTES_MAX = 32 * 1024 * 1024, /* longer lines are searched in pieces */
    BUFFER_BYTES_KEPT = 4 * 1024 * 1024, /* a larger buffer is freed after the file */
    CONTEXT_BYTES_MAX = 1024 * 1024,     /* of lines before a match that are kept */
    BINARY_BYTES = 8192,                 /* a file with a NUL in these is binary */
    ENDLESS_BYTES = 64 * 1024 * 1024,    /* read of a file with size 0 */
};

struct grep_reader {
    const struct grep_search *search;
    struct regex_thread *thread;
    char *data;
    size_t cap;
};

/* The search of one file. Offsets are those in the file; data[0] is at base. */
struct scan {
    struct grep_reader *reader;
    struct grep_found *found;
    int fd;
    grep_path_fn *path_fn;
    void *path_context;
    char *path;

    uint64_t base;
    size_t len;      /* bytes in data */
    size_t at;       /* start of the first line that is not searched yet */
    uint64_t limit;  /* bytes to read */
    bool is_limited; /* the limit is known */
    bool is_at_end;
    uint64_t counted;    /* lines are counted up to here */
    uint64_t line;       /* number of the line at `counted` */
    uint64_t printed;    /* lines before this are in the text or not needed */
    uint64_t print_line; /* number of the line at `printed` */
    size_t after;        /* lines of context still to write */
    bool has_group;
};

void grep_found_done(struct grep_found *found)
{
    buf_done(&found->text);
    free(found->ends);
    *found = (struct grep_found){ 0 };
}

struct grep_reader *grep_reader_new(const struct grep_search *search)
{
    struct grep_reader *reader = xcalloc(1, sizeof(*reader));

    reader->search = search;
    reader->thread = regex_thread_new(search->regex);
    reader->cap = BUFFER_BYTES;
    reader->data = xcalloc(1, reader->cap);
    return reader;
}

void grep_reader_free(struct grep_reader *reader)
{
    regex_thread_free(reader->thread);
    free(reader->data);
    free(reader);
}

/* Limits the read to the current size; files of /proc have size 0. */
static void scan_find_limit(struct scan *scan)
{
    struct stat st;

    scan->is_limited = true;
    scan->limit = ENDLESS_BYTES;
    if (fstat(scan->fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0)
        scan->limit = (uint64_t)st.st_size;
}

/* Reads until the buffer is full or the file ends. Returns 0 or -errno. */
static int scan_fill(struct scan *scan)
{
    struct grep_reader *reader = scan->reader;

    while (scan->len < reader->cap && !scan->is_at_end) {
        size_t room = reader->cap - scan->len;
        ssize_t n;

        if (scan->is_limited && scan->limit - (scan->base + scan->len) < room)
            room = (size_t)(scan->limit - (scan->base + scan->len));
        n = room == 0 ? 0 : read(scan->fd, reader->data + scan->len, room);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        scan->is_at_end = n == 0;
        scan->len += (size_t)n;
        if (!scan->is_limited && scan->len == reader->cap) {
            scan_find_limit(scan);
            if (scan->limit < scan->base + scan->len)
                scan->limit = scan->base + scan->len;
        }
    }
    return 0;
}

static const char *scan_pointer(const struct scan *scan, uint64_t offset)
{
    return scan->reader->data + (offset - scan->base);
}

static uint64_t scan_offset(const struct scan *scan, const char *at)
{
    return scan->base + (uint64_t)(at - scan->reader->data);
}

/* Counts lines up to an offset. */
static void scan_count_to(struct scan *scan, uint64_t offset)
{
    if (offset <= scan->counted)
        return;
    scan->line += newline_count(scan_pointer(scan, scan->counted), scan_pointer(scan, offset));
    scan->counted = offset;
}

/* Returns whether matches are still added to the text, not only counted. */
static bool scan_is_writing(const struct scan *scan)
{
    const struct grep_search *search = scan->reader->search;

    return search->mode == GREP_CONTENT && scan->found->kept < search->max_matches &&
           scan->found->text.len <= search->max_bytes;
}

/* Writes the line at `printed`, with its match or (NULL) as context. */
static void scan_write_line(struct scan *scan, const char *end, const char *match, size_t match_len)
{
    const char *start = scan_pointer(scan, scan->printed);
    const char *newline = memchr(start, '\n', (size_t)(end - start));
    struct grep_line line = { .path = scan->path,
                              .number = scan->print_line,
                              .text = start,
                              .len = (size_t)((newline ? newline : end) - start),
                              .match = match ? (size_t)(match - start) : 0,
                              .match_len = match_len,
                              .is_context = match == NULL };

    grep_line_put(&line, &scan->found->text);
    scan->printed = scan_offset(scan, newline ? newline + 1 : end);
    scan->print_line++;
}

/* Writes the context after the last match, up to `end`. */
static void scan_write_after(struct scan *scan, const char *end)
{
    while (scan->after > 0 && scan_pointer(scan, scan->printed) < end) {
        scan_write_line(scan, end, NULL, 0);
        scan->after--;
    }
}

/* Returns the start of the context before the line at start. */
static const char *scan_context_start(const struct scan *scan, const char *start,
                                      uint64_t *ret_lines)
{
    const char *first =
        scan->printed > scan->base ? scan_pointer(scan, scan->printed) : scan->reader->data;

    *ret_lines = 0;
    while (*ret_lines < scan->reader->search->context && start > first) {
        const char *newline = memrchr(first, '\n', (size_t)(start - 1 - first));

        start = newline ? newline + 1 : first;
        ++*ret_lines;
    }
    return start;
}

static void scan_end_match(struct scan *scan)
{
    struct grep_found *found = scan->found;

    if (found->kept == 0)
        return;
    found->ends[found->kept - 1] = (uint32_t)found->text.len;
}

static void found_begin_match(struct grep_found *found)
{
    if (found->kept == found->ends_cap) {
        size_t cap = found->ends_cap ? found->ends_cap * 2 : 16;
        uint32_t *ends = realloc(found->ends, cap * sizeof(*ends));

        if (!ends)
            abort();
        found->ends = ends;
        found->ends_cap = cap;
    }
    found->ends[found->kept++] = 0;
}

/* Writes the rest of the context of the previous match, then a match with the context before it. */
static void scan_write_match(struct scan *scan, const char *start, const char *end,
                             const char *match, size_t match_len)
{
    uint64_t lines;
    const char *first;

    if (!scan->path)
        scan->path = scan->path_fn(scan->path_context);
    scan_write_after(scan, start);
    scan_end_match(scan);
    found_begin_match(scan->found);
    scan_count_to(scan, scan_offset(scan, start));
    first = scan_context_start(scan, start, &lines);
    if (scan->has_group && scan->reader->search->context > 0 &&
        scan_offset(scan, first) > scan->printed)
        (void)buf_add_str(&scan->found->text, "--\n");
    scan->has_group = true;
    scan->printed = scan_offset(scan, first);
    scan->print_line = scan->line - lines;
    while (scan_pointer(scan, scan->printed) < start)
        scan_write_line(scan, start, NULL, 0);
    scan_write_line(scan, end, match, match_len);
    scan->after = scan->reader->search->context;
}

/* Searches complete lines up to `end`. Returns false when the rest of the file is not needed. */
static bool scan_search_lines(struct scan *scan, const char *end)
{
    struct grep_reader *reader = scan->reader;
    struct grep_found *found = scan->found;
    const char *at = reader->data + scan->at;

    regex_begin(reader->search->regex, reader->thread, at, end);
    while (at < end) {
        const char *place, *start, *stop;
        size_t len = 0;
        int r = regex_find(reader->search->regex, reader->thread, at, end, &place, &len);

        if (r < 0) {
            scan_count_to(scan, scan_offset(scan, place));
            found->status = GREP_TOO_HARD;
            found->line = scan->line;
            return false;
        }
        if (r == 0)
            break;
        found->matches++;
        if (reader->search->mode == GREP_FILES)
            return false;
        stop = memchr(place, '\n', (size_t)(end - place));
        stop = stop ? stop + 1 : end;
        if (scan_is_writing(scan)) {
            start = memrchr(at, '\n', (size_t)(place - at));
            scan_write_match(scan, start ? start + 1 : at, stop, place, len);
        }
        at = stop;
    }
    if (reader->search->mode == GREP_CONTENT)
        scan_write_after(scan, end);
    scan->at = (size_t)(end - reader->data);
    return true;
}

/* Returns the end of the complete lines in the buffer, or NULL when more must be read. A line that
 * is longer than the largest buffer is split. */
static const char *scan_whole_lines(const struct scan *scan)
{
    const struct grep_reader *reader = scan->reader;
    const char *newline;

    if (scan->is_at_end)
        return reader->data + scan->len;
    newline = memrchr(reader->data + scan->at, '\n', scan->len - scan->at);
    if (newline)
        return newline + 1;
    return scan->len == BUFFER_BYTES_MAX ? reader->data + scan->len : NULL;
}

/* Drops the searched lines, except the context of the next match. */
static void scan_drop_searched(struct scan *scan)
{
    struct grep_reader *reader = scan->reader;
    const char *at = reader->data + scan->at, *keep = at;
    uint64_t lines;

    if (reader->search->mode == GREP_CONTENT) {
        if (reader->search->context > 0 && scan->found->kept < reader->search->max_matches)
            keep = scan_context_start(scan, at, &lines);
        if (at - keep > CONTEXT_BYTES_MAX)
            keep = at;
        scan_count_to(scan, scan_offset(scan, at));
    }
    scan->len -= (size_t)(keep - reader->data);
    scan->at -= (size_t)(keep - reader->data);
    scan->base = scan_offset(scan, keep);
    memmove(reader->data, keep, scan->len);
}

static void scan_make_room(struct scan *scan)
{
    struct grep_reader *reader = scan->reader;
    size_t cap =
        reader->cap < BUFFER_BYTES_MAX / 2 ? BUFFER_BYTES + reader->cap * 2 : BUFFER_BYTES_MAX;
    char *data = realloc(reader->data, cap);

    if (!data)
        abort();
    reader->data = data;
    reader->cap = cap;
}

static void scan_file(struct scan *scan)
{
    struct grep_reader *reader = scan->reader;
    struct grep_found *found = scan->found;
    bool is_first = true;

    for (;;) {
        const char *end;
        int r = scan_fill(scan);

        if (r < 0) {
            found->status = GREP_UNREADABLE;
            found->error = -r;
            return;
        }
        if (is_first &&
            memchr(reader->data, '\0', scan->len < BINARY_BYTES ? scan->len : BINARY_BYTES)) {
            found->status = GREP_BINARY;
            return;
        }
        is_first = false;
        end = scan_whole_lines(scan);
        if (end && !scan_search_lines(scan, end))
            return;
        if (end && scan->is_at_end)
            return;
        if (end)
            scan_drop_searched(scan);
        if (scan->len == reader->cap)
            scan_make_room(scan);
    }
}

void grep_file(struct grep_reader *reader, int fd, grep_path_fn *path, void *context,
               struct grep_found *ret)
{
    struct scan scan = { .reader = reader,
                         .found = ret,
                         .fd = fd,
                         .path_fn = path,
                         .path_context = context,
                         .line = 1,
                         .print_line = 1 };

    ret->text.max = TOOL_CONTENT_MAX;
    scan_file(&scan);
    scan_end_match(&scan);
    free(scan.path);
    if (reader->cap > BUFFER_BYTES_KEPT) {
        free(reader->data);
        reader->cap = BUFFER_BYTES;
        reader->data = xcalloc(1, reader->cap);
    }
}
