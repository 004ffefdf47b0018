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

enum { DIR_MODE = 0700, FILE_MODE = 0600, FULL_PATH_MAX = SHELF_PATH_MAX + SHELF_NAME_MAX + 2 };

void shelf_init(struct tool_shelf *shelf, int root_fd, const char *path, size_t files_max,
                uint64_t bytes_max)
{
    *shelf =
        (struct tool_shelf){ .root_fd = root_fd, .files_max = files_max, .bytes_max = bytes_max };
    (void)snprintf(shelf->path, sizeof(shelf->path), "%s", path);
    lock_init(&shelf->lock, LOCK_TOOL_RESULTS);
}

void shelf_done(struct tool_shelf *shelf)
{
    lock_destroy(&shelf->lock);
    free(shelf->entries);
}

static const char *path_of(const struct tool_shelf *shelf, const char *name,
                           char into[static FULL_PATH_MAX])
{
    (void)snprintf(into, FULL_PATH_MAX, "%s/%s", shelf->path, name);
    return into;
}

static void remove_file(const struct tool_shelf *shelf, const char *name)
{
    char path[FULL_PATH_MAX];

    (void)unlinkat(shelf->root_fd, path_of(shelf, name, path), 0);
}

/* --- what is there --------------------------------------------------------------------------- */

/* Locked. */
static void append(struct tool_shelf *shelf, const char *name, uint64_t bytes)
{
    struct shelf_entry *entry = &shelf->entries[shelf->count++];
    uint64_t number;

    *entry = (struct shelf_entry){ .bytes = bytes };
    (void)snprintf(entry->name, sizeof(entry->name), "%s", name);
    shelf->bytes += bytes;
    if (parse_u64(name + 1, &number) == 0 && number > shelf->last_number)
        shelf->last_number = number;
}

/* Locked. */
static void take_out(struct tool_shelf *shelf, size_t index)
{
    shelf->bytes -= shelf->entries[index].bytes;
    shelf->count--;
    memmove(&shelf->entries[index], &shelf->entries[index + 1],
            (shelf->count - index) * sizeof(*shelf->entries));
}

/* Locked. Makes room for one more of this size. */
static void make_room(struct tool_shelf *shelf, uint64_t bytes)
{
    while (shelf->count > 0 &&
           (shelf->count >= shelf->files_max || shelf->bytes + bytes > shelf->bytes_max)) {
        remove_file(shelf, shelf->entries[0].name);
        take_out(shelf, 0);
    }
}

struct found {
    char name[SHELF_NAME_MAX + 1];
    struct timespec when;
    uint64_t bytes;
};

static int compare_found(const void *one, const void *other)
{
    const struct found *a = one, *b = other;

    if (a->when.tv_sec != b->when.tv_sec)
        return a->when.tv_sec < b->when.tv_sec ? -1 : 1;
    if (a->when.tv_nsec != b->when.tv_nsec)
        return a->when.tv_nsec < b->when.tv_nsec ? -1 : 1;
    return strcmp(a->name, b->name);
}

/* Whether it is one of ours; what was never finished goes. */
static bool look_at(struct tool_shelf *shelf, const char *name, struct found *ret)
{
    char path[FULL_PATH_MAX];
    struct stat info;

    if (name[0] == '.') {
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && strlen(name) < SHELF_NAME_MAX)
            remove_file(shelf, name);
        return false;
    }
    if (strlen(name) > SHELF_NAME_MAX ||
        fstatat(shelf->root_fd, path_of(shelf, name, path), &info, AT_SYMLINK_NOFOLLOW) < 0 ||
        !S_ISREG(info.st_mode))
        return false;
    *ret = (struct found){ .when = info.st_mtim, .bytes = (uint64_t)info.st_size };
    (void)snprintf(ret->name, sizeof(ret->name), "%s", name);
    return true;
}

