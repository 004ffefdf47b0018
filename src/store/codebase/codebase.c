// SPDX-License-Identifier: Apache-2.0
#include "store/codebase/codebase.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fault.h"
#include "store/backend/backend.h"
#include "store/codebase/merge.h"
#include "store/store_internal.h"
#include "store/volume/volume.h"
#include "store/volume/volume_internal.h"

#define MASKS "masks" /* beside the trees of the volume */

enum { VERSION_NAME_BYTES = 16, TOP_MODE = 0755 };

/* Describes a codebase to the backend. Generation 1 is the tree that the next version is made in;
 * it exists only meanwhile. */
static struct volume codebase_volume(struct store *store, const char *id)
{
    return (struct volume){ .store = store,
                            .id = (char *)(uintptr_t)id,
                            .generation = 1,
                            .last_generation = 1,
                            .dir_fd = -EBADF };
}

static const char *version_name(char into[static VERSION_NAME_BYTES], uint32_t version)
{
    (void)snprintf(into, VERSION_NAME_BYTES, "v%" PRIu32, version);
    return into;
}

int codebase_check_storage(const struct store *store, struct err *err)
{
    if (!store->ops->is_whole)
        return 0;
    (void)err_set(err, ERR_UNSUPPORTED, "storage '%s' cannot hold codebases", store->ops->name);
    return err_remedy(err, "set the storage to btrfs or dir in holt.conf(5)");
}

int codebase_open_version(struct store *store, const char *id, uint32_t version)
{
    struct volume volume = codebase_volume(store, id);
    char name[VERSION_NAME_BYTES];

    return store->ops->open_tree(&volume, version_name(name, version), NULL);
}

/* Turns the tree that was filled into a version, and removes the tree. */
static int version_publish(struct volume *volume, uint32_t version, struct err *err)
{
    char name[VERSION_NAME_BYTES];
    int r, dropped;

    (void)version_name(name, version);
    r = volume->store->ops->drop(volume, name, 0); /* one that was never recorded */
    if (r < 0 && r != -ENOENT)
        return err_sys(err, r, "remove an incomplete version of codebase '%s'", volume->id);
    r = volume->store->ops->snapshot(volume, name, err);
    if (r < 0)
        return r;
    fault_point("codebase.versioned");
    dropped = volume->store->ops->drop(volume, NULL, 1);
    store_flush(volume->store);
    return dropped < 0 ? err_sys(err, dropped, "remove the tree of a commit") : 0;
}

static int import_run(struct volume *volume, int from_fd, struct codebase_changes *changes,
                      struct err *err)
{
    cleanup_close int fd = volume->store->ops->open_tree(volume, NULL, NULL);
    const struct merge merge = { .from_fd = from_fd, .to_fd = fd };
    int r =
        fd < 0 ? err_sys(err, fd, "open the tree of a codebase") : merge_run(&merge, changes, err);

    if (r == 0 && fchmod(fd, TOP_MODE) < 0)
        r = err_sys(err, -errno, "set the mode of a codebase");
    return r < 0 ? r : version_publish(volume, 0, err);
}

int codebase_create(struct store *store, const char *id, int from_fd, struct codebase_changes *ret,
                    struct err *err)
{
    struct volume volume = codebase_volume(store, id);
    struct codebase_changes changes = { 0 };
    int r = codebase_check_storage(store, err);

    if (r == 0)
        r = store->ops->create(&volume, err);
    if (r < 0)
        return r;
    r = import_run(&volume, from_fd, &changes, err);
    if (r < 0) {
        (void)store->ops->destroy(&volume);
        return r;
    }
    *ret = changes;
    return 0;
}

