// SPDX-License-Identifier: Apache-2.0
/* The masks of a codebase: a directory for each, or a file with the reason why there is none. They
 * hold nothing but metadata, which file systems write in order, so a name means a complete mask. */
#include "host/view/mask.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/files/tree.h"
#include "base/io.h"
#include "base/xalloc.h"
#include "host/core/host_internal.h"
#include "host/sandbox/sandbox_internal.h"
#include "store/codebase/codebase.h"
#include "view/rules.h"

#define NEW ".new"
#define FORMAT "1\n" /* changes when masks are made in another way */

enum { UNUSED_MAX = 8, TRIES = 10 };

int mask_name(uint32_t version, const struct view_rules *rules, char ret[static MASK_NAME_SIZE])
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(VIEW_TEXT_MAX);
    cleanup_with(digest_free_slot) struct digest *digest = digest_new();
    char hex[DIGEST_HEX_LEN + 1];
    int r = view_rules_format(rules, &text);

    if (r < 0 || !digest)
        return r < 0 ? r : -EIO;
    digest_add(digest, FORMAT, strlen(FORMAT));
    digest_add(digest, text.data ? text.data : "", text.len);
    r = digest_hex(digest, hex);
    (void)snprintf(ret, MASK_NAME_SIZE, "v%" PRIu32 "-%s", version, hex);
    return r;
}

/* --- what is unused --------------------------------------------------------------------------- */

struct unused {
    struct host *host;
    char **names;
    size_t count;
};

static bool mask_is_recorded(struct host *host, const char *name)
{
    bool is_recorded = false;

    lock_take(&host->lock);
    for (struct sandbox *sandbox = host->sandboxes; sandbox && !is_recorded;
         sandbox = sandbox->next) {
        lock_take(&sandbox->lock);
        is_recorded = sandbox->info.permissions && strstr(sandbox->info.permissions, name);
        lock_release(&sandbox->lock);
    }
    lock_release(&host->lock);
    return is_recorded;
}

static int unused_add(void *context, const char *name)
{
    struct unused *unused = context;

    if (mask_is_recorded(unused->host, name))
        return 0;
    unused->names = xreallocarray(unused->names, unused->count + 1, sizeof(*unused->names));
    unused->names[unused->count++] = xstrdup(name);
    return 0;
}

/* Removes all masks that no sandbox has, once there are too many of them. Nobody else has the lock.
 */
static void masks_tidy(struct host *host, int masks_fd)
{
    struct unused unused = { .host = host };
    int r = codebase_each_mask(masks_fd, unused_add, &unused);

    for (size_t i = 0; i < unused.count; i++) {
        if (r == 0 && unused.count > UNUSED_MAX)
            (void)tree_remove_at(masks_fd, unused.names[i]);
        free(unused.names[i]);
    }
    free(unused.names);
}

/* --- making and opening ----------------------------------------------------------------------- */

/* Takes the place of any earlier try. Nobody else has the lock. */
static int mask_make(int masks_fd, int version_fd, const struct view_rules *rules, const char *name)
{
    char refusal[MASK_REFUSAL_SIZE] = "";
    cleanup_close int fd = -EBADF;
    int r = tree_remove_at(masks_fd, NEW);

    if (r < 0 || mkdirat(masks_fd, NEW, 0700) < 0)
        return r < 0 ? r : -errno;
    fd = openat(masks_fd, NEW, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    r = fd < 0 ? -errno : mask_fill(version_fd, rules, fd, refusal);
    if (r == 0)
        return renameat(masks_fd, NEW, masks_fd, name) < 0 ? -errno : 0;
    (void)tree_remove_at(masks_fd, NEW);
    if (r < 0)
        return r;
    r = file_create_at(masks_fd, NEW, 0600, refusal);
    return r < 0 || renameat(masks_fd, NEW, masks_fd, name) == 0 ? r : -errno;
}

static int refusal_read(int masks_fd, struct mask *mask)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(MASK_REFUSAL_SIZE);
    int r = file_read_at(masks_fd, mask->name, &text);

    (void)snprintf(mask->refusal, sizeof(mask->refusal), "%.*s", (int)text.len,
                   text.data ? text.data : "");
    return r;
}

/* Opens what is there; -ENOENT if nothing is. */
static int mask_find(int masks_fd, struct mask *mask)
{
    mask->fd = openat(masks_fd, mask->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (mask->fd >= 0)
        return 0;
    return errno == ENOTDIR ? refusal_read(masks_fd, mask) : -errno;
}

/* Returns with the lock that keeps the masks, and the mask if there is one. */
static int mask_look(int masks_fd, struct mask *mask)
{
    int r = flock(masks_fd, LOCK_SH) < 0 ? -errno : mask_find(masks_fd, mask);

    if (r < 0)
        (void)flock(masks_fd, LOCK_UN);
    return r;
}

static int mask_make_locked(struct host *host, int masks_fd, int version_fd,
                            const struct view_rules *rules, struct mask *mask)
{
    int r = flock(masks_fd, LOCK_EX) < 0 ? -errno : 0;

    if (r == 0 && faccessat(masks_fd, mask->name, F_OK, 0) < 0) {
        masks_tidy(host, masks_fd);
        r = mask_make(masks_fd, version_fd, rules, mask->name);
    }
    (void)flock(masks_fd, LOCK_UN);
    return r;
}

int mask_open(struct host *host, const char *codebase, uint32_t version,
              const struct view_rules *rules, struct mask *ret, struct err *err)
{
    cleanup_close int masks_fd = codebase_open_masks(host->store, codebase), version_fd = -EBADF;
    int r = masks_fd;

    *ret = (struct mask){ .fd = -EBADF, .lock_fd = -EBADF };
    if (r >= 0)
        r = mask_name(version, rules, ret->name);
    if (r == 0)
        r = mask_look(masks_fd, ret);
    /* Between the two locks another thread may remove it again. */
    for (int i = 0; r == -ENOENT && i < TRIES; i++) {
        if (version_fd < 0)
            version_fd = codebase_open_version(host->store, codebase, version);
        r = version_fd < 0 ? version_fd : mask_make_locked(host, masks_fd, version_fd, rules, ret);
        if (r == 0)
            r = mask_look(masks_fd, ret);
    }
    if (r < 0)
        return err_sys(err, r, "make a mask of version %" PRIu32 " of codebase '%s'", version,
                       codebase);
    ret->lock_fd = TAKE_FD(masks_fd);
    return 0;
}

void mask_done(struct mask *mask)
{
    mask->fd = fd_close(mask->fd);
    mask->lock_fd = fd_close(mask->lock_fd);
}
