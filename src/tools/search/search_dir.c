// SPDX-License-Identifier: Apache-2.0
#include "tools/search/search_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/xalloc.h"

struct search_dir *search_dir_new(struct search_dir *parent, const char *name, int fd)
{
    size_t len = strlen(name);
    struct search_dir *dir = xcalloc(1, sizeof(*dir) + len + 1);

    if (parent)
        atomic_fetch_add(&parent->refs, 1);
    dir->parent = parent;
    atomic_init(&dir->refs, 1);
    atomic_init(&dir->uses, 1);
    dir->fd = fd;
    dir->name_len = len;
    memcpy(dir->name, name, len);
    return dir;
}

struct search_dir *search_dir_share(struct search_dir *dir)
{
    atomic_fetch_add(&dir->refs, 1);
    atomic_fetch_add(&dir->uses, 1);
    return dir;
}

void search_dir_park(struct search_dir *dir)
{
    int fd = dir->fd; /* after the last use is dropped, another thread may change it */

    if (atomic_fetch_sub(&dir->uses, 1) == 1)
        (void)close(fd);
}

void search_dir_unref(struct search_dir *dir)
{
    while (dir && atomic_fetch_sub(&dir->refs, 1) == 1) {
        struct search_dir *parent = dir->parent;

        free(dir);
        dir = parent;
    }
}

void search_dir_release(struct search_dir *dir)
{
    search_dir_park(dir);
    search_dir_unref(dir);
}

static bool dir_try_use(struct search_dir *dir)
{
    unsigned uses = atomic_load(&dir->uses);

    while (uses > 0)
        if (atomic_compare_exchange_weak(&dir->uses, &uses, uses + 1))
            return true;
    return false;
}

/* Opens dir, starting at its nearest open parent. */
static int open_below(struct search_dir *open, const struct search_dir *dir)
{
    size_t depth = 0;
    cleanup_free const struct search_dir **way = NULL;
    int fd = open->fd;

    for (const struct search_dir *at = dir; at != open; at = at->parent)
        depth++;
    way = xcalloc(depth, sizeof(struct search_dir *));
    for (const struct search_dir *at = dir; at != open; at = at->parent)
        way[--depth] = at;
    for (const struct search_dir *at = open; at != dir; depth++) {
        int next = openat(fd, way[depth]->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (fd != open->fd)
            (void)close(fd);
        if (next < 0)
            return -errno;
        fd = next;
        at = way[depth];
    }
    return fd;
}

int search_dir_resume(struct search_dir *dir)
{
    struct search_dir *open;
    int fd;

    if (dir_try_use(dir))
        return 0;
    open = dir->parent;
    while (!dir_try_use(open))
        open = open->parent; /* the start is never parked */
    fd = open_below(open, dir);
    search_dir_park(open);
    if (fd < 0)
        return fd;
    dir->fd = fd;
    atomic_store(&dir->uses, 1);
    return 0;
}

char *search_dir_path(const struct search_dir *dir, const char *name)
{
    size_t name_len = strlen(name), len = name_len;
    char *ret;

    for (const struct search_dir *at = dir; at && at->parent; at = at->parent)
        len += at->name_len + 1;
    ret = xcalloc(1, len + 1);
    len -= name_len;
    memcpy(ret + len, name, name_len + 1);
    for (const struct search_dir *at = dir; at && at->parent; at = at->parent) {
        ret[--len] = '/';
        len -= at->name_len;
        memcpy(ret + len, at->name, at->name_len);
    }
    return ret;
}
