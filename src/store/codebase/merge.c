// SPDX-License-Identifier: Apache-2.0
/* The contents come from a sandbox or from a directory that is in use: they are hostile, and they
 * may change meanwhile. Everything is opened below descriptors without following links. Extended
 * attributes are not copied: those of overlayfs would change what a later overlay shows. */
#include "store/codebase/merge.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/files/file_copy.h"
#include "base/files/tree.h"
#include "base/files/walk.h"
#include "base/xalloc.h"
#include "store/codebase/codebase.h"

#define XATTR_OPAQUE "trusted.overlay.opaque"
#define XATTR_WHITEOUT "trusted.overlay.whiteout"

enum { MODE_BITS = 0777 }; /* set-id bits have no meaning in a codebase */

struct merge_state {
    const struct merge *merge;
    struct codebase_changes *changes;
    int *fds; /* the directories being filled, the innermost last */
    size_t depth;
    struct err *err;
    bool is_refused; /* err says why */
};

static void state_done(struct merge_state *state)
{
    while (state->depth > 0)
        (void)close(state->fds[--state->depth]);
    free(state->fds);
}

static int top_fd(const struct merge_state *state)
{
    return state->depth > 0 ? state->fds[state->depth - 1] : state->merge->to_fd;
}

static int state_refuse(struct merge_state *state, int r)
{
    state->is_refused = true;
    return r;
}

