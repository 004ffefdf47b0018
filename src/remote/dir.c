// SPDX-License-Identifier: Apache-2.0
/* Objects as files of a directory, a folder for each slash of their keys.
 *
 * A file is written in ~new, which no key can be named, and moved to its key when it is on disk.
 * Files that a crash left there are removed a day later, as other hosts may share the directory.
 * A folder goes with its last object. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/files/walk.h"
#include "base/io.h"
#include "base/lock.h"
#include "base/random.h"
#include "base/text/hex.h"
#include "base/xalloc.h"
#include "kernel/path.h"
#include "remote/backend.h"

#define NEW "~new"

enum { NEW_NAME_BYTES = 16, TRIES = 32, LEFT_SECONDS = 24 * 3600 };

struct dir {
    struct remote remote;
    struct lock folders; /* held while folders come and go */
    int root_fd, new_fd;
};

static struct dir *dir_of(struct remote *remote)
{
    return (struct dir *)remote;
}

/* Sets the error for a failed call on an object. Returns like err_set. */
static int object_failed(const struct dir *dir, int r, const char *what, const char *key,
                         struct err *err)
{
    const char *where = dir->remote.where;

    if (r == -ENOENT)
        return err_set(err, ERR_NOT_FOUND, "no object '%.80s' in %.80s", key, where);
    if (r == -ENOSPC || r == -EDQUOT) {
        (void)err_refuse(err, CAUSE_NO_SPACE, "no space left in %.80s for object '%.80s'", where,
                         key);
        return err_remedy(err, "enlarge the storage or its quota, or remove objects");
    }
    if (r == -EISDIR || r == -ENOTDIR)
        return err_set(err, ERR_INVALID, "a part of '%.80s' is an object and a folder in %.80s",
                       key, where);
    return err_sys(err, r, "%s object '%.80s' in %.80s", what, key, where);
}

/* --- folders ---------------------------------------------------------------------------------- */

/* Copies the folder of a key, "." for the top, and returns the key's name in it. */
static const char *key_split(const char *key, char ret_folder[REMOTE_KEY_MAX + 1])
{
    const char *slash = strrchr(key, '/');
    size_t len = slash ? (size_t)(slash - key) : 0;

    (void)snprintf(ret_folder, REMOTE_KEY_MAX + 1, "%.*s", slash ? (int)len : 1, slash ? key : ".");
    return slash ? slash + 1 : key;
}

static int folder_open(const struct dir *dir, const char *folder)
{
    return open_no_links(dir->root_fd, folder, O_RDONLY | O_DIRECTORY, 0);
}

