// SPDX-License-Identifier: Apache-2.0
/* File requests other than writes and watches. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/files/tree.h"
#include "base/files/tree_sink.h"
#include "base/files/tree_source.h"
#include "guest/files/file_internal.h"

enum { NO_REPLACE = 1 /* RENAME_NOREPLACE */, LIMIT_REACHED = -EUCLEAN };

int worker_path(const char *path, char ret[PATH_MAX])
{
    int len = snprintf(ret, PATH_MAX, "%s%s", path[0] == '/' ? "" : FILE_WORKSPACE "/", path);

    return len >= PATH_MAX ? -ENAMETOOLONG : 0;
}

int worker_make_parents(const char *full_path, mode_t mode)
{
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s", full_path);
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, mode) < 0 && errno != EEXIST) {
            struct stat st;
            int r = -errno;

            /* mkdir may fail with EACCES for a directory that already exists. */
            if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
                return r;
        }
        *slash = '/';
    }
    return 0;
}

/* Resolves a symbolic link: type, mode and path of its final target. */
static void resolve_link(const char *full_path, struct file_entry *entry, char ret_path[PATH_MAX])
{
    struct stat st;

    if (stat(full_path, &st) < 0 || !realpath(full_path, ret_path))
        return;
    entry->end_type = entry_of("", &st).type;
    entry->end_mode = (uint32_t)st.st_mode & 07777;
    entry->end_path = ret_path;
}

int worker_put_entry(struct worker *worker, const char *full_path, const struct file_entry *entry)
{
    char user[FILE_USER_MAX + 1], group[FILE_USER_MAX + 1], end[PATH_MAX], meta[FILE_META_MAX];
    struct file_entry named = *entry;

    if (worker->wants_details) {
        if (entry->type == ENTRY_LINK)
            resolve_link(full_path, &named, end);
        named.meta = meta;
        named.meta_len = meta_read(full_path, true, meta, sizeof(meta));
    }

    names_of(&worker->names, entry->uid, entry->gid, user, group);
    named.user_name = user;
    named.group_name = group;
    return file_put_entry(&worker->out, &named);
}

int worker_reply_entry(struct worker *worker, const char *full_path, const char *path, bool follows)
{
    char target[ENTRY_PATH_MAX + 1];
    struct file_entry entry;
    struct stat st;
    int r;

    if (fstatat(AT_FDCWD, full_path, &st, follows ? 0 : AT_SYMLINK_NOFOLLOW) < 0)
        return worker_fail(worker, -errno, path, NULL);
    entry = entry_of(path, &st);
    if (S_ISLNK(st.st_mode)) {
        ssize_t len = readlink(full_path, target, sizeof(target) - 1);

        if (len < 0)
            return worker_fail(worker, -errno, path, NULL);
        target[len] = '\0';
        entry.target = target;
    }
    r = worker_put_entry(worker, full_path, &entry);
    return r < 0 ? r : worker_flush(worker);
}

static int reply_end(struct worker *worker, uint32_t number)
{
    int r = file_put_number(&worker->out, FILE_END, number);

    return r < 0 ? r : worker_flush(worker);
}

int file_stat(struct worker *worker, const struct file_request *request)
{
    char path[PATH_MAX];
    int r = worker_path(request->path, path);

    if (r < 0)
        return worker_fail(worker, r, request->path, NULL);
    return worker_reply_entry(worker, path, request->path, request->flags & FILE_FOLLOW);
}

