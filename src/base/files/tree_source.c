// SPDX-License-Identifier: Apache-2.0
#include "base/files/tree_source.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/files/file_entry.h"
#include "base/xalloc.h"

enum {
    DATA_CHUNK = 256 * 1024,
    NAMED_MAX = 1 << 16, /* files with several names that are remembered; others are told twice */
    NAMES_BYTES_MAX = 256 << 20,
};

/* A file that has been told of and has other names. */
struct named {
    dev_t dev;
    ino_t ino;
    char path[];
};

/* The names in one directory, in order. */
struct names {
    char *text; /* one behind the other, each with its NUL */
    const char **list;
    size_t count;
};

struct source {
    const struct tree_source *options;
    const struct tree_source_ops *ops;
    void *context;
    char path[ENTRY_PATH_MAX + 1];
    size_t path_len;
    uint32_t level; /* directories that we are in */
    void *named;
    size_t named_count;
    char *data;
};

int tree_source_compare(const char *one, const char *other)
{
    while (*one && *one == *other) {
        one++;
        other++;
    }
    /* A slash stands before every byte that a name can have. */
    unsigned char a = *one == '/' ? 1 : *one == '\0' ? 0 : (unsigned char)*one;
    unsigned char b = *other == '/' ? 1 : *other == '\0' ? 0 : (unsigned char)*other;

    if (a == b)
        return *one == *other ? 0 : *one == '/' ? -1 : 1;
    return a < b ? -1 : 1;
}

static int compare_named(const void *one, const void *other)
{
    const struct named *a = one, *b = other;

    if (a->dev != b->dev)
        return a->dev < b->dev ? -1 : 1;
    return a->ino == b->ino ? 0 : a->ino < b->ino ? -1 : 1;
}

static int compare_names(const void *one, const void *other)
{
    return strcmp(*(const char *const *)one, *(const char *const *)other);
}

static void names_done(struct names *names)
{
    free(names->text);
    free((void *)names->list);
}

static int names_add(struct names *names, const char *name, size_t *used, size_t *size)
{
    size_t len = strlen(name) + 1;

    if (*used + len > *size) {
        size_t wanted = *size ? *size * 2 : 4096;
        char *text = wanted > NAMES_BYTES_MAX ? NULL : realloc(names->text, wanted);

        if (!text)
            return -ENOMEM;
        names->text = text;
        *size = wanted;
    }
    memcpy(names->text + *used, name, len);
    *used += len;
    names->count++;
    return 0;
}

