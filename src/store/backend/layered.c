// SPDX-License-Identifier: Apache-2.0
#include "store/backend/layered.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/files/tree.h"
#include "base/text/parse.h"
#include "store/store_internal.h"
#include "store/volume/volume.h"

#define SNAPSHOTS "snapshots"
#define LIVE "live-"

enum { LIVE_NAME_BYTES = 32 };

struct listing {
    void (*each)(void *context, const char *snapshot, uint32_t generation);
    void *context;
};

/* A removal of all trees in one directory. */
struct removal {
    struct store *store;
    const struct tree_ops *trees;
    int dir_fd;
    bool is_of_live; /* skip names that are not live trees */
    size_t removed;  /* in this pass */
};

static const char *live_name(char into[static LIVE_NAME_BYTES], uint32_t generation)
{
    (void)snprintf(into, LIVE_NAME_BYTES, LIVE "%u", generation);
    return into;
}

/* Parses the generation in the name of a live tree; 0 if it is none. */
static uint32_t live_generation(const char *name)
{
    uint64_t value;

    if (strncmp(name, LIVE, strlen(LIVE)) != 0 || parse_u64(name + strlen(LIVE), &value) < 0 ||
        value > UINT32_MAX)
        return 0;
    return (uint32_t)value;
}

static int open_dir(int dir_fd, const char *name)
{
    int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

int layered_volume_fd(const struct volume *volume)
{
    return open_dir(volume->store->volumes_fd, volume->id);
}

/* Opens the directory that contains a tree. */
static int parent_open(const struct volume *volume, const char *snapshot)
{
    cleanup_close int fd = layered_volume_fd(volume);

    if (fd < 0 || !snapshot)
        return TAKE_FD(fd);
    return open_dir(fd, SNAPSHOTS);
}

static int layered_error(struct err *err, int r, const char *what, const struct volume *volume)
{
    if (r == -ENOSPC || r == -EDQUOT)
        return err_refuse(err, r == -EDQUOT ? CAUSE_QUOTA_EXCEEDED : CAUSE_POOL_FULL,
                          "%s of volume '%s': %s", what, volume->id,
                          store_shortage(volume->store, -r));
    return err_sys(err, r, "%s of volume '%s'", what, volume->id);
}

/* Creates volumes/ID. */
static int volume_dir_make(struct volume *volume, const struct tree_ops *trees, int *ret_fd,
                           struct err *err)
{
    cleanup_close int fd = -EBADF;

    if (mkdirat(volume->store->volumes_fd, volume->id, 0700) < 0)
        return errno == EEXIST ? err_set(err, ERR_EXISTS, "volume '%s' already exists", volume->id)
                               : layered_error(err, -errno, "make the directory", volume);
    fd = layered_volume_fd(volume);
    if (fd < 0)
        return layered_error(err, fd, "open the directory", volume);
    if (mkdirat(fd, SNAPSHOTS, 0700) < 0)
        return layered_error(err, -errno, "make the directory", volume);
    *ret_fd = TAKE_FD(fd);
    return trees->prepare ? trees->prepare(volume, *ret_fd, err) : 0;
}

int layered_create(struct volume *volume, const struct tree_ops *trees, struct err *err)
{
    cleanup_close int fd = -EBADF;
    char name[LIVE_NAME_BYTES];
    struct tree_target target = { .volume = volume, .name = live_name(name, 1) };
    int r = volume_dir_make(volume, trees, &fd, err);

    if (r < 0)
        return r;
    target.volume_fd = target.dir_fd = fd;
    r = trees->make(&target);
    return r < 0 ? layered_error(err, r, "make the tree", volume) : 0;
}

int layered_branch(struct volume *volume, uint32_t generation, struct volume *from,
                   const char *snapshot, const struct tree_ops *trees, struct err *err)
{
    cleanup_close int from_fd = layered_open_tree(from, snapshot, NULL);
    cleanup_close int fd = layered_volume_fd(volume);
    char name[LIVE_NAME_BYTES];
    struct tree_target target = { .volume = volume, .name = live_name(name, generation) };
    int r = from_fd < 0 ? layered_error(err, from_fd, "open a tree", from) : 0;

    if (r == 0 && fd == -ENOENT)
        r = volume_dir_make(volume, trees, &fd, err);
    else if (r == 0 && fd < 0)
        r = layered_error(err, fd, "open the directory", volume);
    if (r < 0)
        return r;
    target.volume_fd = target.dir_fd = fd;
    r = trees->copy(&target, from_fd);
    return r < 0 ? layered_error(err, r, "make a tree", volume) : 0;
}

int layered_snapshot(struct volume *volume, const char *name, const struct tree_ops *trees,
                     struct err *err)
{
    cleanup_close int fd = layered_volume_fd(volume);
    cleanup_close int dir_fd = fd < 0 ? fd : open_dir(fd, SNAPSHOTS);
    cleanup_close int from_fd = layered_open_tree(volume, NULL, NULL);
    struct tree_target target = {
        .volume = volume, .volume_fd = fd, .dir_fd = dir_fd, .name = name, .is_read_only = true
    };
    int r;

    if (dir_fd < 0 || from_fd < 0)
        return layered_error(err, dir_fd < 0 ? dir_fd : from_fd, "open the live tree", volume);
    r = trees->copy(&target, from_fd);
    return r < 0 ? layered_error(err, r, "take a snapshot", volume) : 0;
}

int layered_drop(struct volume *volume, const char *snapshot, uint32_t generation,
                 const struct tree_ops *trees)
{
    cleanup_close int fd = parent_open(volume, snapshot);
    char name[LIVE_NAME_BYTES];

    if (fd < 0)
        return fd;
    return trees->remove(volume->store, fd, snapshot ? snapshot : live_name(name, generation));
}

static int list_live(void *context, const char *name)
{
    const struct listing *listing = context;
    uint32_t generation = live_generation(name);

    if (generation)
        listing->each(listing->context, NULL, generation);
    return 0;
}

static int list_snapshot(void *context, const char *name)
{
    const struct listing *listing = context;

    listing->each(listing->context, name, 0);
    return 0;
}

int layered_list(struct volume *volume,
                 void (*each)(void *context, const char *snapshot, uint32_t generation),
                 void *context)
{
    struct listing listing = { .each = each, .context = context };
    cleanup_close int fd = layered_volume_fd(volume);
    cleanup_close int dir_fd = fd < 0 ? fd : open_dir(fd, SNAPSHOTS);
    int r = fd < 0 ? fd : store_each_name(fd, list_live, &listing);

    /* A volume that was being created may lack the directory. */
    if (r < 0 || dir_fd == -ENOENT)
        return r;
    return dir_fd < 0 ? dir_fd : store_each_name(dir_fd, list_snapshot, &listing);
}

struct volume_listing {
    int (*each)(void *context, const char *id);
    void *context;
};

/* Names with a dot are removals and copies under way. */
static int list_volume(void *context, const char *name)
{
    const struct volume_listing *listing = context;

    return *name == '.' ? 0 : listing->each(listing->context, name);
}

int layered_each(struct store *store, int (*each)(void *context, const char *id), void *context)
{
    struct volume_listing listing = { .each = each, .context = context };

    return store_each_name(store->volumes_fd, list_volume, &listing);
}

int layered_open_tree(struct volume *volume, const char *snapshot, char **ret_temporary)
{
    cleanup_close int fd = parent_open(volume, snapshot);
    char name[LIVE_NAME_BYTES];

    if (fd < 0)
        return fd;
    if (ret_temporary)
        *ret_temporary = NULL;
    return open_dir(fd, snapshot ? snapshot : live_name(name, volume_generation(volume)));
}

void layered_release(struct volume *volume, char *temporary)
{
    (void)volume;
    (void)temporary;
}

static int removal_one(void *context, const char *name)
{
    struct removal *removal = context;
    int r;

    if (removal->is_of_live && !live_generation(name))
        return 0;
    r = removal->trees->remove(removal->store, removal->dir_fd, name);
    removal->removed += r == 0;
    return r;
}

/* readdir may skip names while others are removed, so this repeats until a pass finds none. */
static int removal_run(struct removal *removal)
{
    int r;

    do {
        removal->removed = 0;
        r = store_each_name(removal->dir_fd, removal_one, removal);
    } while (r == 0 && removal->removed > 0);
    return r;
}

/* Removes every tree of a volume, then its directory, unless the backend still needs it. */
static int volume_dir_remove(struct store *store, const char *name, const struct tree_ops *trees)
{
    cleanup_close int fd = open_dir(store->volumes_fd, name);
    cleanup_close int dir_fd = fd < 0 ? fd : open_dir(fd, SNAPSHOTS);
    struct removal live = { .store = store, .trees = trees, .dir_fd = fd, .is_of_live = true };
    struct removal kept = { .store = store, .trees = trees, .dir_fd = dir_fd };
    int r = fd < 0 && fd != -ENOTDIR ? fd : 0;

    if (fd >= 0)
        r = removal_run(&live);
    if (r == 0 && dir_fd >= 0)
        r = removal_run(&kept);
    if (r < 0)
        return r;
    if (fd >= 0 && trees->release_volume && !trees->release_volume(store, fd, name))
        return 0;
    return tree_remove_at(store->volumes_fd, name);
}

int layered_destroy(struct volume *volume, const struct tree_ops *trees)
{
    struct store *store = volume->store;
    char gone[STORE_TEMP_NAME_MAX];
    const char *name = gone;

    store_temp_name("gone", gone);
    if (renameat(store->volumes_fd, volume->id, store->volumes_fd, gone) < 0) {
        if (errno == ENOENT)
            return 0;
        name = volume->id; /* a full disk must not prevent the removal that frees space */
    }
    return volume_dir_remove(store, name, trees);
}

static void mark_tree(void *context, const char *snapshot, uint32_t generation)
{
    bool *has_tree = context;

    (void)snapshot;
    (void)generation;
    *has_tree = true;
}

static int sweep_one(void *context, const char *name)
{
    const struct removal *sweep = context;
    struct volume volume = { .store = sweep->store, .id = (char *)(uintptr_t)name };
    bool has_tree = false;
    int r = 0;

    if (*name != '.')
        r = layered_list(&volume, mark_tree, &has_tree);
    if (r < 0 || has_tree)
        return r == -ENOTDIR || r == -ELOOP ? 0 : r; /* a file that the store did not create */
    return volume_dir_remove(sweep->store, name, sweep->trees);
}

int layered_sweep(struct store *store, const struct tree_ops *trees, struct err *err)
{
    struct removal sweep = { .store = store, .trees = trees };
    int r = store_each_name(store->volumes_fd, sweep_one, &sweep);

    return r < 0 ? err_sys(err, r, "remove leftover volumes") : 0;
}
