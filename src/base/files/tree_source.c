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
    NAMED_MAX = 1 << 16, /* hard-linked files that are remembered; further ones are reported as
                            separate files */
    NAMES_BYTES_MAX = 256 << 20,
};

/* A reported file that has other hard links. */
struct named {
    dev_t dev;
    ino_t ino;
    char path[];
};

/* The names in one directory, in order. */
struct names {
    char *text; /* consecutive, each with its NUL */
    const char **list;
    size_t count;
};

struct source {
    const struct tree_source *options;
    const struct tree_source_ops *ops;
    void *context;
    char path[ENTRY_PATH_MAX + 1];
    size_t path_len;
    uint32_t level; /* depth of the current directory */
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
    /* A slash sorts before every byte of a name. */
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

/* Takes ownership of fd, and reads the whole directory before anything in it is opened. */
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

static int report_trouble(struct source *source, int r)
{
    return source->ops->trouble(source->context, source->path, -r);
}

/* Appends a component to the path. Returns the previous length, or -ENAMETOOLONG. */
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

/* Returns the path under which the file was already reported, or "" after recording it. */
static const char *first_path(struct source *source, const struct stat *st)
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

/* Only paths after options->after are reported; but a directory before it may contain such paths.
 */
static bool is_wanted(const struct source *source)
{
    const char *after = source->options->after;

    return !after || tree_source_compare(source->path, after) > 0;
}

/* Returns whether the current path is options->after or a parent of it. */
static bool is_on_path_to_after(const struct source *source)
{
    const char *after = source->options->after;

    return after && strncmp(source->path, after, source->path_len) == 0 &&
           (after[source->path_len] == '/' || after[source->path_len] == '\0');
}

static int report_data(struct source *source, int fd)
{
    if (!source->data)
        source->data = xcalloc(1, DATA_CHUNK);
    for (;;) {
        ssize_t n = read(fd, source->data, DATA_CHUNK);
        int r;

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return report_trouble(source, -errno);
        if (n == 0)
            return 0;
        r = source->ops->data(source->context, source->data, (size_t)n);
        if (r < 0)
            return r;
    }
}

static int report_entry(struct source *source, int dir_fd, const char *name, const struct stat *st)
{
    char target[ENTRY_PATH_MAX + 1];
    struct file_entry entry = entry_of(source->path, st);

    if (S_ISLNK(st->st_mode)) {
        ssize_t len = readlinkat(dir_fd, name, target, sizeof(target) - 1);

        if (len < 0)
            return report_trouble(source, -errno);
        target[len] = '\0';
        entry.target = target;
    }
    entry.same_as = first_path(source, st);
    return source->ops->entry(source->context, &entry);
}

static int entry_visit(struct source *source, int dir_fd, const char *name, bool follows);

/* Takes ownership of fd. */
static int directory_visit_contents(struct source *source, int fd)
{
    cleanup_with(names_done) struct names names = { .text = NULL };
    cleanup_close int dir_fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    int r = dir_fd < 0 ? -errno : 0;

    if (r == 0)
        r = names_read(fd, &names);
    else
        (void)close(fd);
    if (r < 0)
        return report_trouble(source, r);
    if (source->level >= TREE_SOURCE_DEPTH_MAX)
        return report_trouble(source, -ENAMETOOLONG);
    source->level++;
    for (size_t i = 0; r == 0 && i < names.count; i++) {
        ssize_t before = path_push(source, names.list[i]);

        if (before < 0) {
            r = report_trouble(source, (int)before);
            continue;
        }
        r = entry_visit(source, dir_fd, names.list[i], false);
        path_pop(source, (size_t)before);
    }
    source->level--;
    return r;
}

static int directory_visit(struct source *source, int dir_fd, const char *name, int flags)
{
    int fd;

    if (source->options->depth && source->level >= source->options->depth)
        return 0;
    fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK | flags);
    return fd < 0 ? report_trouble(source, -errno) : directory_visit_contents(source, fd);
}

/* Reports the file that was opened, not the one that had its name before. */
static int file_visit(struct source *source, int dir_fd, const char *name, int flags)
{
    cleanup_close int fd =
        openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags);
    struct file_entry entry;
    struct stat st;
    int r;

    if (fd < 0 || fstat(fd, &st) < 0)
        return report_trouble(source, -errno);
    if (!S_ISREG(st.st_mode))
        return report_trouble(source, -ESTALE);
    entry = entry_of(source->path, &st);
    entry.same_as = first_path(source, &st);
    r = source->ops->entry(source->context, &entry);
    return r < 0 || entry.same_as[0] ? r : report_data(source, fd);
}

static int entry_visit(struct source *source, int dir_fd, const char *name, bool follows)
{
    int flags = follows ? 0 : O_NOFOLLOW, r = 0;
    bool is_top = source->level == 0, is_reported = !is_top || !source->options->skips_top;
    struct stat st;

    if (!is_top && !is_wanted(source) && !is_on_path_to_after(source))
        return 0;
    if (fstatat(dir_fd, name, &st, follows ? 0 : AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT && !is_top ? 0 : report_trouble(source, -errno);
    if (!is_top && source->ops->omits &&
        source->ops->omits(source->context, source->path, S_ISDIR(st.st_mode)))
        return 0;
    if (S_ISREG(st.st_mode) && source->options->wants_data)
        return file_visit(source, dir_fd, name, flags);
    if (is_reported && is_wanted(source))
        r = report_entry(source, dir_fd, name, &st);
    if (r < 0 || !S_ISDIR(st.st_mode))
        return r;
    return directory_visit(source, dir_fd, name, flags);
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
        r = entry_visit(source, dir_fd, name, options->follows_top);
    while (source->named) {
        struct named *named = *(struct named **)source->named;

        (void)tdelete(named, &source->named, compare_named);
        free(named);
    }
    free(source->data);
    free(source);
    return (int)r;
}
