// SPDX-License-Identifier: Apache-2.0
#include "store/import/host_etc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "store/import/digest.h"
#include "store/import/import.h"

/* All that a sandbox may see of the host's /etc: files that programs in /usr need to run, and none
 * that reveal the users, the purpose or the secrets of this machine. */
static const struct {
    const char *dir; /* below /etc */
    const char *pattern;
} etc_allowed[] = {
    { ".", "alternatives" },    { ".", "bash.bashrc" },
    { ".", "ca-certificates" }, { ".", "ca-certificates.conf" },
    { ".", "debian_version" },  { ".", "fonts" },
    { ".", "gai.conf" },        { ".", "glvnd" },
    { ".", "groff" },           { ".", "host.conf" },
    { ".", "inputrc" },         { ".", "java-*-openjdk" },
    { ".", "ld-musl-*.d" },     { ".", "ld-musl-*.path" },
    { ".", "ld.so.cache" },     { ".", "ld.so.conf" },
    { ".", "ld.so.conf.d" },    { ".", "locale.alias" },
    { ".", "locale.conf" },     { ".", "localtime" },
    { ".", "magic" },           { ".", "magic.mime" },
    { ".", "os-release" },      { ".", "perl" },
    { ".", "protocols" },       { ".", "python3" },
    { ".", "python3.*" },       { ".", "rpc" },
    { ".", "services" },        { ".", "sgml" },
    { ".", "terminfo" },        { ".", "timezone" },
    { ".", "xattr.conf" },      { ".", "xml" },
    { "ssl", "certs" },         { "ssl", "openssl.cnf" },
};

struct name_list {
    struct dirent **items;
    int count;
};

static void name_list_done(struct name_list *list)
{
    for (int i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
}

static int is_real(const struct dirent *entry)
{
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static int byte_order(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Lists the sorted names in a directory; empty if there is no such directory. */
static struct name_list name_list_read(int dir_fd, const char *name)
{
    struct name_list list = { 0 };
    int count = scandirat(dir_fd, name, &list.items, is_real, byte_order);

    list.count = count > 0 ? count : 0;
    return list;
}

static bool is_allowed(const char *dir, const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(etc_allowed); i++) {
        if (strcmp(etc_allowed[i].dir, dir) == 0 && fnmatch(etc_allowed[i].pattern, name, 0) == 0)
            return true;
    }
    return false;
}

static int allowed_each(int etc_fd, const char *dir, host_etc_fn fn, void *context, struct err *err)
{
    cleanup_close int fd = openat(etc_fd, dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    cleanup_with(name_list_done) struct name_list names = { 0 };
    char path[PATH_MAX];
    int r = 0;

    if (fd < 0)
        return 0;
    names = name_list_read(fd, ".");
    for (int i = 0; r >= 0 && i < names.count; i++) {
        const char *name = names.items[i]->d_name;

        if (!is_allowed(dir, name))
            continue;
        if (strcmp(dir, ".") == 0)
            (void)snprintf(path, sizeof(path), "etc/%s", name);
        else
            (void)snprintf(path, sizeof(path), "etc/%s/%s", dir, name);
        r = fn(fd, name, path, context, err);
    }
    return r;
}

int host_etc_each(host_etc_fn fn, void *context, struct err *err)
{
    cleanup_close int etc_fd = open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r;

    if (etc_fd < 0)
        return err_sys(err, -errno, "open /etc");
    r = allowed_each(etc_fd, ".", fn, context, err);
    return r < 0 ? r : allowed_each(etc_fd, "ssl", fn, context, err);
}

static void digest_entry(struct digest *digest, int dir_fd, const char *name, int depth)
{
    cleanup_with(name_list_done) struct name_list names = { 0 };
    cleanup_close int fd = -EBADF;
    struct stat st;

    digest_add(digest, name, strlen(name) + 1);
    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    digest_add(digest, &st.st_mode, sizeof(st.st_mode));
    digest_add(digest, &st.st_ino, sizeof(st.st_ino));
    digest_add(digest, &st.st_size, sizeof(st.st_size));
    digest_add(digest, &st.st_mtim, sizeof(st.st_mtim));
    digest_add(digest, &st.st_ctim, sizeof(st.st_ctim));
    if (!S_ISDIR(st.st_mode) || depth >= IMPORT_DEPTH_MAX)
        return;
    fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return;
    names = name_list_read(fd, ".");
    for (int i = 0; i < names.count; i++)
        digest_entry(digest, fd, names.items[i]->d_name, depth + 1);
}

int host_etc_digest(int dir_fd, const char *name, const char *path, void *context, struct err *err)
{
    (void)path;
    (void)err;
    digest_entry(context, dir_fd, name, 0);
    return 0;
}
