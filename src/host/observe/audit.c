// SPDX-License-Identifier: Apache-2.0
/* A line is one write(2), but that alone does not make it atomic: the kernel checks for a SIGKILL
 * between two pages, which cut 3 % of the killed writes that crossed a page boundary (Linux 6.18).
 * So blanks are written before such a line to move it to the next page. A line longer than a page
 * can still be cut; then, or after a crash of the machine, audit_open moves the partial line away.
 */
#include "host/observe/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/flush.h"
#include "base/io.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/text/parse.h"
#include "base/xalloc.h"
#include "host/observe/audit_internal.h"

enum { CHUNK_BYTES = AUDIT_LINE_MAX };

struct audit {
    int fd;
    size_t page;      /* size of a memory page */
    struct lock lock; /* protects the fields below and the file */
    struct audit_link last;
    off_t end;
    struct flush flush;
};

DEFINE_CLEANUP(audit_close, struct audit *);

/* Finds the start of the line that ends before `end`. */
static int line_begin(int fd, off_t end, off_t *ret)
{
    cleanup_free char *chunk = xcalloc(1, CHUNK_BYTES);

    while (end > 0) {
        size_t len = end < CHUNK_BYTES ? (size_t)end : CHUNK_BYTES;
        ssize_t n = pread(fd, chunk, len, end - (off_t)len);
        const char *newline;

        if (n != (ssize_t)len)
            return n < 0 ? -errno : -EIO;
        newline = memrchr(chunk, '\n', len);
        if (newline) {
            *ret = end - (off_t)len + (newline - chunk) + 1;
            return 0;
        }
        end -= (off_t)len;
    }
    *ret = 0;
    return 0;
}