/* Takes fd, and reads all of the directory before anything else is opened in it. */
static int names_read(int fd, struct names *names)
{
    DIR *dir = fdopendir(fd);
    size_t used = 0, size = 0;
    struct dirent *entry;
    int r = 0;

    if (!dir) {
        r = -errno;
        (void)close(fd);
        return r;
    }
    while (r == 0 && (errno = 0, entry = readdir(dir)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            r = names_add(names, entry->d_name, &used, &size);
    if (r == 0)
        r = -errno;
    (void)closedir(dir);
    if (r < 0)
        return r;
    names->list = calloc(names->count + 1, sizeof(*names->list));
    if (!names->list)
        return -ENOMEM;
    for (size_t i = 0, at = 0; i < names->count; i++, at += strlen(names->text + at) + 1)
        names->list[i] = names->text + at;
    qsort((void *)names->list, names->count, sizeof(*names->list), compare_names);
    return 0;
}

static int trouble(struct source *source, int r)
{
    return source->ops->trouble(source->context, source->path, -r);
}

/* Appends a part to the path: the length before, or -ENAMETOOLONG. */
static ssize_t path_push(struct source *source, const char *name)
{
    size_t before = source->path_len, len = strlen(name);

    if (before + 1 + len > ENTRY_PATH_MAX)
        return -ENAMETOOLONG;
    if (before > 0)
        source->path[source->path_len++] = '/';
    memcpy(source->path + source->path_len, name, len + 1);
    source->path_len += len;
    return (ssize_t)before;
}

static void path_pop(struct source *source, size_t before)
{
    source->path_len = before;
    source->path[before] = '\0';
}

/* Whether the file has been told of already, and if so under which path. */
static const char *name_before(struct source *source, const struct stat *st)
{
    size_t size = sizeof(struct named) + source->path_len + 1;
    struct named *named, **found;

    if (!source->options->wants_data || !S_ISREG(st->st_mode) || st->st_nlink < 2 ||
        source->named_count >= NAMED_MAX)
        return "";
    named = xcalloc(1, size);
    named->dev = st->st_dev;
    named->ino = st->st_ino;
    memcpy(named->path, source->path, source->path_len + 1);
    found = tsearch(named, &source->named, compare_named);
    if (found && *found == named) {
        source->named_count++;
        return "";
    }
    free(named);
    return found ? (*found)->path : "";
}

/* Only what comes behind options->after is told of; but a directory may hold such things. */
static bool is_wanted(const struct source *source)
{
    const char *after = source->options->after;

    return !after || tree_source_compare(source->path, after) > 0;
}

/* Whether it is the last that was told of before, or a directory which that is in. */
static bool is_on_the_way(const struct source *source)
{
    const char *after = source->options->after;

    return after && strncmp(source->path, after, source->path_len) == 0 &&
           (after[source->path_len] == '/' || after[source->path_len] == '\0');
}

static int tell_data(struct source *source, int fd)
{
    if (!source->data)
        source->data = xcalloc(1, DATA_CHUNK);
    for (;;) {
        ssize_t n = read(fd, source->data, DATA_CHUNK);
        int r;

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return trouble(source, -errno);
        if (n == 0)
            return 0;
        r = source->ops->data(source->context, source->data, (size_t)n);
        if (r < 0)
            return r;
    }
}

static int tell(struct source *source, int dir_fd, const char *name, const struct stat *st)
{
    char target[ENTRY_PATH_MAX + 1];
    struct file_entry entry = entry_of(source->path, st);

    if (S_ISLNK(st->st_mode)) {
        ssize_t len = readlinkat(dir_fd, name, target, sizeof(target) - 1);

        if (len < 0)
            return trouble(source, -errno);
        target[len] = '\0';
        entry.target = target;
    }
    entry.same_as = name_before(source, st);
    return source->ops->entry(source->context, &entry);
}

static int visit(struct source *source, int dir_fd, const char *name, bool follows);

/* Takes fd. */
static int visit_inside(struct source *source, int fd)
{
    cleanup_with(names_done) struct names names = { .text = NULL };
    cleanup_close int dir_fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    int r = dir_fd < 0 ? -errno : 0;

    if (r == 0)
        r = names_read(fd, &names);
    else
        (void)close(fd);
    if (r < 0)
        return trouble(source, r);
    if (source->level >= TREE_SOURCE_DEPTH_MAX)
        return trouble(source, -ENAMETOOLONG);
    source->level++;
    for (size_t i = 0; r == 0 && i < names.count; i++) {
        ssize_t before = path_push(source, names.list[i]);

        if (before < 0) {
            r = trouble(source, (int)before);
            continue;
        }
        r = visit(source, dir_fd, names.list[i], false);
        path_pop(source, (size_t)before);
    }
    source->level--;
    return r;
}

static int visit_directory(struct source *source, int dir_fd, const char *name, int flags)
{
    int fd;

    if (source->options->depth && source->level >= source->options->depth)
        return 0;
    fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK | flags);
    return fd < 0 ? trouble(source, -errno) : visit_inside(source, fd);
}

/* What is opened is told of, not what had its name a moment before. */
static int visit_file(struct source *source, int dir_fd, const char *name, int flags)
{
    cleanup_close int fd =
        openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags);
    struct file_entry entry;
    struct stat st;
    int r;

    if (fd < 0 || fstat(fd, &st) < 0)
        return trouble(source, -errno);
    if (!S_ISREG(st.st_mode))
        return trouble(source, -ESTALE);
    entry = entry_of(source->path, &st);
    entry.same_as = name_before(source, &st);
    r = source->ops->entry(source->context, &entry);
    return r < 0 || entry.same_as[0] ? r : tell_data(source, fd);
}

static int visit(struct source *source, int dir_fd, const char *name, bool follows)
{
    int flags = follows ? 0 : O_NOFOLLOW, r = 0;
    bool is_top = source->level == 0, is_told = !is_top || !source->options->skips_top;
    struct stat st;

    if (!is_top && !is_wanted(source) && !is_on_the_way(source))
        return 0;
    if (fstatat(dir_fd, name, &st, follows ? 0 : AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT && !is_top ? 0 : trouble(source, -errno);
    if (S_ISREG(st.st_mode) && source->options->wants_data)
        return visit_file(source, dir_fd, name, flags);
    if (is_told && is_wanted(source))
        r = tell(source, dir_fd, name, &st);
    if (r < 0 || !S_ISDIR(st.st_mode))
        return r;
    return visit_directory(source, dir_fd, name, flags);
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash && slash[1] ? slash + 1 : path;
}

int tree_source_run(int dir_fd, const char *name, const struct tree_source *options,
                    const struct tree_source_ops *ops, void *context)
{
    struct source *source = xcalloc(1, sizeof(*source));
    ssize_t r = 0;

    *source = (struct source){ .options = options, .ops = ops, .context = context };
    if (!options->skips_top)
        r = path_push(source, options->rename ? options->rename : last_part(name));
    if (r >= 0)
        r = visit(source, dir_fd, name, options->follows_top);
    while (source->named) {
        struct named *named = *(struct named **)source->named;

        (void)tdelete(named, &source->named, compare_named);
        free(named);
    }
    free(source->data);
    free(source);
    return (int)r;
}