static int name_clear(struct merge_state *state, const char *name)
{
    struct stat st;

    if (fstatat(top_fd(state), name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    return tree_remove_at(top_fd(state), name);
}

static int owner_set(const struct merge_state *state, int fd, const struct stat *st)
{
    bool keeps = state->merge->is_layer;

    return fchown(fd, keeps ? st->st_uid : 0, keeps ? st->st_gid : 0) < 0 ? -errno : 0;
}

static int file_merge(struct merge_state *state, int from_fd, const char *name)
{
    cleanup_close int to_fd = -EBADF;
    struct stat st;
    int r = name_clear(state, name);

    if (r < 0 || fstat(from_fd, &st) < 0)
        return r < 0 ? r : -errno;
    to_fd = openat(top_fd(state), name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    r = to_fd < 0 ? -errno : file_copy_content(from_fd, to_fd, st.st_size);
    if (r == 0)
        r = owner_set(state, to_fd, &st);
    if (r == 0 && fchmod(to_fd, st.st_mode & MODE_BITS) < 0)
        r = -errno;
    if (r == 0 && futimens(to_fd, (const struct timespec[]){ st.st_atim, st.st_mtim }) < 0)
        r = -errno;
    state->changes->files++;
    return r;
}

/* Returns the part of an absolute link target below the mount point; NULL: it is elsewhere. */
static const char *target_below(const char *target, const char *mount_point)
{
    const size_t len = strlen(mount_point);

    return strncmp(target, mount_point, len) == 0 && (target[len] == '/' || target[len] == '\0')
               ? target + len
               : NULL;
}

/* Returns whether a link target stays in the codebase, by its text: ".." may lead at most as many
 * levels up as the link lies below the top. */
static bool link_stays(const struct merge_state *state, const char *target)
{
    size_t depth = state->depth;

    if (*target == '/') {
        target = target_below(target, state->merge->mount_point);
        depth = 0;
    }
    for (; target && *target; target += strspn(target, "/")) {
        size_t len = strcspn(target, "/");

        if (len == 2 && strncmp(target, "..", 2) == 0) {
            if (depth-- == 0)
                return false;
        } else if (len > 0 && !(len == 1 && *target == '.')) {
            depth++;
        }
        target += len;
    }
    return target != NULL;
}

static int link_merge(struct merge_state *state, int dir_fd, const char *name,
                      const struct stat *st)
{
    char target[PATH_MAX];
    ssize_t len = readlinkat(dir_fd, name, target, sizeof(target) - 1);
    bool keeps = state->merge->is_layer;
    int r;

    if (len < 0)
        return errno == ENOENT ? 0 : -errno;
    target[len] = '\0';
    if (keeps && !state->merge->keeps_links && !link_stays(state, target)) {
        r = err_set(state->err, ERR_INVALID, "link '%.80s' leads out of the codebase, to '%.80s'",
                    name, target);
        (void)err_remedy(state->err, "remove the link or discard it, then commit again");
        return state_refuse(state, r);
    }
    r = name_clear(state, name);
    if (r == 0 && (symlinkat(target, top_fd(state), name) < 0 ||
                   fchownat(top_fd(state), name, keeps ? st->st_uid : 0, keeps ? st->st_gid : 0,
                            AT_SYMLINK_NOFOLLOW) < 0))
        r = -errno;
    state->changes->files++;
    return r;
}

static int entry_merge(void *context, int dir_fd, const char *name, const struct stat *st)
{
    struct merge_state *state = context;
    bool is_layer = state->merge->is_layer;
    cleanup_close int fd = -EBADF;

    if (S_ISLNK(st->st_mode))
        return link_merge(state, dir_fd, name, st);
    if (is_layer && S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0)) {
        state->changes->removed++;
        return name_clear(state, name);
    }
    if (S_ISREG(st->st_mode)) {
        fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd < 0)
            return errno == ENOENT ? 0 : -errno;
        if (is_layer && fgetxattr(fd, XATTR_WHITEOUT, NULL, 0) >= 0) {
            state->changes->removed++;
            return name_clear(state, name);
        }
        return file_merge(state, fd, name);
    }
    state->changes->skipped++;
    return is_layer ? name_clear(state, name) : 0; /* it hides what the version had there */
}

static bool is_opaque(int fd)
{
    char value = 0;

    return fgetxattr(fd, XATTR_OPAQUE, &value, sizeof(value)) == 1 && value == 'y';
}

/* Makes the directory, or keeps the one that is merged with it. */
static int dir_merge(struct merge_state *state, int fd, const char *name, const struct stat *st)
{
    struct stat old;
    bool is_kept = state->merge->is_layer && !is_opaque(fd) &&
                   fstatat(top_fd(state), name, &old, AT_SYMLINK_NOFOLLOW) == 0 &&
                   S_ISDIR(old.st_mode);
    int to_fd, r = is_kept ? 0 : name_clear(state, name);

    if (r == 0 && !is_kept && mkdirat(top_fd(state), name, 0700) < 0)
        r = -errno;
    if (r < 0)
        return r;
    to_fd = openat(top_fd(state), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (to_fd < 0)
        return -errno;
    state->fds[state->depth++] = to_fd;
    return owner_set(state, to_fd, st);
}

static int dir_enter(void *context, int fd, const char *name, const struct stat *st)
{
    struct merge_state *state = context;

    if (!name)
        return 0;
    if (state->depth == MERGE_DEPTH_MAX)
        return state_refuse(state, err_set(state->err, ERR_EXHAUSTED,
                                           "more than %d directories in each other at '%.80s'",
                                           MERGE_DEPTH_MAX, name));
    return dir_merge(state, fd, name, st);
}

/* The top has no entry on the stack. Its mode is that of every codebase. */
static int dir_leave(void *context, int fd, const struct stat *st)
{
    struct merge_state *state = context;
    int to_fd;

    (void)fd;
    if (state->depth == 0)
        return 0;
    to_fd = state->fds[--state->depth];
    if (fchmod(to_fd, st->st_mode & MODE_BITS) < 0) {
        (void)close(to_fd);
        return -errno;
    }
    (void)close(to_fd);
    return 0;
}

int merge_run(const struct merge *merge, struct codebase_changes *changes, struct err *err)
{
    static const struct walk_ops ops = { entry_merge, dir_enter, dir_leave };
    cleanup_with(state_done) struct merge_state state = {
        .merge = merge,
        .changes = changes,
        .fds = xcalloc(MERGE_DEPTH_MAX, sizeof(*state.fds)),
        .err = err,
    };
    int r = tree_walk(merge->from_fd, &ops, &state);

    if (r < 0 && !state.is_refused)
        return err_sys(err, r, "copy the files of the codebase");
    return r;
}
