// SPDX-License-Identifier: Apache-2.0
/* Requests that open and close files. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kernel/path.h"
#include "viewfs/viewfs_internal.h"

static const struct view_decision free_decision = { .level = VIEW_WRITE, .rule = -1 };

/* What open flags of a process concern the server; the rest is the kernel's. */
static const int open_flags_kept = O_ACCMODE | O_APPEND;

struct handle *handle_from_id(uint64_t id)
{
    return (struct handle *)(uintptr_t)id; // NOLINT(performance-no-int-to-ptr)
}

int handle_fd(struct viewfs *fs, struct handle *handle)
{
    lock_scope(&handle->lock);

    if (handle->fd < 0)
        handle->fd = node_reopen(&fs->tree, handle->node, handle->access | O_NONBLOCK);
    return handle->fd;
}

void handles_add(struct viewfs *fs, struct handle *handle)
{
    lock_scope(&fs->handles_lock);

    handle->next = fs->handles;
    if (handle->next)
        handle->next->previous = handle;
    fs->handles = handle;
    fs->handle_count++;
}

void handles_remove(struct viewfs *fs, struct handle *handle)
{
    lock_scope(&fs->handles_lock);

    if (handle->previous)
        handle->previous->next = handle->next;
    else
        fs->handles = handle->next;
    if (handle->next)
        handle->next->previous = handle->previous;
    fs->handle_count--;
}

/* All handles of a node share a backing file; the kernel demands it. */
static int backing_open(struct viewfs *fs, struct node *node)
{
    struct abi_backing_map map = { .fd = node->fd };

    lock_scope(&fs->tree.lock);
    if (node->handles == 0 && fs->has_passthrough)
        node->backing = ioctl(fs->fuse_fd, ABI_BACKING_OPEN, &map);
    if (node->backing < 0)
        node->backing = 0;
    node->handles++;
    return node->backing;
}

static void backing_close(struct viewfs *fs, struct node *node)
{
    uint32_t id = 0;

    lock_scope(&fs->tree.lock);
    if (--node->handles > 0 || node->backing == 0)
        return;
    id = (uint32_t)node->backing;
    node->backing = 0;
    (void)ioctl(fs->fuse_fd, ABI_BACKING_CLOSE, &id);
}

/* The node is held, for the life of the handle. */
static int handle_open(struct call *call, struct node *node, uint32_t flags,
                       struct fuse_open_out *out)
{
    struct viewfs *fs = call->fs;
    struct handle *handle = calloc(1, sizeof(*handle));
    int backing;

    if (!handle)
        return -ENOMEM;
    *handle = (struct handle){
        .node = node, .fd = -1, .access = (int)flags & O_ACCMODE, .pid = call->in->pid
    };
    lock_init(&handle->lock, LOCK_VIEWFS_HANDLE);
    backing = backing_open(fs, node);
    out->fh = (uint64_t)(uintptr_t)handle;
    if (backing > 0) {
        out->open_flags = ABI_FOPEN_PASSTHROUGH | FOPEN_NOFLUSH;
        out->padding = (uint32_t)backing;
    }
    if (handle->access != O_RDONLY)
        (void)__atomic_fetch_add(&node->writers, 1, __ATOMIC_RELAXED);
    handles_add(fs, handle);
    return 0;
}

/* The kernel has opened the file for itself when it has the reply, so this is not about that. */
static int file_truncate(struct call *call)
{
    cleanup_close int fd = node_reopen(&call->fs->tree, call->node, O_WRONLY | O_NONBLOCK);

    if (fd < 0)
        return fd;
    return ftruncate(fd, 0) < 0 ? -errno : 0;
}

int op_open(struct call *call)
{
    const struct fuse_open_in *in = call_body(call, sizeof(*in));
    struct fuse_open_out *out = call_reply(call, sizeof(*out));
    bool is_writing;
    int fd, r;

    if (!in)
        return -EINVAL;
    is_writing = (in->flags & O_ACCMODE) != O_RDONLY || in->flags & O_TRUNC;
    r = call_need(call, is_writing ? VIEW_WRITE : VIEW_READ);
    if (r < 0)
        return r;
    fd = node_hold(&call->fs->tree, call->node);
    if (fd < 0)
        return fd;
    if (in->flags & O_TRUNC)
        r = file_truncate(call);
    if (r == 0)
        r = handle_open(call, call->node, in->flags, out);
    if (r < 0)
        node_release(&call->fs->tree, call->node);
    else if (is_writing)
        notify_attributes(call->fs, call->node);
    return r;
}

