// SPDX-License-Identifier: Apache-2.0
/* Writes versions to directories of the host. The registry is the journal: it says which version a
 * directory has, and which one it is being given. Versions never change, so that is enough to
 * finish, or to undo, whatever was interrupted. */
#include "host/codebase/apply.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/json.h"
#include "host/codebase/codebase.h"
#include "host/codebase/codebase_internal.h"
#include "host/core/host_internal.h"
#include "host/observe/event.h"
#include "host/registry/codebase.h"
#include "kernel/mount.h"
#include "store/codebase/apply.h"

/* A directory while a version is written to it. */
struct target {
    struct codebase_info info;
    struct codebase_applied applied;
    int dir_fd;
    struct stat st;
    char temporary[sizeof(".holt-apply-") + CODEBASE_ID_MAX];
};

static void target_done(struct target *target)
{
    target->dir_fd = fd_close(target->dir_fd);
}

static int is_empty(int dir_fd)
{
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    int names = 0;

    if (!dir) {
        int r = -errno;

        (void)fd_close(fd);
        return r;
    }
    while (names <= 2 && readdir(dir))
        names++;
    (void)closedir(dir);
    return names <= 2; /* "." and ".." */
}

static int target_open(struct target *target, struct err *err)
{
    const char *path = target->applied.directory;

    (void)snprintf(target->temporary, sizeof(target->temporary), ".holt-apply-%s", target->info.id);
    target->dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (target->dir_fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return err_set(err, ERR_INVALID, "'%.150s' is not a directory of this host", path);
    if (target->dir_fd < 0 || fstat(target->dir_fd, &target->st) < 0)
        return err_sys(err, -errno, "open '%.150s'", path);
    return 0;
}

/* Finds what the registry knows of the directory, or what is known without it: the source has
 * version 0, and an empty directory nothing. */
static int applied_find(struct host *host, struct target *target, struct err *err)
{
    cleanup_free struct codebase_applied *list = NULL;
    struct codebase_applied *own = &target->applied;
    char source[PATH_MAX];
    size_t count = 0;
    int r = registry_list_applied(host->registry, &list, &count, err);

    if (r < 0)
        return r;
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].codebase, own->codebase) == 0 &&
            strcmp(list[i].directory, own->directory) == 0) {
            *own = list[i];
            return 0;
        }
    own->version = own->wanted = 0;
    if (*target->info.source == '/' && realpath(target->info.source, source) &&
        strcmp(source, own->directory) == 0)
        return 0;
    r = is_empty(target->dir_fd);
    if (r < 0)
        return err_sys(err, r, "read '%.150s'", own->directory);
    own->version = own->wanted = CODEBASE_NO_VERSION;
    if (r == 1)
        return 0;
    (void)err_set(err, ERR_INVALID, "'%.120s' is not the directory that codebase '%s' came from",
                  own->directory, target->info.name);
    return err_remedy(err, "apply it to its own directory, or to an empty one");
}

