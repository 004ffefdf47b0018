// SPDX-License-Identifier: Apache-2.0
/* Writes the changes of an agent to the directory of the user: see repo.h for what is promised. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/files/file_copy.h"
#include "base/random.h"
#include "base/xalloc.h"
#include "cli/agent/repo.h"
#include "cli/core/report.h"
#include "kernel/path.h"

enum { TEMPORARY_SIZE = 32, DIRECTORY_MODE = 0755 };

/* A path as the directory that it is in, and its name there. */
struct spot {
    int fd;
    const char *name;
};

static void spot_done(struct spot *spot)
{
    spot->fd = fd_close(spot->fd);
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* Opens the directory of a path, without following any link. */
static int spot_open(const struct repo *repo, const char *path, struct spot *ret)
{
    const char *name = name_of(path);
    cleanup_free char *parent =
        name == path ? xstrdup(".") : xasprintf("%.*s", (int)(name - path - 1), path);

    ret->name = name;
    ret->fd = open_no_links(repo->fd, parent, O_RDONLY | O_DIRECTORY, 0);
    return ret->fd < 0 ? ret->fd : 0;
}

/* Creates the missing directories of a path. */
static int parents_make(const struct repo *repo, const char *path)
{
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        cleanup_free char *parent = xasprintf("%.*s", (int)(slash - path), path);
        cleanup_with(spot_done) struct spot spot = { .fd = -EBADF, .name = "" };
        int r = spot_open(repo, parent, &spot);

        if (r < 0)
            return r;
        if (mkdirat(spot.fd, spot.name, DIRECTORY_MODE) < 0 && errno != EEXIST)
            return -errno;
    }
    return 0;
}

/* --- whether the user has changed it -----------------------------------------------------------
 */

static bool link_is_same(const struct spot *spot, const char *target)
{
    char now[ENTRY_PATH_MAX + 1];
    ssize_t len = readlinkat(spot->fd, spot->name, now, sizeof(now) - 1);

    return len >= 0 && (size_t)len == strlen(target) && memcmp(now, target, (size_t)len) == 0;
}

static int change_compare(const void *path, const void *change)
{
    return strcmp(path, ((const struct repo_change *)change)->path);
}

/* Returns whether a file or link that was copied is to become a directory of the path: it is
 * checked by itself. */
static bool parent_changes(const struct repo *repo, const struct repo_changes *changes,
                           const char *path)
{
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        cleanup_free char *parent = xasprintf("%.*s", (int)(slash - path), path);
        const struct repo_file *before = repo_find(repo, parent);

        if (before && before->type != ENTRY_DIRECTORY)
            return bsearch(parent, changes->items, changes->count, sizeof(*changes->items),
                           change_compare) != NULL;
    }
    return false;
}

/* Returns NULL if the file is as it was copied, or why it must not be replaced. */
static const char *difference(const struct repo *repo, const struct repo_changes *changes,
                              const struct repo_change *change)
{
    cleanup_with(spot_done) struct spot spot = { .fd = -EBADF, .name = "" };
    const struct repo_file *before = repo_find(repo, change->path);
    struct stat now;
    int r = spot_open(repo, change->path, &spot);

    if (r == 0 && fstatat(spot.fd, spot.name, &now, AT_SYMLINK_NOFOLLOW) < 0)
        r = -errno;
    if (r == -ENOENT)
        return before && change->type != ENTRY_NONE ? "it was removed here meanwhile" : NULL;
    if ((r == -ELOOP || r == -ENOTDIR) && parent_changes(repo, changes, change->path))
        return NULL;
    if (r == -ELOOP || r == -ENOTDIR)
        return "a directory of its path was replaced here meanwhile";
    if (r < 0)
        return strerror(-r);
    if (!before)
        return change->type == ENTRY_DIRECTORY && S_ISDIR(now.st_mode)
                   ? NULL
                   : "it was created here meanwhile";
    if (entry_type_of(now.st_mode) != before->type)
        return "it was replaced here meanwhile";
    if (before->type == ENTRY_DIRECTORY)
        return NULL;
    if (before->type == ENTRY_LINK)
        return link_is_same(&spot, before->target) ? NULL : "the link was changed here meanwhile";
    if ((uint64_t)now.st_size != before->size || now.st_mtim.tv_sec != before->mtime_s ||
        (uint32_t)now.st_mtim.tv_nsec != before->mtime_ns || (now.st_mode & 07777) != before->mode)
        return "it was changed here meanwhile";
    return NULL;
}

/* --- one change --------------------------------------------------------------------------------
 */