int op_release(struct call *call)
{
    const struct fuse_release_in *in = call_body(call, sizeof(*in));
    struct handle *handle = in ? handle_from_id(in->fh) : NULL;
    struct viewfs *fs = call->fs;

    if (!handle)
        return -EINVAL;
    handles_remove(fs, handle);
    if (handle->access != O_RDONLY) {
        (void)__atomic_fetch_sub(&handle->node->writers, 1, __ATOMIC_RELAXED);
        notify_attributes(fs, handle->node);
    }
    if (handle->fd >= 0)
        (void)close(handle->fd);
    backing_close(fs, handle->node);
    node_release(&fs->tree, handle->node);
    lock_destroy(&handle->lock);
    free(handle);
    return 0;
}

/* --- new files -------------------------------------------------------------------------------- */

static int new_file_open(const struct call *call, int dir_fd, const char *name, int flags,
                         mode_t mode)
{
    const struct open_how how = { .flags = (unsigned)flags | O_CLOEXEC | O_NOFOLLOW,
                                  .mode = mode & 07777,
                                  .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };
    long fd;

    owner_begin(call);
    fd = syscall(SYS_openat2, dir_fd, name, &how, sizeof(how));
    if (fd < 0)
        fd = -errno;
    owner_end();
    return (int)fd;
}

/* Takes the descriptor. */
static int new_file_reply(struct call *call, struct node *node, int fd, uint32_t flags)
{
    struct fuse_entry_out *entry = call_reply(call, sizeof(*entry));
    struct fuse_open_out *out = call_reply(call, sizeof(*out));
    struct stat st;
    int r;

    if (fstat(fd, &st) < 0) {
        r = -errno;
        (void)close(fd);
        return r;
    }
    (void)node_hold_with(&call->fs->tree, node, fd);
    r = handle_open(call, node, flags, out);
    if (r < 0)
        node_release(&call->fs->tree, node);
    else
        entry_fill_node(call, node, &st, free_decision, entry);
    return r;
}

int op_create(struct call *call)
{
    const struct fuse_create_in *in = call_body(call, sizeof(*in));
    const char *name = in ? call_name(call, sizeof(*in), 0) : NULL;
    struct tree *tree = &call->fs->tree;
    struct node *node = NULL;
    int dir_fd, fd, r;

    if (!name)
        return -EINVAL;
    r = call_need_name(call, call->node, name, VIEW_WRITE);
    if (r < 0)
        return r;
    dir_fd = node_hold(tree, call->node);
    if (dir_fd < 0)
        return dir_fd;
    fd = new_file_open(call, dir_fd, name, ((int)in->flags & open_flags_kept) | O_CREAT | O_EXCL,
                       in->mode);
    node_release(tree, call->node);
    if (fd == -EEXIST && !(in->flags & O_EXCL))
        return -ESTALE; /* the kernel looks the name up again */
    if (fd < 0)
        return fd;
    node = node_look_up(tree, call->node, name, S_IFREG);
    if (!node) {
        (void)close(fd);
        return -ENOMEM;
    }
    r = new_file_reply(call, node, fd, in->flags);
    if (r < 0)
        node_forget(tree, node, 1);
    return r;
}

/* A file without a name is made where every name would do that the directory itself allows. */
int op_tmpfile(struct call *call)
{
    const struct fuse_create_in *in = call_body(call, sizeof(*in));
    struct tree *tree = &call->fs->tree;
    struct node *node;
    int dir_fd, fd, r;

    if (!in)
        return -EINVAL;
    r = call_need(call, VIEW_WRITE);
    if (r < 0)
        return r;
    dir_fd = node_hold(tree, call->node);
    if (dir_fd < 0)
        return dir_fd;
    fd = new_file_open(call, dir_fd, ".", ((int)in->flags & (open_flags_kept | O_EXCL)) | O_TMPFILE,
                       in->mode);
    node_release(tree, call->node);
    if (fd < 0)
        return fd;
    node = node_make_nameless(tree, call->node, S_IFREG);
    if (!node) {
        (void)close(fd);
        return -ENOMEM;
    }
    r = new_file_reply(call, node, fd, in->flags);
    if (r < 0)
        node_forget(tree, node, 1);
    return r;
}
