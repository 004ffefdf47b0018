// SPDX-License-Identifier: Apache-2.0
/* Requests that make, remove and rename names. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "viewfs/viewfs_internal.h"

static const struct view_decision free_decision = { .level = VIEW_WRITE, .rule = -1 };

/* Capabilities stay: see confine.c. */
void owner_begin(const struct call *call)
{
    (void)setfsgid(call->in->gid);
    (void)setfsuid(call->in->uid);
}

void owner_end(void)
{
    (void)setfsuid(0);
    (void)setfsgid(0);
}

/* --- new names -------------------------------------------------------------------------------- */

/* What is made, and how. */
struct making {
    const char *name;
    mode_t mode;
    const char *target; /* of a symbolic link */
    int from_fd;        /* of a hard link */
};

static int thing_make(uint32_t opcode, int dir_fd, const struct making *making)
{
    int r;

    switch (opcode) {
    case FUSE_MKDIR:
        r = mkdirat(dir_fd, making->name, making->mode & 07777);
        break;
    case FUSE_SYMLINK:
        r = symlinkat(making->target ? making->target : "", dir_fd, making->name);
        break;
    case FUSE_LINK:
        r = linkat(making->from_fd, "", dir_fd, making->name, AT_EMPTY_PATH);
        break;
    default:
        r = mknodat(dir_fd, making->name, making->mode, 0);
        break;
    }
    return r < 0 ? -errno : 0;
}

