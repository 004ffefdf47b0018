// SPDX-License-Identifier: Apache-2.0
#include "toolbox/bounded_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/files/tree.h"
#include "base/text/parse.h"
#include "base/xalloc.h"

enum {
    DIR_MODE = 0700,
    FILE_MODE = 0600,
    FULL_PATH_MAX = BOUNDED_DIR_PATH_MAX + BOUNDED_DIR_NAME_MAX + 2
};

void bounded_dir_init(struct bounded_dir *bounded_dir, int root_fd, const char *path,
                      size_t files_max, uint64_t bytes_max)
{
    *bounded_dir =
        (struct bounded_dir){ .root_fd = root_fd, .files_max = files_max, .bytes_max = bytes_max };
    (void)snprintf(bounded_dir->path, sizeof(bounded_dir->path), "%s", path);
    lock_init(&bounded_dir->lock, LOCK_TOOL_RESULTS);
}

void bounded_dir_done(struct bounded_dir *bounded_dir)
{
    lock_destroy(&bounded_dir->lock);
    free(bounded_dir->entries);
}

static const char *file_path(const struct bounded_dir *bounded_dir, const char *name,
                             char into[static FULL_PATH_MAX])
{
    (void)snprintf(into, FULL_PATH_MAX, "%s/%s", bounded_dir->path, name);
    return into;
}

static void file_remove(const struct bounded_dir *bounded_dir, const char *name)
{
    char path[FULL_PATH_MAX];

    (void)unlinkat(bounded_dir->root_fd, file_path(bounded_dir, name, path), 0);
}

/* --- entries --------------------------------------------------------------------------------- */

/* Locked. */
static void entry_append(struct bounded_dir *bounded_dir, const char *name, uint64_t bytes)
{
    struct bounded_dir_entry *entry = &bounded_dir->entries[bounded_dir->count++];
    uint64_t number;

    *entry = (struct bounded_dir_entry){ .bytes = bytes };
    (void)snprintf(entry->name, sizeof(entry->name), "%s", name);
    bounded_dir->bytes += bytes;
    if (parse_u64(name + 1, &number) == 0 && number > bounded_dir->last_number)
        bounded_dir->last_number = number;
}

/* Locked. */
static void entry_remove(struct bounded_dir *bounded_dir, size_t index)
{
    bounded_dir->bytes -= bounded_dir->entries[index].bytes;
    bounded_dir->count--;
    memmove(&bounded_dir->entries[index], &bounded_dir->entries[index + 1],
            (bounded_dir->count - index) * sizeof(*bounded_dir->entries));
}

/* Locked. Removes the oldest files until one more of this size fits. */
static void entries_make_room(struct bounded_dir *bounded_dir, uint64_t bytes)
{
    while (bounded_dir->count > 0 && (bounded_dir->count >= bounded_dir->files_max ||
                                      bounded_dir->bytes + bytes > bounded_dir->bytes_max)) {
        file_remove(bounded_dir, bounded_dir->entries[0].name);
        entry_remove(bounded_dir, 0);
    }
}

struct found_file {
    char name[BOUNDED_DIR_NAME_MAX + 1];
    struct timespec when;
    uint64_t bytes;
};

static int compare_found(const void *one, const void *other)
{
    const struct found_file *a = one, *b = other;

    if (a->when.tv_sec != b->when.tv_sec)
        return a->when.tv_sec < b->when.tv_sec ? -1 : 1;
    if (a->when.tv_nsec != b->when.tv_nsec)
        return a->when.tv_nsec < b->when.tv_nsec ? -1 : 1;
    return strcmp(a->name, b->name);
}

/* Returns whether the name is that of a complete file; removes an incomplete one. */
static bool entry_stat(struct bounded_dir *bounded_dir, const char *name, struct found_file *ret)
{
    char path[FULL_PATH_MAX];
    struct stat info;

    if (name[0] == '.') {
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
            strlen(name) < BOUNDED_DIR_NAME_MAX)
            file_remove(bounded_dir, name);
        return false;
    }
    if (strlen(name) > BOUNDED_DIR_NAME_MAX ||
        fstatat(bounded_dir->root_fd, file_path(bounded_dir, name, path), &info,
                AT_SYMLINK_NOFOLLOW) < 0 ||
        !S_ISREG(info.st_mode))
        return false;
    *ret = (struct found_file){ .when = info.st_mtim, .bytes = (uint64_t)info.st_size };
    (void)snprintf(ret->name, sizeof(ret->name), "%s", name);
    return true;
}

