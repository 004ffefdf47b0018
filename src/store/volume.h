/* Volumes: what a sandbox has written, above a template that stays untouched. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "store/template.h"

struct err;
struct store;

struct volume;

/* Mounts to hand to holt-init, in order; mounts[0] is "/". Plain data. */
struct volume_mounts {
    const char *targets[TEMPLATE_TREES_MAX]; /* live as long as the volume */
    int fds[TEMPLATE_TREES_MAX];
    size_t count;
};

/* Makes an empty volume. It keeps the template open. */
int volume_create(struct store *store, const char *id, struct template *template,
                  struct volume **ret, struct err *err);

/* Assembles the sandbox's file tree as detached overlays whose owners appear in the user namespace
 * as they are on disk, from 0. first_uid is what its 0 is outside. */
int volume_mount(struct volume *volume, int userns_fd, uid_t first_uid, struct volume_mounts *ret,
                 struct err *err);

void volume_mounts_done(struct volume_mounts *mounts);

/* Deletes what was written and closes the template. Accepts NULL. 0 or -errno of the deletion. */
int volume_destroy(struct volume *volume);
