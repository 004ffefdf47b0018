// SPDX-License-Identifier: Apache-2.0
#include "base/files/tree_sink.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/files/file_copy.h"
#include "base/files/file_entry.h"
#include "base/io.h"
#include "base/random.h"
#include "base/xalloc.h"

enum { DEPTH_MAX = 512, TEMPORARY_NAME = 32, TRIES = 8 };

/* Set when a directory or file is complete. */
struct attributes {
    uint32_t mode, uid, gid;
    struct timespec mtime;
};

struct level {
    int fd;
    size_t path_len;
    bool is_new;
    struct attributes attributes;
};

struct tree_sink {
    struct tree_sink_options options;
    char path[ENTRY_PATH_MAX + 1]; /* of the innermost directory */
    struct level levels[DEPTH_MAX];
    int depth; /* levels in use; the first is the top, with the path "" */

    int file_fd;                    /* of the file being written; negative: none */
    char temporary[TEMPORARY_NAME]; /* its temporary name; "": it is unnamed (O_TMPFILE) */
    char name[NAME_MAX + 1];
    struct attributes file;
};

struct tree_sink *tree_sink_new(int fd, const struct tree_sink_options *options)
{
    struct tree_sink *sink = xcalloc(1, sizeof(*sink));

    sink->options = *options;
    sink->levels[0].fd = fd;
    sink->depth = 1;
    sink->file_fd = -EBADF;
    return sink;
}

static struct level *innermost(struct tree_sink *sink)
{
    return &sink->levels[sink->depth - 1];
}

static struct attributes attributes_of(const struct tree_sink *sink, const struct file_entry *entry)
{
    struct attributes attributes = {
        .mode = entry->mode & (sink->options.keeps_owner ? 07777 : 01777),
        .uid = sink->options.has_uid ? sink->options.uid : entry->uid,
        .gid = sink->options.has_uid ? sink->options.gid : entry->gid,
        .mtime = { .tv_sec = entry->mtime_s, .tv_nsec = entry->mtime_ns },
    };

    return attributes;
}

/* The owner first, because chown clears set-user-ID bits. */
static int attributes_set(const struct tree_sink *sink, int fd, const struct attributes *attributes)
{
    const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, attributes->mtime };

    if ((sink->options.keeps_owner || sink->options.has_uid) &&
        fchown(fd, attributes->uid, attributes->gid) < 0)
        return -errno;
    if (fchmod(fd, attributes->mode) < 0 || futimens(fd, times) < 0)
        return -errno;
    return 0;
}

