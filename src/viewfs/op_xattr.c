// SPDX-License-Identifier: Apache-2.0
/* Requests about extended attributes: those of users alone. All others have a meaning for the file
 * systems below, or for the host. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "viewfs/viewfs_internal.h"

#define USER "user."
#define OVERLAY "user.overlay."

static bool name_is_users(const char *name)
{
    return strncmp(name, USER, strlen(USER)) == 0 && strncmp(name, OVERLAY, strlen(OVERLAY)) != 0;
}

/* Opens a file that can have attributes of users. */
static int attributes_open(struct call *call)
{
    struct tree *tree = &call->fs->tree;
    int fd;

    if (!S_ISREG(call->node->kind) && !S_ISDIR(call->node->kind))
        return -ENODATA;
    fd = node_hold(tree, call->node);
    if (fd < 0)
        return fd;
    fd = node_reopen(tree, call->node, O_RDONLY | O_NONBLOCK);
    node_release(tree, call->node);
    return fd;
}

static int value_reply(struct call *call, ssize_t len, uint32_t room)
{
    if (room == 0) {
        struct fuse_getxattr_out *out = call_reply(call, sizeof(*out));

        out->size = (uint32_t)len;
        return 0;
    }
    if ((size_t)len > room)
        return -ERANGE;
    call->reply_len = (size_t)len;
    return 0;
}

int op_getxattr(struct call *call)
{
    const struct fuse_getxattr_in *in = call_body(call, sizeof(*in));
    const char *name = in ? call_name(call, sizeof(*in), 0) : NULL;
    cleanup_close int fd = -EBADF;
    ssize_t len;
    int r;

    if (!name)
        return -EINVAL;
    if (!name_is_users(name))
        return strncmp(name, "system.", strlen("system.")) == 0 ? -EOPNOTSUPP : -ENODATA;
    r = call_need(call, VIEW_READ);
    if (r < 0)
        return r;
    fd = attributes_open(call);
    if (fd < 0)
        return fd;
    len = fgetxattr(fd, name, call->reply, XATTR_SIZE_MAX);
    return len < 0 ? -errno : value_reply(call, len, in->size);
}

/* Keeps the names of users; returns the bytes left. */
static size_t names_filter(char *names, size_t len)
{
    size_t kept = 0;

    for (size_t at = 0; at < len;) {
        const size_t size = strlen(names + at) + 1;

        if (name_is_users(names + at)) {
            memmove(names + kept, names + at, size);
            kept += size;
        }
        at += size;
    }
    return kept;
}

int op_listxattr(struct call *call)
{
    const struct fuse_getxattr_in *in = call_body(call, sizeof(*in));
    cleanup_close int fd = -EBADF;
    ssize_t len = 0;
    int r = in ? call_need(call, VIEW_VIEW) : -EINVAL;

    if (r < 0)
        return r;
    if (node_decide(call->fs, call->node).level >= VIEW_READ) {
        fd = attributes_open(call);
        if (fd >= 0)
            len = flistxattr(fd, call->reply, XATTR_LIST_MAX);
        else if (fd != -ENODATA)
            return fd;
    }
    if (len < 0)
        return -errno;
    return value_reply(call, (ssize_t)names_filter(call->reply, (size_t)len), in->size);
}

int op_setxattr(struct call *call)
{
    /* The longer form of the request is only sent after FUSE_SETXATTR_EXT. */
    const struct fuse_setxattr_in *in = call_body(call, FUSE_COMPAT_SETXATTR_IN_SIZE);
    const char *name = in ? call_name(call, FUSE_COMPAT_SETXATTR_IN_SIZE, 0) : NULL;
    cleanup_close int fd = -EBADF;
    const char *value;
    int r;

    if (!name)
        return -EINVAL;
    value = name + strlen(name) + 1;
    if (in->size > (size_t)(call->body + call->body_len - value))
        return -EINVAL;
    r = call_need(call, VIEW_WRITE);
    if (r < 0)
        return r;
    if (!name_is_users(name))
        return -EOPNOTSUPP;
    fd = attributes_open(call);
    if (fd < 0)
        return fd == -ENODATA ? -EPERM : fd;
    return fsetxattr(fd, name, value, in->size, (int)in->flags) < 0 ? -errno : 0;
}

int op_removexattr(struct call *call)
{
    const char *name = call_name(call, 0, 0);
    cleanup_close int fd = -EBADF;
    int r = name ? call_need(call, VIEW_WRITE) : -EINVAL;

    if (r < 0)
        return r;
    if (!name_is_users(name))
        return -ENODATA;
    fd = attributes_open(call);
    if (fd < 0)
        return fd;
    return fremovexattr(fd, name) < 0 ? -errno : 0;
}
