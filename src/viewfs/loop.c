// SPDX-License-Identifier: Apache-2.0
/* Reads requests from the kernel and answers them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "viewfs/viewfs_internal.h"

enum use { USE_NOTHING, USE_NAMES, CHANGE_NAMES };

struct operation {
    int (*run)(struct call *call);
    enum use use;
};

/* --- parts of a request ----------------------------------------------------------------------- */

const void *call_body(const struct call *call, size_t size)
{
    return call->body_len >= size ? call->body : NULL;
}

static bool name_is_valid(const char *name)
{
    return *name && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && !strchr(name, '/');
}

const char *call_name(const struct call *call, size_t size, unsigned index)
{
    const char *name = call->body + size, *end = call->body + call->body_len;

    for (; size <= call->body_len && name < end; index--) {
        const char *nul = memchr(name, '\0', (size_t)(end - name));

        if (!nul)
            return NULL;
        if (index == 0)
            return name_is_valid(name) ? name : NULL;
        name = nul + 1;
    }
    return NULL;
}

void *call_reply(struct call *call, size_t size)
{
    void *at = call->reply + call->reply_len;

    memset(at, 0, size);
    call->reply_len += size;
    return at;
}

/* --- requests about nodes --------------------------------------------------------------------- */

static int op_init(struct call *call)
{
    const struct fuse_init_in *in = call_body(call, offsetof(struct fuse_init_in, unused));
    struct fuse_init_out *out = call_reply(call, sizeof(*out));
    const uint64_t wanted = FUSE_ASYNC_READ | FUSE_BIG_WRITES | FUSE_ATOMIC_O_TRUNC |
                            FUSE_DO_READDIRPLUS | FUSE_READDIRPLUS_AUTO | FUSE_PARALLEL_DIROPS |
                            FUSE_HANDLE_KILLPRIV_V2 | FUSE_MAX_PAGES | FUSE_INIT_EXT |
                            ABI_PASSTHROUGH;
    uint64_t flags;

    if (!in || in->major != FUSE_KERNEL_VERSION)
        return -EPROTO;
    flags = (in->flags | (uint64_t)in->flags2 << 32) & wanted;
    call->fs->has_passthrough = flags & ABI_PASSTHROUGH;
    call->fs->has_epoch = in->minor >= ABI_MINOR_EPOCH;
    *out = (struct fuse_init_out){ .major = FUSE_KERNEL_VERSION,
                                   .minor = ABI_MINOR,
                                   .max_readahead = in->max_readahead,
                                   .flags = (uint32_t)flags,
                                   .flags2 = (uint32_t)(flags >> 32),
                                   .max_background = 64,
                                   .congestion_threshold = 48,
                                   .max_write = WRITE_MAX,
                                   .max_pages = WRITE_MAX / 4096,
                                   .time_gran = 1 };
    out->unused[0] = flags & ABI_PASSTHROUGH ? ABI_STACK_DEPTH : 0;
    return 0;
}

static int op_forget(struct call *call)
{
    const struct fuse_forget_in *in = call_body(call, sizeof(*in));

    if (in)
        node_forget(&call->fs->tree, call->node, in->nlookup);
    return CALL_SILENT;
}

static int op_batch_forget(struct call *call)
{
    const struct fuse_batch_forget_in *in = call_body(call, sizeof(*in));
    const struct fuse_forget_one *one = (const void *)(call->body + sizeof(*in));

    for (uint32_t i = 0; in && i < in->count; i++) {
        if (!call_body(call, sizeof(*in) + (i + 1) * sizeof(*one)))
            break;
        node_forget(&call->fs->tree, node_from_id(&call->fs->tree, one[i].nodeid), one[i].nlookup);
    }
    return CALL_SILENT;
}

static int op_silent(struct call *call)
{
    (void)call;
    return CALL_SILENT;
}

