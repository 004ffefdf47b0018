// SPDX-License-Identifier: Apache-2.0
/* Requests about names and attributes. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "viewfs/viewfs_internal.h"

enum {
    CACHE_SECONDS = 24 * 3600, /* the kernel is told when it must ask again */
    NOBODY = 65534,
    FD_NAME_BYTES = 16,
};

/* Nothing else changes the files, except through another name and through a mapping. */
uint64_t attr_seconds(const struct viewfs *fs, const struct node *node, const struct stat *st)
{
    if (!fs->has_epoch || node->writers > 0 || (!S_ISDIR(st->st_mode) && st->st_nlink > 1))
        return 0;
    return CACHE_SECONDS;
}

/* The kernel opens pipes, sockets and devices without asking: their mode and owner must refuse. */
static void special_protect(struct view_decision decision, struct fuse_attr *attr)
{
    if (decision.level == VIEW_WRITE)
        return;
    attr->mode &= decision.level == VIEW_READ ? (uint32_t)(S_IFMT | 0444) : (uint32_t)S_IFMT;
    attr->uid = attr->gid = NOBODY;
}

void attr_fill(const struct viewfs *fs, const struct node *node, struct view_decision decision,
               const struct stat *st, struct fuse_attr *ret)
{
    (void)fs;
    (void)node;
    *ret = (struct fuse_attr){
        .ino = st->st_ino,
        .size = (uint64_t)st->st_size,
        .blocks = (uint64_t)st->st_blocks,
        .atime = (uint64_t)st->st_atim.tv_sec,
        .mtime = (uint64_t)st->st_mtim.tv_sec,
        .ctime = (uint64_t)st->st_ctim.tv_sec,
        .atimensec = (uint32_t)st->st_atim.tv_nsec,
        .mtimensec = (uint32_t)st->st_mtim.tv_nsec,
        .ctimensec = (uint32_t)st->st_ctim.tv_nsec,
        .mode = st->st_mode,
        .nlink = (uint32_t)st->st_nlink,
        .uid = st->st_uid,
        .gid = st->st_gid,
        .blksize = (uint32_t)st->st_blksize,
    };
    if (S_ISFIFO(st->st_mode) || S_ISSOCK(st->st_mode) || S_ISCHR(st->st_mode) ||
        S_ISBLK(st->st_mode))
        special_protect(decision, ret);
}

void entry_fill_node(struct call *call, const struct node *node, const struct stat *st,
                     struct view_decision decision, struct fuse_entry_out *ret)
{
    const struct viewfs *fs = call->fs;

    *ret = (struct fuse_entry_out){
        .nodeid = node_id(&fs->tree, node),
        .generation = node->generation,
        .entry_valid = fs->has_epoch ? CACHE_SECONDS : 0,
        .attr_valid = attr_seconds(fs, node, st),
    };
    attr_fill(fs, node, decision, st, &ret->attr);
}

int entry_fill(struct call *call, struct node *parent, const char *name, const struct stat *st,
               struct view_decision decision, struct fuse_entry_out *ret)
{
    const struct node *node =
        node_look_up(&call->fs->tree, parent, name, st->st_mode & (uint32_t)S_IFMT);

    if (!node)
        return -ENOMEM;
    entry_fill_node(call, node, st, decision, ret);
    return 0;
}

/* A name that does not exist is remembered as long as one that does. */
static int lookup_reply_nothing(struct call *call)
{
    struct fuse_entry_out *out;

    if (!call->fs->has_epoch)
        return -ENOENT;
    out = call_reply(call, sizeof(*out));
    out->entry_valid = CACHE_SECONDS;
    return 0;
}

int op_lookup(struct call *call)
{
    const char *name = call_name(call, 0, 0);
    struct view_decision decision;
    struct stat st;
    int dir_fd, r;

    if (!name)
        return -EINVAL;
    if (node_decide(call->fs, call->node).level == VIEW_NONE)
        return -ENOENT;
    dir_fd = node_hold(&call->fs->tree, call->node);
    if (dir_fd < 0)
        return dir_fd;
    r = fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
    if (r == 0) {
        decision = name_decide(call->fs, call->node, name, S_ISDIR(st.st_mode));
        if (decision.level == VIEW_NONE)
            r = -ENOENT;
    }
    if (r == 0)
        r = entry_fill(call, call->node, name, &st, decision,
                       call_reply(call, sizeof(struct fuse_entry_out)));
    node_release(&call->fs->tree, call->node);
    return r == -ENOENT ? lookup_reply_nothing(call) : r;
}

