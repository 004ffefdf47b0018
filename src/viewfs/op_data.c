// SPDX-License-Identifier: Apache-2.0
/* Requests about the contents of open files. Reading and writing come here only from kernels that
 * cannot do it by themselves. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "viewfs/viewfs_internal.h"

enum { COPY_MAX = 16 << 20 }; /* bytes for which one request may occupy a thread */

int op_read(struct call *call)
{
    const struct fuse_read_in *in = call_body(call, sizeof(*in));
    int fd = in ? handle_fd(call->fs, handle_from_id(in->fh)) : -EINVAL;
    ssize_t len;

    if (fd < 0)
        return fd;
    len = pread(fd, call->reply, in->size < REPLY_MAX ? in->size : REPLY_MAX, (off_t)in->offset);
    if (len < 0)
        return -errno;
    call->reply_len = (size_t)len;
    return 0;
}

int op_write(struct call *call)
{
    const struct fuse_write_in *in = call_body(call, sizeof(*in));
    struct fuse_write_out *out = call_reply(call, sizeof(*out));
    int fd = in ? handle_fd(call->fs, handle_from_id(in->fh)) : -EINVAL;
    ssize_t len;

    if (fd < 0)
        return fd;
    if (in->size > call->body_len - sizeof(*in))
        return -EINVAL;
    len = pwrite(fd, call->body + sizeof(*in), in->size, (off_t)in->offset);
    if (len < 0)
        return -errno;
    out->size = (uint32_t)len;
    return 0;
}

int op_flush(struct call *call)
{
    (void)call;
    return 0;
}

int op_fsync(struct call *call)
{
    const struct fuse_fsync_in *in = call_body(call, sizeof(*in));
    int fd = in ? handle_fd(call->fs, handle_from_id(in->fh)) : -EINVAL;

    if (fd < 0)
        return fd;
    return (in->fsync_flags & FUSE_FSYNC_FDATASYNC ? fdatasync(fd) : fsync(fd)) < 0 ? -errno : 0;
}

int op_fallocate(struct call *call)
{
    const struct fuse_fallocate_in *in = call_body(call, sizeof(*in));
    int fd = in ? handle_fd(call->fs, handle_from_id(in->fh)) : -EINVAL;

    if (fd < 0)
        return fd;
    return fallocate(fd, (int)in->mode, (off_t)in->offset, (off_t)in->length) < 0 ? -errno : 0;
}

int op_lseek(struct call *call)
{
    const struct fuse_lseek_in *in = call_body(call, sizeof(*in));
    struct fuse_lseek_out *out = call_reply(call, sizeof(*out));
    int fd = in ? handle_fd(call->fs, handle_from_id(in->fh)) : -EINVAL;
    off_t at;

    if (fd < 0)
        return fd;
    at = lseek(fd, (off_t)in->offset, (int)in->whence);
    if (at < 0)
        return -errno;
    out->offset = (uint64_t)at;
    return 0;
}

int op_copy_file_range(struct call *call)
{
    const struct fuse_copy_file_range_in *in = call_body(call, sizeof(*in));
    struct fuse_write_out *out = call_reply(call, sizeof(*out));
    int from_fd = in ? handle_fd(call->fs, handle_from_id(in->fh_in)) : -EINVAL;
    int to_fd = in ? handle_fd(call->fs, handle_from_id(in->fh_out)) : -EINVAL;
    off_t from, to;
    ssize_t len;

    if (from_fd < 0 || to_fd < 0)
        return from_fd < 0 ? from_fd : to_fd;
    from = (off_t)in->off_in;
    to = (off_t)in->off_out;
    len = copy_file_range(from_fd, &from, to_fd, &to, in->len < COPY_MAX ? in->len : COPY_MAX, 0);
    if (len < 0)
        return -errno;
    out->size = (uint32_t)len;
    return 0;
}