/* A directory has nothing of its own to write out that its files do not have. */
static int op_fsyncdir(struct call *call)
{
    const struct fuse_fsync_in *in = call_body(call, sizeof(*in));
    const struct handle *handle = in ? handle_from_id(in->fh) : NULL;

    return !handle || fsync(handle->fd) < 0 ? -errno : 0;
}

static const struct operation operations[] = {
    [FUSE_LOOKUP] = { op_lookup, USE_NAMES },
    [FUSE_FORGET] = { op_forget, USE_NOTHING },
    [FUSE_GETATTR] = { op_getattr, USE_NAMES },
    [FUSE_SETATTR] = { op_setattr, USE_NAMES },
    [FUSE_READLINK] = { op_readlink, USE_NAMES },
    [FUSE_SYMLINK] = { op_symlink, USE_NAMES },
    [FUSE_MKNOD] = { op_mknod, USE_NAMES },
    [FUSE_MKDIR] = { op_mkdir, USE_NAMES },
    [FUSE_UNLINK] = { op_unlink, USE_NAMES },
    [FUSE_RMDIR] = { op_rmdir, USE_NAMES },
    [FUSE_RENAME] = { op_rename, CHANGE_NAMES },
    [FUSE_LINK] = { op_link, USE_NAMES },
    [FUSE_OPEN] = { op_open, USE_NAMES },
    [FUSE_READ] = { op_read, USE_NOTHING },
    [FUSE_WRITE] = { op_write, USE_NOTHING },
    [FUSE_STATFS] = { op_statfs, USE_NOTHING },
    [FUSE_RELEASE] = { op_release, USE_NOTHING },
    [FUSE_FSYNC] = { op_fsync, USE_NOTHING },
    [FUSE_SETXATTR] = { op_setxattr, USE_NAMES },
    [FUSE_GETXATTR] = { op_getxattr, USE_NAMES },
    [FUSE_LISTXATTR] = { op_listxattr, USE_NAMES },
    [FUSE_REMOVEXATTR] = { op_removexattr, USE_NAMES },
    [FUSE_FLUSH] = { op_flush, USE_NOTHING },
    [FUSE_INIT] = { op_init, USE_NOTHING },
    [FUSE_OPENDIR] = { op_opendir, USE_NAMES },
    [FUSE_READDIR] = { op_readdir, USE_NAMES },
    [FUSE_RELEASEDIR] = { op_releasedir, USE_NOTHING },
    [FUSE_FSYNCDIR] = { op_fsyncdir, USE_NOTHING },
    [FUSE_ACCESS] = { op_access, USE_NAMES },
    [FUSE_CREATE] = { op_create, USE_NAMES },
    [FUSE_INTERRUPT] = { op_silent, USE_NOTHING },
    [FUSE_DESTROY] = { op_silent, USE_NOTHING },
    [FUSE_BATCH_FORGET] = { op_batch_forget, USE_NOTHING },
    [FUSE_FALLOCATE] = { op_fallocate, USE_NOTHING },
    [FUSE_READDIRPLUS] = { op_readdirplus, USE_NAMES },
    [FUSE_RENAME2] = { op_rename2, CHANGE_NAMES },
    [FUSE_LSEEK] = { op_lseek, USE_NOTHING },
    [FUSE_COPY_FILE_RANGE] = { op_copy_file_range, USE_NOTHING },
    [FUSE_TMPFILE] = { op_tmpfile, USE_NAMES },
};

/* --- loop ------------------------------------------------------------------------------------- */

static int call_run(struct call *call)
{
    const uint32_t opcode = call->in->opcode;
    const struct operation *operation =
        opcode < ARRAY_SIZE(operations) ? &operations[opcode] : NULL;
    int r;

    if (!operation || !operation->run)
        return -ENOSYS;
    if (operation->use == USE_NAMES)
        (void)pthread_rwlock_rdlock(&call->fs->names);
    else if (operation->use == CHANGE_NAMES)
        (void)pthread_rwlock_wrlock(&call->fs->names);
    r = operation->run(call);
    if (operation->use != USE_NOTHING)
        (void)pthread_rwlock_unlock(&call->fs->names);
    return r;
}

