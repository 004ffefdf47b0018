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
    tool_refuse(reply, "The path is %zu bytes long; %d are the limit.", path->len, PATH_MAX - 1);
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

/* The name in a directory that looks most like another, or "". */
static void nearest(const char *dir_path, const char *name, char ret[NAME_MAX + 1])
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

/* Something on the way is missing, or the last of it. */
static void refuse_missing(struct tool_reply *reply, const char *path, const char *full)
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
            tool_refuse(reply, "There is no '%s': the directory '%s' does not exist.", path,
                        parent);
            return;
        }
        *slash = '/';
    }
    slash = strrchr(parent, '/');
    (void)snprintf(name, sizeof(name), "%s", slash + 1);
    slash[slash == parent] = '\0';
    nearest(parent, name, near_name);
    if (near_name[0])
        tool_refuse(reply, "There is no '%s'. Did you mean '%.*s%s'?", path,
                    (int)(path_len - strlen(name)), path, near_name);
    else
        tool_refuse(reply, "There is no '%s'. list_dir and glob show what there is.", path);
}

static const struct {
    int errnum;
    const char *why;
} reasons[] = {
    { ENOTDIR, "something on the way to it is not a directory" },
    { EACCES, "permission denied" },
    { EPERM, "it is not permitted" },
    { ELOOP, "its symbolic links lead in a circle" },
    { ENAMETOOLONG, "a name in it is too long" },
    { EROFS, "it is on a file system that is read-only; write below /workspace or /tmp" },
    { ENOSPC, "no space is left; remove files that are not needed" },
    { EDQUOT, "the sandbox's disk quota is used up; remove files that are not needed" },
    { EFBIG, "it would be too large for the file system" },
    { ENOMEM, "the sandbox's memory is used up; end processes that are not needed" },
    { EMFILE, "too many files are open" },
    { EISDIR, "it is a directory" },
};

int path_refuse(struct tool_reply *reply, const char *verb, const char *path, const char *full,
                int r)
{
    const char *why = strerror(-r);

    if (r == -ENOENT) {
        refuse_missing(reply, path, full);
        return r;
    }
    for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
        if (reasons[i].errnum == -r)
            why = reasons[i].why;
    tool_refuse(reply, "Cannot %s '%s': %s.", verb, path, why);
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
        tool_refuse(reply, "'%s' is a directory. Use list_dir to see what is in it.", path);
    else
        tool_refuse(reply, "'%s' is %s, not a file.", path,
                    path_kind(ret->st_mode) ? path_kind(ret->st_mode) : "gone");
    return -EINVAL;
}
