// SPDX-License-Identifier: Apache-2.0
#include "store/volume/usage.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/files/walk.h"

enum { BLOCK_BYTES = 512 };

/* Identifies a file by its inode and, among snapshots of one tree, the time of its last change. */
static ino_t key_of(const struct usage *usage, const struct stat *st)
{
    uint64_t changed = (uint64_t)st->st_ctim.tv_sec * 1000000000 + (uint64_t)st->st_ctim.tv_nsec;
    ino_t key = st->st_ino;

    if (usage->is_shared)
        key ^= changed * 0x9E3779B97F4A7C15u;
    return key ? key : 1;
}

static int usage_add_inode(struct usage *usage, const struct stat *st)
{
    bool may_repeat = usage->is_shared || (!S_ISDIR(st->st_mode) && st->st_nlink > 1);

    if (may_repeat) {
        ino_t key = key_of(usage, st);

        if (inode_set_has(&usage->seen, key))
            return 0;
        if (inode_set_add(&usage->seen, key) < 0)
            return -ENOMEM;
    }
    usage->bytes += (uint64_t)st->st_blocks * BLOCK_BYTES;
    return 0;
}

static int add_entry(void *context, int dir_fd, const char *name, const struct stat *st)
{
    (void)dir_fd;
    (void)name;
    return usage_add_inode(context, st);
}

static int add_dir(void *context, int fd, const char *name, const struct stat *st)
{
    (void)fd;
    (void)name;
    return usage_add_inode(context, st);
}

int usage_add(struct usage *usage, int fd)
{
    static const struct walk_ops ops = { .entry = add_entry, .enter = add_dir };

    return tree_walk(fd, &ops, usage);
}

void usage_done(struct usage *usage)
{
    inode_set_done(&usage->seen);
}