static int staged_open(const struct repo_changes *changes, unsigned number)
{
    char name[16];

    (void)snprintf(name, sizeof(name), "%u", number);
    return openat(changes->staging_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
}

/* Root works for the owner of the directory: what it creates belongs to that user. */
static void owner_set(const struct spot *spot, const char *name)
{
    struct stat parent;

    if (geteuid() == 0 && fstat(spot->fd, &parent) == 0 &&
        fchownat(spot->fd, name, parent.st_uid, parent.st_gid, AT_SYMLINK_NOFOLLOW) < 0)
        report_note("'%s' belongs to root: %s", name, strerror(errno));
}

static int file_make(const struct repo_changes *changes, const struct repo_change *change,
                     const struct spot *spot, const char *temporary)
{
    cleanup_close int from = staged_open(changes, change->staged);
    cleanup_close int to =
        openat(spot->fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    struct stat st;
    int r;

    if (from < 0 || to < 0 || fstat(from, &st) < 0)
        return -errno;
    r = file_copy_content(from, to, st.st_size);
    owner_set(spot, temporary);
    if (r == 0 && fchmod(to, change->mode) < 0)
        r = -errno;
    return r;
}

/* Makes it under a temporary name, then gives it its name. */
static int entry_replace(const struct repo_changes *changes, const struct repo_change *change,
                         const struct spot *spot)
{
    char temporary[TEMPORARY_SIZE];
    int r = 0;

    (void)snprintf(temporary, sizeof(temporary), ".holt-%016" PRIx64, random_u64());
    if (change->type == ENTRY_FILE)
        r = file_make(changes, change, spot, temporary);
    else if (symlinkat(change->target ? change->target : "", spot->fd, temporary) < 0)
        r = -errno;
    else
        owner_set(spot, temporary);
    if (r == 0 && renameat(spot->fd, temporary, spot->fd, spot->name) < 0)
        r = -errno;
    if (r < 0)
        (void)unlinkat(spot->fd, temporary, 0);
    return r;
}

static int directory_make(const struct repo_change *change, const struct spot *spot)
{
    bool is_new = mkdirat(spot->fd, spot->name, DIRECTORY_MODE) == 0;
    struct stat st;

    if (!is_new && errno != EEXIST)
        return -errno;
    if (fstatat(spot->fd, spot->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (!S_ISDIR(st.st_mode))
        return -ENOTDIR;
    if (is_new)
        owner_set(spot, spot->name);
    return is_new && fchmodat(spot->fd, spot->name, change->mode | 0700, 0) < 0 ? -errno : 0;
}

/* Removes what has the path. A directory that the user keeps files in stays. */
static int entry_remove(const struct repo *repo, const char *path)
{
    cleanup_with(spot_done) struct spot spot = { .fd = -EBADF, .name = "" };
    int r = spot_open(repo, path, &spot);

    if (r == -ENOENT)
        return 0;
    if (r < 0)
        return r;
    if (unlinkat(spot.fd, spot.name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -errno;
    return unlinkat(spot.fd, spot.name, AT_REMOVEDIR) == 0 || errno == ENOENT || errno == ENOTEMPTY
               ? 0
               : -errno;
}

static int change_write(const struct repo *repo, const struct repo_changes *changes,
                        const struct repo_change *change)
{
    cleanup_with(spot_done) struct spot spot = { .fd = -EBADF, .name = "" };
    const struct repo_file *before = repo_find(repo, change->path);
    int r = 0;

    if (before && (before->type == ENTRY_DIRECTORY) != (change->type == ENTRY_DIRECTORY))
        r = entry_remove(repo, change->path);
    if (r == 0)
        r = parents_make(repo, change->path);
    if (r == 0)
        r = spot_open(repo, change->path, &spot);
    if (r < 0)
        return r;
    return change->type == ENTRY_DIRECTORY ? directory_make(change, &spot)
                                           : entry_replace(changes, change, &spot);
}

/* --- all changes -------------------------------------------------------------------------------
 */

/* Reports every path that cannot be replaced. Returns their number. */
static unsigned conflicts_report(const struct repo *repo, const struct repo_changes *changes)
{
    unsigned conflicts = 0;

    for (size_t i = 0; i < changes->count; i++) {
        const struct repo_change *change = &changes->items[i];
        const char *why = change->refusal ? NULL : difference(repo, changes, change);

        if (!why)
            continue;
        conflicts++;
        (void)report("'%s': %s", change->path, why);
    }
    return conflicts;
}

/* Makes a change if it is a deletion, or if it is not. */
static int change_do(const struct repo *repo, const struct repo_changes *changes,
                     const struct repo_change *change, bool deletes)
{
    const char *why;
    int r;

    if (change->refusal || (change->type == ENTRY_NONE) != deletes)
        return STATUS_OK;
    why = difference(repo, changes, change);
    if (why)
        return report("'%s': %s", change->path, why);
    r = deletes ? entry_remove(repo, change->path) : change_write(repo, changes, change);
    return r < 0 ? report("write '%s': %s", change->path, strerror(-r)) : STATUS_OK;
}

int repo_apply(const struct repo *repo, const struct repo_changes *changes)
{
    int status = STATUS_OK;

    if (conflicts_report(repo, changes) > 0)
        return report("nothing was changed in '%s'", repo->text);
    for (size_t i = changes->count; status == STATUS_OK && i > 0; i--)
        status = change_do(repo, changes, &changes->items[i - 1], true);
    for (size_t i = 0; status == STATUS_OK && i < changes->count; i++)
        status = change_do(repo, changes, &changes->items[i], false);
    return status;
}
