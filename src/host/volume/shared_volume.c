// SPDX-License-Identifier: Apache-2.0
#include "host/volume/shared_volume.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/files/tree.h"
#include "base/text/parse.h"
#include "base/xalloc.h"
#include "host/core/host_internal.h"
#include "host/sandbox/mount.h"
#include "kernel/path.h"
#include "store/volume/plain.h"

/* Converts the errno of a failed call to an error for the client. */
static int volume_error_set(int r, const char *doing, const char *path, struct err *err)
{
    if (r == -ENOENT)
        return err_refuse(err, CAUSE_FILE_NOT_FOUND, "path '%.150s' not found", path);
    if (r == -EEXIST || r == -ENOTEMPTY)
        return err_refuse(err, CAUSE_FILE_EXISTS, "path '%.150s' already exists", path);
    if (r == -ENOSPC || r == -EDQUOT)
        return err_refuse(err, CAUSE_NO_SPACE, "no space left for '%.150s'", path);
    if (r == -ENOTDIR || r == -EISDIR || r == -ELOOP || r == -ENAMETOOLONG || r == -ENXIO ||
        r == -EINVAL || r == -EXDEV)
        return err_set(err, ERR_INVALID, "cannot %s '%.150s': %s", doing, path, strerror(-r));
    return err_sys(err, r, "%s '%.150s'", doing, path);
}

static int id_check(const char *id, struct err *err)
{
    return is_handle(id, SHARED_VOLUME_ID_MAX)
               ? 0
               : err_set(err, ERR_NOT_FOUND, "no volume '%.60s'", id);
}

int shared_volume_create(struct host *host, const char *id, struct err *err)
{
    int r = id_check(id, err);

    return r == 0 ? plain_create(host->store, id, host->default_quota, err) : r;
}

int shared_volume_destroy(struct host *host, const char *id, struct err *err)
{
    struct shared_volume_removal removal = { .shared_volume = id };
    int r = id_check(id, err);

    if (r == 0)
        r = shared_volume_removal_begin(host, &removal, err);
    if (r < 0)
        return r;
    r = plain_destroy(host->store, id);
    shared_volume_removal_end(host, &removal);
    return r < 0 ? err_sys(err, r, "remove volume '%s'", id) : 0;
}

static int top_open(struct host *host, const char *id, int *ret_fd, struct err *err)
{
    int r = id_check(id, err);

    if (r < 0)
        return r;
    *ret_fd = plain_open(host->store, id);
    if (*ret_fd == -ENOENT)
        return err_set(err, ERR_NOT_FOUND, "no volume '%s'", id);
    return *ret_fd < 0 ? err_sys(err, *ret_fd, "open volume '%s'", id) : 0;
}

int shared_volume_check(struct host *host, const char *id, struct err *err)
{
    cleanup_close int fd = -EBADF;

    return top_open(host, id, &fd, err);
}

/* Opens the directory that contains a path, and returns the last name; "." for the top. */
static int parent_open(int top_fd, const char *path, int *ret_fd, char ret_name[NAME_MAX + 1])
{
    cleanup_free char *copy = xstrdup(path);
    char *end = copy + strlen(copy), *name;

    if (end - copy >= SHARED_VOLUME_PATH_MAX)
        return -ENAMETOOLONG;
    while (end > copy && end[-1] == '/')
        *--end = '\0';
    name = strrchr(copy, '/');
    name = name ? name + 1 : copy;
    if (strlen(name) > NAME_MAX)
        return -ENAMETOOLONG;
    if (strcmp(name, "..") == 0 || strcmp(name, ".") == 0)
        return -EINVAL;
    (void)snprintf(ret_name, NAME_MAX + 1, "%s", *name ? name : ".");
    *name = '\0';
    *ret_fd = open_in_root(top_fd, *copy ? copy : ".", O_PATH | O_DIRECTORY, 0);
    return *ret_fd < 0 ? *ret_fd : 0;
}

/* A path in a volume: an open parent directory and a name. */
struct volume_path {
    int top_fd, parent_fd;
    char name[NAME_MAX + 1];
};

static void volume_path_done(struct volume_path *at)
{
    at->parent_fd = fd_close(at->parent_fd);
    at->top_fd = fd_close(at->top_fd);
}

static int volume_path_open(struct host *host, const struct shared_volume_file *file,
                            struct volume_path *ret, struct err *err)
{
    int r = top_open(host, file->shared_volume, &ret->top_fd, err);

    if (r < 0)
        return r;
    r = parent_open(ret->top_fd, file->path, &ret->parent_fd, ret->name);
    return r < 0 ? volume_error_set(r, "find", file->path, err) : 0;
}