int file_mkdir(struct worker *worker, const struct file_request *request)
{
    bool wants_parents = request->flags & FILE_PARENTS;
    mode_t mode = request->flags & FILE_HAS_MODE ? request->mode : 0755;
    char path[PATH_MAX];
    struct stat st;
    int r = worker_path(request->path, path);

    if (r == 0 && wants_parents)
        r = worker_make_parents(path, 0755);
    if (r == 0 && mkdir(path, mode) < 0)
        r = -errno;
    if (r == -EEXIST && wants_parents && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        r = 0;
    if (r < 0)
        return worker_fail(worker, r, request->path, NULL);
    return worker_reply_entry(worker, path, request->path, true);
}

/* --- trees ----------------------------------------------------------------------------------- */

struct file_reply {
    struct worker *worker;
    const struct file_request *request;
    const char *top; /* directory of a listing */
    uint32_t count;
    int top_error; /* error of the requested path itself */
};

static int list_entry(void *context, const struct file_entry *entry)
{
    struct file_reply *reply = context;
    char path[PATH_MAX];
    int r;

    if (reply->count == reply->request->limit)
        return LIMIT_REACHED;
    reply->count++;
    if (snprintf(path, sizeof(path), "%s/%s", reply->top, entry->path) >= (int)sizeof(path))
        path[0] = '\0';
    r = worker_put_entry(reply->worker, path, entry);
    return r < 0 ? r : worker_flush_if_large(reply->worker);
}

static int list_trouble(void *context, const char *path, int errnum)
{
    struct file_reply *reply = context;

    if (path[0] == '\0')
        reply->top_error = -errnum;
    return 0;
}

int file_list(struct worker *worker, const struct file_request *request)
{
    static const struct tree_source_ops ops = { .entry = list_entry, .trouble = list_trouble };
    const struct tree_source options = {
        .depth = request->depth ? request->depth : 1,
        .follows_top = true,
        .skips_top = true,
        .after = request->after[0] ? request->after : NULL,
    };
    char path[PATH_MAX];
    struct file_reply reply = { .worker = worker, .request = request, .top = path };
    struct stat st;
    int r = worker_path(request->path, path);

    if (r == 0 && stat(path, &st) < 0)
        r = -errno;
    if (r == 0 && !S_ISDIR(st.st_mode))
        r = -ENOTDIR;
    if (r < 0)
        return worker_fail(worker, r, request->path, NULL);
    if (request->flags & FILE_FROM_HOME) {
        const struct file_entry top = entry_of(request->path, &st);

        r = worker_put_entry(worker, path, &top);
        if (r < 0)
            return r;
    }
    r = tree_source_run(AT_FDCWD, path, &options, &ops, &reply);
    if (reply.top_error < 0)
        return worker_fail(worker, reply.top_error, request->path, NULL);
    if (r < 0 && r != LIMIT_REACHED)
        return r;
    return reply_end(worker, r == LIMIT_REACHED);
}

static int pull_entry(void *context, const struct file_entry *entry)
{
    struct file_reply *reply = context;
    int r = worker_put_entry(reply->worker, "", entry);

    return r < 0 ? r : worker_flush_if_large(reply->worker);
}

static int pull_data(void *context, const void *data, size_t len)
{
    struct file_reply *reply = context;
    struct buf *out = &reply->worker->out;
    char header[FILE_HEADER_SIZE];

    file_header(header, FILE_DATA, len);
    if (buf_add(out, header, sizeof(header)) < 0 || buf_add(out, data, len) < 0)
        return -ENOBUFS;
    return worker_flush_if_large(reply->worker);
}

static int pull_trouble(void *context, const char *path, int errnum)
{
    struct file_reply *reply = context;
    const struct file_failure failure = { .errnum = (uint32_t)errnum, .path = path };
    int r = file_put_failure(&reply->worker->out, FILE_TROUBLE, &failure);

    return r < 0 ? r : worker_flush_if_large(reply->worker);
}

int file_pull(struct worker *worker, const struct file_request *request)
{
    static const struct tree_source_ops ops = { pull_entry, pull_data, pull_trouble, NULL };
    const struct tree_source options = {
        .wants_data = true,
        .follows_top = request->flags & FILE_FOLLOW,
        .rename = "top",
    };
    struct file_reply reply = { .worker = worker, .request = request };
    char path[PATH_MAX];
    struct stat st;
    int r = worker_path(request->path, path);

    if (r == 0 && fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
        r = -errno;
    if (r < 0)
        return worker_fail(worker, r, request->path, NULL);
    r = tree_source_run(AT_FDCWD, path, &options, &ops, &reply);
    return r < 0 ? r : reply_end(worker, 0);
}

/* --- moving and removing --------------------------------------------------------------------- */

static int copy_entry(void *sink, const struct file_entry *entry)
{
    return tree_sink_entry(sink, entry);
}

static int copy_data(void *sink, const void *data, size_t len)
{
    return tree_sink_data(sink, data, len);
}

static int copy_trouble(void *sink, const char *path, int errnum)
{
    (void)sink, (void)path;
    return -errnum;
}

/* Copies and then removes a path that cannot be renamed, such as a directory of the template. */
static int move_by_copy(const char *from, const char *to)
{
    static const struct tree_source_ops ops = { copy_entry, copy_data, copy_trouble, NULL };
    const struct tree_sink_options keeps = { .keeps_owner = true, .replaces_links = true };
    const char *name = strrchr(to, '/') + 1;
    const struct tree_source options = { .wants_data = true, .rename = name };
    char parent[PATH_MAX];
    struct tree_sink *sink;
    int fd, r;

    (void)snprintf(parent, sizeof(parent), "%.*s", (int)(name - to), to);
    fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    sink = tree_sink_new(fd, &keeps);
    r = tree_source_run(AT_FDCWD, from, &options, &ops, sink);
    if (r == 0)
        r = tree_sink_finish(sink);
    tree_sink_free(sink);
    return tree_remove_at(AT_FDCWD, r < 0 ? to : from) < 0 && r == 0 ? -EBUSY : r;
}

/* A trailing slash would make the kernel require a directory. */
static void trim_slashes(char *path)
{
    size_t len = strlen(path);

    while (len > 1 && path[len - 1] == '/')
        path[--len] = '\0';
}

static int rename_path(const char *from, const char *to, bool replaces)
{
    struct stat st;
    int r = syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, replaces ? 0 : NO_REPLACE) < 0
                ? -errno
                : 0;

    if (r != -EXDEV)
        return r;
    if (fstatat(AT_FDCWD, to, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        if (!replaces)
            return -EEXIST;
        if (S_ISDIR(st.st_mode) ? rmdir(to) < 0 : unlink(to) < 0)
            return -errno;
    }
    return move_by_copy(from, to);
}

int file_move(struct worker *worker, const struct file_request *request)
{
    char from[PATH_MAX], to[PATH_MAX];
    struct stat st;
    int r = worker_path(request->path, from);

    if (r < 0)
        return worker_fail(worker, r, request->path, NULL);
    r = worker_path(request->to, to);
    if (r == 0) {
        trim_slashes(from);
        trim_slashes(to);
        if (fstatat(AT_FDCWD, from, &st, AT_SYMLINK_NOFOLLOW) < 0)
            return worker_fail(worker, -errno, request->path, NULL);
    }
    if (r == 0 && request->flags & FILE_PARENTS)
        r = worker_make_parents(to, 0755);
    if (r == 0)
        r = rename_path(from, to, request->flags & FILE_REPLACE);
    if (r < 0)
        return worker_fail(worker, r, request->to, NULL);
    return worker_reply_entry(worker, to, request->to, false);
}

static int remove_path(const char *path, bool is_recursive)
{
    struct stat st;

    if (fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (is_recursive)
        return tree_remove_at(AT_FDCWD, path);
    return (S_ISDIR(st.st_mode) ? rmdir(path) : unlink(path)) < 0 ? -errno : 0;
}

int file_remove(struct worker *worker, const struct file_request *request)
{
    char path[PATH_MAX];
    int r = worker_path(request->path, path);

    if (r == 0) {
        trim_slashes(path);
        r = remove_path(path, request->flags & FILE_RECURSIVE);
    }
    if (r == -ENOENT && request->flags & FILE_MISSING_OK)
        r = 0;
    return r < 0 ? worker_fail(worker, r, request->path, NULL) : reply_end(worker, 0);
}

/* --- reading --------------------------------------------------------------------------------- */

static const char *why_not_regular(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFDIR:
        return "it is a directory";
    case S_IFIFO:
        return "it is a pipe, not a regular file";
    case S_IFSOCK:
        return "it is a socket, not a regular file";
    default:
        return "it is a device, not a regular file";
    }
}

/* Opening a device or pipe may have side effects, so the type is checked before and after. */
static int open_regular(const char *path, struct stat *st)
{
    int fd;

    if (stat(path, st) < 0)
        return -errno;
    if (!S_ISREG(st->st_mode))
        return S_ISDIR(st->st_mode) ? -EISDIR : -EINVAL;
    fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (fstat(fd, st) == 0 && S_ISREG(st->st_mode))
        return fd;
    (void)close(fd);
    return -EINVAL;
}

/* Reads straight into the output buffer. */
static int send_data(struct worker *worker, int fd, uint64_t offset, uint64_t length)
{
    struct buf *out = &worker->out;
    uint64_t left = length ? length : UINT64_MAX;

    while (left > 0) {
        size_t part = left < FILE_DATA_MAX ? (size_t)left : FILE_DATA_MAX;
        ssize_t n;
        int r = buf_reserve(out, FILE_HEADER_SIZE + part);

        if (r < 0)
            return r;
        n = pread(fd, out->data + out->len + FILE_HEADER_SIZE, part, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            return 0;
        file_header(out->data + out->len, FILE_DATA, (size_t)n);
        out->len += FILE_HEADER_SIZE + (size_t)n;
        offset += (uint64_t)n;
        left -= (uint64_t)n;
        /* Small files go out together with the entry and the end in one send. */
        if (out->len >= FILE_DATA_MAX && worker_flush(worker) < 0)
            return -EPIPE;
    }
    return 0;
}

int file_read(struct worker *worker, const struct file_request *request)
{
    cleanup_close int fd = -EBADF;
    struct file_entry entry;
    char path[PATH_MAX];
    struct stat st = { 0 };
    int r = worker_path(request->path, path);

    if (r == 0) {
        fd = open_regular(path, &st);
        r = fd < 0 ? fd : 0;
    }
    if (r < 0)
        return worker_fail(worker, r, request->path,
                           r == -EINVAL || r == -EISDIR ? why_not_regular(st.st_mode) : NULL);
    entry = entry_of(request->path, &st);
    r = worker_put_entry(worker, path, &entry);
    if (r < 0)
        return r;
    r = send_data(worker, fd, request->offset, request->length);
    if (r == -EPIPE)
        return r;
    return r < 0 ? worker_fail(worker, r, request->path, NULL) : reply_end(worker, 0);
}