static int link_attributes_set(const struct tree_sink *sink, int dir_fd, const char *name,
                               const struct attributes *attributes)
{
    const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, attributes->mtime };

    if ((sink->options.keeps_owner || sink->options.has_uid) &&
        fchownat(dir_fd, name, attributes->uid, attributes->gid, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    return utimensat(dir_fd, name, times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int level_pop(struct tree_sink *sink)
{
    struct level *level = innermost(sink);
    int r = 0;

    if (level->is_new)
        r = attributes_set(sink, level->fd, &level->attributes);
    level->fd = fd_close(level->fd);
    sink->depth--;
    sink->path[innermost(sink)->path_len] = '\0';
    return r;
}

/* Leaves directories until the one with this path, which must be among them. */
static int levels_return(struct tree_sink *sink, const char *path, size_t len)
{
    while (innermost(sink)->path_len > len) {
        int r = level_pop(sink);

        if (r < 0)
            return r;
    }
    return innermost(sink)->path_len == len && memcmp(sink->path, path, len) == 0 ? 0 : -EBADMSG;
}

/* Returns 0 if an entry may have this name: nothing has it, or something that the entry may
 * replace. */
static int existing_check(const struct tree_sink *sink, int dir_fd, const char *name, bool is_link)
{
    struct stat st;

    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (S_ISDIR(st.st_mode))
        return -EISDIR;
    if (S_ISREG(st.st_mode))
        return 0;
    return S_ISLNK(st.st_mode) && (is_link || sink->options.replaces_links) ? 0 : -EEXIST;
}

/* Removes an existing regular file or link; fails for everything else. */
static int existing_remove(const struct tree_sink *sink, int dir_fd, const char *name, bool is_link)
{
    int r = existing_check(sink, dir_fd, name, is_link);

    if (r < 0)
        return r;
    return unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT ? 0 : -errno;
}

/* Returns -EEXIST if all names that were tried exist. */
static int temporary_make(struct tree_sink *sink, int (*make)(struct tree_sink *sink, int dir_fd))
{
    int r = -EEXIST;

    for (int i = 0; i < TRIES && r == -EEXIST; i++) {
        (void)snprintf(sink->temporary, sizeof(sink->temporary), ".holt-%016llx",
                       (unsigned long long)random_u64());
        r = make(sink, innermost(sink)->fd);
    }
    if (r < 0)
        sink->temporary[0] = '\0';
    return r;
}

/* Before Linux 6.10 only privileged processes may do it without /proc. */
static int file_link(struct tree_sink *sink, int dir_fd)
{
    char path[32];

    if (linkat(sink->file_fd, "", dir_fd, sink->temporary, AT_EMPTY_PATH) == 0)
        return 0;
    if (errno != ENOENT)
        return -errno;
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", sink->file_fd);
    return linkat(AT_FDCWD, path, dir_fd, sink->temporary, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

static int temporary_open(struct tree_sink *sink, int dir_fd)
{
    sink->file_fd =
        openat(dir_fd, sink->temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return sink->file_fd < 0 ? -errno : 0;
}

static void file_discard(struct tree_sink *sink)
{
    if (sink->temporary[0])
        (void)unlinkat(innermost(sink)->fd, sink->temporary, 0);
    sink->file_fd = fd_close(sink->file_fd);
}

/* An existing file stays until the new one is complete. */
static int file_finish(struct tree_sink *sink)
{
    int dir_fd = innermost(sink)->fd, r;

    if (sink->file_fd < 0)
        return 0;
    r = attributes_set(sink, sink->file_fd, &sink->file);
    if (r == 0)
        r = existing_check(sink, dir_fd, sink->name, false);
    if (r == 0 && !sink->temporary[0])
        r = temporary_make(sink, file_link);
    if (r == 0 && renameat(dir_fd, sink->temporary, dir_fd, sink->name) < 0)
        r = -errno;
    if (r == 0)
        sink->temporary[0] = '\0';
    if (r == -EBUSY)
        r = file_overwrite_at(sink->file_fd, dir_fd, sink->name);
    file_discard(sink);
    return r;
}

/* Unnamed if the filesystem can: then nothing is left however this process ends. */
static int file_start(struct tree_sink *sink, const char *name, const struct file_entry *entry)
{
    int r = existing_check(sink, innermost(sink)->fd, name, false);

    if (r < 0)
        return r;
    sink->temporary[0] = '\0';
    sink->file_fd = openat(innermost(sink)->fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (sink->file_fd < 0)
        r = temporary_make(sink, temporary_open);
    if (r < 0)
        return r;
    (void)snprintf(sink->name, sizeof(sink->name), "%s", name);
    sink->file = attributes_of(sink, entry);
    return 0;
}

static int directory_add(struct tree_sink *sink, const char *name, const struct file_entry *entry)
{
    int dir_fd = innermost(sink)->fd;
    bool is_new = mkdirat(dir_fd, name, 0700) == 0;
    struct level *level;
    int fd;

    if (!is_new && errno != EEXIST)
        return -errno;
    if (sink->depth == DEPTH_MAX)
        return -ENAMETOOLONG;
    fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ELOOP ? -ENOTDIR : -errno;
    level = &sink->levels[sink->depth++];
    *level = (struct level){
        .fd = fd,
        .path_len = strlen(entry->path),
        .is_new = is_new,
        .attributes = attributes_of(sink, entry),
    };
    memcpy(sink->path, entry->path, level->path_len + 1);
    return 0;
}

static int link_add(struct tree_sink *sink, const char *name, const struct file_entry *entry)
{
    int dir_fd = innermost(sink)->fd, r = existing_remove(sink, dir_fd, name, true);
    const struct attributes attributes = attributes_of(sink, entry);

    if (r < 0)
        return r;
    if (symlinkat(entry->target, dir_fd, name) < 0)
        return -errno;
    return link_attributes_set(sink, dir_fd, name, &attributes);
}

/* Opens the directory of a path below the top, component by component without following links. */
static int open_parent(const struct tree_sink *sink, const char *path, const char **ret_name)
{
    int fd = openat(sink->levels[0].fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC), below;

    for (const char *slash; fd >= 0 && (slash = strchr(path, '/')); path = slash + 1) {
        char part[NAME_MAX + 1];

        if ((size_t)(slash - path) > NAME_MAX) {
            (void)close(fd);
            return -ENAMETOOLONG;
        }
        memcpy(part, path, (size_t)(slash - path));
        part[slash - path] = '\0';
        below = openat(fd, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        (void)close(fd);
        fd = below;
    }
    *ret_name = path;
    return fd < 0 ? -errno : fd;
}

static int hard_link_add(struct tree_sink *sink, const char *name, const struct file_entry *entry)
{
    const char *old_name = NULL;
    cleanup_close int old_fd = -EBADF;
    int dir_fd = innermost(sink)->fd, r;
    struct stat st;

    if (!entry_path_is_below(entry->same_as))
        return -EBADMSG;
    old_fd = open_parent(sink, entry->same_as, &old_name);
    if (old_fd < 0)
        return old_fd;
    if (fstatat(old_fd, old_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return -EBADMSG;
    r = existing_remove(sink, dir_fd, name, false);
    if (r < 0)
        return r;
    return linkat(old_fd, old_name, dir_fd, name, 0) < 0 ? -errno : 0;
}

static int entry_add(struct tree_sink *sink, const char *name, const struct file_entry *entry)
{
    switch ((int)entry->type) {
    case ENTRY_FILE:
        return entry->same_as[0] ? hard_link_add(sink, name, entry) : file_start(sink, name, entry);
    case ENTRY_DIRECTORY:
        return directory_add(sink, name, entry);
    case ENTRY_LINK:
        return link_add(sink, name, entry);
    default:
        return -ENOTSUP;
    }
}

int tree_sink_entry(struct tree_sink *sink, const struct file_entry *entry)
{
    const char *slash = strrchr(entry->path, '/'), *name = slash ? slash + 1 : entry->path;
    int r = file_finish(sink);

    if (r < 0)
        return r;
    if (!entry_path_is_below(entry->path) || strlen(entry->path) > ENTRY_PATH_MAX)
        return -EBADMSG;
    if (strlen(name) > NAME_MAX)
        return -ENAMETOOLONG;
    r = levels_return(sink, entry->path, slash ? (size_t)(slash - entry->path) : 0);
    return r < 0 ? r : entry_add(sink, name, entry);
}

int tree_sink_data(struct tree_sink *sink, const void *data, size_t len)
{
    return sink->file_fd < 0 ? -EBADMSG : write_all(sink->file_fd, data, len);
}

int tree_sink_finish(struct tree_sink *sink)
{
    int r = file_finish(sink);

    while (r == 0 && sink->depth > 1)
        r = level_pop(sink);
    return r;
}

void tree_sink_free(struct tree_sink *sink)
{
    if (!sink)
        return;
    if (sink->file_fd >= 0)
        file_discard(sink);
    while (sink->depth > 0)
        (void)fd_close(sink->levels[--sink->depth].fd);
    free(sink);
}