int shared_volume_stat(struct host *host, const struct shared_volume_file *file, struct stat *ret,
                       char *target, struct err *err)
{
    cleanup_with(volume_path_done) struct volume_path at = { -EBADF, -EBADF, "" };
    ssize_t len = 0;
    int r = volume_path_open(host, file, &at, err);

    if (r < 0)
        return r;
    if (fstatat(at.parent_fd, at.name, ret, AT_SYMLINK_NOFOLLOW) < 0)
        return volume_error_set(-errno, "stat", file->path, err);
    if (S_ISLNK(ret->st_mode))
        len = readlinkat(at.parent_fd, at.name, target, SHARED_VOLUME_PATH_MAX - 1);
    target[len > 0 ? len : 0] = '\0';
    return 0;
}

/* --- lists --- */

struct listing {
    shared_volume_fn *each;
    void *context;
    unsigned left; /* entries that may still be reported */
};

/* The names of one directory, up to a limit. */
struct names {
    char **list;
    size_t count;
};

static void names_done(struct names *names)
{
    while (names->count > 0)
        free(names->list[--names->count]);
    free(names->list);
}

static int names_read(int dir_fd, size_t max, struct names *ret)
{
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cleanup_with(closedir_slot) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    if (!dir)
        return -errno;
    ret->list = xcalloc(max + 1, sizeof(*ret->list));
    while ((entry = readdir(dir))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (ret->count == max)
            return -E2BIG;
        ret->list[ret->count++] = xstrdup(entry->d_name);
    }
    return 0;
}

static int name_compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int list_dir(struct listing *listing, int dir_fd, const char *below, unsigned depth);

static int list_entry(struct listing *listing, int dir_fd, const char *below, const char *name,
                      unsigned depth)
{
    cleanup_free char *path = xasprintf("%s%s%s", below, *below ? "/" : "", name);
    cleanup_close int fd = -EBADF;
    int r;

    if (listing->left-- == 0)
        return -E2BIG;
    r = listing->each(listing->context, path);
    if (r < 0 || depth <= 1)
        return r;
    fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? 0 : list_dir(listing, fd, path, depth - 1);
}

/* Recurses to SHARED_VOLUME_DEPTH_MAX at most. */
static int list_dir(struct listing *listing, int dir_fd, const char *below, unsigned depth)
{
    cleanup_with(names_done) struct names names = { 0 };
    int r = names_read(dir_fd, listing->left, &names);

    if (r == 0 && names.count > 1)
        qsort(names.list, names.count, sizeof(*names.list), name_compare);
    for (size_t i = 0; r == 0 && i < names.count; i++)
        r = list_entry(listing, dir_fd, below, names.list[i], depth);
    return r;
}

int shared_volume_list(struct host *host, const struct shared_volume_file *file, unsigned depth,
                       shared_volume_fn *each, void *context, struct err *err)
{
    struct listing listing = { each, context, SHARED_VOLUME_ENTRIES_MAX };
    cleanup_close int top_fd = -EBADF, fd = -EBADF;
    int r = top_open(host, file->shared_volume, &top_fd, err);

    if (r < 0)
        return r;
    fd = open_in_root(top_fd, *file->path ? file->path : "/", O_RDONLY | O_DIRECTORY, 0);
    r = fd < 0 ? fd
               : list_dir(&listing, fd, "",
                          depth < SHARED_VOLUME_DEPTH_MAX ? depth : SHARED_VOLUME_DEPTH_MAX);
    if (r == -E2BIG)
        return err_set(err, ERR_EXHAUSTED, "'%.150s' has more than %d entries", file->path,
                       SHARED_VOLUME_ENTRIES_MAX);
    return r < 0 ? volume_error_set(r, "list", file->path, err) : 0;
}

/* --- changes --- */