/* An open file keeps its attributes whatever the rules say now. */
static int node_stat(struct call *call, struct node *node, struct stat *ret)
{
    int fd = node_hold(&call->fs->tree, node), r;

    if (fd < 0)
        return fd;
    r = fstatat(fd, "", ret, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
    node_release(&call->fs->tree, node);
    return r;
}

static int attr_reply(struct call *call)
{
    struct fuse_attr_out *out = call_reply(call, sizeof(*out));
    struct stat st;
    int r = node_stat(call, call->node, &st);

    if (r < 0)
        return r;
    out->attr_valid = attr_seconds(call->fs, call->node, &st);
    attr_fill(call->fs, call->node, node_decide(call->fs, call->node), &st, &out->attr);
    return 0;
}

int op_getattr(struct call *call)
{
    if (call->node->handles == 0 && node_decide(call->fs, call->node).level == VIEW_NONE)
        return -ENOENT;
    return attr_reply(call);
}

/* --- changes ---------------------------------------------------------------------------------- */

static int size_set(struct call *call, const struct fuse_setattr_in *in)
{
    cleanup_close int fd = -EBADF;

    if (in->valid & FATTR_FH) {
        struct handle *handle = handle_from_id(in->fh);
        int open_fd = handle->access == O_RDONLY ? -EINVAL : handle_fd(call->fs, handle);

        if (open_fd < 0)
            return open_fd;
        return ftruncate(open_fd, (off_t)in->size) < 0 ? -errno : 0;
    }
    fd = node_reopen(&call->fs->tree, call->node, O_WRONLY | O_NONBLOCK);
    if (fd < 0)
        return fd;
    return ftruncate(fd, (off_t)in->size) < 0 ? -errno : 0;
}

/* Without CAP_FSETID the kernel keeps the set-group-ID bit for members of the group only. */
static int mode_set(struct call *call, int fd, mode_t mode)
{
    char name[FD_NAME_BYTES];
    struct stat st;

    if (S_ISLNK(call->node->kind))
        return -EOPNOTSUPP;
    if (fstatat(fd, "", &st, AT_EMPTY_PATH) < 0)
        return -errno;
    (void)snprintf(name, sizeof(name), "%d", fd);
    if (mode & S_ISGID) {
        struct fuse_in_header owner = { .uid = 0, .gid = st.st_gid };
        const struct call as = { .in = &owner };

        owner_begin(&as);
    }
    int r = fchmodat(call->fs->tree.proc_fd, name, mode & 07777, 0) < 0 ? -errno : 0;
    if (mode & S_ISGID)
        owner_end();
    return r;
}

static struct timespec time_of(uint32_t valid, uint32_t set, uint32_t now, uint64_t seconds,
                               uint32_t nanoseconds)
{
    if (!(valid & set))
        return (struct timespec){ .tv_nsec = UTIME_OMIT };
    if (valid & now)
        return (struct timespec){ .tv_nsec = UTIME_NOW };
    return (struct timespec){ .tv_sec = (time_t)seconds, .tv_nsec = (long)nanoseconds };
}

static int times_set(int fd, const struct fuse_setattr_in *in)
{
    const struct timespec times[] = {
        time_of(in->valid, FATTR_ATIME, FATTR_ATIME_NOW, in->atime, in->atimensec),
        time_of(in->valid, FATTR_MTIME, FATTR_MTIME_NOW, in->mtime, in->mtimensec),
    };

    return utimensat(fd, "", times, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int attributes_set(struct call *call, int fd, const struct fuse_setattr_in *in)
{
    int r = 0;

    if (in->valid & (FATTR_UID | FATTR_GID)) {
        const uid_t uid = in->valid & FATTR_UID ? in->uid : (uid_t)-1;
        const gid_t gid = in->valid & FATTR_GID ? in->gid : (gid_t)-1;

        r = fchownat(fd, "", uid, gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
    }
    if (r == 0 && in->valid & FATTR_SIZE)
        r = size_set(call, in);
    if (r == 0 && in->valid & FATTR_MODE)
        r = mode_set(call, fd, in->mode);
    if (r == 0 && in->valid & (FATTR_ATIME | FATTR_MTIME))
        r = times_set(fd, in);
    return r;
}

int op_setattr(struct call *call)
{
    const struct fuse_setattr_in *in = call_body(call, sizeof(*in));
    const uint32_t all = FATTR_MODE | FATTR_UID | FATTR_GID | FATTR_ATIME | FATTR_MTIME;
    int fd, r = 0;

    if (!in)
        return -EINVAL;
    /* An open descriptor may still truncate; all else is about the file's name. */
    if (!(in->valid & FATTR_FH) || in->valid & all)
        r = call_need(call, VIEW_WRITE);
    if (r < 0)
        return r;
    fd = node_hold(&call->fs->tree, call->node);
    if (fd < 0)
        return fd;
    r = attributes_set(call, fd, in);
    node_release(&call->fs->tree, call->node);
    return r < 0 ? r : attr_reply(call);
}

int op_readlink(struct call *call)
{
    int fd, r = call_need(call, VIEW_VIEW);
    ssize_t len;

    if (r < 0)
        return r;
    fd = node_hold(&call->fs->tree, call->node);
    if (fd < 0)
        return fd;
    len = readlinkat(fd, "", call->reply, NODE_PATH_SIZE);
    r = len < 0 ? -errno : 0;
    node_release(&call->fs->tree, call->node);
    if (r == 0)
        call->reply_len = (size_t)len;
    return r;
}

int op_access(struct call *call)
{
    return call_need(call, VIEW_VIEW);
}

int op_statfs(struct call *call)
{
    struct fuse_statfs_out *out = call_reply(call, sizeof(*out));
    struct statvfs st;

    if (fstatvfs(call->fs->tree.root_fd, &st) < 0)
        return -errno;
    out->st = (struct fuse_kstatfs){
        .blocks = st.f_blocks,
        .bfree = st.f_bfree,
        .bavail = st.f_bavail,
        .files = st.f_files,
        .ffree = st.f_ffree,
        .bsize = (uint32_t)st.f_bsize,
        .namelen = (uint32_t)st.f_namemax,
        .frsize = (uint32_t)st.f_frsize,
    };
    return 0;
}
