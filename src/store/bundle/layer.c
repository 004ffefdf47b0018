// SPDX-License-Identifier: Apache-2.0
/* Walks two states at once, as store/diff/walk.c does, and writes what differs as it is found: all
 * entries of a directory, then those of its subdirectories. A directory that has not changed itself
 * is written before the first change in it, because tools that keep layers apart would otherwise
 * make it with the mode 0755. */
#include "store/bundle/layer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "kernel/path.h"
#include "store/bundle/file_out.h"
#include "store/bundle/tar_out.h"
#include "store/diff/diff_internal.h"
#include "store/import/import.h"

#define WHITEOUT ".wh."

/* A directory of the new state. */
struct layer_dir {
    struct layer_dir *parent; /* NULL for "/" */
    struct layer_dir *next;   /* in the list of directories to enter */
    struct diff_dir *dir;
    unsigned layer; /* the topmost one that has it */
    struct stat st;
    bool is_written;
};

struct layer_walk {
    struct tar_out *out;
    struct layer_dir *pending; /* next one first */
    struct diff_chain chain;
    struct file_out files;
    char path[PATH_MAX]; /* of the current entry */
    struct err *err;
    struct diff_list list; /* last, because its list begins with an entry of variable size */
};

static void layer_walk_done(struct layer_walk *walk)
{
    diff_chain_done(&walk->chain);
    file_out_done(&walk->files);
    diff_arena_done(&walk->list.arena);
}

static int layer_full(const struct layer_walk *walk)
{
    return err_set(walk->err, ERR_EXHAUSTED, "too many directories to export (more than %d MiB)",
                   DIFF_LIST_MAX >> 20);
}

/* Sets an error about the current entry. */
static int entry_error(const struct layer_walk *walk, int r)
{
    struct import_label label = import_label(walk->path);

    if (r == -ENOBUFS || r == -EINVAL)
        return err_set(walk->err, ERR_UNSUPPORTED,
                       "the extended attributes of '/%s' do not fit into an archive", label.text);
    return err_sys(walk->err, r, "export '/%s'", label.text);
}

/* Makes the path of name in dir (NULL: of dir itself) the current one, in the form that an import
 * reads. */
static int entry_enter(struct layer_walk *walk, const struct diff_dir *dir, const char *name)
{
    cleanup_with(buf_done) struct buf path = BUF_INIT(DIFF_PATH_MAX + NAME_MAX + 2);
    int r = diff_path(dir, name, &path);

    walk->path[0] = '\0';
    if (r < 0)
        return diff_error(walk->err, r, dir, name);
    if (name && strncmp(name, WHITEOUT, strlen(WHITEOUT)) == 0)
        return err_set(walk->err, ERR_UNSUPPORTED,
                       "'%.80s' cannot be exported: in a layer, names that begin with " WHITEOUT
                       " stand for removed files",
                       import_label(path.data).text);
    r = import_path(path.data, walk->path, walk->err);
    return r < 0 ? err_wrap(walk->err, "the file cannot be exported") : 0;
}

static struct tar_node entry_node(const struct layer_walk *walk, const struct stat *st)
{
    return (struct tar_node){
        .path = walk->path,
        .mode = st->st_mode,
        .uid = st->st_uid - walk->list.owner_shifts[DIFF_NEW],
        .gid = st->st_gid - walk->list.owner_shifts[DIFF_NEW],
        .mtime = st->st_mtim,
    };
}

/* Writes the entry of a directory, after those above it. The depth is bounded by import_path. */
static int dir_write(struct layer_walk *walk, struct layer_dir *dir)
{
    cleanup_close int fd = -EBADF;
    struct tar_node node;
    int r;

    if (dir->is_written)
        return 0;
    r = dir->parent ? dir_write(walk, dir->parent) : 0;
    if (r == 0)
        r = entry_enter(walk, dir->dir, NULL);
    if (r < 0)
        return r;
    fd = diff_path_open(dir->dir, NULL, dir->layer, O_RDONLY | O_DIRECTORY);
    if (fd < 0)
        return entry_error(walk, fd);
    node = entry_node(walk, &dir->st);
    node.type = '5';
    if (!*node.path)
        node.path = ".";
    r = file_out_xattrs(walk->out, fd);
    if (r == 0)
        r = tar_out_header(walk->out, &node);
    dir->is_written = true;
    return r < 0 ? entry_error(walk, r) : 0;
}