/* Locked. Reads the files that an earlier daemon process left, at most twice the limit. */
static void entries_load(struct bounded_dir *bounded_dir)
{
    cleanup_free struct found_file *list = xcalloc(bounded_dir->files_max * 2, sizeof(*list));
    int fd = openat(bounded_dir->root_fd, bounded_dir->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    size_t count = 0;

    bounded_dir->is_loaded = true;
    bounded_dir->entries = xcalloc(bounded_dir->files_max + 1, sizeof(*bounded_dir->entries));
    while (dir && count < bounded_dir->files_max * 2 && (entry = readdir(dir)))
        count += entry_stat(bounded_dir, entry->d_name, &list[count]);
    if (dir)
        (void)closedir(dir);
    else
        (void)fd_close(fd);
    qsort(list, count, sizeof(*list), compare_found);
    for (size_t i = 0; i < count; i++) {
        entries_make_room(bounded_dir, list[i].bytes);
        entry_append(bounded_dir, list[i].name, list[i].bytes);
    }
}

/* Locked. Reads the directory at first use; returns -ENOENT after a purge. */
static int entries_prepare(struct bounded_dir *bounded_dir)
{
    if (bounded_dir->is_purged)
        return -ENOENT;
    if (!bounded_dir->is_loaded)
        entries_load(bounded_dir);
    return 0;
}

/* --- files ----------------------------------------------------------------------------------- */

/* Creates the directory and its parents below root_fd. */
static void make_dirs(const struct bounded_dir *bounded_dir)
{
    char path[BOUNDED_DIR_PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s", bounded_dir->path);
    for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdirat(bounded_dir->root_fd, path, DIR_MODE);
        *slash = '/';
    }
    (void)mkdirat(bounded_dir->root_fd, path, DIR_MODE);
}

int bounded_dir_create(struct bounded_dir *bounded_dir, struct bounded_dir_file *ret)
{
    char path[FULL_PATH_MAX];
    int r;

    lock_take(&bounded_dir->lock);
    r = entries_prepare(bounded_dir);
    (void)snprintf(ret->name, sizeof(ret->name), ".new-%u", ++bounded_dir->last_new);
    lock_release(&bounded_dir->lock);
    if (r < 0)
        return r;
    file_path(bounded_dir, ret->name, path);
    for (int i = 0; i < 2; i++) {
        ret->fd = openat(bounded_dir->root_fd, path,
                         O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
        r = ret->fd < 0 ? -errno : 0;
        if (r != -ENOENT)
            return r;
        make_dirs(bounded_dir);
    }
    return r;
}

void bounded_dir_drop(struct bounded_dir *bounded_dir, struct bounded_dir_file *file)
{
    if (file->fd < 0)
        return;
    file->fd = fd_close(file->fd);
    file_remove(bounded_dir, file->name);
}

/* Locked. Renames the file and adds its entry; replaces one of the same name. */
static int entry_put(struct bounded_dir *bounded_dir, const struct bounded_dir_file *file,
                     const char *name, uint64_t bytes)
{
    char from[FULL_PATH_MAX], to[FULL_PATH_MAX];

    for (size_t i = 0; i < bounded_dir->count; i++) {
        if (strcmp(bounded_dir->entries[i].name, name) == 0) {
            entry_remove(bounded_dir, i);
            break;
        }
    }
    entries_make_room(bounded_dir, bytes);
    if (renameat(bounded_dir->root_fd, file_path(bounded_dir, file->name, from),
                 bounded_dir->root_fd, file_path(bounded_dir, name, to)) < 0)
        return -errno;
    entry_append(bounded_dir, name, bytes);
    return 0;
}

int bounded_dir_put(struct bounded_dir *bounded_dir, struct bounded_dir_file *file,
                    const char *name)
{
    struct stat info;
    int r = fstat(file->fd, &info) < 0 ? -errno : 0;

    if (r == 0 && (uint64_t)info.st_size > bounded_dir->bytes_max)
        r = -EFBIG;
    lock_take(&bounded_dir->lock);
    if (r == 0)
        r = entries_prepare(bounded_dir);
    if (r == 0)
        r = entry_put(bounded_dir, file, name, (uint64_t)info.st_size);
    lock_release(&bounded_dir->lock);
    if (r < 0)
        bounded_dir_drop(bounded_dir, file);
    else
        file->fd = fd_close(file->fd);
    return r;
}

uint64_t bounded_dir_next_number(struct bounded_dir *bounded_dir)
{
    uint64_t number;

    lock_take(&bounded_dir->lock);
    (void)entries_prepare(bounded_dir);
    number = ++bounded_dir->last_number;
    lock_release(&bounded_dir->lock);
    return number;
}

int bounded_dir_open(struct bounded_dir *bounded_dir, const char *name)
{
    char path[FULL_PATH_MAX];
    int fd;

    if (!is_handle(name, BOUNDED_DIR_NAME_MAX))
        return -ENOENT;
    fd = openat(bounded_dir->root_fd, file_path(bounded_dir, name, path),
                O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

void bounded_dir_purge(struct bounded_dir *bounded_dir)
{
    lock_take(&bounded_dir->lock);
    bounded_dir->is_purged = true;
    bounded_dir->count = 0;
    bounded_dir->bytes = 0;
    (void)tree_remove_at(bounded_dir->root_fd, bounded_dir->path);
    lock_release(&bounded_dir->lock);
}