/* The header is in front of the reply. */
static void call_answer(const struct call *call, int r)
{
    struct fuse_out_header *out = (void *)(call->reply - sizeof(*out));

    if (r == CALL_SILENT)
        return;
    *out = (struct fuse_out_header){
        .len = (uint32_t)(sizeof(*out) + (r < 0 ? 0 : call->reply_len)),
        .error = r < 0 ? r : 0,
        .unique = call->in->unique,
    };
    /* Fails for a request whose process was killed, which then has no use for it either. */
    (void)!write(call->dev_fd, out, out->len);
}

void viewfs_serve(struct viewfs *fs, int dev_fd)
{
    cleanup_free char *request = xcalloc(1, REQUEST_MAX);
    cleanup_free char *reply = xcalloc(1, sizeof(struct fuse_out_header) + REPLY_MAX);

    for (;;) {
        const ssize_t len = read(dev_fd, request, REQUEST_MAX);
        const struct fuse_in_header *in = (const void *)request;
        struct call call = { .fs = fs, .dev_fd = dev_fd, .in = in };

        if (len < 0 && (errno == EINTR || errno == ENOENT || errno == EAGAIN))
            continue;
        if (len < (ssize_t)sizeof(*in))
            return; /* the mount is gone */
        call.body = request + sizeof(*in);
        call.body_len = (size_t)len - sizeof(*in);
        call.node = node_from_id(&fs->tree, in->nodeid);
        call.reply = reply + sizeof(struct fuse_out_header);
        call_answer(&call, call_run(&call));
    }
}

/* --- notices ---------------------------------------------------------------------------------- */

static void notify(const struct viewfs *fs, int code, const void *body, size_t len)
{
    char message[sizeof(struct fuse_out_header) + sizeof(struct fuse_notify_inval_inode_out)];
    const struct fuse_out_header out = { .len = (uint32_t)(sizeof(out) + len), .error = code };

    memcpy(message, &out, sizeof(out));
    if (len > 0)
        memcpy(message + sizeof(out), body, len);
    (void)!write(fs->fuse_fd, message, out.len);
}

void notify_attributes(const struct viewfs *fs, const struct node *node)
{
    const struct fuse_notify_inval_inode_out out = { .ino = node_id(&fs->tree, node), .off = -1 };

    notify(fs, FUSE_NOTIFY_INVAL_INODE, &out, sizeof(out));
}

struct node_list {
    const struct tree *tree;
    uint64_t *ids;
    size_t count, max;
};

/* Directories have cached lists of names, special files have attributes that refuse. */
static void list_add(const struct node *node, void *context)
{
    struct node_list *list = context;

    if (!S_ISREG(node->kind) && !S_ISLNK(node->kind) && list->count < list->max)
        list->ids[list->count++] = node_id(list->tree, node);
}

/* Called without locks: the kernel may wait for pages that a request fills. */
void notify_rules(struct viewfs *fs)
{
    struct node_list list = { .tree = &fs->tree, .max = fs->tree.count + 1 };

    if (!fs->has_epoch)
        return; /* nothing is cached */
    notify(fs, ABI_NOTIFY_INC_EPOCH, NULL, 0);
    list.ids = malloc(list.max * sizeof(*list.ids));
    if (!list.ids) /* the kernel goes on without the list that it has cached: no server, no answer
                    */
        abort();
    tree_each(&fs->tree, list_add, &list);
    for (size_t i = 0; i < list.count; i++) {
        const struct fuse_notify_inval_inode_out out = { .ino = list.ids[i] };

        notify(fs, FUSE_NOTIFY_INVAL_INODE, &out, sizeof(out));
    }
    free(list.ids);
}