/* Appends the partial line at `from` to audit.torn, and truncates the log afterwards. */
static int audit_move_torn(const struct audit *audit, int state_fd, off_t from)
{
    cleanup_free char *chunk = xcalloc(1, CHUNK_BYTES);
    cleanup_close int torn_fd = openat(
        state_fd, AUDIT_TORN_FILE, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    off_t at = from;
    ssize_t n;
    int r;

    if (torn_fd < 0)
        return -errno;
    while ((n = pread(audit->fd, chunk, CHUNK_BYTES, at)) > 0) {
        r = write_all(torn_fd, chunk, (size_t)n);
        if (r < 0)
            return r;
        at += n;
    }
    if (n < 0)
        return -errno;
    r = write_all(torn_fd, "\n", 1);
    if (r < 0)
        return r;
    if (fsync(torn_fd) < 0 || ftruncate(audit->fd, from) < 0)
        return -errno;
    return 0;
}

/* Returns whether everything from `at` to the end is blank: padding before a line that was never
 * written. */
static bool audit_is_blank(const struct audit *audit, off_t at)
{
    char byte = ' ';

    while (at < audit->end && byte == ' ') {
        if (pread(audit->fd, &byte, 1, at) != 1)
            return false;
        at++;
    }
    return byte == ' ';
}

/* Removes everything behind the last newline; *ret_bytes of it were moved to audit.torn. */
static int audit_repair(struct audit *audit, int state_fd, off_t *ret_bytes, struct err *err)
{
    off_t begin = 0, bytes = 0;
    int r = line_begin(audit->fd, audit->end, &begin);

    if (r >= 0 && audit_is_blank(audit, begin)) {
        if (begin < audit->end && ftruncate(audit->fd, begin) < 0)
            r = -errno;
    } else if (r >= 0) {
        bytes = audit->end - begin;
        r = audit_move_torn(audit, state_fd, begin);
    }
    if (r < 0)
        return err_sys(err, r, "repair the end of " AUDIT_FILE);
    audit->end = begin;
    *ret_bytes = bytes;
    return 0;
}

/* Reads the last line, which the next one links to. */
static int audit_read_last(struct audit *audit, struct err *err)
{
    cleanup_json json_t *object = NULL;
    cleanup_free char *line = NULL;
    const char *wrong = "is too long";
    off_t begin = 0, len;
    int r;

    audit->last = audit_origin;
    if (audit->end == 0)
        return 0;
    r = line_begin(audit->fd, audit->end - 1, &begin);
    if (r < 0)
        return err_sys(err, r, "read the last line of " AUDIT_FILE);
    len = audit->end - 1 - begin;
    if (len < AUDIT_LINE_MAX) {
        line = xcalloc(1, AUDIT_LINE_MAX);
        if (pread(audit->fd, line, (size_t)len, begin) != len)
            return err_sys(err, -EIO, "read the last line of " AUDIT_FILE);
        wrong = audit_line_read(line, (size_t)len, &audit->last, &object);
    }
    if (!wrong)
        return 0;
    return err_set(err, ERR_INTERNAL,
                   "the last line of " AUDIT_FILE " %s: it was changed; move the file away to "
                   "begin a new one",
                   wrong);
}

int audit_open(int state_fd, struct audit **ret, struct err *err)
{
    cleanup_with(audit_close_slot) struct audit *audit = xcalloc(1, sizeof(*audit));
    off_t torn_bytes = 0;
    int r;

    lock_init(&audit->lock, LOCK_AUDIT);
    flush_init(&audit->flush);
    audit->page = (size_t)sysconf(_SC_PAGESIZE);
    audit->fd =
        openat(state_fd, AUDIT_FILE, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (audit->fd < 0)
        return err_sys(err, -errno, "open " AUDIT_FILE);
    audit->end = lseek(audit->fd, 0, SEEK_END);
    if (audit->end < 0)
        return err_sys(err, -errno, "find the end of " AUDIT_FILE);
    if (fsync(state_fd) < 0)
        return err_sys(err, -errno, "flush the name of " AUDIT_FILE);
    r = audit_repair(audit, state_fd, &torn_bytes, err);
    if (r >= 0)
        r = audit_read_last(audit, err);
    if (r >= 0 && torn_bytes > 0)
        r = audit_add(audit, "audit.torn", NULL,
                      json_pack("{s:I}", "bytes", (json_int_t)torn_bytes), err);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(audit);
    return 0;
}

void audit_close(struct audit *audit)
{
    if (!audit)
        return;
    (void)fd_close(audit->fd);
    flush_destroy(&audit->flush);
    lock_destroy(&audit->lock);
    free(audit);
}

static int check_details(const char *event, const json_t *details, struct err *err)
{
    static const char *const ours[] = { "seq", "time", "event", "sandbox", "prev", "hash" };

    if (details && !json_is_object(details))
        return err_set(err, ERR_INVALID, "the details of event '%.64s' are not an object", event);
    for (size_t i = 0; i < ARRAY_SIZE(ours); i++) {
        if (json_object_get(details, ours[i]))
            return err_set(err, ERR_INVALID,
                           "event '%.64s' has a detail with the reserved name '%s'", event,
                           ours[i]);
    }
    return 0;
}

/* Makes all of a line but its hash. The caller holds the lock. */
static json_t *audit_make_record(const struct audit *audit, const char *event, const char *sandbox,
                                 json_t *details)
{
    char time[TIME_TEXT_SIZE];
    cleanup_json json_t *record = NULL;

    format_time_ms(clock_wall_ms(), time);
    record = json_pack("{s:I, s:s, s:s, s:s*}", "seq", (json_int_t)audit->last.seq + 1, "time",
                       time, "event", event, "sandbox", sandbox);
    if (!record || (details && json_object_update(record, details) < 0) ||
        json_object_set_new(record, "prev", json_string(audit->last.hash)) < 0)
        return NULL;
    return TAKE_PTR(record);
}

/* Returns the number of blanks that move a line of len bytes to the next page, if it would cross a
 * page boundary. */
static size_t blanks_before(const struct audit *audit, size_t len)
{
    size_t left = audit->page - (size_t)audit->end % audit->page;

    return len <= audit->page && len > left ? left : 0;
}

/* Formats the record as a line. Returns 0, -ENOBUFS when it is too long, or another -errno. */
static int audit_make_line(const struct audit *audit, const json_t *record, struct buf *line,
                           char ret_hash[static DIGEST_HEX_LEN + 1])
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(AUDIT_LINE_MAX - AUDIT_HASH_LEN);
    size_t blanks;
    int r = json_write(record, &text);

    if (r < 0)
        return r;
    text.len--; /* the hash goes before the closing brace */
    blanks = blanks_before(audit, text.len + AUDIT_HASH_LEN + 1);
    r = buf_printf(line, "%*s", (int)blanks, "");
    if (r >= 0)
        r = buf_add(line, text.data, text.len);
    if (r >= 0)
        r = audit_hash(line->data, line->len, ret_hash);
    if (r >= 0)
        r = buf_printf(line, AUDIT_HASH_BEFORE "%s" AUDIT_HASH_AFTER "\n", ret_hash);
    return r;
}

/* Appends the line with one write(2), and truncates the file again if that was incomplete. */
static int audit_append(const struct audit *audit, const struct buf *line)
{
    struct stat st;
    ssize_t n;

    do {
        n = write(audit->fd, line->data, line->len);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    if ((size_t)n == line->len)
        return 0;
    if (fstat(audit->fd, &st) < 0 || ftruncate(audit->fd, st.st_size - n) < 0)
        return -errno;
    return -ENOSPC;
}

/* The caller holds the lock. */
static int audit_add_record(struct audit *audit, const char *event, const json_t *record,
                            struct err *err)
{
    cleanup_with(buf_done) struct buf line = BUF_INIT(AUDIT_LINE_MAX);
    char hash[DIGEST_HEX_LEN + 1];
    int r = audit_make_line(audit, record, &line, hash);

    if (r == -ENOBUFS)
        return err_set(err, ERR_EXHAUSTED, "event '%.64s' is longer than %d bytes", event,
                       AUDIT_LINE_MAX);
    if (r >= 0)
        r = audit_append(audit, &line);
    if (r < 0)
        return err_sys(err, r, "record event '%.64s' in " AUDIT_FILE, event);
    audit->last.seq++;
    memcpy(audit->last.hash, hash, sizeof(hash));
    audit->end += (off_t)line.len;
    return 0;
}

/* Waits until a line is on disk, without the lock: lines of one moment share a flush. */
static int audit_flush(struct audit *audit, uint64_t write, struct err *err)
{
    int r = flush_wait(&audit->flush, audit->fd, write);

    return r < 0 ? err_sys(err, r, "flush " AUDIT_FILE) : 0;
}

/* Writes a line, whose number for flush_wait it returns. */
static int audit_write(struct audit *audit, const char *event, const char *sandbox, json_t *details,
                       uint64_t *ret_write, struct err *err)
{
    cleanup_json json_t *taken = details;
    cleanup_json json_t *record = NULL;
    int r = check_details(event, details, err);

    if (r < 0)
        return r;
    lock_take(&audit->lock);
    record = audit_make_record(audit, event, sandbox, taken);
    if (record)
        r = audit_add_record(audit, event, record, err);
    else
        r = err_set(err, ERR_INVALID, "the name of event '%.64s' is not valid UTF-8", event);
    if (r == 0)
        *ret_write = flush_count_write(&audit->flush);
    lock_release(&audit->lock);
    return r;
}

int audit_add(struct audit *audit, const char *event, const char *sandbox, json_t *details,
              struct err *err)
{
    uint64_t write = 0;
    int r = audit_write(audit, event, sandbox, details, &write, err);

    return r < 0 ? r : audit_flush(audit, write, err);
}

int audit_note(struct audit *audit, const char *event, const char *sandbox, json_t *details,
               struct err *err)
{
    uint64_t ignored = 0;

    return audit_write(audit, event, sandbox, details, &ignored, err);
}
