// SPDX-License-Identifier: Apache-2.0
/* The format: https://www.sqlite.org/fileformat2.html#walformat */
#include "host/registry/wal.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/xalloc.h"

enum {
    MAGIC = 0x377f0682, /* with 1 added, checksums are of big-endian words */
    VERSION = 3007000,
    HEADER_BYTES = 32,
    FRAME_HEADER_BYTES = 24,
    PAGE_BYTES_MIN = 512,
    PAGE_BYTES_MAX = 65536,
};

/* The words of the header: magic, version, page size, checkpoint, salt, checksum. Those of a frame:
 * page, size of the database (only of the last frame of a transaction), salt, checksum. */
enum { WORD_PAGE_BYTES = 2, WORD_SALT = 4, WORD_SUM = 6, FRAME_SALT = 2, FRAME_SUM = 4 };

/* What the mark contains. */
struct mark {
    struct wal_position position;
    uint32_t check; /* of the position */
};

struct wal {
    int fd;
    off_t size;
    bool is_big_endian;
    uint32_t page_bytes;
    uint32_t salt[2];
    uint32_t sum[2]; /* of everything before */
};

static uint32_t mark_check(const struct wal_position *position)
{
    return ~(position->salt[0] ^ position->salt[1] ^ position->frames);
}

static char *mark_path(const char *path)
{
    return xasprintf("%s-open", path);
}

/* Adds len bytes, a multiple of 8, to the checksum. */
static void sum_add(struct wal *wal, const void *data, size_t len)
{
    const unsigned char *bytes = data;

    for (size_t i = 0; i < len; i += 8) {
        uint32_t words[2];

        memcpy(words, bytes + i, sizeof(words));
        for (int j = 0; j < 2; j++)
            words[j] = wal->is_big_endian ? be32toh(words[j]) : le32toh(words[j]);
        wal->sum[0] += words[0] + wal->sum[1];
        wal->sum[1] += words[1] + wal->sum[0];
    }
}

static bool header_read(struct wal *wal)
{
    uint32_t words[HEADER_BYTES / 4];
    uint32_t magic;

    if (pread(wal->fd, words, sizeof(words), 0) != (ssize_t)sizeof(words))
        return false;
    magic = be32toh(words[0]);
    wal->is_big_endian = magic & 1;
    wal->page_bytes = be32toh(words[WORD_PAGE_BYTES]);
    for (int i = 0; i < 2; i++)
        wal->salt[i] = be32toh(words[WORD_SALT + i]);
    if ((magic & ~1U) != MAGIC || be32toh(words[1]) != VERSION ||
        wal->page_bytes < PAGE_BYTES_MIN || wal->page_bytes > PAGE_BYTES_MAX)
        return false;
    sum_add(wal, words, WORD_SUM * sizeof(*words));
    return wal->sum[0] == be32toh(words[WORD_SUM]) && wal->sum[1] == be32toh(words[WORD_SUM + 1]);
}

/* Returns whether nothing was ever written to the header: the machine crashed before the first
 * flush. */
static bool header_is_blank(const struct wal *wal)
{
    static const char zeros[HEADER_BYTES];
    char header[HEADER_BYTES];
    ssize_t n = pread(wal->fd, header, sizeof(header), 0);

    return n >= 0 && memcmp(header, zeros, (size_t)n) == 0;
}

static bool frame_is_good(struct wal *wal, off_t at, unsigned char *buffer)
{
    size_t len = FRAME_HEADER_BYTES + wal->page_bytes;
    uint32_t words[FRAME_HEADER_BYTES / 4];

    if (pread(wal->fd, buffer, len, at) != (ssize_t)len)
        return false;
    memcpy(words, buffer, sizeof(words));
    if (be32toh(words[FRAME_SALT]) != wal->salt[0] ||
        be32toh(words[FRAME_SALT + 1]) != wal->salt[1])
        return false;
    sum_add(wal, buffer, 8);
    sum_add(wal, buffer + FRAME_HEADER_BYTES, wal->page_bytes);
    return wal->sum[0] == be32toh(words[FRAME_SUM]) && wal->sum[1] == be32toh(words[FRAME_SUM + 1]);
}

/* Counts the good frames at the beginning, up to a number. */
static uint32_t frames_count(struct wal *wal, uint32_t most)
{
    off_t step = FRAME_HEADER_BYTES + (off_t)wal->page_bytes;
    cleanup_free unsigned char *buffer = xcalloc(1, (size_t)step);
    uint32_t frames = 0;

    while (frames < most && frame_is_good(wal, HEADER_BYTES + (off_t)frames * step, buffer))
        frames++;
    return frames;
}