static int name_make(struct call *call, const struct making *making)
{
    struct tree *tree = &call->fs->tree;
    struct stat st;
    int dir_fd, r = call_need_name(call, call->node, making->name, VIEW_WRITE);

    if (r < 0)
        return r;
    dir_fd = node_hold(tree, call->node);
    if (dir_fd < 0)
        return dir_fd;
    owner_begin(call);
    r = thing_make(call->in->opcode, dir_fd, making);
    owner_end();
    if (r == 0 && fstatat(dir_fd, making->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        r = -errno;
    if (r == 0)
        r = entry_fill(call, call->node, making->name, &st, free_decision,
                       call_reply(call, sizeof(struct fuse_entry_out)));
    node_release(tree, call->node);
    return r;
}

int op_mknod(struct call *call)
{
    const struct fuse_mknod_in *in = call_body(call, sizeof(*in));
    struct making making = { .name = in ? call_name(call, sizeof(*in), 0) : NULL };

    if (!making.name)
        return -EINVAL;
    making.mode = in->mode;
    if (!S_ISREG(in->mode) && !S_ISFIFO(in->mode) && !S_ISSOCK(in->mode))
        return -EPERM;
    return name_make(call, &making);
}

int op_mkdir(struct call *call)
{
    const struct fuse_mkdir_in *in = call_body(call, sizeof(*in));
    struct making making = { .name = in ? call_name(call, sizeof(*in), 0) : NULL };

    if (!making.name)
        return -EINVAL;
    making.mode = in->mode;
    return name_make(call, &making);
}

int op_symlink(struct call *call)
{
    struct making making = { .name = call_name(call, 0, 0) };

    if (!making.name)
        return -EINVAL;
    making.target = making.name + strlen(making.name) + 1;
    if (!memchr(making.target, '\0', (size_t)(call->body + call->body_len - making.target)))
        return -EINVAL;
    return name_make(call, &making);
}

/* A file that never had a name gets its first one, and stays the node that it is. */
static int nameless_link(struct call *call, struct node *node, int fd, const char *name)
{
    struct fuse_entry_out *out = call_reply(call, sizeof(*out));
    struct tree *tree = &call->fs->tree;
    struct stat st;
    int dir_fd, r = call_need_name(call, call->node, name, VIEW_WRITE);

    if (r < 0)
        return r;
    dir_fd = node_hold(tree, call->node);
    if (dir_fd < 0)
        return dir_fd;
    r = linkat(fd, "", dir_fd, name, AT_EMPTY_PATH) < 0 || fstat(fd, &st) < 0 ? -errno : 0;
    if (r == 0) {
        node_set_name(tree, node, call->node, name);
        node_add_lookup(tree, node);
        entry_fill_node(call, node, &st, free_decision, out);
    }
    node_release(tree, call->node);
    return r;
}

int op_link(struct call *call)
{
    const struct fuse_link_in *in = call_body(call, sizeof(*in));
    struct making making = { .name = in ? call_name(call, sizeof(*in), 0) : NULL };
    struct tree *tree = &call->fs->tree;
    struct call from = *call;
    int r;

    if (!making.name)
        return -EINVAL;
    from.node = node_from_id(tree, in->oldnodeid);
    r = call_need(&from, VIEW_WRITE);
    if (r < 0)
        return r;
    making.from_fd = node_hold(tree, from.node);
    if (making.from_fd < 0)
        return making.from_fd;
    r = from.node->name ? name_make(call, &making)
                        : nameless_link(call, from.node, making.from_fd, making.name);
    if (r == 0)
        notify_attributes(call->fs, from.node);
    node_release(tree, from.node);
    return r;
}

/* --- names that go ---------------------------------------------------------------------------- */

/* Removes the name from its node, whose file stays for those that have it open. */
static int name_remove(struct call *call, int flags)
{
    const char *name = call_name(call, 0, 0);
    struct tree *tree = &call->fs->tree;
    struct node *node;
    int dir_fd, fd = -EBADF, r;

    if (!name)
        return -EINVAL;
    r = call_need_name(call, call->node, name, VIEW_WRITE);
    if (r < 0)
        return r;
    dir_fd = node_hold(tree, call->node);
    if (dir_fd < 0)
        return dir_fd;
    node = node_find(tree, call->node, name);
    if (node)
        fd = node_hold(tree, node);
    r = unlinkat(dir_fd, name, flags) < 0 ? -errno : 0;
    if (node && r == 0)
        node_remove_name(tree, node);
    if (fd >= 0)
        node_release(tree, node);
    if (node)
        node_unref(tree, node);
    node_release(tree, call->node);
    return r;
}

int op_unlink(struct call *call)
{
    return name_remove(call, 0);
}

int op_rmdir(struct call *call)
{
    return name_remove(call, AT_REMOVEDIR);
}

/* --- rename ----------------------------------------------------------------------------------- */

/* One side of a rename; its node is NULL if nothing has the name. */
struct side {
    struct node *parent;
    int dir_fd;
    const char *name;
    struct node *node;
    int fd;
};

static int side_open(struct call *call, struct side *side)
{
    struct tree *tree = &call->fs->tree;
    struct stat st;

    side->dir_fd = node_hold(tree, side->parent);
    if (side->dir_fd < 0)
        return side->dir_fd;
    if (fstatat(side->dir_fd, side->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    side->node = node_look_up(tree, side->parent, side->name, st.st_mode & (uint32_t)S_IFMT);
    if (!side->node)
        return -ENOMEM;
    side->fd = node_hold(tree, side->node);
    return side->fd < 0 ? side->fd : 0;
}

static void side_close(struct call *call, struct side *side)
{
    struct tree *tree = &call->fs->tree;

    if (side->fd >= 0)
        node_release(tree, side->node);
    if (side->node)
        node_forget(tree, side->node, 1);
    if (side->dir_fd >= 0)
        node_release(tree, side->parent);
}

/* All that gets another path must have been writable, and must stay so. */
static int side_check(struct call *call, const struct side *from, const struct side *to)
{
    if (from->node && S_ISDIR(from->node->kind))
        return call_need_below(call, from->node, to->parent, to->name);
    return 0;
}

static bool side_is_directory(const struct side *side)
{
    return side->node && S_ISDIR(side->node->kind);
}

static int sides_rename(struct call *call, struct side *from, struct side *to, unsigned flags)
{
    struct viewfs *fs = call->fs;
    int r = side_check(call, from, to);

    if (r == 0 && flags & RENAME_EXCHANGE)
        r = side_check(call, to, from);
    if (r == 0 && renameat2(from->dir_fd, from->name, to->dir_fd, to->name, flags) < 0)
        r = -errno;
    if (r < 0)
        return r;
    if (flags & RENAME_EXCHANGE) {
        node_exchange_names(&fs->tree, from->node, to->node);
    } else {
        if (to->node)
            node_remove_name(&fs->tree, to->node);
        node_set_name(&fs->tree, from->node, to->parent, to->name);
    }
    if (side_is_directory(from) || (flags & RENAME_EXCHANGE && side_is_directory(to)))
        fs->stamp++; /* the paths of all nodes below have changed */
    else
        from->node->stamp = 0;
    if (flags & RENAME_EXCHANGE)
        to->node->stamp = 0;
    return 0;
}

static int names_rename(struct call *call, uint64_t to_id, size_t body_size, unsigned flags)
{
    struct side from = {
        .parent = call->node, .dir_fd = -EBADF, .fd = -EBADF, .name = call_name(call, body_size, 0)
    };
    struct side to = { .parent = node_from_id(&call->fs->tree, to_id),
                       .dir_fd = -EBADF,
                       .fd = -EBADF,
                       .name = call_name(call, body_size, 1) };
    int r;

    if (!from.name || !to.name || flags & ~(unsigned)(RENAME_NOREPLACE | RENAME_EXCHANGE))
        return -EINVAL;
    r = call_need_name(call, from.parent, from.name, VIEW_WRITE);
    if (r == 0)
        r = call_need_name(call, to.parent, to.name, VIEW_WRITE);
    if (r == 0)
        r = side_open(call, &from);
    if (r == 0)
        r = side_open(call, &to);
    if (r == 0 && (!from.node || (flags & RENAME_EXCHANGE && !to.node)))
        r = -ENOENT;
    if (r == 0)
        r = sides_rename(call, &from, &to, flags);
    side_close(call, &to);
    side_close(call, &from);
    return r;
}

int op_rename(struct call *call)
{
    const struct fuse_rename_in *in = call_body(call, sizeof(*in));

    return in ? names_rename(call, in->newdir, sizeof(*in), 0) : -EINVAL;
}

int op_rename2(struct call *call)
{
    const struct fuse_rename2_in *in = call_body(call, sizeof(*in));

    return in ? names_rename(call, in->newdir, sizeof(*in), in->flags) : -EINVAL;
}
