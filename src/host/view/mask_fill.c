// SPDX-License-Identifier: Apache-2.0
/* Makes the tree of a mask, and checks the files that it shows. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/files/walk.h"
#include "host/view/mask.h"
#include "store/volume/volume.h"
#include "view/rules.h"

enum { REFUSED = 1, DEPTH_MAX = 1024 /* more than a version has */ };

enum { ALL_READ = 0444, ALL_EXECUTE = 0111, OTHERS_WRITE = 0002 };

struct filling {
    const struct view_rules *rules;
    char *refusal;
    char path[PATH_MAX]; /* of the current directory, "" for the top */
    int fds[DEPTH_MAX];  /* of directories in the mask, from the top to the current one; negative:
                            it is not there (yet) */
    size_t depth;
    size_t hidden; /* levels below a hidden directory, whose contents do not matter */
    bool is_refused;
};

static int filling_refuse(struct filling *filling, const char *reason)
{
    (void)snprintf(filling->refusal, MASK_REFUSAL_SIZE, "'%.120s' %s", filling->path, reason);
    filling->is_refused = true;
    return -ECANCELED;
}

static int path_push(struct filling *filling, const char *name)
{
    const size_t len = strlen(filling->path), more = strlen(name);

    if (len + more + 2 > sizeof(filling->path))
        return filling_refuse(filling, "has a path that is too long");
    filling->path[len] = '/';
    memcpy(filling->path + len + 1, name, more + 1);
    return 0;
}

static void path_pop(struct filling *filling)
{
    *strrchr(filling->path, '/') = '\0';
}

/* --- the tree --------------------------------------------------------------------------------- */

/* Finds the name of a directory in the current path. */
static void path_component(const struct filling *filling, size_t depth, char ret[NAME_MAX + 1])
{
    const char *at = filling->path;

    while (depth-- > 0)
        at += 1 + strcspn(at + 1, "/");
    (void)snprintf(ret, NAME_MAX + 1, "%.*s", (int)strcspn(at + 1, "/"), at + 1);
}

/* Makes the directories that lead to the current one, as far as they are missing. */
static int chain_make(struct filling *filling)
{
    char name[NAME_MAX + 1];

    for (size_t i = 1; i < filling->depth; i++) {
        const int parent_fd = filling->fds[i - 1];

        if (filling->fds[i] >= 0)
            continue;
        path_component(filling, i - 1, name);
        if (mkdirat(parent_fd, name, 0700) < 0)
            return -errno;
        filling->fds[i] = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (filling->fds[i] < 0)
            return -errno;
    }
    return 0;
}

/* The path is still that of the parent. */
static int whiteout_make(struct filling *filling, const char *name)
{
    int r = chain_make(filling);

    if (r < 0)
        return r;
    r = mknodat(filling->fds[filling->depth - 1], name, S_IFCHR, makedev(0, 0));
    return r < 0 ? -errno : 0;
}

/* The times come last: each name that is made changes them. */
static int directory_finish(int fd, const struct stat *st)
{
    const struct timespec times[] = { st->st_atim, st->st_mtim };

    if (fchown(fd, st->st_uid, st->st_gid) < 0 || fchmod(fd, st->st_mode & 07777) < 0 ||
        futimens(fd, times) < 0)
        return -errno;
    return 0;
}

/* --- what is shown ---------------------------------------------------------------------------- */

/* Root of a sandbox has the rights of others, as everybody has. */
static int file_check(struct filling *filling, const struct stat *st)
{
    const mode_t execute = st->st_mode & ALL_EXECUTE;

    if (st->st_uid >= VOLUME_OWNERS_MAX || st->st_gid >= VOLUME_OWNERS_MAX)
        return filling_refuse(filling, "belongs to a user that a sandbox may have");
    if (S_ISLNK(st->st_mode))
        return 0;
    if (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode))
        return filling_refuse(filling, "is neither a file nor a directory nor a link");
    if (st->st_mode & OTHERS_WRITE)
        return filling_refuse(filling, "may be written by everybody");
    if ((st->st_mode & ALL_READ) != ALL_READ || (execute != 0 && execute != ALL_EXECUTE) ||
        (S_ISDIR(st->st_mode) && execute == 0))
        return filling_refuse(filling, "may be read or executed by some users alone");
    return 0;
}

static int filling_entry(void *context, int dir_fd, const char *name, const struct stat *st)
{
    struct filling *filling = context;
    enum view_level level;
    int r;

    (void)dir_fd;
    if (filling->hidden > 0)
        return 0;
    r = path_push(filling, name);
    if (r < 0)
        return r;
    level = view_decide_entry(filling->rules, filling->path, false).level;
    if (level != VIEW_NONE)
        r = level == VIEW_READ ? file_check(filling, st)
                               : filling_refuse(filling, "has neither level none nor read");
    path_pop(filling);
    return level == VIEW_NONE ? whiteout_make(filling, name) : r;
}

static int directory_hide(struct filling *filling, const char *name)
{
    path_pop(filling);
    filling->hidden = 1;
    return whiteout_make(filling, name);
}

static int filling_enter(void *context, int fd, const char *name, const struct stat *st)
{
    struct filling *filling = context;
    int r;

    (void)fd;
    if (!name)
        return 0;
    if (filling->hidden > 0) {
        filling->hidden++;
        return 0;
    }
    r = path_push(filling, name);
    if (r < 0)
        return r;
    if (view_decide_entry(filling->rules, filling->path, true).level == VIEW_NONE)
        return directory_hide(filling, name);
    if (filling->depth == DEPTH_MAX)
        return filling_refuse(filling, "is too deep");
    filling->fds[filling->depth++] = -EBADF;
    return file_check(filling, st);
}

static int filling_leave(void *context, int fd, const struct stat *st)
{
    struct filling *filling = context;
    int own_fd, r = 0;

    (void)fd;
    if (filling->hidden > 0) {
        filling->hidden--;
        return 0;
    }
    own_fd = filling->fds[filling->depth - 1];
    if (own_fd >= 0)
        r = directory_finish(own_fd, st);
    if (filling->depth == 1)
        return r;
    path_pop(filling);
    (void)fd_close(own_fd);
    filling->depth--;
    return r;
}

int mask_fill(int version_fd, const struct view_rules *rules, int to_fd,
              char refusal[static MASK_REFUSAL_SIZE])
{
    static const struct walk_ops ops = { filling_entry, filling_enter, filling_leave };
    struct filling filling = { .rules = rules, .refusal = refusal, .fds = { to_fd }, .depth = 1 };
    int r = tree_walk(version_fd, &ops, &filling);

    while (filling.depth > 1)
        (void)fd_close(filling.fds[--filling.depth]);
    return filling.is_refused ? REFUSED : r;
}
