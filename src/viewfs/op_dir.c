// SPDX-License-Identifier: Apache-2.0
/* Requests about the names in a directory. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "viewfs/viewfs_internal.h"

enum { ENTRIES_BYTES = 32 << 10 };

struct kernel_entry { /* of getdents64 */
    uint64_t ino;
    int64_t next_offset;
    uint16_t record_len;
    uint8_t type;
    char name[];
};

int op_opendir(struct call *call)
{
    struct fuse_open_out *out = call_reply(call, sizeof(*out));
    struct handle *handle;
    int fd, r = call_need(call, VIEW_VIEW);

    if (r < 0)
        return r;
    fd = node_hold(&call->fs->tree, call->node);
    if (fd < 0)
        return fd;
    handle = calloc(1, sizeof(*handle));
    if (handle)
        handle->fd = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (!handle || handle->fd < 0) {
        r = handle ? -errno : -ENOMEM;
        free(handle);
        node_release(&call->fs->tree, call->node);
        return r;
    }
    handle->node = call->node;
    lock_init(&handle->lock, LOCK_VIEWFS_HANDLE);
    out->fh = (uint64_t)(uintptr_t)handle;
    if (call->fs->has_epoch)
        out->open_flags = FOPEN_CACHE_DIR | FOPEN_KEEP_CACHE;
    return 0;
}

int op_releasedir(struct call *call)
{
    const struct fuse_release_in *in = call_body(call, sizeof(*in));
    struct handle *handle = in ? handle_from_id(in->fh) : NULL;

    if (!handle)
        return -EINVAL;
    (void)close(handle->fd);
    node_release(&call->fs->tree, handle->node);
    lock_destroy(&handle->lock);
    free(handle->entries);
    free(handle);
    return 0;
}

/* Returns the next entry that the kernel has not taken; NULL at the end; fails with *ret_error. */
static const struct kernel_entry *entry_next(struct handle *handle, int *ret_error)
{
    const struct kernel_entry *entry;
    long len;

    if (handle->entries_at == handle->entries_len) {
        len = syscall(SYS_getdents64, handle->fd, handle->entries, ENTRIES_BYTES);
        if (len < 0)
            *ret_error = -errno;
        if (len <= 0)
            return NULL;
        handle->entries_at = 0;
        handle->entries_len = (size_t)len;
    }
    entry = (const struct kernel_entry *)(const void *)(handle->entries + handle->entries_at);
    return entry;
}

static void entry_take(struct handle *handle, const struct kernel_entry *entry)
{
    handle->next_offset = (uint64_t)entry->next_offset;
    handle->entries_at += entry->record_len;
}

static int handle_seek(struct handle *handle, uint64_t offset)
{
    if (!handle->entries)
        handle->entries = malloc(ENTRIES_BYTES);
    if (!handle->entries)
        return -ENOMEM;
    if (offset == handle->next_offset && offset != 0)
        return 0;
    handle->entries_at = handle->entries_len = 0;
    handle->next_offset = offset;
    return lseek(handle->fd, (off_t)offset, SEEK_SET) < 0 ? -errno : 0;
}

static bool name_is_dots(const char *name)
{
    return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

/* Returns what the rules say about an entry. */
static struct view_decision entry_decide(struct call *call, const struct handle *handle,
                                         const struct kernel_entry *entry)
{
    bool is_directory = entry->type == DT_DIR;
    struct stat st;

    if (name_is_dots(entry->name))
        return (struct view_decision){ .level = VIEW_VIEW, .rule = -1 };
    if (entry->type == DT_UNKNOWN &&
        fstatat(handle->fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        is_directory = S_ISDIR(st.st_mode);
    return name_decide(call->fs, handle->node, entry->name, is_directory);
}

static void dirent_fill(const struct kernel_entry *entry, struct fuse_dirent *ret)
{
    *ret = (struct fuse_dirent){ .ino = entry->ino,
                                 .off = (uint64_t)entry->next_offset,
                                 .namelen = (uint32_t)strlen(entry->name),
                                 .type = entry->type };
    memcpy(ret->name, entry->name, ret->namelen);
}

/* An entry whose attributes cannot be read has none in the reply, and is looked up later. */
static void plus_fill(struct call *call, const struct handle *handle,
                      const struct kernel_entry *entry, struct view_decision decision,
                      struct fuse_entry_out *ret)
{
    struct stat st;

    memset(ret, 0, sizeof(*ret));
    if (!name_is_dots(entry->name) &&
        fstatat(handle->fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        entry_fill(call, handle->node, entry->name, &st, decision, ret) < 0)
        memset(ret, 0, sizeof(*ret));
}

static int entries_reply(struct call *call, const struct fuse_read_in *in, bool has_attributes)
{
    struct handle *handle = handle_from_id(in->fh);
    const size_t extra = has_attributes ? sizeof(struct fuse_entry_out) : 0;
    const size_t room = in->size < REPLY_MAX ? in->size : REPLY_MAX;
    const struct kernel_entry *entry;
    int r;

    lock_scope(&handle->lock);
    r = handle_seek(handle, in->offset);
    while (r == 0 && (entry = entry_next(handle, &r))) {
        const size_t name_len = strlen(entry->name);
        const size_t size = extra + FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + name_len);
        struct view_decision decision = entry_decide(call, handle, entry);
        char *at = call->reply + call->reply_len;

        if (decision.level != VIEW_NONE) {
            if (call->reply_len + size > room)
                break;
            memset(at, 0, size);
            if (has_attributes)
                plus_fill(call, handle, entry, decision, (struct fuse_entry_out *)(void *)at);
            dirent_fill(entry, (struct fuse_dirent *)(void *)(at + extra));
            call->reply_len += size;
        }
        entry_take(handle, entry);
    }
    return call->reply_len > 0 ? 0 : r;
}

int op_readdir(struct call *call)
{
    const struct fuse_read_in *in = call_body(call, sizeof(*in));

    return in ? entries_reply(call, in, false) : -EINVAL;
}

int op_readdirplus(struct call *call)
{
    const struct fuse_read_in *in = call_body(call, sizeof(*in));

    return in ? entries_reply(call, in, true) : -EINVAL;
}
