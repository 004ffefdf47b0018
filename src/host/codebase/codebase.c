// SPDX-License-Identifier: Apache-2.0
#include "host/codebase/codebase.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/random.h"
#include "base/text/hex.h"
#include "base/text/parse.h"
#include "host/codebase/apply.h"
#include "host/codebase/codebase_internal.h"
#include "host/core/host_internal.h"
#include "host/observe/event.h"
#include "host/registry/codebase.h"
#include "host/sandbox/mount.h"
#include "host/sandbox/sandbox.h"
#include "host/volume/named_volume.h"
#include "store/volume/plain.h"

enum { ID_BYTES = 10 };

static void codebase_event(struct host *host, enum event_type type,
                           const struct codebase_info *info)
{
    owner_event(host, info->owner, type,
                json_pack("{s:s, s:s}", "codebase", info->id, "name", info->name));
}

static int info_init(struct codebase_info *info, const char *owner, const char *name,
                     const char *source, struct err *err)
{
    char digits[HEX_SIZE(ID_BYTES)];

    if (!is_handle(name, CODEBASE_NAME_MAX))
        return err_set(err, ERR_INVALID, "name must be 1 to %d letters, digits, '.', '_' or '-'",
                       CODEBASE_NAME_MAX);
    if (strlen(source) > CODEBASE_SOURCE_MAX)
        return err_set(err, ERR_INVALID, "the source must be at most %d bytes",
                       CODEBASE_SOURCE_MAX);
    if (random_hex(digits, ID_BYTES) < 0)
        return err_sys(err, -EIO, "get random bytes");
    *info = (struct codebase_info){ .head = 0 };
    (void)snprintf(info->id, sizeof(info->id), CODEBASE_ID_PREFIX "%s", digits);
    (void)snprintf(info->owner, sizeof(info->owner), "%s", owner);
    (void)snprintf(info->name, sizeof(info->name), "%s", name);
    (void)snprintf(info->source, sizeof(info->source), "%s", source);
    return 0;
}

/* The daemon can read every directory of the host, so only an admin may name one. */
static int dir_open(const struct caller *caller, const char *path, int *ret_fd, struct err *err)
{
    int fd;

    if (!caller_is_admin(caller))
        return err_set(err, ERR_DENIED, "only an admin may import a directory of the host");
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return err_set(err, ERR_INVALID, "'%.150s' is not a directory of this host", path);
    *ret_fd = fd;
    return fd < 0 ? err_sys(err, -errno, "open '%.150s'", path) : 0;
}

static int volume_source_open(struct host *host, const struct caller *caller, const char *word,
                              int *ret_fd, struct err *err)
{
    struct volume_info volume;
    int r = named_volume_find(host, caller, word, &volume, err);

    if (r < 0)
        return r;
    *ret_fd = plain_open(host->store, volume.id);
    return *ret_fd < 0 ? err_sys(err, *ret_fd, "open volume '%s'", volume.name) : 0;
}

static int import_run(struct host *host, const struct codebase_info *info, int from_fd,
                      struct err *err)
{
    struct codebase_version version = { .created_ms = clock_wall_ms() };
    struct codebase_changes changes;
    int r = codebase_create(host->store, info->id, from_fd, &changes, err);

    if (r < 0)
        return r;
    fault_point("codebase.imported");
    version.files = changes.files;
    r = registry_add_version(host->registry, info->id, &version, NULL, err);
    if (r < 0)
        (void)codebase_destroy(host->store, info->id);
    return r;
}

/* The row comes first, and counts once it has a version: a daemon that is killed meanwhile removes
 * both at its next start. Until then no sandbox can use the codebase and nothing can remove it. */
int codebase_add(struct host *host, const struct caller *caller, const char *name,
                 const char *source, struct codebase_info *ret, struct err *err)
{
    struct codebase_info info;
    struct shared_volume_removal making = { .shared_volume = info.id };
    cleanup_close int from_fd = -EBADF;
    struct err ignored;
    int r = info_init(&info, caller->owner, name, source, err);

    if (r == 0) /* codebases have no labels */
        r = caller_check_labels(caller, NULL, 0, err);
    if (r == 0)
        r = codebase_check_storage(host->store, err);
    if (r == 0)
        r = *source == '/' ? dir_open(caller, source, &from_fd, err)
                           : volume_source_open(host, caller, source, &from_fd, err);
    if (r == 0)
        r = shared_volume_removal_begin(host, &making, err);
    if (r < 0)
        return r;
    r = registry_add_codebase(host->registry, &info, err);
    if (r == 0) {
        fault_point("codebase.recorded");
        r = import_run(host, &info, from_fd, err);
        if (r < 0)
            (void)registry_remove_codebase(host->registry, info.id, &ignored);
    }
    shared_volume_removal_end(host, &making);
    if (r < 0)
        return r;
    codebase_event(host, EVENT_CODEBASE_ADDED, &info);
    *ret = info;
    return 0;
}

