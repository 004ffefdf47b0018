// SPDX-License-Identifier: Apache-2.0
/* Directories merged from layers, like overlayfs does (Documentation/filesystems/overlayfs.rst):
 * the topmost layer that has a name decides; a directory is merged with those below it down to the
 * first opaque one or the first name that is not a directory.
 *
 * Redirects and metadata-only files occur if redirect_dir or metacopy is enabled, for renamed
 * directories and changed modes. Both are off by default and Holt does not enable them; on a host
 * whose module parameters do, the diff fails instead of being wrong. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "kernel/path.h"
#include "store/diff/diff_internal.h"
#include "store/volume/volume.h"

#define XATTR_OPAQUE "trusted.overlay.opaque"
#define XATTR_REDIRECT "trusted.overlay.redirect"
#define XATTR_WHITEOUT "trusted.overlay.whiteout"

/* Newer kernels write 'x' to the same attribute of a directory that contains whiteouts stored as
 * files. */
enum { OPAQUE = 'y', HAS_WHITEOUTS = 'x' };

struct identity {
    dev_t dev;
    ino_t ino;
};

static uint64_t layer_bit(unsigned layer)
{
    return UINT64_C(1) << layer;
}

static int identity_of(int fd, struct identity *ret)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return -errno;
    *ret = (struct identity){ .dev = st.st_dev, .ino = st.st_ino };
    return 0;
}

static void layer_add(struct diff_tree *tree, int fd, uint32_t sides)
{
    for (int side = 0; side < DIFF_SIDES; side++) {
        if (sides & 1U << side)
            tree->layers[side] |= layer_bit((unsigned)tree->layer_count);
    }
    tree->fds[tree->layer_count++] = fd;
}

/* Returns the index of the first of old's layers from `from` on that is the same directory, or
 * count. */
static size_t layer_find(const struct identity *layers, size_t from, size_t count,
                         struct identity wanted)
{
    while (from < count && (layers[from].dev != wanted.dev || layers[from].ino != wanted.ino))
        from++;
    return from;
}

static int tree_init(struct diff_tree *tree, const struct volume_view *old,
                     const struct volume_view *new, size_t index)
{
    struct identity old_ids[2 + TEMPLATE_LAYERS_MAX] = { 0 }, id = { 0 };
    const size_t old_count = old->trees[index].count, new_count = new->trees[index].count;
    size_t next = 0, same;
    int r = 0;

    tree->target = old->trees[index].target;
    tree->is_overlay = old_count > 1 || new_count > 1;
    for (size_t i = 0; r == 0 && i < old_count; i++)
        r = identity_of(old->trees[index].fds[i], &old_ids[i]);
    for (size_t i = 0; r == 0 && i < new_count; i++) {
        r = identity_of(new->trees[index].fds[i], &id);
        if (r < 0)
            break;
        same = layer_find(old_ids, next, old_count, id);
        while (same < old_count && next < same)
            layer_add(tree, old->trees[index].fds[next++], 1U << DIFF_OLD);
        layer_add(tree, new->trees[index].fds[i],
                  1U << DIFF_NEW | (same < old_count ? 1U << DIFF_OLD : 0));
        next += same < old_count;
    }
    while (r == 0 && next < old_count)
        layer_add(tree, old->trees[index].fds[next++], 1U << DIFF_OLD);
    return r;
}

int diff_trees_init(struct diff_list *list, const struct volume_view *old,
                    const struct volume_view *new, struct err *err)
{
    bool is_same = old->tree_count == new->tree_count && old->tree_count > 0 &&
                   strcmp(old->trees[0].target, "/") == 0;
    int r;

    for (size_t i = 0; is_same && i < old->tree_count; i++)
        is_same = strcmp(old->trees[i].target, new->trees[i].target) == 0;
    if (!is_same)
        return err_set(err, ERR_INVALID, "states of different volumes are not comparable");
    for (size_t i = 0; i < old->tree_count; i++) {
        r = tree_init(&list->trees[i], old, new, i);
        if (r < 0)
            return err_sys(err, r, "stat the layers of '%s'", old->trees[i].target);
    }
    list->tree_count = old->tree_count;
    list->owner_shifts[DIFF_OLD] = old->owner_shift;
    list->owner_shifts[DIFF_NEW] = new->owner_shift;
    return 0;
}

static char xattr_letter(int fd, const char *name)
{
    char value = 0;

    (void)fgetxattr(fd, name, &value, sizeof(value));
    return value;
}

static int layer_open(const struct diff_dir *dir, const struct diff_open *parent, unsigned layer)
{
    const int flags = O_RDONLY | O_DIRECTORY;

    if (!parent)
        return diff_path_open(dir, NULL, layer, flags);
    if (!(parent->opened & layer_bit(layer)))
        return -ENOENT;
    return open_no_links(parent->fds[layer], dir->name, flags, 0);
}

