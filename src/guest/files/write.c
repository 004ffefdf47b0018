// SPDX-License-Identifier: Apache-2.0
/* What comes into a sandbox through a file worker: one file, or a tree. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/files/tree_sink.h"
#include "base/io.h"
#include "guest/files/file_internal.h"

enum { TRIES = 8 };

/* One file on its way. */
struct writing {
    int fd;
    char path[PATH_MAX];      /* which it has, or will have at last */
    char temporary[PATH_MAX]; /* "": it is written where it stays */
    uint64_t offset;
    bool is_append;
    bool is_new;
    struct stat old; /* of what it replaces */
};

static int open_temporary(struct writing *writing)
{
    size_t dir_len = (size_t)(strrchr(writing->path, '/') - writing->path);

    for (int i = 0; i < TRIES; i++) {
        uint64_t random = 0;
        int len;

        (void)!getrandom(&random, sizeof(random), 0);
        len = snprintf(writing->temporary, sizeof(writing->temporary), "%.*s/.holt-%016llx",
                       (int)dir_len, writing->path, (unsigned long long)random);
        if (len >= (int)sizeof(writing->temporary))
            return -ENAMETOOLONG;
        writing->fd =
            open(writing->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (writing->fd >= 0)
            return 0;
        if (errno != EEXIST)
            break;
    }
    writing->temporary[0] = '\0';
    return -errno;
}

/* A link is not replaced but what it points to, which keeps its mode and owner. */
static int begin_atomic(struct writing *writing, const struct file_request *request)
{
    char *real;

    if (request->flags & (FILE_APPEND | FILE_AT_OFFSET))
        return -EINVAL;
    writing->is_new = stat(writing->path, &writing->old) < 0;
    if (!writing->is_new && request->flags & FILE_EXCLUSIVE)
        return -EEXIST;
    if (!writing->is_new && !S_ISREG(writing->old.st_mode))
        return S_ISDIR(writing->old.st_mode) ? -EISDIR : -EINVAL;
    if (!writing->is_new) {
        real = realpath(writing->path, NULL);
        if (!real)
            return -errno;
        (void)snprintf(writing->path, sizeof(writing->path), "%s", real);
        free(real);
    }
    return open_temporary(writing);
}

static int begin_in_place(struct writing *writing, const struct file_request *request)
{
    bool keeps = request->flags & (FILE_APPEND | FILE_AT_OFFSET);
    mode_t mode = request->flags & FILE_HAS_MODE ? request->mode : 0644;
    struct stat st;

    if (stat(writing->path, &st) == 0 && !S_ISREG(st.st_mode))
        return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
    writing->fd = open(writing->path,
                       O_WRONLY | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC |
                           (request->flags & FILE_EXCLUSIVE ? O_EXCL : 0) |
                           (request->flags & FILE_APPEND ? O_APPEND : 0),
                       mode);
    if (writing->fd < 0 || fstat(writing->fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return -EINVAL;
    if (!keeps && st.st_size > 0 && ftruncate(writing->fd, 0) < 0)
        return -errno;
    writing->is_append = request->flags & FILE_APPEND;
    writing->offset = request->flags & FILE_AT_OFFSET ? request->offset : 0;
    if (request->flags & FILE_HAS_MODE && fchmod(writing->fd, request->mode) < 0)
        return -errno;
    return 0;
}

static int begin(struct writing *writing, const struct file_request *request)
{
    int r = worker_path(request->path, writing->path);
    size_t len = strlen(writing->path);

    if (r < 0)
        return r;
    if (len == 0 || writing->path[len - 1] == '/')
        return -EISDIR;
    if (request->flags & FILE_PARENTS)
        r = worker_make_parents(writing->path, 0755);
    if (r < 0)
        return r;
    return request->flags & FILE_ATOMIC ? begin_atomic(writing, request)
                                        : begin_in_place(writing, request);
}

static int put(struct writing *writing, const char *data, size_t len)
{
    int r = writing->is_append ? write_all(writing->fd, data, len)
                               : pwrite_all(writing->fd, data, len, (off_t)writing->offset);

    writing->offset += len;
    return r;
}

/* The owner before the mode, of which it takes bits away. Who may not give files away keeps them.
 */
static int finish(struct writing *writing, const struct file_request *request)
{
    mode_t mode = request->flags & FILE_HAS_MODE ? request->mode
                  : writing->is_new              ? 0644
                                                 : writing->old.st_mode & 07777;

    int r = request->flags & FILE_HAS_META
                ? meta_replace(writing->fd, request->meta, request->meta_len)
                : 0;

    if (r < 0 || writing->temporary[0] == '\0')
        return r;
    if (!writing->is_new && fchown(writing->fd, writing->old.st_uid, writing->old.st_gid) < 0 &&
        errno != EPERM)
        return -errno;
    if (fchmod(writing->fd, mode) < 0)
        return -errno;
    if (rename(writing->temporary, writing->path) < 0)
        return -errno;
    writing->temporary[0] = '\0';
    return 0;
}

static void writing_done(struct writing *writing)
{
    if (writing->temporary[0])
        (void)unlink(writing->temporary);
    writing->fd = fd_close(writing->fd);
}

static const char *why(int r)
{
    return r == -EINVAL ? "it is no regular file, or an atomic write is to keep what is there"
                        : NULL;
}

int file_write(struct worker *worker, const struct file_request *request)
{
    cleanup_with(writing_done) struct writing writing = { .fd = -EBADF };
    struct file_piece piece = { 0 };
    int r = begin(&writing, request), broken = 0;

    if (r < 0)
        broken = worker_fail(worker, r, request->path, why(r));
    while (broken == 0) {
        broken = worker_next(worker, &piece);
        if (broken < 0 || piece.type == FILE_END || piece.type == FILE_ABORT)
            break;
        if (piece.type != FILE_DATA)
            return -EPROTO;
        if (r == 0) {
            r = put(&writing, piece.data, piece.len);
            if (r < 0)
                broken = worker_fail(worker, r, request->path, NULL);
        }
    }
    if (broken < 0 || r < 0)
        return broken;
    if (piece.type == FILE_ABORT)
        return worker_fail(worker, -ECANCELED, request->path, NULL);
    if (worker->gives && fchown(writing.fd, worker->uid, worker->gid) < 0)
        r = -errno;
    if (r == 0)
        r = finish(&writing, request);
    if (r < 0)
        return worker_fail(worker, r, request->path, NULL);
    return worker_answer_entry(worker, writing.path, request->path, true);
}

static int push_piece(struct tree_sink *sink, const struct file_piece *piece, char *ret_path)
{
    struct file_entry entry;

    if (piece->type == FILE_DATA)
        return tree_sink_data(sink, piece->data, piece->len);
    if (!file_get_entry(piece, &entry))
        return -EPROTO;
    (void)snprintf(ret_path, ENTRY_PATH_MAX + 1, "%s", entry.path);
    return tree_sink_entry(sink, &entry);
}

static void sink_free_slot(struct tree_sink **sink)
{
    tree_sink_free(*sink);
}

static int push_begin(const struct file_request *request, struct tree_sink **ret)
{
    const struct tree_sink_options options = {
        .keeps_owner = request->flags & FILE_KEEP_OWNER,
    };
    char path[PATH_MAX];
    int fd, r = worker_path(request->path, path);

    if (r == 0 && request->flags & FILE_PARENTS) {
        r = worker_make_parents(path, 0755);
        if (r == 0 && mkdir(path, 0755) < 0 && errno != EEXIST)
            r = -errno;
    }
    if (r < 0)
        return r;
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    *ret = tree_sink_new(fd, &options);
    return 0;
}

int file_push(struct worker *worker, const struct file_request *request)
{
    cleanup_with(sink_free_slot) struct tree_sink *sink = NULL;
    char path[ENTRY_PATH_MAX + 1] = "";
    struct file_piece piece = { 0 };
    int r = push_begin(request, &sink), broken = 0;

    if (r < 0)
        broken = worker_fail(worker, r, request->path, NULL);
    while (broken == 0) {
        broken = worker_next(worker, &piece);
        if (broken < 0 || piece.type == FILE_END || piece.type == FILE_ABORT)
            break;
        if (r < 0)
            continue;
        r = push_piece(sink, &piece, path);
        if (r == -EPROTO)
            return r;
        if (r < 0)
            broken = worker_fail(worker, r, path, NULL);
    }
    if (broken < 0 || r < 0)
        return broken;
    if (piece.type == FILE_ABORT)
        return worker_fail(worker, -ECANCELED, request->path, NULL);
    r = tree_sink_finish(sink);
    if (r < 0)
        return worker_fail(worker, r, path, NULL);
    r = file_put_number(&worker->out, FILE_END, 0);
    return r < 0 ? r : worker_flush(worker);
}
