// SPDX-License-Identifier: Apache-2.0
#include "host/sandbox/mount.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "host/core/host_internal.h"
#include "host/sandbox/sandbox_internal.h"

/* holt-init mounts its own filesystems here. */
static const char *const reserved[] = { "/proc", "/sys", "/dev" };

static bool is_below(const char *path, const char *dir)
{
    size_t len = strlen(dir);

    return strncmp(path, dir, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

static bool is_dots(const char *name, size_t len)
{
    return (len == 1 && name[0] == '.') || (len == 2 && name[0] == '.' && name[1] == '.');
}

/* Copies the path with one slash before each component and none at the end. */
static int path_clean(const char *path, char ret[MOUNT_PATH_MAX + 1], struct err *err)
{
    size_t used = 0;

    if (*path != '/')
        return err_set(err, ERR_INVALID, "volume path '%.100s' is not absolute", path);
    for (path += strspn(path, "/"); *path; path += strspn(path, "/")) {
        size_t len = strcspn(path, "/");

        if (is_dots(path, len))
            return err_set(err, ERR_INVALID, "a volume path must not contain '.' or '..'");
        if (used + 1 + len > MOUNT_PATH_MAX)
            return err_set(err, ERR_INVALID, "a volume path must be at most %d bytes",
                           MOUNT_PATH_MAX);
        ret[used++] = '/';
        memcpy(ret + used, path, len);
        used += len;
        path += len;
    }
    ret[used] = '\0';
    return used > 0 ? 0 : err_set(err, ERR_INVALID, "a volume cannot be mounted at '/'");
}

int sandbox_mount_init(struct sandbox_mount *mount, const char *shared_volume, const char *path,
                       struct err *err)
{
    int r = path_clean(path, mount->path, err);

    if (r < 0)
        return r;
    for (size_t i = 0; i < ARRAY_SIZE(reserved); i++)
        if (is_below(mount->path, reserved[i]))
            return err_set(err, ERR_INVALID, "a volume cannot be mounted in '%s'", reserved[i]);
    (void)snprintf(mount->shared_volume, sizeof(mount->shared_volume), "%s", shared_volume);
    mount->is_read_only = false;
    return 0;
}

static int mount_compare(const void *a, const void *b)
{
    return strcmp(((const struct sandbox_mount *)a)->path, ((const struct sandbox_mount *)b)->path);
}

int sandbox_mounts_check(struct sandbox_mount *mounts, size_t count, struct err *err)
{
    if (count > SANDBOX_MOUNTS_MAX)
        return err_set(err, ERR_INVALID, "a sandbox has at most %d volumes", SANDBOX_MOUNTS_MAX);
    if (count > 1)
        qsort(mounts, count, sizeof(*mounts), mount_compare);
    for (size_t i = 1; i < count; i++)
        if (strcmp(mounts[i - 1].path, mounts[i].path) == 0)
            return err_set(err, ERR_INVALID, "two volumes have the mount path '%.150s'",
                           mounts[i].path);
    return 0;
}

static bool info_has_shared_volume(const struct sandbox_info *info, const char *shared_volume)
{
    for (size_t i = 0; i < info->mount_count; i++)
        if (strcmp(info->mounts[i].shared_volume, shared_volume) == 0)
            return true;
    return strcmp(info->codebase, shared_volume) == 0;
}

static bool sandbox_has_shared_volume(const struct sandbox *sandbox, const char *shared_volume)
{
    return info_has_shared_volume(&sandbox->info, shared_volume) ||
           (sandbox->reserved && info_has_shared_volume(sandbox->reserved, shared_volume));
}

/* A sandbox is in the table, with its mounts, from before it opens a shared volume until it is
 * gone. So a new sandbox either sees the removal or is seen by it; likewise a sandbox that gets
 * other mounts. */
int shared_volume_removal_begin(struct host *host, struct shared_volume_removal *removal,
                                struct err *err)
{
    int r = 0;

    lock_take(&host->lock);
    for (const struct sandbox *each = host->sandboxes; r == 0 && each; each = each->next)
        if (sandbox_has_shared_volume(each, removal->shared_volume))
            r = err_set(err, ERR_BUSY, "it is mounted in sandbox '%s'", each->info.id);
    for (const struct shared_volume_removal *each = host->removals; r == 0 && each;
         each = each->next)
        if (strcmp(each->shared_volume, removal->shared_volume) == 0)
            r = err_set(err, ERR_BUSY, "it is being created or removed");
    if (r == 0) {
        removal->next = host->removals;
        host->removals = removal;
    }
    lock_release(&host->lock);
    return r;
}

void shared_volume_removal_end(struct host *host, struct shared_volume_removal *removal)
{
    struct shared_volume_removal **slot = &host->removals;

    lock_take(&host->lock);
    while (*slot != removal)
        slot = &(*slot)->next;
    *slot = removal->next;
    lock_release(&host->lock);
}

bool sandbox_mounts_are_being_removed(const struct host *host, const struct sandbox_info *info)
{
    for (const struct shared_volume_removal *removal = host->removals; removal;
         removal = removal->next)
        if (info_has_shared_volume(info, removal->shared_volume))
            return true;
    return false;
}

/* The volumes were found by name before they were reserved: a removal may have ended since. */
int sandbox_mounts_reserve(struct sandbox *sandbox, const struct sandbox_info *info,
                           struct err *err)
{
    struct host *host = sandbox->host;
    bool is_being_removed;
    int r = 0;

    lock_take(&host->lock);
    is_being_removed = sandbox_mounts_are_being_removed(host, info);
    if (!is_being_removed)
        sandbox->reserved = info;
    lock_release(&host->lock);
    if (is_being_removed)
        return err_set(err, ERR_NOT_FOUND, "a volume for sandbox '%s' is being removed", info->id);
    for (size_t i = 0; r == 0 && i < info->mount_count; i++)
        r = shared_volume_check(host, info->mounts[i].shared_volume, err);
    if (r < 0)
        sandbox_mounts_release(sandbox);
    return r;
}

void sandbox_mounts_release(struct sandbox *sandbox)
{
    lock_take(&sandbox->host->lock);
    sandbox->reserved = NULL;
    lock_release(&sandbox->host->lock);
}
