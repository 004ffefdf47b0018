// SPDX-License-Identifier: Apache-2.0
#include "agent/catalog.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "agent/type.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text/parse.h"
#include "base/xalloc.h"

enum { TYPES_MAX = 256 };
#define SUFFIX ".conf"

struct names {
    char **items;
    size_t count;
};

static void names_done(struct names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->items[i]);
    free(names->items);
}

static bool names_have(const struct names *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->items[i], name) == 0)
            return true;
    return false;
}

/* Opens the directory of the shipped types: in the source of a build tree, or where make install
 * puts it. */
static int shipped_open(void)
{
    static const char *const folders[] = { "../share/holt/agents", "../agents",
                                           "../../agents" /* of build/asan/holtd */ };
    char self[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (len < 0)
        return -EBADF;
    self[len] = '\0';
    *strrchr(self, '/') = '\0';
    for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
        cleanup_free char *path = xasprintf("%s/%s", self, folders[i]);
        cleanup_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (fd >= 0 && faccessat(fd, "shell" SUFFIX, R_OK, 0) == 0)
            return TAKE_FD(fd);
    }
    return -EBADF;
}

static int own_open(const char *own_dir)
{
    return *own_dir ? open(own_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -EBADF;
}

/* Returns the name of the type in a file of this name, or NULL. */
static char *name_of(const char *file)
{
    size_t len = strlen(file), suffix = strlen(SUFFIX);
    char *name;

    if (len <= suffix || strcmp(file + len - suffix, SUFFIX) != 0)
        return NULL;
    name = xstrdup(file);
    name[len - suffix] = '\0';
    if (is_name(name))
        return name;
    free(name);
    return NULL;
}

/* Adds the names of a directory, if there is one. */
static void names_add(struct names *names, int dir_fd)
{
    cleanup_with(closedir_slot) DIR *dir = dir_fd < 0 ? NULL : fdopendir(dir_fd);
    const struct dirent *each;

    while (dir && names->count < TYPES_MAX && (each = readdir(dir))) {
        cleanup_free char *name = name_of(each->d_name);

        if (name && !names_have(names, name))
            names->items[names->count++] = TAKE_PTR(name);
    }
}

static int name_compare(const void *one, const void *other)
{
    return strcmp(*(char *const *)one, *(char *const *)other);
}

static void names_read(const char *own_dir, struct names *ret)
{
    ret->items = xcalloc(TYPES_MAX, sizeof(*ret->items));
    names_add(ret, own_open(own_dir));
    names_add(ret, shipped_open());
    qsort(ret->items, ret->count, sizeof(*ret->items), name_compare);
}

void agent_catalog_names(const char *own_dir, char ***ret, size_t *ret_count)
{
    struct names names = { .count = 0 };

    names_read(own_dir, &names);
    *ret = names.items;
    *ret_count = names.count;
}

/* Returns the whole name that the text stands for, or the text. */
static const char *name_complete(const struct names *names, const char *text)
{
    const char *found = NULL;

    if (names_have(names, text))
        return text;
    for (size_t i = 0; i < names->count; i++) {
        if (strncmp(names->items[i], text, strlen(text)) != 0)
            continue;
        if (found)
            return text;
        found = names->items[i];
    }
    return found ? found : text;
}

/* Reads the file from this directory, which is closed. Returns -ENOENT if it is not there. */
static int file_load(int dir_fd, const char *name, struct agent_type *ret, struct err *err)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(AGENT_FILE_BYTES);
    cleanup_free char *file = xasprintf("%s" SUFFIX, name);
    cleanup_close int fd = dir_fd;
    int r = fd < 0 ? -ENOENT : file_read_at(fd, file, &text);

    if (r == -ENOENT)
        return r;
    if (r < 0)
        return err_sys(err, r, "read the agent type %s", file);
    if (text.len == 0 || strlen(text.data) != text.len)
        return err_set(err, ERR_INVALID, "%s is not a text file", file);
    return agent_type_parse(name, file, text.data, ret, err);
}

int agent_catalog_find(const char *own_dir, const char *name, struct agent_type *ret,
                       struct err *err)
{
    cleanup_with(names_done) struct names names = { .count = 0 };
    const char *whole;
    int r;

    names_read(own_dir, &names);
    whole = name_complete(&names, name);
    if (!names_have(&names, whole))
        return err_set(err, ERR_NOT_FOUND, "no agent type '%.64s'; see 'holt agent ls'", name);
    r = file_load(own_open(own_dir), whole, ret, err);
    if (r == -ENOENT)
        r = file_load(shipped_open(), whole, ret, err);
    if (r == -ENOENT)
        return err_set(err, ERR_NOT_FOUND, "the file of agent type '%s' is gone", whole);
    return r;
}
