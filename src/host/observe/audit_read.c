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

struct audit_reader {
    int fd;
    char *data;        /* BUFFER_BYTES */
    size_t start, end; /* the unparsed bytes in data */
};

static void reader_done(struct audit_reader *reader)
{
    (void)fd_close(reader->fd);
    free(reader->data);
}

/* Reads more data. Returns the number of bytes, 0 at the end of the file, or -errno. */
static ssize_t reader_fill(struct audit_reader *reader)
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

/* Returns whether only padding is left: the line after it may not be written yet, or never. */
static bool reader_is_blank(const struct audit_reader *reader)
{
    for (size_t i = reader->start; i < reader->end; i++) {
        if (reader->data[i] != ' ')
            return false;
    }
    return true;
}

/* Returns the next complete line, with NUL in place of the newline: 1, 0 at the end, -EMSGSIZE when
 * it is too long, -ENODATA when the file ends within it, or another -errno. */
static int reader_next(struct audit_reader *reader, char **ret_line, size_t *ret_len)
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
        if (n == 0 && reader_is_blank(reader))
            return 0;
        /* The rest may follow: a reader can see the first part of a write before the rest. */
        if (n == 0 && ++pauses > PAUSES_MAX)
            return -ENODATA;
        if (n == 0)
            clock_sleep_ms(PAUSE_MS);
    }
}

static int line_set_error(uint64_t line, const char *why, struct err *err)
{
    return err_set(err, ERR_INTERNAL, AUDIT_FILE " line %" PRIu64 " %s", line, why);
}

/* Checks that the line follows the last one, and makes it the last one. */
static int link_follow(struct audit_link *last, const struct audit_link *link, struct err *err)
{
    uint64_t line = last->seq + 1;

    if (link->seq != line)
        return err_set(err, ERR_INTERNAL, AUDIT_FILE " line %" PRIu64 " has seq %" PRIu64, line,
                       link->seq);
    if (strcmp(link->prev, last->hash) != 0)
        return line_set_error(line, "does not follow the line before it", err);
    *last = *link;
    return 0;
}

static bool record_is_about(const json_t *object, const char *sandbox)
{
    const char *about = json_string_value(json_object_get(object, "sandbox"));

    return !sandbox || (about && strcmp(about, sandbox) == 0);
}

static int read_set_error(int r, uint64_t line, struct err *err)
{
    if (r == -EMSGSIZE)
        return line_set_error(line, "is too long", err);
    if (r == -ENODATA)
        return line_set_error(line, "is incomplete", err);
    return err_sys(err, r, "read " AUDIT_FILE);
}

int audit_read(int state_fd, const char *sandbox, audit_fn each, void *context, uint64_t *ret_lines,
               struct err *err)
{
    cleanup_with(reader_done) struct audit_reader reader = {
        .fd = openat(state_fd, AUDIT_FILE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC),
        .data = NULL,
    };
    struct audit_link last = audit_origin, link;
    char *line = NULL;
    size_t len = 0;
    int r;

    if (reader.fd < 0 && errno == ENOENT)
        return err_set(err, ERR_NOT_FOUND, "no " AUDIT_FILE " in the state directory");
    if (reader.fd < 0)
        return err_sys(err, -errno, "open " AUDIT_FILE);
    reader.data = xcalloc(1, BUFFER_BYTES);
    while ((r = reader_next(&reader, &line, &len)) > 0) {
        cleanup_json json_t *object = NULL;
        const char *wrong = audit_line_read(line, len, &link, &object);

        if (wrong)
            return line_set_error(last.seq + 1, wrong, err);
        r = link_follow(&last, &link, err);
        if (r >= 0 && record_is_about(object, sandbox))
            r = each(line, context);
        if (r != 0)
            return r;
    }
    if (r < 0)
        return read_set_error(r, last.seq + 1, err);
    *ret_lines = last.seq;
    return 0;
}
