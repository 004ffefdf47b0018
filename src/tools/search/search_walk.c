// SPDX-License-Identifier: Apache-2.0
#include "tools/search/search_walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "tools/search/ignore.h"
#include "tools/search/search_dir.h"

enum {
    READ_BYTES = 256 * 1024,
    OPEN_DEPTH = 64, /* parents of the current directory that stay open */
};

struct found {
    uint64_t key; /* the first bytes of the name, which most comparisons need only */
    uint32_t at;  /* in names; a directory has a slash at its end, for sorting */
    uint16_t len; /* with the slash */
    bool is_dir, is_link;
};

/* A directory on the path from the start to the current one. */
struct level {
    struct search_dir *dir;
    bool is_parked;
    void *data;
    struct ignore *own; /* its own rules; a chain that ends at `above` */
    const struct ignore *above;
    size_t path_len; /* of the walker's path for this directory */
    struct found *found;
    size_t count, cap, next;
    char *names;
    size_t names_len, names_cap;
    bool has_git, has_gitignore;
};

struct walker {
    struct search_walk *walk;
    struct level *levels;
    size_t depth, cap;
    char *path; /* with a slash at the end; relative to the repository with gitignore */
    size_t path_len, path_cap, prefix_len;
    char *buffer;
    struct ignore *repository;
};

static void walker_set_path(struct walker *walker, size_t at, const char *text, size_t len)
{
    if (at + len + 2 > walker->path_cap) {
        size_t cap = (at + len + 2) * 2;
        char *path = realloc(walker->path, cap);

        if (!path)
            abort();
        walker->path = path;
        walker->path_cap = cap;
    }
    memcpy(walker->path + at, text, len);
    walker->path[at + len] = '\0';
}

static void *array_grow(void *array, size_t *cap, size_t needed, size_t size)
{
    size_t wanted = *cap ? *cap : 64;

    if (needed <= *cap)
        return array;
    while (wanted < needed)
        wanted *= 2;
    array = realloc(array, wanted * size);
    if (!array)
        abort();
    *cap = wanted;
    return array;
}

static uint64_t sort_key(const char *text, size_t len)
{
    unsigned char bytes[8] = { 0 };
    uint64_t key;

    memcpy(bytes, text, len < 8 ? len : 8);
    memcpy(&key, bytes, sizeof(key));
    return be64toh(key);
}

static int found_compare(const void *a, const void *b, void *names)
{
    const struct found *one = a, *other = b;
    size_t len = one->len < other->len ? one->len : other->len;
    int r;

    if (one->key != other->key)
        return one->key < other->key ? -1 : 1;
    r = memcmp((const char *)names + one->at, (const char *)names + other->at, len);
    return r != 0 ? r : (one->len > other->len) - (one->len < other->len);
}

static void level_add(struct level *level, const struct search_entry *entry)
{
    size_t len = entry->len + entry->is_dir;
    struct found *found;
    char *name;

    level->found = array_grow(level->found, &level->cap, level->count + 1, sizeof(*level->found));
    level->names = array_grow(level->names, &level->names_cap, level->names_len + len + 1, 1);
    name = level->names + level->names_len;
    memcpy(name, entry->name, entry->len);
    if (entry->is_dir)
        name[entry->len] = '/';
    name[len] = '\0';
    found = &level->found[level->count++];
    *found = (struct found){ .key = sort_key(name, len),
                             .at = (uint32_t)level->names_len,
                             .len = (uint16_t)len,
                             .is_dir = entry->is_dir,
                             .is_link = entry->is_link };
    level->names_len += len + 1;
}

/* Finds the type; returns false unless it is a file or directory, or a link to one. */
static bool entry_find_type(const struct walker *walker, int fd, unsigned char type,
                            struct search_entry *entry)
{
    struct stat st;