int codebase_version_open(struct host *host, const struct codebase_info *info, uint32_t version,
                          int *ret_fd, struct err *err)
{
    if (version == CODEBASE_NO_VERSION) {
        cleanup_close int mount_fd = mount_new("tmpfs", NULL, 0, 0);

        *ret_fd = mount_fd < 0
                      ? mount_fd
                      : openat(mount_fd, ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return *ret_fd < 0 ? err_sys(err, mount_fd < 0 ? mount_fd : -errno, "make a directory") : 0;
    }
    *ret_fd = codebase_open_version(host->store, info->id, version);
    return *ret_fd < 0
               ? err_sys(err, *ret_fd, "open version %u of codebase '%s'", version, info->name)
               : 0;
}

static int conflict_note(void *context, const struct apply_conflict *conflict,
                         struct apply_choice *choice, struct err *err)
{
    const char *reason = !conflict->from->exists   ? "exists in the directory"
                         : !conflict->here->exists ? "was removed from the directory"
                                                   : "was changed in the directory";

    (void)err;
    (void)choice; /* keep what the directory has */
    (void)conflicts_add(context, conflict->here->path, reason);
    return 0;
}

/* One run of the engine between two versions. */
struct run {
    uint32_t from, to;
    bool is_resumed;
    struct conflicts *conflicts;
    int from_fd, to_fd;
    struct apply_plan *plan;
};

static void run_done(struct run *run)
{
    apply_plan_free(run->plan);
    run->from_fd = fd_close(run->from_fd);
    run->to_fd = fd_close(run->to_fd);
}

static int run_plan(struct host *host, const struct target *target, struct run *run,
                    struct err *err)
{
    struct apply apply = {
        .dir_fd = target->dir_fd,
        .temporary = target->temporary,
        .uid = target->st.st_uid,
        .gid = target->st.st_gid,
        .is_resumed = run->is_resumed,
        .conflict = conflict_note,
        .context = run->conflicts,
    };
    int r = codebase_version_open(host, &target->info, run->from, &run->from_fd, err);

    if (r == 0)
        r = codebase_version_open(host, &target->info, run->to, &run->to_fd, err);
    apply.from_fd = run->from_fd;
    apply.to_fd = run->to_fd;
    return r < 0 ? r : apply_plan(&apply, &run->plan, err);
}

/* Finishes or undoes what was interrupted. What others changed meanwhile stays theirs. */
static int resume(struct host *host, struct target *target, uint32_t from, uint32_t to,
                  struct err *err)
{
    cleanup_with(conflicts_done) struct conflicts conflicts = { .count = 0 };
    cleanup_with(run_done) struct run run = { from, to, true, &conflicts, -EBADF, -EBADF, NULL };
    int r = run_plan(host, target, &run, err);

    if (r == 0)
        r = apply_run(run.plan, err);
    if (r == 0 && syncfs(target->dir_fd) < 0)
        r = err_sys(err, -errno, "write '%.150s' to the disk", target->applied.directory);
    if (r < 0)
        return r;
    target->applied.version = target->applied.wanted = to;
    return registry_put_applied(host->registry, &target->applied, err);
}

/* The journal is open: from here on the directory is brought to one of its two ends. */
static int run_write(struct host *host, struct target *target, struct apply_plan *plan,
                     struct err *err)
{
    const uint32_t from = target->applied.version, to = target->applied.wanted;
    struct err ignored;
    int r = apply_run(plan, err);

    if (r == 0 && syncfs(target->dir_fd) < 0)
        r = err_sys(err, -errno, "write '%.150s' to the disk", target->applied.directory);
    if (r < 0) {
        if (resume(host, target, to, from, &ignored) < 0)
            (void)err_remedy(err, "what was written is finished by the next apply, or when the "
                                  "daemon starts again");
        return r;
    }
    fault_point("apply.written");
    target->applied.version = to;
    r = registry_put_applied(host->registry, &target->applied, err);
    fault_point("apply.done");
    return r;
}

static int target_write(struct host *host, struct target *target, struct codebase_applying *ret,
                        struct err *err)
{
    struct codebase_applied *applied = &target->applied;
    cleanup_with(run_done) struct run run = {
        applied->version, ret->version, false, &ret->conflicts, -EBADF, -EBADF, NULL
    };
    int r = run_plan(host, target, &run, err);

    if (r < 0 || ret->conflicts.count > 0)
        return r;
    fault_point("apply.checked");
    ret->files = apply_count(run.plan);
    applied->wanted = ret->version;
    r = registry_put_applied(host->registry, applied, err);
    fault_point("apply.recorded");
    return r < 0 ? r : run_write(host, target, run.plan, err);
}

static int target_apply(struct host *host, struct target *target, struct codebase_applying *ret,
                        struct err *err)
{
    const struct codebase_applied *applied = &target->applied;
    int r = target_open(target, err);

    if (r == 0)
        r = applied_find(host, target, err);
    if (r == 0 && applied->version != applied->wanted)
        r = resume(host, target, applied->version, applied->wanted, err);
    return r < 0 ? r : target_write(host, target, ret, err);
}

int codebase_directory_find(const struct codebase_info *info, const char *directory,
                            char ret[CODEBASE_SOURCE_MAX + 1], struct err *err)
{
    const char *wanted = *directory ? directory : info->source;
    char path[PATH_MAX];

    if (*wanted != '/')
        return err_set(err, ERR_INVALID,
                       *directory ? "'%.150s' is not an absolute path"
                                  : "codebase came from volume '%.100s': name a directory",
                       wanted);
    if (!realpath(wanted, path))
        return err_set(err, ERR_INVALID, "'%.150s' is not a directory of this host", wanted);
    if (strlen(path) > CODEBASE_SOURCE_MAX)
        return err_set(err, ERR_INVALID, "the directory must be at most %d bytes",
                       CODEBASE_SOURCE_MAX);
    memcpy(ret, path, strlen(path) + 1);
    return 0;
}

int codebase_check_version(const struct codebase_info *info, uint32_t version, struct err *err)
{
    if (version <= info->head)
        return 0;
    return err_set(err, ERR_NOT_FOUND, "codebase '%s' has no version %u", info->name, version);
}

int codebase_apply(struct host *host, const struct caller *caller,
                   const struct codebase_apply_spec *spec, struct codebase_applying *ret,
                   struct err *err)
{
    cleanup_with(target_done) struct target target = { .dir_fd = -EBADF };
    struct codebase_work work = { .codebase = target.info.id };
    int r;

    *ret = (struct codebase_applying){ .version = 0 };
    if (!caller_is_host_admin(caller))
        return err_set(err, ERR_DENIED, "only an admin may write to a directory of the host");
    r = codebase_find(host, caller, spec->codebase, &target.info, err);
    if (r == 0)
        r = codebase_directory_find(&target.info, spec->directory, target.applied.directory, err);
    if (r == 0)
        r = codebase_work_begin(host, &work, err);
    if (r < 0)
        return r;
    r = codebase_find(host, caller, spec->codebase, &target.info, err); /* it may be gone by now */
    ret->version = spec->version ? *spec->version : target.info.head;
    memcpy(target.applied.codebase, target.info.id, sizeof(target.info.id));
    if (r == 0)
        r = codebase_check_version(&target.info, ret->version, err);
    if (r == 0)
        r = target_apply(host, &target, ret, err);
    codebase_work_end(host, &work);
    if (r == 0 && ret->conflicts.count == 0)
        owner_event(host, target.info.owner, EVENT_CODEBASE_APPLIED,
                    json_pack("{s:s, s:s, s:s, s:I}", "codebase", target.info.id, "name",
                              target.info.name, "directory", target.applied.directory, "version",
                              (json_int_t)ret->version));
    return r;
}

/* A directory that cannot be reached now is finished by its next apply. */
static void applied_recover(struct host *host, const struct codebase_applied *applied)
{
    cleanup_with(target_done) struct target target = { .applied = *applied, .dir_fd = -EBADF };
    struct err ignored;

    if (codebase_find(host, &caller_root, applied->codebase, &target.info, &ignored) == 0 &&
        target_open(&target, &ignored) == 0)
        (void)resume(host, &target, applied->version, applied->wanted, &ignored);
}

int codebase_applies_recover(struct host *host, struct err *err)
{
    cleanup_free struct codebase_applied *list = NULL;
    size_t count = 0;
    int r = registry_list_applied(host->registry, &list, &count, err);

    for (size_t i = 0; r == 0 && i < count; i++)
        if (list[i].version != list[i].wanted)
            applied_recover(host, &list[i]);
    return r;
}