/* Returns whether there is a mark; its position is empty if it was never written. */
static bool mark_read(const char *path, struct wal_position *ret)
{
    cleanup_free char *name = mark_path(path);
    cleanup_close int fd = open(name, O_RDONLY | O_CLOEXEC);
    struct mark mark;

    *ret = (struct wal_position){ .frames = 0 };
    if (fd < 0)
        return false;
    if (pread(fd, &mark, sizeof(mark), 0) == (ssize_t)sizeof(mark) &&
        mark.check == mark_check(&mark.position))
        *ret = mark.position;
    return true;
}

static int wal_refuse(const char *path, const char *why, struct err *err)
{
    (void)err_set(err, ERR_INTERNAL, "the write-ahead log %s-wal of the registry %s", path, why);
    return err_remedy(err,
                      "restore all of holt.db*; or, to lose the changes in the log, stop holtd "
                      "and move holt.db-wal and holt.db-open away (docs/registry.md)");
}

/* Compares the log with what the mark says of it. */
static int frames_check(const char *path, struct wal *wal, const struct wal_position *mark,
                        uint32_t *ret_lost, struct err *err)
{
    off_t step = FRAME_HEADER_BYTES + (off_t)wal->page_bytes;
    uint32_t good, present = (uint32_t)((wal->size - HEADER_BYTES) / step);

    if (mark->frames == 0)
        return 0;
    if ((int32_t)(wal->salt[0] - mark->salt[0]) < 0)
        return wal_refuse(path, "is older than the registry", err);
    if (wal->salt[0] != mark->salt[0] || wal->salt[1] != mark->salt[1])
        return 0; /* SQLite has begun it anew since */
    good = frames_count(wal, mark->frames);
    if (good < mark->frames && present > good)
        return wal_refuse(path, "is damaged", err);
    *ret_lost = mark->frames - good;
    return 0;
}

int wal_check(const char *path, uint32_t *ret_lost, struct err *err)
{
    cleanup_free char *name = xasprintf("%s-wal", path);
    cleanup_close int fd = open(name, O_RDONLY | O_CLOEXEC);
    struct wal_position mark;
    bool is_marked = mark_read(path, &mark);
    struct wal wal = { .fd = fd };
    struct stat st = { 0 };

    *ret_lost = 0;
    if (fd < 0 && errno != ENOENT)
        return err_sys(err, -errno, "open %s", name);
    if (fd >= 0 && fstat(fd, &st) < 0)
        return err_sys(err, -errno, "stat %s", name);
    wal.size = st.st_size;
    if (st.st_size < HEADER_BYTES)
        return is_marked ? wal_refuse(path, fd < 0 ? "is missing" : "is empty", err) : 0;
    if (!header_read(&wal))
        return is_marked || !header_is_blank(&wal) ? wal_refuse(path, "is damaged", err) : 0;
    return frames_check(path, &wal, &mark, ret_lost, err);
}

int wal_mark_open(const char *path, struct err *err)
{
    cleanup_free char *name = mark_path(path), *copy = xstrdup(path);
    cleanup_close int fd = open(name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    cleanup_close int dir_fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 || dir_fd < 0 || fsync(dir_fd) < 0)
        return err_sys(err, -errno, "make %s", name);
    return TAKE_FD(fd);
}

void wal_mark_write(int mark_fd, const struct wal_position *position)
{
    const struct mark mark = { .position = *position, .check = mark_check(position) };

    (void)!pwrite(mark_fd, &mark, sizeof(mark), 0);
}

void wal_mark_remove(const char *path)
{
    cleanup_free char *name = mark_path(path), *copy = xstrdup(path);
    cleanup_close int dir_fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (unlink(name) == 0 && dir_fd >= 0)
        (void)fsync(dir_fd);
}

int wal_read_salt(int wal_fd, uint32_t ret_salt[2])
{
    uint32_t salt[2];

    if (pread(wal_fd, salt, sizeof(salt), WORD_SALT * sizeof(*salt)) != (ssize_t)sizeof(salt))
        return -EIO;
    ret_salt[0] = be32toh(salt[0]);
    ret_salt[1] = be32toh(salt[1]);
    return 0;
}
