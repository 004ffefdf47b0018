// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <errno.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "store/diff/diff_internal.h"

enum { CHUNK_BYTES = 32 << 10 };

int diff_names_add(struct diff_names *names, const char *name, size_t len)
{
    int r = buf_add(&names->bytes, name, len);

    if (r == 0)
        r = buf_add(&names->bytes, "", 1);
    names->count += r == 0;
    return r;
}

static int chunk_add(struct diff_names *names, const char *chunk, size_t len)
{
    int r = 0;

    for (size_t at = 0; r == 0 && at < len;) {
        const struct dirent64 *entry = (const void *)(chunk + at);
        const char *name = entry->d_name;

        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
            r = diff_names_add(names, name, strlen(name));
        at += entry->d_reclen;
    }
    return r;
}

int diff_names_read(struct diff_names *names, int dir_fd)
{
    alignas(struct dirent64) char chunk[CHUNK_BYTES];
    ssize_t n;
    int r = 0;

    while ((n = getdents64(dir_fd, chunk, sizeof(chunk))) > 0) {
        r = chunk_add(names, chunk, (size_t)n);
        if (r < 0)
            return r;
    }
    /* A directory that was removed while it was read has no more names. */
    return n < 0 && !diff_is_gone(-errno) ? -errno : 0;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int diff_names_sort(struct diff_names *names)
{
    const char *name = names->bytes.data;
    size_t kept = 0;

    if (names->count == 0)
        return 0;
    names->list = calloc(names->count, sizeof(*names->list));
    if (!names->list)
        return -ENOMEM;
    for (size_t i = 0; i < names->count; i++, name += strlen(name) + 1)
        names->list[i] = name;
    qsort(names->list, names->count, sizeof(*names->list), by_bytes);
    for (size_t i = 0; i < names->count; i++) {
        if (kept == 0 || strcmp(names->list[kept - 1], names->list[i]) != 0)
            names->list[kept++] = names->list[i];
    }
    names->count = kept;
    return 0;
}

void diff_names_done(struct diff_names *names)
{
    buf_done(&names->bytes);
    free(names->list);
}