/* Locked. What an earlier life has left; more than there may be of it does not count. */
static void load(struct tool_shelf *shelf)
{
    cleanup_free struct found *list = xcalloc(shelf->files_max * 2, sizeof(*list));
    int fd = openat(shelf->root_fd, shelf->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    size_t count = 0;

    shelf->is_loaded = true;
    shelf->entries = xcalloc(shelf->files_max + 1, sizeof(*shelf->entries));
    while (dir && count < shelf->files_max * 2 && (entry = readdir(dir)))
        count += look_at(shelf, entry->d_name, &list[count]);
    if (dir)
        (void)closedir(dir);
    else
        (void)fd_close(fd);
    qsort(list, count, sizeof(*list), compare_found);
    for (size_t i = 0; i < count; i++) {
        make_room(shelf, list[i].bytes);
        append(shelf, list[i].name, list[i].bytes);
    }
}

/* Locked. */
static int be_ready(struct tool_shelf *shelf)
{
    if (shelf->is_purged)
        return -ENOENT;
    if (!shelf->is_loaded)
        load(shelf);
    return 0;
}

/* --- putting there --------------------------------------------------------------------------- */

/* The directory and those above it, below the root. */
static void make_dirs(const struct tool_shelf *shelf)
{
    char path[SHELF_PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s", shelf->path);
    for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdirat(shelf->root_fd, path, DIR_MODE);
        *slash = '/';
    }
    (void)mkdirat(shelf->root_fd, path, DIR_MODE);
}

int shelf_create(struct tool_shelf *shelf, struct shelf_file *ret)
{
    char path[FULL_PATH_MAX];
    int r;

    lock_take(&shelf->lock);
    r = be_ready(shelf);
    (void)snprintf(ret->name, sizeof(ret->name), ".new-%u", ++shelf->last_new);
    lock_release(&shelf->lock);
    if (r < 0)
        return r;
    path_of(shelf, ret->name, path);
    for (int i = 0; i < 2; i++) {
        ret->fd = openat(shelf->root_fd, path, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
                         FILE_MODE);
        r = ret->fd < 0 ? -errno : 0;
        if (r != -ENOENT)
            return r;
        make_dirs(shelf);
    }
    return r;
}

void shelf_drop(struct tool_shelf *shelf, struct shelf_file *file)
{
    if (file->fd < 0)
        return;
    file->fd = fd_close(file->fd);
    remove_file(shelf, file->name);
}

/* Locked. */
static int place(struct tool_shelf *shelf, const struct shelf_file *file, const char *name,
                 uint64_t bytes)
{
    char from[FULL_PATH_MAX], to[FULL_PATH_MAX];

    for (size_t i = 0; i < shelf->count; i++) {
        if (strcmp(shelf->entries[i].name, name) == 0) {
            take_out(shelf, i);
            break;
        }
    }
    make_room(shelf, bytes);
    if (renameat(shelf->root_fd, path_of(shelf, file->name, from), shelf->root_fd,
                 path_of(shelf, name, to)) < 0)
        return -errno;
    append(shelf, name, bytes);
    return 0;
}

int shelf_put(struct tool_shelf *shelf, struct shelf_file *file, const char *name)
{
    struct stat info;
    int r = fstat(file->fd, &info) < 0 ? -errno : 0;

    if (r == 0 && (uint64_t)info.st_size > shelf->bytes_max)
        r = -EFBIG;
    lock_take(&shelf->lock);
    if (r == 0)
        r = be_ready(shelf);
    if (r == 0)
        r = place(shelf, file, name, (uint64_t)info.st_size);
    lock_release(&shelf->lock);
    if (r < 0)
        shelf_drop(shelf, file);
    else
        file->fd = fd_close(file->fd);
    return r;
}

uint64_t shelf_next_number(struct tool_shelf *shelf)
{
    uint64_t number;

    lock_take(&shelf->lock);
    (void)be_ready(shelf);
    number = ++shelf->last_number;
    lock_release(&shelf->lock);
    return number;
}

int shelf_open(struct tool_shelf *shelf, const char *name)
{
    char path[FULL_PATH_MAX];
    int fd;

    if (!is_handle(name, SHELF_NAME_MAX))
        return -ENOENT;
    fd = openat(shelf->root_fd, path_of(shelf, name, path), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

void shelf_purge(struct tool_shelf *shelf)
{
    lock_take(&shelf->lock);
    shelf->is_purged = true;
    shelf->count = 0;
    shelf->bytes = 0;
    (void)tree_remove_at(shelf->root_fd, shelf->path);
    lock_release(&shelf->lock);
}