static int link_write(struct layer_walk *walk, int dir_fd, const char *name, struct tar_node *node)
{
    char target[PATH_MAX];
    ssize_t len = readlinkat(dir_fd, name, target, sizeof(target) - 1);

    if (len < 0)
        return -errno;
    target[len] = '\0';
    node->type = '2';
    node->link = target;
    return tar_out_header(walk->out, node);
}

static int regular_write(struct layer_walk *walk, const struct layer_dir *dir, int dir_fd,
                         const char *name)
{
    struct stat st;
    cleanup_close int fd = diff_content_open_at(dir->dir->tree, dir_fd, name, &st);
    struct tar_node node;

    if (fd < 0)
        return fd;
    node = entry_node(walk, &st);
    return file_out_write(&walk->files, walk->out, &node, fd, &st);
}

/* Writes a file of the new state that is not a directory. */
static int file_write(struct layer_walk *walk, struct layer_dir *dir, const struct diff_open *open,
                      const char *name, const struct diff_found *found)
{
    int r = dir_write(walk, dir), dir_fd = open->fds[found->layer];
    struct tar_node node;

    if (r == 0)
        r = entry_enter(walk, dir->dir, name);
    if (r < 0)
        return r;
    node = entry_node(walk, &found->st);
    switch (found->st.st_mode & S_IFMT) {
    case S_IFREG:
        r = regular_write(walk, dir, dir_fd, name);
        break;
    case S_IFLNK:
        r = link_write(walk, dir_fd, name, &node);
        break;
    case S_IFIFO:
        node.type = '6';
        r = tar_out_header(walk->out, &node);
        break;
    default: /* a sandbox cannot make devices, and a socket is nothing without its process */
        r = 0;
    }
    return r < 0 ? entry_error(walk, r) : 0;
}

static int whiteout_write(struct layer_walk *walk, struct layer_dir *dir, const char *name)
{
    char whiteout[sizeof(WHITEOUT) + NAME_MAX], path[PATH_MAX + sizeof(whiteout)];
    struct tar_node node = { .path = path, .type = '0', .mode = 0600 };
    int r = dir_write(walk, dir);

    (void)snprintf(whiteout, sizeof(whiteout), WHITEOUT "%s", name);
    if (r == 0)
        r = entry_enter(walk, dir->dir, NULL);
    if (r < 0)
        return r;
    if (strlen(whiteout) > NAME_MAX)
        return entry_error(walk, -ENAMETOOLONG);
    (void)snprintf(path, sizeof(path), "%s%s%s", walk->path, *walk->path ? "/" : "", whiteout);
    r = tar_out_header(walk->out, &node);
    return r < 0 ? entry_error(walk, r) : 0;
}

static bool is_dir(const struct diff_found *found)
{
    return found->exists && S_ISDIR(found->st.st_mode);
}

/* Returns whether two directories, or two files, agree in what an entry says of them. */
static bool is_same_entry(const struct layer_walk *walk, const struct diff_found *old,
                          const struct diff_found *new)
{
    return diff_is_same_meta(&walk->list, &old->st, &new->st) &&
           old->st.st_mtim.tv_sec == new->st.st_mtim.tv_sec &&
           old->st.st_mtim.tv_nsec == new->st.st_mtim.tv_nsec;
}

/* Returns whether a file has not changed: 1, 0 or -errno. One with several names has if its ctime
 * is another: only the names that a layer has can be linked to each other. */
static int is_same_file(const struct layer_walk *walk, const struct layer_dir *dir,
                        const struct diff_open *open, const char *name,
                        const struct diff_found found[static DIFF_SIDES])
{
    const struct diff_found *old = &found[DIFF_OLD], *new = &found[DIFF_NEW];

    if (!old->exists || is_dir(old))
        return 0;
    if (old->st.st_dev == new->st.st_dev && old->st.st_ino == new->st.st_ino)
        return 1;
    if (!is_same_entry(walk, old, new))
        return 0;
    if (diff_is_untouched(&walk->list, &old->st, &new->st))
        return 1;
    if (S_ISREG(new->st.st_mode) &&
        (new->st.st_nlink > 1 ||
         !file_out_same_xattrs(open->fds[old->layer], open->fds[new->layer], name)))
        return 0;
    return diff_is_same(&walk->list, dir->dir->tree, open, name, found);
}

/* Schedules a directory, unless both states have it from the same layers. Returns NULL if there are
 * too many. */
