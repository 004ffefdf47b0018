// SPDX-License-Identifier: Apache-2.0
/* The codebase of a volume. Its upper directory is called codebase-N after the version N below it,
 * so every snapshot and fork of the tree knows what its layer belongs to. */
#include "store/codebase/codebase.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/files/tree.h"
#include "base/text/parse.h"
#include "store/backend/backend.h"
#include "store/codebase/layer.h"
#include "store/store_internal.h"
#include "store/volume/volume.h"
#include "store/volume/volume_internal.h"

#define LAYER "codebase-"

enum { MODE_BITS = 0777 };

struct layer_search {
    uint32_t version;
    bool is_found;
};

static int layer_try(void *context, const char *name)
{
    struct layer_search *search = context;
    uint64_t value;

    if (strncmp(name, LAYER, strlen(LAYER)) == 0 && parse_u64(name + strlen(LAYER), &value) == 0 &&
        value <= UINT32_MAX) {
        search->version = (uint32_t)value;
        search->is_found = true;
    }
    return 0; /* codebase-N.work is not a number */
}

int volume_codebase_layer(const struct volume *volume, int tree_fd,
                          char ret_name[static VOLUME_CODEBASE_BYTES], uint32_t *ret_version)
{
    struct layer_search search = { .version = volume->codebase.version };
    int r = tree_fd < 0 ? 0 : store_each_name(tree_fd, layer_try, &search);

    if (r < 0)
        return r;
    (void)snprintf(ret_name, VOLUME_CODEBASE_BYTES, LAYER "%" PRIu32, search.version);
    *ret_version = search.version;
    return 0;
}

bool volume_has_codebase(const struct volume *volume)
{
    return volume->codebase.id[0] != '\0';
}

int volume_set_codebase(struct volume *volume, const struct volume_codebase *codebase,
                        struct err *err)
{
    cleanup_close int fd = -EBADF;
    int r = codebase_check_storage(volume->store, err);

    if (r < 0)
        return r;
    fd = codebase_open_version(volume->store, codebase->id, codebase->version);
    if (fd < 0)
        return err_sys(err, fd, "open version %" PRIu32 " of codebase '%s'", codebase->version,
                       codebase->id);
    volume->codebase = *codebase;
    return 0;
}

int volume_layer_version(const struct volume *volume, uint32_t generation, uint32_t *ret,
                         struct err *err)
{
    struct volume there = { .store = volume->store, .id = volume->id, .generation = generation };
    cleanup_close int tree_fd = volume->store->ops->open_tree(&there, NULL, NULL);
    char name[VOLUME_CODEBASE_BYTES];
    int r = tree_fd < 0 ? tree_fd : volume_codebase_layer(volume, tree_fd, name, ret);

    return r < 0 ? err_sys(err, r, "read the codebase of volume '%s'", volume->id) : 0;
}

static int name_found(void *context, const char *name)
{
    (void)context, (void)name;
    return -ENOTEMPTY;
}

/* A sandbox may also have changed the attributes of the top. */
static int layer_is_untouched(int tree_fd, const char *name, bool *ret)
{
    const mode_t all = S_IRUSR | S_IXUSR | S_IRGRP | S_IXGRP | S_IROTH | S_IXOTH;
    cleanup_close int fd = openat(tree_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    char attributes[XATTR_LIST_MAX];
    struct stat st;
    ssize_t len;
    int r;

    *ret = fd < 0 && errno == ENOENT; /* it was never mounted */
    if (fd < 0)
        return *ret ? 0 : -errno;
    r = store_each_name(fd, name_found, NULL);
    len = flistxattr(fd, attributes, sizeof(attributes));
    if ((r < 0 && r != -ENOTEMPTY) || len < 0 || fstat(fd, &st) < 0)
        return r < 0 && r != -ENOTEMPTY ? r : -errno;
    *ret = r == 0 && (st.st_mode & (all | S_IWOTH)) == all &&
           !memmem(attributes, (size_t)len, "user.", strlen("user."));
    return 0;
}

int volume_look_at_layer(struct volume *volume, uint32_t *ret_version, bool *ret_is_untouched,
                         struct err *err)
{
    cleanup_with(volume_tree_done) struct volume_tree tree = { .volume = volume, .fd = -EBADF };
    char name[VOLUME_CODEBASE_BYTES];
    int r = volume_tree_open(&tree, NULL);

    if (r == 0)
        r = volume_codebase_layer(volume, tree.fd, name, ret_version);
    if (r == 0)
        r = layer_is_untouched(tree.fd, name, ret_is_untouched);
    return r < 0 ? err_sys(err, r, "read the codebase of volume '%s'", volume->id) : 0;
}

/* Replaces the layer of a tree by an empty one, with the owner and mode of its top. */
static int layer_replace(const struct volume *volume, int tree_fd, uint32_t version)
{
    char name[VOLUME_CODEBASE_BYTES], work[VOLUME_CODEBASE_BYTES + 8];
    struct stat st = { .st_mode = 0 };
    uint32_t old = 0;
    int r = volume_codebase_layer(volume, tree_fd, name, &old);

    if (r < 0)
        return r;
    (void)fstatat(tree_fd, name, &st, AT_SYMLINK_NOFOLLOW); /* it may have never been mounted */
    (void)snprintf(work, sizeof(work), "%s.work", name);
    r = tree_remove_at(tree_fd, name);
    if (r == 0)
        r = tree_remove_at(tree_fd, work);
    (void)snprintf(name, sizeof(name), LAYER "%" PRIu32, version);
    if (r == 0)
        r = volume_layer_make(tree_fd, name);
    if (r == 0 && st.st_mode != 0 &&
        (fchownat(tree_fd, name, st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW) < 0 ||
         fchmodat(tree_fd, name, st.st_mode & MODE_BITS, 0) < 0))
        r = -errno;
    return r;
}

int volume_set_layer(struct volume *volume, uint32_t generation, uint32_t version, int copy_fd,
                     struct err *err)
{
    struct volume there = { .store = volume->store, .id = volume->id, .generation = generation };
    cleanup_close int tree_fd = volume->store->ops->open_tree(&there, NULL, NULL);
    cleanup_close int upper_fd = -EBADF, lower_fd = -EBADF;
    char name[VOLUME_CODEBASE_BYTES];
    int r = tree_fd < 0 ? tree_fd : layer_replace(volume, tree_fd, version);

    if (r < 0)
        return err_sys(err, r, "replace the changes of sandbox '%s'", volume->id);
    if (copy_fd < 0)
        return 0;
    (void)snprintf(name, sizeof(name), LAYER "%" PRIu32, version);
    upper_fd = openat(tree_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (upper_fd < 0)
        return err_sys(err, -errno, "open the changes of sandbox '%s'", volume->id);
    lower_fd = codebase_open_version(volume->store, volume->codebase.id, version);
    if (lower_fd < 0)
        return err_sys(err, lower_fd, "open version %" PRIu32 " of codebase '%s'", version,
                       volume->codebase.id);
    return layer_fill(upper_fd, lower_fd, copy_fd, err);
}

int volume_view_set_version(const struct volume *volume, struct volume_view *view, uint32_t version,
                            struct err *err)
{
    const size_t last = view->tree_count - 1;
    int fd = codebase_open_version(volume->store, volume->codebase.id, version);

    if (fd < 0)
        return err_sys(err, fd, "open version %" PRIu32 " of codebase '%s'", version,
                       volume->codebase.id);
    while (view->trees[last].count > 0)
        (void)close(view->trees[last].fds[--view->trees[last].count]);
    view->trees[last].fds[view->trees[last].count++] = fd;
    return 0;
}
