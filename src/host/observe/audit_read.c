// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "host/observe/audit_internal.h"

enum {
    BUFFER_BYTES = 2 * AUDIT_LINE_MAX,
    PAUSE_MS = 10,
    PAUSES_MAX = 100,
};

struct reader {
    int fd;
    char *data;        /* BUFFER_BYTES */
    size_t start, end; /* what was read and not yet taken */
};

static void reader_done(struct reader *reader)
{
    (void)fd_close(reader->fd);
    free(reader->data);
}

/* Reads more behind what is there: bytes, 0 at the end of the file, or -errno. */
static ssize_t reader_fill(struct reader *reader)
{
    size_t held = reader->end - reader->start;
    ssize_t n;

    memmove(reader->data, reader->data + reader->start, held);
    reader->start = 0;
    reader->end = held;
    n = read_full(reader->fd, reader->data + held, BUFFER_BYTES - held);
    if (n > 0)
        reader->end += (size_t)n;
    return n;
}

/* Blanks are what comes before a line that is moved to the next page; their line may not be there
 * yet, or never come. */
static bool is_blank(const struct reader *reader)
{
    for (size_t i = reader->start; i < reader->end; i++) {
        if (reader->data[i] != ' ')
            return false;
    }
    return true;
}

/* The next whole line, terminated by NUL in place of its newline. 1, 0 at the end, -EMSGSIZE when
 * it is too long, -ENODATA when the file ends within it, or -errno. */
static int reader_next(struct reader *reader, char **ret_line, size_t *ret_len)
{
    unsigned pauses = 0;

    for (;;) {
        char *line = reader->data + reader->start;
        size_t held = reader->end - reader->start;
        char *newline = memchr(line, '\n', held);
        ssize_t n;

        if (newline && newline - line < AUDIT_LINE_MAX) {
            *newline = '\0';
            *ret_line = line;
            *ret_len = (size_t)(newline - line);
            reader->start += *ret_len + 1;
            return 1;
        }
        if (held >= AUDIT_LINE_MAX)
            return -EMSGSIZE;
        n = reader_fill(reader);
        if (n < 0)
            return (int)n;
        if (n == 0 && is_blank(reader))
            return 0;
        /* It may be on its way: a reader can see the first part of a write before the rest. */
        if (n == 0 && ++pauses > PAUSES_MAX)
            return -ENODATA;
        if (n == 0)
            clock_sleep_ms(PAUSE_MS);
    }
}

static int bad_line(uint64_t line, const char *why, struct err *err)
{
    return err_set(err, ERR_INTERNAL, AUDIT_FILE " line %" PRIu64 " %s", line, why);
}

/* Whether the line follows the last one, which it then is. */
static int follow(struct audit_link *last, const struct audit_link *link, struct err *err)
{
    uint64_t line = last->seq + 1;

    if (link->seq != line)
        return err_set(err, ERR_INTERNAL, AUDIT_FILE " line %" PRIu64 " has seq %" PRIu64, line,
                       link->seq);
    if (strcmp(link->prev, last->hash) != 0)
        return bad_line(line, "does not follow the line before it", err);
    *last = *link;
    return 0;
}

static bool is_about(const json_t *object, const char *sandbox)
{
    const char *about = json_string_value(json_object_get(object, "sandbox"));

    return !sandbox || (about && strcmp(about, sandbox) == 0);
}

static int read_error(int r, uint64_t line, struct err *err)
{
    if (r == -EMSGSIZE)
        return bad_line(line, "is too long", err);
    if (r == -ENODATA)
        return bad_line(line, "is unfinished", err);
    return err_sys(err, r, "read " AUDIT_FILE);
}

int audit_read(int state_fd, const char *sandbox, audit_fn each, void *context, uint64_t *ret_lines,
               struct err *err)
{
    cleanup_with(reader_done) struct reader reader = {
        .fd = openat(state_fd, AUDIT_FILE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC),
        .data = NULL,
    };
    struct audit_link last = audit_origin, link;
    char *line = NULL;
    size_t len = 0;
    int r;

    if (reader.fd < 0 && errno == ENOENT)
        return err_set(err, ERR_NOT_FOUND, "there is no " AUDIT_FILE);
    if (reader.fd < 0)
        return err_sys(err, -errno, "open " AUDIT_FILE);
    reader.data = xcalloc(1, BUFFER_BYTES);
    while ((r = reader_next(&reader, &line, &len)) > 0) {
        cleanup_json json_t *object = NULL;
        const char *wrong = audit_line_read(line, len, &link, &object);

        if (wrong)
            return bad_line(last.seq + 1, wrong, err);
        r = follow(&last, &link, err);
        if (r >= 0 && is_about(object, sandbox))
            r = each(line, context);
        if (r != 0)
            return r;
    }
    if (r < 0)
        return read_error(r, last.seq + 1, err);
    *ret_lines = last.seq;
    return 0;
}