/* Opens what the sandbox has written: the upper directory of its codebase in a snapshot. */
static int upper_open(struct volume *volume, const char *snapshot, uint32_t *ret_version,
                      int *ret_fd)
{
    cleanup_with(volume_tree_done) struct volume_tree tree = { .volume = volume, .fd = -EBADF };
    char name[VOLUME_CODEBASE_BYTES];
    int r = volume_tree_open(&tree, snapshot);

    if (r == 0)
        r = volume_codebase_layer(volume, tree.fd, name, ret_version);
    if (r < 0)
        return r;
    *ret_fd = openat(tree.fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return *ret_fd < 0 ? -errno : 0;
}

static int commit_merge(struct volume *codebase, const struct merge *options,
                        struct codebase_changes *changes, struct err *err)
{
    cleanup_close int fd = codebase->store->ops->open_tree(codebase, NULL, NULL);
    struct merge merge = *options;

    merge.to_fd = fd;
    return fd < 0 ? err_sys(err, fd, "open the tree of a commit") : merge_run(&merge, changes, err);
}

/* Fills the tree of a codebase with what a snapshot of a volume shows of it. */
static int tree_fill(struct volume *codebase, struct volume *volume, const char *snapshot,
                     bool keeps_links, struct codebase_changes *changes, struct err *err)
{
    struct store *store = volume->store;
    char name[VERSION_NAME_BYTES];
    cleanup_close int upper_fd = -EBADF;
    struct merge merge = { .is_layer = true,
                           .keeps_links = keeps_links,
                           .mount_point = volume->codebase.path };
    uint32_t lower = 0;
    int r = upper_open(volume, snapshot, &lower, &upper_fd);

    if (r < 0)
        return err_sys(err, r, "open what sandbox '%s' has written", volume->id);
    r = store->ops->drop(codebase, NULL, codebase->generation); /* of one that was interrupted */
    if (r < 0 && r != -ENOENT)
        return err_sys(err, r, "remove the tree of an earlier commit");
    r = store->ops->branch(codebase, codebase->generation, codebase, version_name(name, lower),
                           err);
    if (r < 0)
        return r;
    fault_point("codebase.branched");
    merge.from_fd = upper_fd;
    r = commit_merge(codebase, &merge, changes, err);
    if (r < 0)
        (void)store->ops->drop(codebase, NULL, codebase->generation);
    return r;
}

int codebase_commit(struct volume *volume, const char *snapshot, uint32_t version,
                    struct codebase_changes *ret, struct err *err)
{
    struct volume codebase = codebase_volume(volume->store, volume->codebase.id);
    struct codebase_changes changes = { 0 };
    int r = tree_fill(&codebase, volume, snapshot, false, &changes, err);

    fault_point("codebase.merged");
    if (r < 0)
        return r;
    r = version_publish(&codebase, version, err);
    if (r < 0) {
        (void)volume->store->ops->drop(&codebase, NULL, 1);
        return r;
    }
    *ret = changes;
    return 0;
}

int codebase_copy_make(struct volume *volume, const char *snapshot, unsigned number, int *ret_fd,
                       struct err *err)
{
    struct volume codebase = codebase_volume(volume->store, volume->codebase.id);
    struct codebase_changes ignored = { 0 };
    int fd, r;

    codebase.generation = codebase.last_generation = number + 1;
    r = tree_fill(&codebase, volume, snapshot, true, &ignored, err);
    if (r < 0)
        return r;
    fd = volume->store->ops->open_tree(&codebase, NULL, NULL);
    if (fd < 0)
        return err_sys(err, fd, "open a copy of codebase '%s'", codebase.id);
    *ret_fd = fd;
    return 0;
}

int codebase_copies_remove(struct store *store, const char *id)
{
    struct volume volume = codebase_volume(store, id);
    int first = 0;

    for (uint32_t generation = 1; generation <= CODEBASE_COPIES; generation++) {
        int r = store->ops->drop(&volume, NULL, generation);

        if (r < 0 && r != -ENOENT && first == 0)
            first = r;
    }
    return first;
}

int codebase_open_masks(struct store *store, const char *id)
{
    cleanup_close int fd =
        openat(store->volumes_fd, id, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int masks_fd;

    if (fd < 0 || (mkdirat(fd, MASKS, 0700) < 0 && errno != EEXIST))
        return -errno;
    masks_fd = openat(fd, MASKS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return masks_fd < 0 ? -errno : masks_fd;
}

int codebase_each_mask(int masks_fd, int (*each)(void *context, const char *name), void *context)
{
    return store_each_name(masks_fd, each, context);
}

int codebase_destroy(struct store *store, const char *id)
{
    struct volume volume = codebase_volume(store, id);

    return store->ops->destroy(&volume);
}
