// SPDX-License-Identifier: Apache-2.0
/* Walks both views at once. Directories to enter are in a list, so that depth costs only memory.
 *
 * The order of paths is not that of names: "a.c" precedes "a/b" because '.' is less than '/'. So
 * the entries of a directory are listed when it is compared, and those below its subdirectories
 * are inserted later, after the entry that precedes them. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "store/diff/diff_internal.h"

struct walk {
    struct diff_list *list;
    struct diff_dir *pending; /* directories to enter, next one first */
    struct diff_chain chain;
    struct err *err;
};

/* A directory being compared. */
struct dir_state {
    struct diff_dir *dir;
    const struct diff_open *open;
    struct buf subdirs;       /* pointers to the subdirectories to enter */
    struct diff_change *tail; /* its last entry so far */
    bool has_any[DIFF_SIDES]; /* the view has at least one name here */
};

static void dir_state_done(struct dir_state *state)
{
    buf_done(&state->subdirs);
}

static void walk_done(struct walk *walk)
{
    diff_chain_done(&walk->chain);
}

static int list_full_error(struct walk *walk)
{
    return err_set(walk->err, ERR_EXHAUSTED, "too many changes to list (more than %d MiB of names)",
                   DIFF_LIST_MAX >> 20);
}

/* Returns the component of an absolute path at a depth, and whether it is the last one. */
static const char *path_component(const char *path, unsigned depth, size_t *ret_len,
                                  bool *ret_is_last)
{
    const char *part = path + 1;

    while (depth-- > 0)
        part = strchr(part, '/') + 1;
    *ret_len = strcspn(part, "/");
    *ret_is_last = part[*ret_len] == '\0';
    return part;
}

uint32_t diff_child_targets(const struct diff_list *list, const struct diff_dir *dir,
                            const char *name, const struct diff_tree **ret_tree)
{
    uint32_t below = 0;
    size_t len;
    bool is_last;

    *ret_tree = NULL;
    for (size_t i = 0; dir->targets >> i; i++) {
        const char *part;

        if (!(dir->targets >> i & 1))
            continue;
        part = path_component(list->trees[i].target, dir->depth, &len, &is_last);
        if (len != strlen(name) || memcmp(part, name, len) != 0)
            continue;
        if (is_last)
            *ret_tree = &list->trees[i];
        else
            below |= 1U << i;
    }
    return below;
}

static uint64_t size_of(const struct stat *st)
{
    return S_ISREG(st->st_mode) || S_ISLNK(st->st_mode) ? (uint64_t)st->st_size : 0;
}

/* Appends an entry to those of a directory. */
static struct diff_change *change_add(struct walk *walk, struct dir_state *state, const char *name,
                                      const struct diff_found found[static DIFF_SIDES])
{
    struct diff_change *change =
        diff_arena_take(&walk->list->arena, sizeof(*change) + strlen(name) + 1);

    if (!change)
        return NULL;
    memcpy(change->name, name, strlen(name) + 1);
    change->dir = state->dir;
    for (int side = 0; side < DIFF_SIDES; side++) {
        if (!found[side].exists)
            continue;
        change->modes[side] = found[side].st.st_mode;
        change->sizes[side] = size_of(&found[side].st);
        change->layers[side] = (unsigned char)found[side].layer;
        change->is_named[side] = !S_ISDIR(found[side].st.st_mode);
        if (!change->is_named[side])
            continue;
        change->inode = found[side].st.st_ino;
        change->uid = found[side].st.st_uid - walk->list->owner_shifts[side];
        change->gid = found[side].st.st_gid - walk->list->owner_shifts[side];
    }
    change->next = state->tail->next;
    state->tail->next = change;
    state->tail = change;
    return change;
}

bool diff_is_same_meta(const struct diff_list *list, const struct stat *old, const struct stat *new)
{
    const uid_t old_shift = list->owner_shifts[DIFF_OLD], new_shift = list->owner_shifts[DIFF_NEW];

    return old->st_mode == new->st_mode && old->st_uid - old_shift == new->st_uid - new_shift &&
           old->st_gid - old_shift == new->st_gid - new_shift;
}

/* File times advance in ticks of up to 10 ms, so writes before and after a snapshot may have the
 * same time. */