int codebase_list(struct host *host, const struct caller *caller, struct codebase_info **ret,
                  size_t *ret_count, struct err *err)
{
    cleanup_free struct codebase_info *list = NULL;
    size_t count = 0, kept = 0;
    int r = registry_list_codebases(host->registry, &list, &count, err);

    if (r < 0)
        return r;
    for (size_t i = 0; i < count; i++)
        if (caller_sees(caller, list[i].owner, NULL, 0))
            list[kept++] = list[i];
    *ret = TAKE_PTR(list);
    *ret_count = kept;
    return 0;
}

/* An id comes first, then a name of the caller's own owner, then the name of another's for an
 * admin. */
int codebase_find(struct host *host, const struct caller *caller, const char *word,
                  struct codebase_info *ret, struct err *err)
{
    cleanup_free struct codebase_info *list = NULL;
    const struct codebase_info *found = NULL;
    size_t count = 0;
    int r = codebase_list(host, caller, &list, &count, err);

    if (r < 0)
        return r;
    for (size_t i = 0; i < count; i++) {
        bool is_own = strcmp(list[i].owner, caller->owner) == 0;

        if (strcmp(list[i].id, word) == 0) {
            found = &list[i];
            break;
        }
        if (strcmp(list[i].name, word) == 0 && (is_own || !found))
            found = &list[i];
    }
    if (!found)
        return err_set(err, ERR_NOT_FOUND, "codebase '%.100s' not found", word);
    *ret = *found;
    return 0;
}

int codebase_log(struct host *host, const struct caller *caller, const char *word,
                 struct codebase_version **ret, size_t *ret_count, struct err *err)
{
    struct codebase_info info;
    int r = codebase_find(host, caller, word, &info, err);

    return r < 0 ? r : registry_list_versions(host->registry, info.id, ret, ret_count, err);
}

/* The files go first: without a row nothing would ever remove them. */
static int codebase_delete(struct host *host, const struct codebase_info *info, struct err *err)
{
    int r = codebase_destroy(host->store, info->id);

    fault_point("codebase.destroyed");
    if (r < 0)
        return err_sys(err, r, "remove the files of codebase '%s'", info->name);
    return registry_remove_codebase(host->registry, info->id, err);
}

int codebase_remove(struct host *host, const struct caller *caller, const char *word,
                    struct err *err)
{
    struct codebase_info info;
    struct shared_volume_removal removal = { .shared_volume = info.id };
    struct codebase_work work = { .codebase = info.id };
    int r = codebase_find(host, caller, word, &info, err);

    if (r == 0)
        r = codebase_work_begin(host, &work, err);
    if (r < 0)
        return r;
    r = shared_volume_removal_begin(host, &removal, err);
    if (r == 0) {
        r = codebase_delete(host, &info, err);
        shared_volume_removal_end(host, &removal);
    }
    codebase_work_end(host, &work);
    if (r == 0)
        codebase_event(host, EVENT_CODEBASE_REMOVED, &info);
    return r;
}

int codebases_recover(struct host *host, struct err *err)
{
    cleanup_free struct codebase_info *list = NULL;
    size_t count = 0;
    int r = registry_list_incomplete_codebases(host->registry, &list, &count, err);

    for (size_t i = 0; r == 0 && i < count; i++)
        r = codebase_delete(host, &list[i], err);
    if (r < 0)
        return r;
    free(TAKE_PTR(list));
    r = registry_list_codebases(host->registry, &list, &count, err);
    for (size_t i = 0; r == 0 && i < count; i++) {
        cleanup_close int fd = codebase_open_version(host->store, list[i].id, list[i].head);

        (void)codebase_copies_remove(host->store, list[i].id); /* of an interrupted change */
        if (fd == -ENOENT) /* its removal was interrupted: every version that counts has files */
            r = codebase_delete(host, &list[i], err);
    }
    return r < 0 ? r : codebase_applies_recover(host, err);
}

static int path_check(const struct sandbox_info *info, struct err *err)
{
    const char *path = info->codebase_path;

    for (size_t i = 0; i < info->mount_count; i++) {
        const char *mount = info->mounts[i].path;
        const size_t len = strlen(mount);

        if (strncmp(path, mount, len) == 0 && (path[len] == '\0' || path[len] == '/'))
            return err_set(err, ERR_INVALID,
                           "the volume at '%.100s' would hide the codebase at "
                           "'%.100s': use another path for one of them",
                           mount, path);
    }
    return 0;
}

int codebase_assign(struct host *host, const struct sandbox_spec *spec, struct sandbox_info *info,
                    struct err *err)
{
    const char *path = spec->codebase_path ? spec->codebase_path : CODEBASE_MOUNT_POINT;
    struct codebase_info codebase;
    struct sandbox_mount mount;
    int r;

    if (!spec->codebase)
        return 0;
    r = codebase_check_storage(host->store, err);
    if (r == 0)
        r = codebase_find(host, spec->caller, spec->codebase, &codebase, err);
    if (r == 0)
        r = sandbox_mount_init(&mount, codebase.id, path, err);
    if (r < 0)
        return r;
    (void)snprintf(info->codebase, sizeof(info->codebase), "%s", codebase.id);
    (void)snprintf(info->codebase_path, sizeof(info->codebase_path), "%s", mount.path);
    info->codebase_version = info->codebase_base = codebase.head;
    return path_check(info, err);
}
