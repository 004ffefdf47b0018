// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "kernel/path.h"
#include "store/diff/diff_internal.h"

#define XATTR_METACOPY "trusted.overlay.metacopy"

enum {
    CHUNK_BYTES = 64 << 10,
    READ_FLAGS = O_RDONLY | O_NONBLOCK |
                 O_NOCTTY, /* safe even if the name was replaced by a device or fifo */
};

/* Takes ownership of the descriptor and closes it unless it is a regular file with its own
 * contents. */
static int content_check(const struct diff_tree *tree, int fd, struct stat *ret_st)
{
    cleanup_close int file_fd = fd;

    if (file_fd < 0)
        return file_fd;
    if (fstat(file_fd, ret_st) < 0)
        return -errno;
    if (!S_ISREG(ret_st->st_mode))
        return -ENOENT;
    if (tree->is_overlay && fgetxattr(file_fd, XATTR_METACOPY, NULL, 0) >= 0)
        return -EOPNOTSUPP;
    return TAKE_FD(file_fd);
}

int diff_content_open_at(const struct diff_tree *tree, int dir_fd, const char *name,
                         struct stat *ret_st)
{
    return content_check(tree, open_no_links(dir_fd, name, READ_FLAGS, 0), ret_st);
}

int diff_content_open(const struct diff_change *change, enum diff_side side, struct stat *ret_st)
{
    int fd = diff_path_open(change->dir, change->name, change->layers[side], READ_FLAGS);

    return content_check(change->dir->tree, fd, ret_st);
}

/* Returns the offset of the next chunk that is not a hole, at or after size if there is none. */
static uint64_t next_data(int fd, uint64_t from, uint64_t size)
{
    off_t at;

    if (size <= CHUNK_BYTES)
        return from;
    at = lseek(fd, (off_t)from, SEEK_DATA);
    if (at < 0)
        return errno == ENXIO ? size : from;
    return (uint64_t)at / CHUNK_BYTES * CHUNK_BYTES;
}

/* Returns the length of the chunk at an offset. */
static size_t chunk_len(uint64_t at, uint64_t size)
{
    return size - at < CHUNK_BYTES ? (size_t)(size - at) : CHUNK_BYTES;
}

/* Reads len bytes, zeros if the file has become shorter. Returns 0 or -errno. */
static int chunk_read(int fd, char *chunk, uint64_t offset, size_t len)
{
    size_t have = 0;

    while (have < len) {
        ssize_t n = pread(fd, chunk + have, len - have, (off_t)(offset + have));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        have += (size_t)n;
    }
    memset(chunk + have, 0, len - have);
    return 0;
}

int diff_content_same(int a_fd, int b_fd, uint64_t size)
{
    cleanup_free char *a = xcalloc(2, chunk_len(0, size) + 1);
    char *b = a + chunk_len(0, size);
    size_t len;
    int r;

    for (uint64_t at = 0;; at += CHUNK_BYTES) {
        uint64_t a_at = next_data(a_fd, at, size), b_at = next_data(b_fd, at, size);

        at = a_at < b_at ? a_at : b_at;
        if (at >= size)
            return 1;
        len = chunk_len(at, size);
        r = chunk_read(a_fd, a, at, len);
        if (r == 0)
            r = chunk_read(b_fd, b, at, len);
        if (r < 0)
            return r;
        if (memcmp(a, b, len) != 0)
            return 0;
    }
}

static bool is_zero(const char *chunk, size_t len)
{
    return chunk[0] == '\0' && memcmp(chunk, chunk + 1, len - 1) == 0;
}

/* Chunks of zeros are skipped and all others include their offset, so a hole equals written zeros.
 */
int diff_content_digest(int fd, uint64_t size, uint64_t *budget_bytes,
                        char ret_hex[static DIGEST_HEX_LEN + 1])
{
    cleanup_with(digest_free_slot) struct digest *digest = digest_new();
    cleanup_free char *chunk = xcalloc(1, chunk_len(0, size) + 1);
    size_t len;
    int r;

    if (!digest)
        return -EIO;
    for (uint64_t at = next_data(fd, 0, size); at < size;
         at = next_data(fd, at + CHUNK_BYTES, size)) {
        len = chunk_len(at, size);
        if (*budget_bytes < len)
            return -ENOBUFS;
        *budget_bytes -= len;
        r = chunk_read(fd, chunk, at, len);
        if (r < 0)
            return r;
        if (is_zero(chunk, len))
            continue;
        digest_add(digest, &at, sizeof(at));
        digest_add(digest, chunk, len);
    }
    return digest_hex(digest, ret_hex);
}
