// SPDX-License-Identifier: Apache-2.0
/* Opens the states of a volume for reading. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "store/backend/backend.h"
#include "store/store_internal.h"
#include "store/volume/volume.h"
#include "store/volume/volume_internal.h"

int volume_tree_open(struct volume_tree *tree, const char *snapshot)
{
    struct volume *volume = tree->volume;

    if (volume->is_scratch)
        tree->fd = fcntl(volume->dir_fd, F_DUPFD_CLOEXEC, 3);
    else
        tree->fd = volume->store->ops->open_tree(volume, snapshot, &tree->temporary);
    if (tree->fd < 0)
        return volume->is_scratch ? -errno : tree->fd;
    return 0;
}

void volume_tree_done(struct volume_tree *tree)
{
    tree->fd = fd_close(tree->fd);
    if (tree->temporary)
        tree->volume->store->ops->release(tree->volume, tree->temporary);
    tree->temporary = NULL;
}

static int view_add(struct volume_view *view, int fd)
{
    size_t tree = view->tree_count - 1;

    if (fd < 0)
        return -errno;
    view->trees[tree].fds[view->trees[tree].count++] = fd;
    return 0;
}

static int view_add_copy(struct volume_view *view, int fd)
{
    return view_add(view, fcntl(fd, F_DUPFD_CLOEXEC, 3));
}

/* tree_fd is the volume's own tree; negative to view the template alone. */
static int view_add_tree(struct volume_view *view, const struct volume *volume, size_t index,
                         int tree_fd)
{
    const struct template_tree *tree = &volume->template->trees[index];
    int r = 0;

    view->trees[view->tree_count++].target = tree->target;
    if (volume_is_whole(volume)) {
        if (index == 0 && tree_fd >= 0)
            return view_add_copy(view, tree_fd);
    } else if (tree_fd >= 0) {
        r = view_add(view,
                     openat(tree_fd, tree->name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        if (r == -ENOENT) /* added to the template later, or never mounted */
            r = 0;
    }
    for (size_t i = 0; r == 0 && i < tree->layer_count; i++)
        r = view_add_copy(view, tree->layers[i]);
    if (r == 0)
        r = view_add_copy(view, tree->fd);
    if (r == 0 && index == 0 && volume_is_whole(volume) && volume->template->lacks_points)
        r = view_add_copy(view, volume->store->points_fd); /* a whole volume is a copy of both */
    return r;
}

/* The template has the version that the volume was created with. */
static int view_add_codebase(struct volume_view *view, const struct volume *volume, int tree_fd)
{
    char name[VOLUME_CODEBASE_BYTES];
    uint32_t version = 0;
    int fd, r = volume_codebase_layer(volume, tree_fd, name, &version);

    if (r < 0)
        return r;
    view->trees[view->tree_count++].target = volume->codebase.path;
    if (tree_fd >= 0) {
        r = view_add(view, openat(tree_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        if (r < 0 && r != -ENOENT)
            return r;
    }
    fd = codebase_open_version(volume->store, volume->codebase.id, version);
    return fd < 0 ? fd : view_add(view, fd);
}

int volume_view(struct volume *volume, const char *snapshot, struct volume_view *ret,
                struct err *err)
{
    struct volume_view view = { .tree_count = 0 };
    cleanup_with(volume_tree_done) struct volume_tree tree = { .volume = volume, .fd = -EBADF };
    bool is_template = snapshot && *snapshot == '\0';
    int r = 0;

    if (snapshot && !is_template && !volume_has_snapshot(volume, snapshot))
        return err_refuse(err, CAUSE_SNAPSHOT_NOT_FOUND, "no snapshot '%.64s'", snapshot);
    if (!is_template)
        r = volume_tree_open(&tree, snapshot);
    for (size_t i = 0; r == 0 && i < volume->template->tree_count; i++)
        r = view_add_tree(&view, volume, i, tree.fd);
    if (r == 0 && volume_has_codebase(volume))
        r = view_add_codebase(&view, volume, tree.fd);
    if (r < 0) {
        volume_view_done(volume, &view);
        return err_sys(err, r, "open the files of volume '%s'", volume->id);
    }
    if (volume_is_whole(volume) && !is_template)
        view.owner_shift = volume->store->shared_uid;
    view.temporary = TAKE_PTR(tree.temporary);
    *ret = view;
    return 0;
}

void volume_view_done(struct volume *volume, struct volume_view *view)
{
    for (size_t i = 0; i < view->tree_count; i++) {
        for (size_t j = 0; j < view->trees[i].count; j++)
            (void)close(view->trees[i].fds[j]);
    }
    if (view->temporary)
        volume->store->ops->release(volume, view->temporary);
    *view = (struct volume_view){ .tree_count = 0 };
}