static bool is_settled(const struct diff_list *list, const struct stat *st)
{
    const uint64_t tick_ms = 10;
    uint64_t changed_ms =
        (uint64_t)st->st_ctim.tv_sec * 1000 + (uint64_t)st->st_ctim.tv_nsec / 1000000;

    return list->taken_ms == 0 || changed_ms + 2 * tick_ms < list->taken_ms;
}

/* A clone or snapshot keeps the inode numbers of its source, and a ctime cannot be set: if all of
 * these are equal, the file has not changed. A filesystem with whole seconds (zfs-fuse) is too
 * coarse for that. */
bool diff_is_untouched(const struct diff_list *list, const struct stat *old, const struct stat *new)
{
    return !list->is_of_volumes && is_settled(list, old) && old->st_ino == new->st_ino &&
           old->st_size == new->st_size && old->st_mtim.tv_sec == new->st_mtim.tv_sec &&
           old->st_mtim.tv_nsec == new->st_mtim.tv_nsec &&
           old->st_ctim.tv_sec == new->st_ctim.tv_sec &&
           old->st_ctim.tv_nsec == new->st_ctim.tv_nsec &&new->st_ctim.tv_nsec != 0;
}

static int is_same_link(const int fds[static DIFF_SIDES], const char *name)
{
    char old[PATH_MAX], new[PATH_MAX];
    ssize_t old_len = readlinkat(fds[DIFF_OLD], name, old, sizeof(old));
    ssize_t new_len = readlinkat(fds[DIFF_NEW], name, new, sizeof(new));

    return old_len >= 0 && old_len == new_len && memcmp(old, new, (size_t)old_len) == 0;
}

/* Returns 1, 0 or -errno. A file that can no longer be opened differs. */
static int is_same_file(const struct diff_tree *tree, const int fds[static DIFF_SIDES],
                        const char *name)
{
    struct stat old_st, new_st;
    cleanup_close int old_fd = diff_content_open_at(tree, fds[DIFF_OLD], name, &old_st);
    cleanup_close int new_fd = diff_content_open_at(tree, fds[DIFF_NEW], name, &new_st);
    int r = old_fd < 0 ? old_fd : new_fd;

    /* EAGAIN: a process holds a lease on it, so it is being written to. */
    if (r < 0)
        return diff_is_gone(r) || r == -EAGAIN ? 0 : r;
    if (old_st.st_size != new_st.st_size)
        return 0;
    return diff_content_same(old_fd, new_fd, (uint64_t)old_st.st_size);
}

int diff_is_same(const struct diff_list *list, const struct diff_tree *tree,
                 const struct diff_open *open, const char *name,
                 const struct diff_found found[static DIFF_SIDES])
{
    const struct stat *old = &found[DIFF_OLD].st, *new = &found[DIFF_NEW].st;
    const int fds[DIFF_SIDES] = { open->fds[found[DIFF_OLD].layer],
                                  open->fds[found[DIFF_NEW].layer] };

    if (!found[DIFF_OLD].exists || !found[DIFF_NEW].exists)
        return 0;
    if (old->st_dev == new->st_dev && old->st_ino == new->st_ino)
        return 1;
    if (!diff_is_same_meta(list, old, new))
        return 0;
    switch (old->st_mode & S_IFMT) {
    case S_IFREG:
        if (old->st_size != new->st_size)
            return 0;
        return diff_is_untouched(list, old, new) ? 1 : is_same_file(tree, fds, name);
    case S_IFLNK:
        return is_same_link(fds, name);
    case S_IFCHR:
    case S_IFBLK:
        return old->st_rdev == new->st_rdev;
    default:
        return 1;
    }
}

struct diff_dir *diff_dir_new(struct diff_list *list, struct diff_dir *parent, const char *name,
                              const struct diff_tree *tree)
{
    struct diff_dir *dir = diff_arena_take(&list->arena, sizeof(*dir) + strlen(name) + 1);

    if (!dir)
        return NULL;
    memcpy(dir->name, name, strlen(name) + 1);
    dir->parent = parent;
    dir->is_tree_root = tree != NULL;
    dir->tree = tree;
    if (parent) {
        dir->tree = tree ? tree : parent->tree;
        dir->depth = parent->depth + 1;
        dir->path_len = parent->path_len + 1 + strlen(name);
        dir->inner_len = tree ? 0 : parent->inner_len + 1 + strlen(name);
    }
    return dir;
}

