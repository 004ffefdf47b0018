// SPDX-License-Identifier: Apache-2.0
#include "base/files/file_entry.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char *const type_names[ENTRY_TYPES] = {
    [ENTRY_NONE] = "",
    [ENTRY_FILE] = "file",
    [ENTRY_DIRECTORY] = "directory",
    [ENTRY_LINK] = "link",
    [ENTRY_PIPE] = "pipe",
    [ENTRY_SOCKET] = "socket",
    [ENTRY_CHARACTER_DEVICE] = "character-device",
    [ENTRY_BLOCK_DEVICE] = "block-device",
};

enum entry_type entry_type_of(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG:
        return ENTRY_FILE;
    case S_IFDIR:
        return ENTRY_DIRECTORY;
    case S_IFLNK:
        return ENTRY_LINK;
    case S_IFIFO:
        return ENTRY_PIPE;
    case S_IFSOCK:
        return ENTRY_SOCKET;
    case S_IFCHR:
        return ENTRY_CHARACTER_DEVICE;
    case S_IFBLK:
        return ENTRY_BLOCK_DEVICE;
    default:
        return ENTRY_NONE;
    }
}

struct file_entry entry_of(const char *path, const struct stat *st)
{
    return (struct file_entry){
        .path = path,
        .type = entry_type_of(st->st_mode),
        .mode = (uint32_t)st->st_mode & 07777,
        .uid = st->st_uid,
        .gid = st->st_gid,
        .size = (uint64_t)st->st_size,
        .inode = st->st_ino,
        .links = (uint32_t)st->st_nlink,
        .mtime_s = st->st_mtim.tv_sec,
        .mtime_ns = (uint32_t)st->st_mtim.tv_nsec,
        .target = "",
        .same_as = "",
        .user_name = "",
        .group_name = "",
        .end_path = "",
    };
}

void entry_tag(const struct file_entry *entry, char ret[ENTRY_TAG_SIZE])
{
    uint64_t mtime_ns = (uint64_t)entry->mtime_s * 1000000000U + entry->mtime_ns;

    (void)snprintf(ret, ENTRY_TAG_SIZE, "%llx-%llx-%llx", (unsigned long long)entry->inode,
                   (unsigned long long)mtime_ns, (unsigned long long)entry->size);
}

const char *entry_type_name(enum entry_type type)
{
    return type < ENTRY_TYPES ? type_names[type] : "";
}

enum entry_type entry_type_find(const char *name)
{
    for (int i = ENTRY_FILE; i < ENTRY_TYPES; i++)
        if (strcmp(type_names[i], name) == 0)
            return (enum entry_type)i;
    return ENTRY_NONE;
}

bool entry_path_is_below(const char *path)
{
    do {
        size_t len = strcspn(path, "/");

        if (len == 0 || (len == 1 && path[0] == '.') ||
            (len == 2 && path[0] == '.' && path[1] == '.'))
            return false;
        path += len;
    } while (*path++ == '/');
    return true;
}

/* Appends the components of a path, resolving empty ones, "." and "..". */
static int path_append(char ret[ENTRY_PATH_MAX + 1], const char *path)
{
    size_t used = strlen(ret);

    for (; *path; path += strspn(path, "/")) {
        size_t len = strcspn(path, "/");

        if (len == 2 && path[0] == '.' && path[1] == '.') {
            char *slash = strrchr(ret, '/');

            used = slash ? (size_t)(slash - ret) : 0;
        } else if (len > 0 && !(len == 1 && path[0] == '.')) {
            if (used + 1 + len > ENTRY_PATH_MAX)
                return -ENAMETOOLONG;
            ret[used++] = '/';
            memcpy(ret + used, path, len);
            used += len;
        }
        ret[used] = '\0';
        path += len;
    }
    return 0;
}

int entry_path_from(const char *home, const char *path, char ret[ENTRY_PATH_MAX + 1])
{
    int r = 0;

    ret[0] = '\0';
    if (path[0] != '/')
        r = path_append(ret, home);
    if (path[0] == '~' && (path[1] == '/' || path[1] == '\0'))
        path++;
    if (r == 0)
        r = path_append(ret, path);
    if (r == 0 && ret[0] == '\0')
        memcpy(ret, "/", 2);
    return r;
}