/* Makes a part of a folder's path, or finds it, and moves *fd to it. */
static int part_enter(int *fd, const char *name)
{
    int next;

    if (mkdirat(*fd, name, 0700) == 0) {
        if (fsync(*fd) < 0)
            return -errno;
    } else if (errno != EEXIST) {
        return -errno;
    }
    next = openat(*fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (next < 0)
        return -errno;
    (void)fd_close(*fd);
    *fd = next;
    return 0;
}

/* Makes what is missing of a folder and opens it. Nobody in this process finds a folder that is not
 * yet on disk. */
static int folder_make(struct dir *dir, const char *folder)
{
    lock_scope(&dir->folders);
    cleanup_free char *copy = xstrdup(folder);
    cleanup_close int fd = folder_open(dir, ".");
    char *next = NULL;
    int r = fd < 0 ? fd : 0;

    for (char *part = strtok_r(copy, "/", &next); r == 0 && part; part = strtok_r(NULL, "/", &next))
        r = part_enter(&fd, part);
    return r < 0 ? r : TAKE_FD(fd);
}

/* Removes the folders of a key that are empty now. */
static void folders_prune(struct dir *dir, const char *key)
{
    lock_scope(&dir->folders);
    cleanup_free char *path = xstrdup(key);
    char parent[REMOTE_KEY_MAX + 1];

    for (char *slash; (slash = strrchr(path, '/'));) {
        cleanup_close int parent_fd = -EBADF;
        const char *name;

        *slash = '\0';
        name = key_split(path, parent);
        parent_fd = folder_open(dir, parent);
        if (parent_fd < 0 || unlinkat(parent_fd, name, AT_REMOVEDIR) < 0)
            return;
    }
}

/* --- put -------------------------------------------------------------------------------------- */

static int new_write(int fd, const struct remote_put *put)
{
    int r = write_all(fd, put->data, put->len);

    return r == 0 && fsync(fd) < 0 ? -errno : r;
}

/* Gives a new file its key. */
static int new_move(const struct dir *dir, const char *from, int folder_fd, const char *name,
                    bool is_absent)
{
    if (!is_absent)
        return renameat(dir->new_fd, from, folder_fd, name) < 0 ? -errno : 0;
    if (renameat2(dir->new_fd, from, folder_fd, name, RENAME_NOREPLACE) == 0)
        return 0;
    /* Some file systems of networks have no such rename. */
    if (errno != EINVAL)
        return -errno;
    return linkat(dir->new_fd, from, folder_fd, name, 0) < 0 ? -errno : 0;
}

/* The folder may be removed between the two steps, as it is empty. */
static int new_name(struct dir *dir, const char *from, const struct remote_put *put)
{
    char folder[REMOTE_KEY_MAX + 1];
    const char *name = key_split(put->key, folder);
    int r = -ENOENT;

    for (int i = 0; r == -ENOENT && i < TRIES; i++) {
        cleanup_close int folder_fd = folder_open(dir, folder);

        if (folder_fd == -ENOENT)
            folder_fd = folder_make(dir, folder);
        if (folder_fd < 0)
            return folder_fd;
        r = new_move(dir, from, folder_fd, name, put->is_absent);
        /* That of somebody else is durable too when it is reported. */
        if ((r == 0 || r == -EEXIST) && fsync(folder_fd) < 0)
            return -errno;
    }
    return r == -ENOENT ? -ESTALE : r;
}

static int object_exists(const struct dir *dir, const char *key)
{
    char folder[REMOTE_KEY_MAX + 1];
    const char *name = key_split(key, folder);
    cleanup_close int fd = folder_open(dir, folder);
    struct stat st;

    if (fd < 0)
        return fd == -ENOENT ? 0 : fd;
    if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    return fsync(fd) < 0 ? -errno : -EEXIST;
}

static int dir_put(struct remote *remote, const struct remote_put *put, struct err *err)
{
    struct dir *dir = dir_of(remote);
    char temp[HEX_SIZE(NEW_NAME_BYTES)];
    int r = put->is_absent ? object_exists(dir, put->key) : 0;
    cleanup_close int fd = -EBADF;

    if (r == 0)
        r = random_hex(temp, NEW_NAME_BYTES);
    if (r == 0) {
        fd = openat(dir->new_fd, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        r = fd < 0 ? -errno : new_write(fd, put);
        if (r == 0)
            r = new_name(dir, temp, put);
        (void)unlinkat(dir->new_fd, temp, 0);
    }
    if (r == -EEXIST && put->is_absent)
        return err_set(err, ERR_EXISTS, "object '%.80s' exists in %.80s", put->key, remote->where);
    return r < 0 ? object_failed(dir, r, "write", put->key, err) : 0;
}

/* --- get -------------------------------------------------------------------------------------- */

/* A directory or a pipe is no object. */
static int object_open(const struct dir *dir, const char *key, struct stat *ret)
{
    cleanup_close int fd = open_no_links(dir->root_fd, key, O_RDONLY | O_NONBLOCK, 0);

    if (fd == -ENOTDIR)
        return -ENOENT;
    if (fd < 0)
        return fd;
    if (fstat(fd, ret) < 0)
        return -errno;
    return S_ISREG(ret->st_mode) ? TAKE_FD(fd) : -ENOENT;
}

static int dir_get(struct remote *remote, const char *key, struct buf *ret, struct err *err)
{
    struct dir *dir = dir_of(remote);
    struct stat st;
    cleanup_close int fd = object_open(dir, key, &st);
    size_t size;
    ssize_t n;

    if (fd < 0)
        return object_failed(dir, fd, "open", key, err);
    size = (size_t)st.st_size;
    if (st.st_size > REMOTE_OBJECT_MAX || buf_reserve(ret, size) < 0)
        return err_set(err, ERR_EXHAUSTED, "object '%.80s' in %.80s has %lld bytes, too many", key,
                       remote->where, (long long)st.st_size);
    n = read_full(fd, ret->data + ret->len, size);
    if (n < 0)
        return object_failed(dir, (int)n, "read", key, err);
    if ((size_t)n < size)
        return object_failed(dir, -EIO, "read", key, err);
    ret->len += size;
    ret->data[ret->len] = '\0';
    return 0;
}

static int dir_size_of(struct remote *remote, const char *key, uint64_t *ret, struct err *err)
{
    struct dir *dir = dir_of(remote);
    struct stat st;
    cleanup_close int fd = object_open(dir, key, &st);

    if (fd < 0)
        return object_failed(dir, fd, "open", key, err);
    *ret = (uint64_t)st.st_size;
    return 0;
}

/* --- remove ----------------------------------------------------------------------------------- */

static int dir_remove(struct remote *remote, const char *key, struct err *err)
{
    struct dir *dir = dir_of(remote);
    char folder[REMOTE_KEY_MAX + 1];
    const char *name = key_split(key, folder);
    cleanup_close int fd = folder_open(dir, folder);
    int r = fd < 0 ? fd : unlinkat(fd, name, 0) < 0 ? -errno : 0;

    if (r == 0)
        folders_prune(dir, key);
    if (r < 0 && r != -ENOENT && r != -ENOTDIR && r != -EISDIR)
        return object_failed(dir, r, "remove", key, err);
    return 0;
}

/* --- list ------------------------------------------------------------------------------------- */

struct listing {
    const struct remote_list *list;
    char key[2 * REMOTE_KEY_MAX]; /* the folder that is walked, with its slash */
    size_t len;
    bool has_stopped; /* by the caller */
};

static int listing_enter(void *context, int fd, const char *name, const struct stat *st)
{
    struct listing *listing = context;

    (void)fd;
    (void)st;
    if (!name)
        return 0;
    /* Longer paths have no keys. */
    if (listing->len + strlen(name) + 1 >= sizeof(listing->key))
        return -ENAMETOOLONG;
    listing->len += (size_t)snprintf(listing->key + listing->len,
                                     sizeof(listing->key) - listing->len, "%s/", name);
    return 0;
}

static int listing_leave(void *context, int fd, const struct stat *st)
{
    struct listing *listing = context;

    (void)fd;
    (void)st;
    while (listing->len > 0 && listing->key[--listing->len] == '/')
        continue;
    while (listing->len > 0 && listing->key[listing->len - 1] != '/')
        listing->len--;
    listing->key[listing->len] = '\0';
    return 0;
}

static int listing_entry(void *context, int dir_fd, const char *name, const struct stat *st)
{
    struct listing *listing = context;
    const struct remote_list *list = listing->list;
    struct remote_object object = {
        .key = listing->key,
        .size = (uint64_t)st->st_size,
        .modified_ms = (uint64_t)st->st_mtim.tv_sec * 1000,
    };
    int r = 0;

    (void)dir_fd;
    if (!S_ISREG(st->st_mode) || listing->len + strlen(name) > REMOTE_KEY_MAX)
        return 0;
    (void)snprintf(listing->key + listing->len, sizeof(listing->key) - listing->len, "%s", name);
    if (remote_key_is(listing->key) &&
        strncmp(listing->key, list->prefix, strlen(list->prefix)) == 0)
        r = list->found(list->context, &object);
    listing->has_stopped = r < 0;
    listing->key[listing->len] = '\0';
    return r;
}

static int dir_list(struct remote *remote, const struct remote_list *list, struct err *err)
{
    static const struct walk_ops ops = {
        .entry = listing_entry,
        .enter = listing_enter,
        .leave = listing_leave,
    };
    struct dir *dir = dir_of(remote);
    struct listing listing = { .list = list };
    const char *slash = strrchr(list->prefix, '/');
    char folder[REMOTE_KEY_MAX + 1];
    cleanup_close int fd = -EBADF;
    int r;

    (void)key_split(list->prefix, folder);
    listing.len = slash ? (size_t)(slash - list->prefix) + 1 : 0;
    memcpy(listing.key, list->prefix, listing.len);
    fd = folder_open(dir, folder);
    if (fd == -ENOENT || fd == -ENOTDIR)
        return 0;
    r = fd < 0 ? fd : tree_walk(fd, &ops, &listing);
    if (r < 0 && !listing.has_stopped)
        return err_sys(err, r, "list objects in %.80s", remote->where);
    return r;
}

/* --- open ------------------------------------------------------------------------------------- */

static int left_remove(void *context, int dir_fd, const char *name, const struct stat *st)
{
    const int64_t *now_s = context;

    if (*now_s - st->st_mtim.tv_sec > LEFT_SECONDS)
        (void)unlinkat(dir_fd, name, 0);
    return 0;
}

static int dir_open(struct remote *remote, const struct remote_config *config, const char *place,
                    struct err *err)
{
    static const struct walk_ops left = { .entry = left_remove };
    int64_t now_s = (int64_t)(clock_wall_ms() / 1000);
    struct dir *dir = dir_of(remote);

    (void)config;
    dir->root_fd = dir->new_fd = -EBADF;
    lock_init(&dir->folders, LOCK_REMOTE_FOLDERS);
    remote->where = xasprintf("file://%s", place);
    if (*place != '/')
        return err_set(err, ERR_INVALID, "'%.80s' names no directory: use file:///DIRECTORY",
                       remote->where);
    dir->root_fd = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir->root_fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return err_set(err, ERR_NOT_FOUND,
                       "'%.120s' is no directory: create it, or mount its file system", place);
    if (dir->root_fd < 0)
        return err_sys(err, -errno, "open '%.120s'", place);
    if (mkdirat(dir->root_fd, NEW, 0700) < 0 && errno != EEXIST)
        return err_sys(err, -errno, "write to '%.120s'", place);
    dir->new_fd = open_no_links(dir->root_fd, NEW, O_RDONLY | O_DIRECTORY, 0);
    if (dir->new_fd < 0)
        return err_sys(err, dir->new_fd, "open '%.120s/%s'", place, NEW);
    if (faccessat(dir->new_fd, ".", W_OK, AT_EACCESS) < 0)
        return err_sys(err, -errno, "write to '%.120s'", place);
    (void)tree_walk(dir->new_fd, &left, &now_s);
    return 0;
}

static void dir_close(struct remote *remote)
{
    struct dir *dir = dir_of(remote);

    dir->root_fd = fd_close(dir->root_fd);
    dir->new_fd = fd_close(dir->new_fd);
    lock_destroy(&dir->folders);
}

const struct remote_ops remote_dir = {
    .scheme = "file://",
    .size = sizeof(struct dir),
    .open = dir_open,
    .close = dir_close,
    .put = dir_put,
    .get = dir_get,
    .size_of = dir_size_of,
    .remove = dir_remove,
    .list = dir_list,
};