    if (type == DT_UNKNOWN) {
        if (fstatat(fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            return false;
        type = IFTODT(st.st_mode);
    }
    if (type == DT_LNK) {
        if (!walker->walk->with_links || fstatat(fd, entry->name, &st, 0) < 0)
            return false;
        entry->is_link = true;
        type = IFTODT(st.st_mode);
    }
    entry->is_dir = type == DT_DIR;
    return type == DT_DIR || type == DT_REG;
}

static void level_take_entry(struct walker *walker, struct level *level,
                             const struct dirent64 *entry)
{
    struct search_walk *walk = walker->walk;
    struct search_entry new = { .name = entry->d_name, .len = strlen(entry->d_name) };
    bool is_hidden = entry->d_name[0] == '.';

    if (is_hidden && (strcmp(new.name, ".") == 0 || strcmp(new.name, "..") == 0))
        return;
    if (is_hidden && walk->gitignore && strcmp(new.name, ".git") == 0) {
        level->has_git = true;
        return;
    }
    if (is_hidden && walk->gitignore && strcmp(new.name, ".gitignore") == 0)
        level->has_gitignore = true;
    if (!entry_find_type(walker, level->dir->fd, entry->d_type, &new))
        return;
    if (is_hidden && new.is_dir && !walk->hidden) {
        walk->hidden_count++;
        return;
    }
    if (!walk->wants || walk->wants(walk->context, level->data, &new))
        level_add(level, &new);
}

static int level_read(struct walker *walker, struct level *level)
{
    for (;;) {
        long n = syscall(SYS_getdents64, level->dir->fd, walker->buffer, READ_BYTES);

        if (n <= 0)
            return n < 0 ? -errno : 0;
        for (long at = 0; at < n;) {
            const struct dirent64 *entry = (const struct dirent64 *)(walker->buffer + at);

            if (level->names_len > UINT32_MAX - 1024)
                return -E2BIG;
            level_take_entry(walker, level, entry);
            at += entry->d_reclen;
        }
    }
}

static void level_add_rules(struct level *level, struct ignore *more)
{
    if (more)
        level->own = more;
}

/* Reads the rules of a directory; in the root of a repository those of its parents do not apply. */
static void level_read_rules(struct walker *walker, struct level *level)
{
    int fd = level->dir->fd;

    if (level->has_git && walker->depth > 0) {
        level->above = NULL;
        level_add_rules(level, ignore_read(NULL, walker->path, fd, ".git/info/exclude"));
    }
    if (level->has_gitignore)
        level_add_rules(level, ignore_read(level->own ? level->own : level->above, walker->path, fd,
                                           ".gitignore"));
}

static void walker_report_unreadable(struct walker *walker, int error)
{
    struct search_walk *walk = walker->walk;

    if (walk->unreadable && error != -ENOENT)
        walk->unreadable(walk->context, walker->path + walker->prefix_len, -error);
}

static void level_done(struct walker *walker, struct level *level)
{
    struct search_walk *walk = walker->walk;

    while (level->own && level->own != level->above) {
        struct ignore *next = ignore_parent(level->own);

        ignore_free(level->own);
        level->own = next;
    }
    if (walk->leave)
        walk->leave(walk->context, level->data);
    if (!level->is_parked)
        search_dir_park(level->dir);
    search_dir_unref(level->dir);
    free(level->found);
    free(level->names);
}

/* Reads the directory at the walker's path and makes it the current one. */
static void walker_push(struct walker *walker, struct search_dir *dir, void *data,
                        const struct ignore *above)
{
    struct level level = { .dir = dir, .data = data, .above = above, .path_len = walker->path_len };
    int r = level_read(walker, &level);

    if (r < 0)
        walker_report_unreadable(walker, r); /* entries read so far are used */
    if (walker->walk->gitignore)
        level_read_rules(walker, &level);
    if (level.count > 0)
        qsort_r(level.found, level.count, sizeof(*level.found), found_compare, level.names);
    if (walker->depth > OPEN_DEPTH) {
        struct level *parent = &walker->levels[walker->depth - 1];

        search_dir_park(parent->dir);
        parent->is_parked = true;
    }
    walker->levels = array_grow(walker->levels, &walker->cap, walker->depth + 1, sizeof(level));
    walker->levels[walker->depth++] = level;
}

static bool is_proc_or_sys(int fd)
{
    struct statfs st;

    return fstatfs(fd, &st) == 0 && (st.f_type == PROC_SUPER_MAGIC || st.f_type == SYSFS_MAGIC);
}

static void walker_enter(struct walker *walker, struct level *level,
                         const struct search_entry *entry)
{
    struct search_walk *walk = walker->walk;
    const struct ignore *rules = level->own ? level->own : level->above;
    void *data = NULL;
    int fd;

    if (walk->enter && !walk->enter(walk->context, level->data, entry, &data))
        return;
    walker->path_len = level->path_len + entry->len;
    fd =
        openat(level->dir->fd, entry->name,
               O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK | (entry->is_link ? 0 : O_NOFOLLOW));
    if (fd < 0 || is_proc_or_sys(fd)) {
        if (fd < 0)
            walker_report_unreadable(walker, -errno);
        else
            (void)close(fd);
        if (walk->leave)
            walk->leave(walk->context, data);
        return;
    }
    walker_set_path(walker, walker->path_len++, "/", 1);
    walker_push(walker, search_dir_new(level->dir, entry->name, fd), data, rules);
}

/* Handles the next entry of the current directory; a negative result ends the walk. */
static int walker_step(struct walker *walker)
{
    struct search_walk *walk = walker->walk;
    struct level *level = &walker->levels[walker->depth - 1];
    struct found *found = &level->found[level->next++];
    struct search_entry entry = { .name = level->names + found->at,
                                  .len = (size_t)found->len - found->is_dir,
                                  .is_dir = found->is_dir,
                                  .is_link = found->is_link };

    level->names[found->at + entry.len] = '\0';
    walker_set_path(walker, level->path_len, entry.name, entry.len);
    if (walk->gitignore &&
        ignore_matches(level->own ? level->own : level->above, walker->path, entry.is_dir))
        return 0;
    if (!entry.is_dir)
        return walk->file(walk->context, level->dir, walker->path + walker->prefix_len, &entry);
    walker_enter(walker, level, &entry);
    return 0;
}

/* Returns to the parent directory and opens it again if it is parked. */
static void walker_pop(struct walker *walker)
{
    struct level *level;
    int r;

    level_done(walker, &walker->levels[--walker->depth]);
    if (walker->depth == 0)
        return;
    level = &walker->levels[walker->depth - 1];
    walker->path_len = level->path_len;
    if (!level->is_parked || level->next == level->count)
        return;
    r = search_dir_resume(level->dir);
    if (r < 0) {
        walker_report_unreadable(walker, r);
        level->next = level->count;
        return;
    }
    level->is_parked = false;
}

void search_walk(struct search_walk *walk)
{
    struct walker walker = { .walk = walk };
    cleanup_free char *prefix = NULL;
    void *data = NULL;
    int r = 0;

    if (walk->gitignore)
        walker.repository = ignore_of_repository(walk->start, &prefix);
    if (walk->enter && !walk->enter(walk->context, NULL, NULL, &data)) {
        (void)close(walk->fd);
        return;
    }
    walker.prefix_len = prefix ? strlen(prefix) : 0;
    walker_set_path(&walker, 0, prefix ? prefix : "", walker.prefix_len);
    walker.path_len = walker.prefix_len;
    walker.buffer = xcalloc(1, READ_BYTES);
    walker_push(&walker, search_dir_new(NULL, "", walk->fd), data, walker.repository);
    while (walker.depth > 0) {
        const struct level *level = &walker.levels[walker.depth - 1];

        if (r < 0 || level->next == level->count)
            walker_pop(&walker);
        else
            r = walker_step(&walker);
        if (r < 0 && walker.depth > 0)
            walker.levels[walker.depth - 1].next = walker.levels[walker.depth - 1].count;
    }
    while (walker.repository) {
        struct ignore *next = ignore_parent(walker.repository);

        ignore_free(walker.repository);
        walker.repository = next;
    }
    free(walker.buffer);
    free(walker.levels);
    free(walker.path);
}
