// SPDX-License-Identifier: Apache-2.0
/* File metadata that clients set, stored in extended attributes. Processes of the sandbox may set
 * those to anything too. */
#include <errno.h>
#include <linux/limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

#include "guest/files/file_internal.h"

enum { NAMES_SIZE = 64 * 1024, PREFIX_LEN = sizeof(FILE_META_PREFIX) - 1 };

static bool is_meta(const char *name)
{
    return strncmp(name, FILE_META_PREFIX, PREFIX_LEN) == 0 && name[PREFIX_LEN];
}

/* Appends one name and value. Returns the bytes added, 0 if it does not fit or contains NUL. */
static size_t meta_add(const char *path, const char *name, bool follows, char *ret, size_t size)
{
    size_t name_size = strlen(name + PREFIX_LEN) + 1;
    char *value = ret + name_size;
    ssize_t len;

    if (name_size + 1 >= size)
        return 0;
    len = follows ? getxattr(path, name, value, size - name_size - 1)
                  : lgetxattr(path, name, value, size - name_size - 1);
    if (len < 0 || (size_t)len > size - name_size - 1 || memchr(value, '\0', (size_t)len))
        return 0;
    memcpy(ret, name + PREFIX_LEN, name_size);
    value[len] = '\0';
    return name_size + (size_t)len + 1;
}

size_t meta_read(const char *full_path, bool follows, char *ret, size_t size)
{
    static char names[NAMES_SIZE]; /* there is one thread */
    size_t used = 0;
    ssize_t len = full_path[0] == '\0' ? 0
                  : follows            ? listxattr(full_path, names, sizeof(names))
                                       : llistxattr(full_path, names, sizeof(names));

    for (ssize_t at = 0; at < len; at += (ssize_t)strlen(names + at) + 1)
        if (is_meta(names + at))
            used += meta_add(full_path, names + at, follows, ret + used, size - used);
    return used;
}

static int meta_remove_all(int fd)
{
    static char names[NAMES_SIZE];
    ssize_t len = flistxattr(fd, names, sizeof(names));

    if (len < 0)
        return errno == ENOTSUP ? 0 : -errno;
    for (ssize_t at = 0; at < len; at += (ssize_t)strlen(names + at) + 1)
        if (is_meta(names + at) && fremovexattr(fd, names + at) < 0 && errno != ENODATA)
            return -errno;
    return 0;
}

int meta_replace(int fd, const char *meta, size_t len)
{
    const char *end = meta + len;
    int r = meta_remove_all(fd);

    while (r == 0 && meta < end) {
        char name[XATTR_NAME_MAX + 1];
        const char *value = meta + strlen(meta) + 1;

        if (snprintf(name, sizeof(name), "%s%s", FILE_META_PREFIX, meta) >= (int)sizeof(name))
            return -ENAMETOOLONG;
        if (fsetxattr(fd, name, value, strlen(value), 0) < 0)
            r = -errno;
        meta = value + strlen(value) + 1;
    }
    return r;
}