/* Works on the open file rather than a path, which could be replaced meanwhile. */
static int attributes_apply(int fd, const struct shared_volume_file *file)
{
    if ((file->uid != SHARED_VOLUME_KEEP || file->gid != SHARED_VOLUME_KEEP) &&
        fchownat(fd, "", file->uid, file->gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (file->mode != SHARED_VOLUME_KEEP && fchmod(fd, file->mode & 07777) < 0)
        return -errno;
    return 0;
}

/* Files belong to the default user of sandboxes, so that its commands can change them. */
static int default_owner_set(int fd)
{
    return fchown(fd, SHARED_VOLUME_OWNER, SHARED_VOLUME_OWNER) < 0 ? -errno : 0;
}

static int dir_make(int parent_fd, const char *name)
{
    cleanup_close int fd = -EBADF;

    if (mkdirat(parent_fd, name, 0755) < 0)
        return -errno;
    fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : default_owner_set(fd);
}

static int parents_make(int top_fd, const char *path)
{
    cleanup_free char *copy = xstrdup(path);

    for (char *at = copy + strspn(copy, "/"); *at; at += strspn(at, "/")) {
        cleanup_close int fd = -EBADF;
        char name[NAME_MAX + 1];
        char was;
        int r;

        at += strcspn(at, "/");
        was = *at;
        *at = '\0';
        r = parent_open(top_fd, copy, &fd, name);
        if (r == 0)
            r = dir_make(fd, name);
        *at = was;
        if (r < 0 && r != -EEXIST)
            return r;
    }
    return 0;
}

int shared_volume_make_dir(struct host *host, const struct shared_volume_file *file, bool parents,
                           struct err *err)
{
    cleanup_close int top_fd = -EBADF, parent_fd = -EBADF, fd = -EBADF;
    char name[NAME_MAX + 1];
    int r = top_open(host, file->shared_volume, &top_fd, err);

    if (r < 0)
        return r;
    r = parents ? parents_make(top_fd, file->path) : 0;
    if (r == 0)
        r = parent_open(top_fd, file->path, &parent_fd, name);
    if (r == 0 && !parents)
        r = dir_make(parent_fd, name);
    if (r == 0) {
        fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        r = fd < 0 ? -errno : attributes_apply(fd, file);
    }
    return r < 0 ? volume_error_set(r, "make", file->path, err) : 0;
}

int shared_volume_change(struct host *host, const struct shared_volume_file *file, struct err *err)
{
    cleanup_with(volume_path_done) struct volume_path at = { -EBADF, -EBADF, "" };
    cleanup_close int fd = -EBADF;
    int r = volume_path_open(host, file, &at, err);

    if (r < 0)
        return r;
    fd = openat(at.parent_fd, at.name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    r = fd < 0 ? -errno : attributes_apply(fd, file);
    return r < 0 ? volume_error_set(r, "change", file->path, err) : 0;
}

int shared_volume_remove(struct host *host, const struct shared_volume_file *file, struct err *err)
{
    cleanup_with(volume_path_done) struct volume_path at = { -EBADF, -EBADF, "" };
    cleanup_close int fd = -EBADF;
    struct stat st;
    int r = volume_path_open(host, file, &at, err);

    if (r < 0)
        return r;
    if (strcmp(at.name, ".") == 0)
        return err_set(err, ERR_INVALID, "the root directory of a volume cannot be removed");
    if (fstatat(at.parent_fd, at.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return volume_error_set(-errno, "remove", file->path, err);
    fd = openat(at.parent_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    r = fd < 0 ? -errno : tree_remove_at(fd, at.name);
    return r < 0 ? volume_error_set(r, "remove", file->path, err) : 0;
}

/* Only regular files are read or written: a FIFO would block. */
static int regular_check(int fd)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return -errno;
    if (S_ISDIR(st.st_mode))
        return -EISDIR;
    return S_ISREG(st.st_mode) ? 0 : -ENXIO;
}

int shared_volume_open_read(struct host *host, const struct shared_volume_file *file, int *ret_fd,
                            struct err *err)
{
    cleanup_close int top_fd = -EBADF, fd = -EBADF;
    int r = top_open(host, file->shared_volume, &top_fd, err);

    if (r < 0)
        return r;
    fd = open_in_root(top_fd, file->path, O_RDONLY | O_NONBLOCK, 0);
    r = fd < 0 ? fd : regular_check(fd);
    if (r < 0)
        return volume_error_set(r, "read", file->path, err);
    *ret_fd = TAKE_FD(fd);
    return 0;
}

int shared_volume_open_write(struct host *host, const struct shared_volume_file *file,
                             bool replaces, int *ret_fd, struct err *err)
{
    cleanup_close int top_fd = -EBADF, fd = -EBADF;
    int r = top_open(host, file->shared_volume, &top_fd, err);

    if (r < 0)
        return r;
    fd = open_in_root(top_fd, file->path, O_WRONLY | O_CREAT | O_NONBLOCK | O_EXCL, 0644);
    r = fd < 0 ? fd : default_owner_set(fd);
    if (r == -EEXIST && replaces)
        r = fd = open_in_root(top_fd, file->path, O_WRONLY | O_CREAT | O_NONBLOCK, 0644);
    if (r >= 0)
        r = regular_check(fd);
    if (r == 0 && ftruncate(fd, 0) < 0)
        r = -errno;
    if (r == 0)
        r = attributes_apply(fd, file);
    if (r < 0)
        return volume_error_set(r, "write", file->path, err);
    *ret_fd = TAKE_FD(fd);
    return 0;
}
