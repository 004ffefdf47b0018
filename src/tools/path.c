// SPDX-License-Identifier: Apache-2.0
#include "tools/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/text/near.h"
#include "wire/file.h"

bool path_full(const struct tool_text *path, char ret[PATH_MAX], struct tool_reply *reply)
{
    int len =
        snprintf(ret, PATH_MAX, "%s%s", path->data[0] == '/' ? "" : FILE_WORKSPACE "/", path->data);

    if (len < PATH_MAX)
        return true;
    tool_reply_set_error(reply, "The path has %zu bytes; the limit is %d.", path->len,
                         PATH_MAX - 1);
    return false;
}

const char *path_kind(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG:
        return NULL;
    case S_IFDIR:
        return "a directory";
    case S_IFIFO:
        return "a pipe";
    case S_IFSOCK:
        return "a socket";
    case S_IFLNK:
        return "a symbolic link";
    default:
        return "a device";
    }
}

/* Finds the name in a directory that is most similar to another, or "". */
static void find_nearest_name(const char *dir_path, const char *name, char ret[NAME_MAX + 1])
{
    DIR *dir = opendir(dir_path);
    const struct dirent *entry;
    int best = NEAR_MAX + 1;

    ret[0] = '\0';
    while (dir && (entry = readdir(dir))) {
        int distance =
            strcasecmp(entry->d_name, name) == 0 ? 0 : word_distance(entry->d_name, name);

        if (distance >= best || strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        best = distance;
        (void)snprintf(ret, NAME_MAX + 1, "%s", entry->d_name);
    }
    if (dir)
        (void)closedir(dir);
}

static bool is_dir(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Reports the first component of the path that does not exist. */
static void path_refuse_missing(struct tool_reply *reply, const char *path, const char *full)
{
    char parent[PATH_MAX], name[NAME_MAX + 1], near_name[NAME_MAX + 1];
    size_t len = strlen(full), path_len = strlen(path);
    char *slash;

    while (len > 1 && full[len - 1] == '/' && path_len > 1)
        len--, path_len--;
    (void)snprintf(parent, sizeof(parent), "%.*s", (int)len, full);
    for (slash = strchr(parent + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (!is_dir(parent)) {
            tool_reply_set_error(reply, "'%s' does not exist: there is no directory '%s'.", path,
                                 parent);
            return;
        }
        *slash = '/';
    }
    slash = strrchr(parent, '/');
    (void)snprintf(name, sizeof(name), "%s", slash + 1);
    slash[slash == parent] = '\0';
    find_nearest_name(parent, name, near_name);
    if (near_name[0])
        tool_reply_set_error(reply, "'%s' does not exist. Did you mean '%.*s%s'?", path,
                             (int)(path_len - strlen(name)), path, near_name);
    else
        tool_reply_set_error(reply, "'%s' does not exist. Use list_dir or glob to find files.",
                             path);
}

static const struct {
    int errnum;
    const char *why;
} reasons[] = {
    { ENOTDIR, "a component of the path is not a directory" },
    { EACCES, "permission denied" },
    { EPERM, "operation not permitted" },
    { ELOOP, "too many levels of symbolic links" },
    { ENAMETOOLONG, "a component of the path is too long" },
    { EROFS, "the file system is read-only; use /workspace or /tmp" },
    { ENOSPC, "no space left; remove files that are not needed" },
    { EDQUOT, "the disk quota of the sandbox is exceeded; remove files that are not needed" },
    { EFBIG, "the file would be too large" },
    { ENOMEM, "the sandbox is out of memory; end processes that are not needed" },
    { EMFILE, "too many open files" },
    { EISDIR, "it is a directory" },
};

int path_refuse(struct tool_reply *reply, const char *verb, const char *path, const char *full,
                int r)
{
    const char *why = strerror(-r);

    if (r == -ENOENT) {
        path_refuse_missing(reply, path, full);
        return r;
    }
    for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
        if (reasons[i].errnum == -r)
            why = reasons[i].why;
    tool_reply_set_error(reply, "Cannot %s '%s': %s.", verb, path, why);
    return r;
}

int path_open_file(const char *path, const char *full, struct stat *ret, struct tool_reply *reply)
{
    int fd = -EBADF;

    if (stat(full, ret) < 0)
        return path_refuse(reply, "read", path, full, -errno);
    if (S_ISREG(ret->st_mode)) {
        fd = open(full, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd < 0)
            return path_refuse(reply, "read", path, full, -errno);
        if (fstat(fd, ret) == 0 && S_ISREG(ret->st_mode))
            return fd;
        (void)close(fd);
    }
    if (S_ISDIR(ret->st_mode))
        tool_reply_set_error(reply, "'%s' is a directory. Use list_dir to list it.", path);
    else
        tool_reply_set_error(reply, "'%s' is %s, not a file.", path,
                             path_kind(ret->st_mode) ? path_kind(ret->st_mode) : "gone");
    return -EINVAL;
}
