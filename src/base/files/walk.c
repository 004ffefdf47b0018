// SPDX-License-Identifier: Apache-2.0
#include "base/files/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

/* Only this many innermost directories are open. An outer one is reopened on the way back, as the
 * parent of the one below, if it is still the same. */
enum { OPEN_MAX = 16, TRIES = 8 };

struct level {
    DIR *dir; /* NULL: currently closed */
    long at;  /* position to continue at when it is reopened */
    struct stat st;
};

struct walk {
    const struct walk_ops *ops;
    void *context;
    struct level *levels;
    size_t depth; /* levels in use */
    size_t capacity;
};

static void walk_done(struct walk *walk)
{
    while (walk->depth > 0) {
        struct level *level = &walk->levels[--walk->depth];

        if (level->dir)
            (void)closedir(level->dir);
    }
    free(walk->levels);
}

static int levels_grow(struct walk *walk)
{
    size_t capacity = walk->capacity ? walk->capacity * 2 : OPEN_MAX;
    struct level *levels;

    if (walk->depth < walk->capacity)
        return 0;
    if (walk->depth == WALK_DEPTH_MAX)
        return -ENAMETOOLONG;
    levels = reallocarray(walk->levels, capacity, sizeof(*levels));
    if (!levels)
        return -ENOMEM;
    walk->levels = levels;
    walk->capacity = capacity;
    return 0;
}

/* Closes the outermost open directory if enough inner ones are open. */
static void levels_close_outer(struct walk *walk)
{
    struct level *outer;

    if (walk->depth <= OPEN_MAX)
        return;
    outer = &walk->levels[walk->depth - OPEN_MAX - 1];
    if (!outer->dir)
        return;
    outer->at = telldir(outer->dir);
    (void)closedir(outer->dir);
    outer->dir = NULL;
}

/* Takes ownership of fd. */
static int level_push(struct walk *walk, int fd, const char *name)
{
    cleanup_close int dir_fd = fd;
    struct level level = { .dir = NULL };
    int r = levels_grow(walk);

    if (r < 0)
        return r;
    if (fstat(dir_fd, &level.st) < 0)
        return -errno;
    level.dir = fdopendir(dir_fd);
    if (!level.dir)
        return -errno;
    (void)TAKE_FD(dir_fd);
    walk->levels[walk->depth++] = level;
    levels_close_outer(walk);
    return walk->ops->enter ? walk->ops->enter(walk->context, fd, name, &level.st) : 0;
}

/* Reopens the parent of `inner` at the position of the walk. */
static int level_reopen(struct level *level, const struct level *inner)
{
    cleanup_close int fd = openat(dirfd(inner->dir), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (st.st_dev != level->st.st_dev || st.st_ino != level->st.st_ino)
        return -ESTALE;
    level->dir = fdopendir(fd);
    if (!level->dir)
        return -errno;
    (void)TAKE_FD(fd);
    seekdir(level->dir, level->at);
    return 0;
}

static int level_pop(struct walk *walk)
{
    struct level *level = &walk->levels[walk->depth - 1];
    int r = walk->ops->leave ? walk->ops->leave(walk->context, dirfd(level->dir), &level->st) : 0;

    if (r == 0 && walk->depth > 1 && !level[-1].dir)
        r = level_reopen(&level[-1], level);
    (void)closedir(level->dir);
    walk->depth--;
    return r;
}

static int entry_visit(struct walk *walk, int dir_fd, const char *name)
{
    struct stat st;
    int fd;

    for (int i = 0; i < TRIES; i++) {
        if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            return errno == ENOENT ? 0 : -errno;
        if (!S_ISDIR(st.st_mode))
            return walk->ops->entry(walk->context, dir_fd, name, &st);
        fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0)
            return level_push(walk, fd, name);
        /* The name was replaced meanwhile. */
        if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
            return -errno;
    }
    return -ESTALE;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

int tree_walk(int fd, const struct walk_ops *ops, void *context)
{
    cleanup_with(walk_done) struct walk walk = { .ops = ops, .context = context };
    int top_fd = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = top_fd < 0 ? -errno : level_push(&walk, top_fd, NULL);

    while (r == 0 && walk.depth > 0) {
        DIR *dir = walk.levels[walk.depth - 1].dir;
        struct dirent *entry = (errno = 0, readdir(dir));

        if (entry && !is_dots(entry->d_name))
            r = entry_visit(&walk, dirfd(dir), entry->d_name);
        else if (!entry)
            r = errno ? -errno : level_pop(&walk);
    }
    return r;
}