/* Schedules a subdirectory, unless both views have it from the same layers. */
static int subdir_add(struct walk *walk, struct dir_state *state, const char *name,
                      const struct diff_found found[static DIFF_SIDES], struct diff_change *self)
{
    const struct diff_tree *tree;
    uint32_t targets = diff_child_targets(walk->list, state->dir, name, &tree);
    struct diff_dir *dir;

    if (found[DIFF_OLD].layers == found[DIFF_NEW].layers && targets == 0)
        return 0;
    dir = diff_dir_new(walk->list, state->dir, name, tree);
    if (!dir)
        return list_full_error(walk);
    if (dir->path_len > DIFF_PATH_MAX)
        return err_set(walk->err, ERR_EXHAUSTED,
                       "directories are nested too deep to compare (a path of more than %d KiB)",
                       DIFF_PATH_MAX >> 10);
    dir->targets = targets;
    dir->self = self;
    dir->layers[DIFF_OLD] = found[DIFF_OLD].layers;
    dir->layers[DIFF_NEW] = found[DIFF_NEW].layers;
    return buf_add(&state->subdirs, &dir, sizeof(dir)) < 0 ? list_full_error(walk) : 0;
}

static int dirs_compare(struct walk *walk, struct dir_state *state, const char *name,
                        const struct diff_found found[static DIFF_SIDES])
{
    if (!diff_is_same_meta(walk->list, &found[DIFF_OLD].st, &found[DIFF_NEW].st)) {
        struct diff_change *change = change_add(walk, state, name, found);

        if (!change)
            return list_full_error(walk);
        change->is_named[DIFF_OLD] = change->is_named[DIFF_NEW] = true;
    }
    return subdir_add(walk, state, name, found, NULL);
}

static bool is_dir(const struct diff_found *found)
{
    return found->exists && S_ISDIR(found->st.st_mode);
}

static int name_compare(struct walk *walk, struct dir_state *state, const char *name)
{
    struct diff_found found[DIFF_SIDES];
    const struct diff_tree *tree;
    struct diff_change *change;
    int r;

    (void)diff_child_targets(walk->list, state->dir, name, &tree);
    r = tree ? diff_lookup_root(tree, found) : diff_lookup(state->dir, state->open, name, found);
    if (r < 0)
        return diff_error(walk->err, r, state->dir, name);
    for (int side = 0; side < DIFF_SIDES; side++)
        state->has_any[side] |= found[side].exists;
    if (!found[DIFF_OLD].exists && !found[DIFF_NEW].exists)
        return 0;
    if (is_dir(&found[DIFF_OLD]) && is_dir(&found[DIFF_NEW]))
        return dirs_compare(walk, state, name, found);
    r = diff_is_same(walk->list, state->dir->tree, state->open, name, found);
    if (r != 0)
        return r < 0 ? diff_error(walk->err, r, state->dir, name) : 0;
    change = change_add(walk, state, name, found);
    if (!change)
        return list_full_error(walk);
    if (is_dir(&found[DIFF_OLD]) || is_dir(&found[DIFF_NEW]))
        return subdir_add(walk, state, name, found, change);
    return 0;
}

/* If both views share a part of the layers, only the other layers can make a difference. So a
 * large template costs nothing. */
static uint64_t layers_to_read(const struct diff_dir *dir, const struct diff_open *open)
{
    const uint64_t *layers = open->layers;
    uint64_t common = dir->tree->layers[DIFF_OLD] & dir->tree->layers[DIFF_NEW];

    if ((layers[DIFF_OLD] & common) == (layers[DIFF_NEW] & common))
        return (layers[DIFF_OLD] | layers[DIFF_NEW]) & ~common;
    return layers[DIFF_OLD] | layers[DIFF_NEW];
}

int diff_dir_names(const struct diff_list *list, const struct diff_dir *dir,
                   const struct diff_open *open, struct diff_names *names)
{
    uint64_t layers = layers_to_read(dir, open);
    int r = 0;

    for (unsigned i = 0; r == 0 && layers >> i; i++) {
        if (layers >> i & 1)
            r = diff_names_read(names, open->fds[i]);
    }
    for (size_t i = 0; r == 0 && dir->targets >> i; i++) {
        const char *part;
        size_t len;
        bool is_last;

        if (!(dir->targets >> i & 1))
            continue;
        part = path_component(list->trees[i].target, dir->depth, &len, &is_last);
        r = diff_names_add(names, part, len);
    }
    return r < 0 ? r : diff_names_sort(names);
}

