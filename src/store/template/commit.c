// SPDX-License-Identifier: Apache-2.0
/* Creates templates from the files that a sandbox has written. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/files/tree.h"
#include "base/files/tree_copy.h"
#include "kernel/path.h"
#include "store/backend/backend.h"
#include "store/store_internal.h"
#include "store/template/settings.h"
#include "store/volume/volume.h"
#include "store/volume/volume_internal.h"

#define LINKS "links"

/* A template being created in templates/.commit-*. */
struct commit {
    struct store *store;
    const struct template *template; /* template of the volume */
    char temp[STORE_TEMP_NAME_MAX];  /* "": nothing to remove */
    int fd;                          /* of the temp directory */
    struct template_meta meta;
};

static void commit_done(struct commit *commit)
{
    commit->fd = fd_close(commit->fd);
    if (commit->temp[0])
        (void)tree_remove_at(commit->store->templates_fd, commit->temp);
}

static int commit_error(struct err *err, int r, const char *what)
{
    if (r == -ENOSPC || r == -EDQUOT)
        return err_refuse(err, CAUSE_POOL_FULL, "%s: %s", what, strerror(-r));
    return err_sys(err, r, "%s", what);
}

static int dir_make(int dir_fd, const char *name)
{
    int fd;

    if (mkdirat(dir_fd, name, 0700) < 0)
        return -errno;
    fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int commit_start(struct commit *commit, struct err *err)
{
    int templates_fd = commit->store->templates_fd;
    int r = store_temp_dir(templates_fd, "commit", commit->temp, err);

    if (r < 0) {
        commit->temp[0] = '\0';
        return r;
    }
    commit->fd =
        openat(templates_fd, commit->temp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return commit->fd < 0 ? commit_error(err, -errno, "open the new template") : 0;
}

/* Copies one tree to name below dir_fd, with owners lowered by owner_shift. */
static int copy_tree(struct commit *commit, int from_fd, int dir_fd, const char *name,
                     uid_t owner_shift)
{
    cleanup_close int to_fd = dir_make(dir_fd, name);
    cleanup_close int links_fd = to_fd < 0 ? -EBADF : dir_make(commit->fd, LINKS);
    struct tree_copy copy = { .links_fd = links_fd, .owner_shift = owner_shift };
    int removed, r;

    if (to_fd < 0 || links_fd < 0)
        return to_fd < 0 ? to_fd : links_fd;
    r = tree_copy(&copy, from_fd, to_fd);
    commit->meta.size_bytes += copy.bytes;
    commit->meta.files += copy.files;
    removed = tree_remove_at(commit->fd, LINKS);
    return r < 0 ? r : removed;
}

static int is_content(void *context, const char *name)
{
    (void)context;
    (void)name;
    return -EEXIST;
}

/* Returns whether nothing was written to a tree. */
static bool is_untouched(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && (st.st_mode & 07777) == 0755 && st.st_uid == 0 &&
           st.st_gid == 0 && store_each_name(fd, is_content, NULL) == 0;
}

/* The upper of each tree that was written to becomes a layer. The root always gets one, because
 * its layers are counted against the limit. */
static int copy_layers(struct commit *commit, int tree_fd)
{
    cleanup_close int layers_fd = dir_make(commit->fd, "layers");
    int r = layers_fd < 0 ? layers_fd : 0;

    for (size_t i = 0; r == 0 && i < commit->template->tree_count; i++) {
        const char *name = commit->template->trees[i].name;
        cleanup_close int fd =
            openat(tree_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (fd < 0 && errno != ENOENT)
            r = -errno;
        else if (fd >= 0 && (i == 0 || !is_untouched(fd)))
            r = copy_tree(commit, fd, layers_fd, name, 0);
        else if (i == 0) /* never mounted */
            r = mkdirat(layers_fd, name, 0755) < 0 ? -errno : 0;
    }
    (void)snprintf(commit->meta.base, sizeof(commit->meta.base), "%s", commit->template->name);
    return r;
}

/* Finds the template that provides the trees other than the root. */
static int base_find(const struct commit *commit, struct template_meta *ret_meta)
{
    cleanup_close int fd =
        open_no_links(commit->store->templates_fd, commit->template->name, O_PATH | O_DIRECTORY, 0);
    struct err err;

    if (fd < 0)
        return fd;
    return template_meta_read(fd, ret_meta, &err);
}

/* Copies the root as it is. The other trees, if any, stay those of the base. */
static int copy_root(struct commit *commit, int tree_fd)
{
    struct template_meta base = { .size_bytes = 0 };
    int r = copy_tree(commit, tree_fd, commit->fd, "rootfs", commit->store->shared_uid);

    if (r < 0 || commit->template->tree_count == 1)
        return r;
    r = base_find(commit, &base);
    (void)snprintf(commit->meta.base, sizeof(commit->meta.base), "%s",
                   base.base[0] ? base.base : commit->template->name);
    if (r == 0 && mkdirat(commit->fd, "layers", 0700) < 0)
        r = -errno;
    return r;
}

/* Sandboxes of the new template must behave like those of the old one. */
static int copy_settings(const struct commit *commit, struct err *err)
{
    cleanup_with(template_settings_done) struct template_settings settings = { .object = NULL };
    int r = template_settings_read(commit->store, commit->template->name, &settings, err);

    return r < 0 ? r : template_settings_write_at(commit->fd, &settings, err);
}

/* Synced before it is renamed: a name without its files would look like a complete template. */
static int commit_publish(struct commit *commit, const char *name, struct err *err)
{
    int templates_fd = commit->store->templates_fd;
    int r = template_meta_write(commit->fd, &commit->meta, err);

    if (r == 0)
        r = copy_settings(commit, err);
    if (r < 0)
        return r;
    if (syncfs(commit->fd) < 0)
        return commit_error(err, -errno, "write the new template");
    if (renameat2(templates_fd, commit->temp, templates_fd, name, RENAME_NOREPLACE) < 0)
        return errno == EEXIST ? err_set(err, ERR_EXISTS, "template '%s' already exists", name)
                               : commit_error(err, -errno, "rename the new template");
    commit->temp[0] = '\0';
    return fsync(templates_fd) < 0 ? commit_error(err, -errno, "rename the new template") : 0;
}

static int commit_check(const struct store *store, struct volume *volume, const char *snapshot,
                        const char *name, struct err *err)
{
    int r = template_name_check(store, name, err);

    if (r < 0)
        return r;
    if (!volume_has_snapshot(volume, snapshot))
        return err_refuse(err, CAUSE_SNAPSHOT_NOT_FOUND, "no snapshot '%.64s'", snapshot);
    for (size_t i = 0; i < volume->template->tree_count; i++)
        if (volume->template->trees[i].layer_count == TEMPLATE_LAYERS_MAX)
            return err_set(err, ERR_EXHAUSTED, "template '%s' already has %d layers, the maximum",
                           volume->template->name, TEMPLATE_LAYERS_MAX);
    return 0;
}

int template_commit(struct store *store, struct volume *volume, const char *snapshot,
                    const char *name, struct template_info *ret, struct err *err)
{
    cleanup_with(commit_done) struct commit commit = {
        .store = store,
        .template = volume->template,
        .fd = -EBADF,
        .meta = { .created_at = time(NULL) },
    };
    cleanup_with(volume_tree_done) struct volume_tree tree = { .volume = volume, .fd = -EBADF };
    int r = commit_check(store, volume, snapshot, name, err);

    if (r == 0)
        r = commit_start(&commit, err);
    if (r < 0)
        return r;
    r = volume_tree_open(&tree, snapshot);
    if (r == 0)
        r = volume_is_whole(volume) ? copy_root(&commit, tree.fd) : copy_layers(&commit, tree.fd);
    if (r < 0)
        return commit_error(err, r, "copy the snapshot");
    r = commit_publish(&commit, name, err);
    if (r < 0)
        return r;
    *ret = (struct template_info){
        .size_bytes = commit.meta.size_bytes,
        .files = commit.meta.files,
        .created_at = commit.meta.created_at,
    };
    (void)snprintf(ret->name, sizeof(ret->name), "%s", name);
    return 0;
}