/* Reads the overlay attributes of a directory, and drops the layers that an opaque one hides. */
static int layer_inspect(struct diff_open *open, unsigned layer)
{
    int fd = open->fds[layer];
    char letter = xattr_letter(fd, XATTR_OPAQUE);

    if (fgetxattr(fd, XATTR_REDIRECT, NULL, 0) > 0)
        return -EOPNOTSUPP;
    if (letter == HAS_WHITEOUTS)
        open->marked |= layer_bit(layer);
    for (int side = 0; letter == OPAQUE && side < DIFF_SIDES; side++) {
        if (open->layers[side] & layer_bit(layer))
            open->layers[side] &= layer_bit(layer + 1) - 1;
    }
    return 0;
}

int diff_dir_open(const struct diff_dir *dir, const struct diff_open *parent, struct diff_open *ret)
{
    cleanup_with(diff_open_done) struct diff_open open = { .opened = 0 };
    int r = 0;

    memcpy(open.layers, dir->layers, sizeof(open.layers));
    for (unsigned i = 0; i < dir->tree->layer_count; i++) {
        if (!((open.layers[DIFF_OLD] | open.layers[DIFF_NEW]) & layer_bit(i)))
            continue;
        open.fds[i] = layer_open(dir, parent, i);
        if (open.fds[i] < 0 && diff_is_gone(open.fds[i]))
            continue;
        if (open.fds[i] < 0)
            return open.fds[i];
        open.opened |= layer_bit(i);
        if (dir->tree->is_overlay)
            r = layer_inspect(&open, i);
        if (r < 0)
            return r;
    }
    for (int side = 0; side < DIFF_SIDES; side++)
        open.layers[side] &= open.opened;
    *ret = open;
    open.opened = 0;
    return 0;
}

void diff_open_done(struct diff_open *open)
{
    for (unsigned i = 0; open->opened; i++, open->opened >>= 1) {
        if (open->opened & 1)
            (void)close(open->fds[i]);
    }
}

static bool is_marked_whiteout(int dir_fd, const char *name)
{
    cleanup_close int fd = open_no_links(dir_fd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);

    return fd >= 0 && fgetxattr(fd, XATTR_WHITEOUT, NULL, 0) >= 0;
}

static bool is_whiteout(const struct diff_open *open, unsigned layer, const char *name,
                        const struct stat *st)
{
    if (S_ISCHR(st->st_mode))
        return st->st_rdev == makedev(0, 0);
    return open->marked & layer_bit(layer) && S_ISREG(st->st_mode) && st->st_size == 0 &&
           is_marked_whiteout(open->fds[layer], name);
}

/* Returns 1 if a layer has the name, 0 if not, or -errno. */
static int layer_stat(const struct diff_open *open, unsigned layer, const char *name,
                      struct stat *st)
{
    if (fstatat(open->fds[layer], name, st, AT_SYMLINK_NOFOLLOW) == 0)
        return 1;
    return diff_is_gone(-errno) ? 0 : -errno;
}

static int side_lookup(const struct diff_dir *dir, const struct diff_open *open, const char *name,
                       enum diff_side side, struct diff_found *found)
{
    struct stat st;
    int r;

    *found = (struct diff_found){ .exists = false };
    for (unsigned i = 0; i < dir->tree->layer_count; i++) {
        if (!(open->layers[side] & layer_bit(i)))
            continue;
        r = layer_stat(open, i, name, &st);
        if (r < 0)
            return r;
        if (r == 0)
            continue;
        if (dir->tree->is_overlay && is_whiteout(open, i, name, &st))
            break;
        if (found->exists && !S_ISDIR(st.st_mode))
            break;
        if (!found->exists)
            *found = (struct diff_found){ .exists = true, .layer = i, .st = st };
        if (!S_ISDIR(st.st_mode))
            break;
        found->layers |= layer_bit(i);
    }
    return 0;
}

int diff_lookup(const struct diff_dir *dir, const struct diff_open *open, const char *name,
                struct diff_found found[static DIFF_SIDES])
{
    int r = side_lookup(dir, open, name, DIFF_OLD, &found[DIFF_OLD]);

    if (r == 0)
        r = side_lookup(dir, open, name, DIFF_NEW, &found[DIFF_NEW]);
    return r;
}

int diff_lookup_root(const struct diff_tree *tree, struct diff_found found[static DIFF_SIDES])
{
    for (int side = 0; side < DIFF_SIDES; side++) {
        found[side] =
            (struct diff_found){ .exists = tree->layers[side] != 0, .layers = tree->layers[side] };
        if (!found[side].exists)
            continue;
        found[side].layer = (unsigned)__builtin_ctzll(tree->layers[side]);
        if (fstat(tree->fds[found[side].layer], &found[side].st) < 0)
            return -errno;
    }
    return 0;
}