/* Compares two names as if followed by a slash (directories) or by nothing (entries). */
static int compare_ends(const char *a, const char *a_end, const char *b, const char *b_end)
{
    size_t i = 0;

    while (a[i] && a[i] == b[i])
        i++;
    return (unsigned char)(a[i] ? a[i] : *a_end) - (unsigned char)(b[i] ? b[i] : *b_end);
}

static int by_path(const void *a, const void *b)
{
    const struct diff_dir *const *x = a, *const *y = b;

    return compare_ends((*x)->name, "/", (*y)->name, "/");
}

/* Finds the position of each subdirectory's contents among the entries. The first one is entered
 * last, because what is inserted at a position precedes what was inserted there before. */
static void subdirs_position(struct walk *walk, struct dir_state *state)
{
    struct diff_dir **subdirs = (void *)state->subdirs.data;
    const size_t count = state->subdirs.len / sizeof(*subdirs);
    struct diff_change *at = state->dir->after;

    if (count > 0)
        qsort(subdirs, count, sizeof(*subdirs), by_path);
    for (size_t i = 0; i < count; i++) {
        while (at != state->tail && compare_ends(at->next->name, "", subdirs[i]->name, "/") < 0)
            at = at->next;
        subdirs[i]->after = at;
        subdirs[i]->next = walk->pending;
        walk->pending = subdirs[i];
    }
}

static int dir_compare(struct walk *walk, struct diff_dir *dir, const struct diff_open *open)
{
    cleanup_with(diff_names_done) struct diff_names names = DIFF_NAMES_INIT;
    cleanup_with(dir_state_done) struct dir_state state = {
        .dir = dir,
        .open = open,
        .subdirs = BUF_INIT(DIFF_NAMES_MAX),
        .tail = dir->after,
    };
    int r = diff_dir_names(walk->list, dir, open, &names);

    if (r < 0)
        return diff_error(walk->err, r, dir, NULL);
    for (size_t i = 0; i < names.count; i++) {
        r = name_compare(walk, &state, names.list[i]);
        if (r < 0)
            return r;
    }
    for (int side = 0; dir->self && side < DIFF_SIDES; side++) {
        if (S_ISDIR(dir->self->modes[side]))
            dir->self->is_named[side] = !state.has_any[side];
    }
    subdirs_position(walk, &state);
    return 0;
}

static int dir_enter(struct walk *walk, struct diff_dir *dir)
{
    const struct diff_open *open = NULL;
    int r = diff_chain_enter(&walk->chain, dir, &open);

    return r < 0 ? diff_error(walk->err, r, dir, NULL) : dir_compare(walk, dir, open);
}

static int root_compare(struct walk *walk)
{
    struct dir_state state = { .tail = &walk->list->first };
    struct diff_dir *root = diff_dir_new(walk->list, NULL, "", &walk->list->trees[0]);
    struct diff_found found[DIFF_SIDES];
    int r = diff_lookup_root(&walk->list->trees[0], found);

    if (!root)
        return list_full_error(walk);
    if (r < 0)
        return diff_error(walk->err, r, root, NULL);
    if (!diff_is_same_meta(walk->list, &found[DIFF_OLD].st, &found[DIFF_NEW].st)) {
        struct diff_change *change = change_add(walk, &state, "", found);

        if (!change)
            return list_full_error(walk);
        change->is_named[DIFF_OLD] = change->is_named[DIFF_NEW] = true;
    }
    root->layers[DIFF_OLD] = found[DIFF_OLD].layers;
    root->layers[DIFF_NEW] = found[DIFF_NEW].layers;
    root->targets = (1U << walk->list->tree_count) - 2;
    root->after = state.tail;
    return dir_enter(walk, root);
}

int diff_walk(struct diff_list *list, struct err *err)
{
    cleanup_with(walk_done) struct walk walk = { .list = list, .err = err };
    int r = root_compare(&walk);

    while (r == 0 && walk.pending) {
        struct diff_dir *dir = walk.pending;

        walk.pending = dir->next;
        r = dir_enter(&walk, dir);
    }
    return r;
}
