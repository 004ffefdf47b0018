// SPDX-License-Identifier: Apache-2.0
/* The template made from this machine: a generated root (store/import/host.c) with the host's own
 * /usr and similar directories mounted on it. */
#include "store/import/host.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/files/tree.h"
#include "base/io.h"
#include "kernel/path.h"
#include "store/import/work.h"
#include "store/store_internal.h"

#define KEPT_PREFIX ".host-"

enum { BOOT_ID_BYTES_MAX = 64 };

/* Returns whether the existing host template was made from the same sources. */
static bool is_fresh(const struct store *store, const char *fingerprint)
{
    cleanup_close int fd =
        open_no_links(store->templates_fd, TEMPLATE_HOST, O_PATH | O_DIRECTORY, 0);
    struct template_meta meta;
    struct err ignored;

    return fd >= 0 && template_meta_read(fd, &meta, &ignored) >= 0 &&
           strcmp(meta.fingerprint, fingerprint) == 0;
}

/* Replaces the old tree with the new one atomically. The old one is then in temp. */
static int host_swap(struct import *import, struct err *err)
{
    int fd = import->store->templates_fd;

    if (renameat2(fd, import->temp, fd, TEMPLATE_HOST, RENAME_EXCHANGE) == 0)
        return 0;
    if (errno != ENOENT)
        return err_sys(err, -errno, "replace the host template");
    if (renameat(fd, import->temp, fd, TEMPLATE_HOST) < 0)
        return err_sys(err, -errno, "rename the host template");
    import->temp[0] = '\0';
    return 0;
}

/* Names a replaced host template. It is valid until the next boot, because no mount is older. */
static void kept_host_name(char name[static STORE_TEMP_NAME_MAX], const char *unique)
{
    cleanup_with(buf_done) struct buf boot = BUF_INIT(BOOT_ID_BYTES_MAX);

    (void)file_read_at(AT_FDCWD, "/proc/sys/kernel/random/boot_id", &boot);
    (void)snprintf(name, STORE_TEMP_NAME_MAX, KEPT_PREFIX "%.8s-%.12s", boot.len ? boot.data : "?",
                   unique);
}

static int is_volume(void *context, const char *name)
{
    (void)context;
    return *name == '.' ? 0 : -EEXIST;
}

/* Returns whether there is a persistent volume, which a sandbox of an earlier daemon may have
 * mounted. */
static bool has_volumes(const struct store *store)
{
    return store->volumes_fd < 0 || store_each_name(store->volumes_fd, is_volume, NULL) < 0;
}

bool template_host_is_kept(const struct store *store, const char *name)
{
    char this_boot[STORE_TEMP_NAME_MAX];

    kept_host_name(this_boot, "");
    return strncmp(name, this_boot, strlen(this_boot)) == 0 && has_volumes(store);
}

/* Keeps the old tree, which is in temp, while a sandbox may be using it. */
static int host_keep_old(struct import *import, struct err *err)
{
    int fd = import->store->templates_fd;
    char name[STORE_TEMP_NAME_MAX];

    if (!import->temp[0] || !has_volumes(import->store))
        return 0;
    kept_host_name(name, strchr(import->temp, '-') + 1);
    if (renameat(fd, import->temp, fd, name) < 0)
        return err_sys(err, -errno, "keep the old host template");
    import->temp[0] = '\0';
    return 0;
}

static int host_build(struct import *import, const char *fingerprint, struct err *err)
{
    struct template_meta meta = { .created_at = time(NULL) };
    int r = import_start(import, err);

    if (r < 0)
        return r;
    r = import_host_build(&import->root, err);
    if (r < 0)
        return r;
    meta.size_bytes = import->budget.bytes;
    meta.files = import->budget.files;
    (void)snprintf(meta.fingerprint, sizeof(meta.fingerprint), "%s", fingerprint);
    r = import_seal(import, &meta, err);
    if (r >= 0)
        r = host_swap(import, err);
    return r < 0 ? r : host_keep_old(import, err);
}

int template_host_refresh(struct store *store, struct err *err)
{
    cleanup_with(import_done) struct import import = IMPORT_INIT(store, UINT64_MAX, UINT64_MAX);
    char fingerprint[DIGEST_HEX_LEN + 1];
    int r = import_host_fingerprint(fingerprint, err);

    if (r >= 0 && is_fresh(store, fingerprint))
        return 0;
    if (r >= 0)
        r = host_build(&import, fingerprint, err);
    return r < 0 ? err_wrap(err, "make the template '%s'", TEMPLATE_HOST) : 0;
}

static bool is_empty(int fd)
{
    int copy_fd = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cleanup_with(closedir_slot) DIR *dir = copy_fd < 0 ? NULL : fdopendir(copy_fd);
    struct dirent *entry;

    if (!dir) {
        (void)fd_close(copy_fd);
        return true;
    }
    while ((entry = readdir(dir))) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            return false;
    }
    return true;
}

int template_host_open(struct template *template, struct err *err)
{
    for (size_t i = 0; i < host_tree_count; i++) {
        const struct host_tree *tree = &host_trees[i];
        cleanup_close int fd = open(tree->target, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        /* A symbolic link is part of the generated root. */
        if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
            continue;
        if (fd < 0)
            return err_sys(err, -errno, "open the host's %s", tree->target);
        if (tree->needs_content && is_empty(fd))
            continue;
        if (template->tree_count == TEMPLATE_TREES_MAX)
            return err_set(err, ERR_INTERNAL, "the host template has too many trees");
        template->trees[template->tree_count++] =
            (struct template_tree){ .target = tree->target, .name = tree->name, .fd = TAKE_FD(fd) };
    }
    return 0;
}
