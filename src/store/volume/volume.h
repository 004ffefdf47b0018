/* Volumes: what a sandbox has written, above a template that stays untouched.
 *
 * A volume has one live tree, which a sandbox writes to, and snapshots, which nobody does. Trees
 * are numbered by generation: a rollback makes the next one from a snapshot, and the one before
 * goes when the sandbox has moved. Which generation is the live one is the caller's to remember.
 *
 * Calls about one volume are made by one thread at a time; volume_usage, volume_view and
 * volume_drop may run beside them, and forks of one volume beside each other.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "store/template/template.h"

struct err;
struct store;

struct volume;

enum { SNAPSHOT_NAME_MAX = 255 };

/* Mounts to hand to holt-init, in order; mounts[0] is "/". Plain data. */
struct volume_mounts {
    const char *targets[TEMPLATE_TREES_MAX]; /* live as long as the volume */
    int fds[TEMPLATE_TREES_MAX];
    size_t count;
    bool allows_setuid; /* as the template says; the mounts are nosuid otherwise */
};

/* An empty volume that the next store_open removes: fsync costs nothing in it and it has neither
 * snapshots nor quota. Takes the template on success. */
int volume_create_scratch(struct store *store, const char *id, struct template *template,
                          struct volume **ret, struct err *err);

/* An empty volume, generation 1, that stays until it is destroyed. A quota (0: none) bounds what it
 * and its snapshots hold together; ERR_UNSUPPORTED where the storage has none. Nothing is left
 * behind on failure. Takes the template on success. */
int volume_create(struct store *store, const char *id, struct template *template,
                  uint64_t quota_bytes, struct volume **ret, struct err *err);

/* A volume that an earlier life made; generation is its live tree. Takes the template on success.
 */
int volume_open(struct store *store, const char *id, struct template *template, uint32_t generation,
                struct volume **ret, struct err *err);

/* A new volume, generation 1, with the files of another: as they are now (snapshot NULL), or in a
 * snapshot. Copy-on-write. Opens the template anew. */
int volume_fork(struct volume *from, const char *snapshot, const char *id, uint64_t quota_bytes,
                struct volume **ret, struct err *err);

/* Assembles the live tree as detached mounts whose owners appear in the user namespace as they are
 * on disk, from 0. first_uid is what its 0 is outside. */
int volume_mount(struct volume *volume, int userns_fd, uid_t first_uid, struct volume_mounts *ret,
                 struct err *err);

void volume_mounts_done(struct volume_mounts *mounts);

/* Keeps the live tree as it is now under a name (letters, digits, '_', '.', '-', the first a letter
 * or digit). Either whole or not there. ERR_EXISTS, ERR_INVALID. */
int volume_snapshot(struct volume *volume, const char *name, struct err *err);

/* Whether the snapshot exists. */
bool volume_has_snapshot(struct volume *volume, const char *name);

/* Makes a further live tree from a snapshot, beside the present one: its generation, always larger
 * than any before. ERR_NOT_FOUND when there is no such snapshot. */
int volume_branch(struct volume *volume, const char *snapshot, uint32_t *ret_generation,
                  struct err *err);

/* Says which generation is the live one from now on; it must exist. */
void volume_switch(struct volume *volume, uint32_t generation);
uint32_t volume_generation(const struct volume *volume);

/* Removes a live tree that is not the present one and that no mount shows any more. 0 or -errno.
 */
int volume_drop(struct volume *volume, uint32_t generation);

/* Removes every live tree but the present one: what an interrupted branch or drop has left. */
int volume_tidy(struct volume *volume);

int volume_remove_snapshot(struct volume *volume, const char *name, struct err *err);

/* Names of all snapshots, sorted; the caller frees each and the list. */
int volume_list_snapshots(struct volume *volume, char ***ret_names, size_t *ret_count,
                          struct err *err);

/* Bytes that the volume holds in storage, snapshots included, the template not. */
int volume_usage(struct volume *volume, uint64_t *ret_bytes, struct err *err);

/* The same right behind volume_snapshot, cheaply; 0 where it cannot be known so. */
uint64_t volume_usage_settled(struct volume *volume);

/* Closes it; everything stays in storage. Accepts NULL. */
void volume_close(struct volume *volume);

/* Deletes everything it ever wrote, and closes it whatever happens. Accepts NULL. 0 or -errno of
 * the deletion. */
int volume_destroy(struct volume *volume);

/* Deletes whatever there is of a volume that nobody has open, half-made or not. 0 or -errno. */
int volume_purge(struct store *store, const char *id);

/* One of its states, to look at: each tree as the layers it is merged from, topmost first, by the
 * rules of overlayfs (whiteouts, opaque directories); a tree of one layer is as it stands. Owners
 * in the first tree are owner_shift higher on disk than in the sandbox; in others they never are.
 */
struct volume_view {
    struct {
        const char *target; /* "/", "/usr", ...: lives as long as the volume */
        int fds[2 + TEMPLATE_LAYERS_MAX];
        size_t count;
    } trees[TEMPLATE_TREES_MAX];
    size_t tree_count;
    uid_t owner_shift;
    char *temporary; /* the backend's own */
};

/* snapshot NULL: as it is now; "" : as the template is, before anything was written. */
int volume_view(struct volume *volume, const char *snapshot, struct volume_view *ret,
                struct err *err);

/* volume may be NULL when the view has nothing temporary. */
void volume_view_done(struct volume *volume, struct volume_view *view);