static struct layer_dir *dir_add(struct layer_walk *walk, struct layer_dir *parent,
                                 const char *name, const struct diff_found found[static DIFF_SIDES])
{
    const struct diff_tree *tree = NULL;
    uint32_t targets = parent ? diff_child_targets(&walk->list, parent->dir, name, &tree)
                              : (1U << walk->list.tree_count) - 2;
    struct layer_dir *dir = diff_arena_take(&walk->list.arena, sizeof(*dir));

    if (!dir)
        return NULL;
    dir->dir = diff_dir_new(&walk->list, parent ? parent->dir : NULL, name,
                            parent ? tree : &walk->list.trees[0]);
    if (!dir->dir)
        return NULL;
    dir->parent = parent;
    dir->layer = found[DIFF_NEW].layer;
    dir->st = found[DIFF_NEW].st;
    dir->dir->targets = targets;
    dir->dir->layers[DIFF_OLD] = is_dir(&found[DIFF_OLD]) ? found[DIFF_OLD].layers : 0;
    dir->dir->layers[DIFF_NEW] = found[DIFF_NEW].layers;
    if (dir->dir->layers[DIFF_OLD] != dir->dir->layers[DIFF_NEW] || targets) {
        dir->next = walk->pending;
        walk->pending = dir;
    }
    return dir;
}

/* Everything below /dev is Holt's. */
static bool is_dev(const struct layer_dir *parent, const char *name)
{
    return !parent->parent && strcmp(name, "dev") == 0;
}

static int dir_handle(struct layer_walk *walk, struct layer_dir *parent, const char *name,
                      const struct diff_found found[static DIFF_SIDES])
{
    struct layer_dir *pending = walk->pending;
    struct layer_dir *dir = dir_add(walk, parent, name, found);

    if (!dir)
        return layer_full(walk);
    if (is_dev(parent, name))
        walk->pending = pending;
    if (!is_dir(&found[DIFF_OLD]) || !is_same_entry(walk, &found[DIFF_OLD], &found[DIFF_NEW]))
        return dir_write(walk, dir);
    return 0;
}

static int name_handle(struct layer_walk *walk, struct layer_dir *dir, const struct diff_open *open,
                       const char *name)
{
    struct diff_found found[DIFF_SIDES];
    const struct diff_tree *tree;
    int r;

    (void)diff_child_targets(&walk->list, dir->dir, name, &tree);
    r = tree ? diff_lookup_root(tree, found) : diff_lookup(dir->dir, open, name, found);
    if (r < 0)
        return diff_error(walk->err, r, dir->dir, name);
    if (!found[DIFF_NEW].exists)
        return found[DIFF_OLD].exists ? whiteout_write(walk, dir, name) : 0;
    if (is_dir(&found[DIFF_NEW]))
        return dir_handle(walk, dir, name, found);
    r = is_same_file(walk, dir, open, name, found);
    if (r != 0)
        return r < 0 ? diff_error(walk->err, r, dir->dir, name) : 0;
    return file_write(walk, dir, open, name, &found[DIFF_NEW]);
}

static int dir_enter(struct layer_walk *walk, struct layer_dir *dir)
{
    cleanup_with(diff_names_done) struct diff_names names = DIFF_NAMES_INIT;
    const struct diff_open *open = NULL;
    int r = diff_chain_enter(&walk->chain, dir->dir, &open);

    if (r == 0)
        r = diff_dir_names(&walk->list, dir->dir, open, &names);
    if (r < 0)
        return diff_error(walk->err, r, dir->dir, NULL);
    for (size_t i = 0; r == 0 && i < names.count; i++)
        r = name_handle(walk, dir, open, names.list[i]);
    return r;
}

static int root_enter(struct layer_walk *walk)
{
    struct diff_found found[DIFF_SIDES];
    struct layer_dir *root;
    int r = diff_lookup_root(&walk->list.trees[0], found);

    if (r < 0)
        return err_sys(walk->err, r, "export '/'");
    root = dir_add(walk, NULL, "", found);
    if (!root)
        return layer_full(walk);
    if (!found[DIFF_OLD].exists || !is_same_entry(walk, &found[DIFF_OLD], &found[DIFF_NEW]))
        return dir_write(walk, root);
    return 0;
}

int layer_write(struct tar_out *out, const struct volume_view *old, const struct volume_view *new,
                uint64_t taken_ms, struct err *err)
{
    cleanup_with(layer_walk_done) struct layer_walk walk = {
        .out = out,
        .list = { .arena.left_bytes = DIFF_LIST_MAX, .taken_ms = taken_ms },
        .err = err,
    };
    int r = diff_trees_init(&walk.list, old, new, err);

    if (r == 0)
        r = root_enter(&walk);
    while (r == 0 && walk.pending) {
        struct layer_dir *dir = walk.pending;

        walk.pending = dir->next;
        r = dir_enter(&walk, dir);
    }
    return r;
}
