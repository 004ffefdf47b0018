/* Volumes: the files that a sandbox has written, above a template that is never changed.
 *
 * A volume has one live tree, which the sandbox writes to, and read-only snapshots. Live trees are
 * numbered by generation: a rollback creates the next one from a snapshot, and the previous one is
 * removed after the sandbox has moved. The caller records which generation is live.
 *
 * The caller serialises calls about one volume; only volume_usage, volume_view and volume_drop may
 * run concurrently with them, and forks of one volume with each other. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "store/codebase/codebase.h"
#include "store/template/template.h"

struct err;
struct store;

struct volume;

enum { SNAPSHOT_NAME_MAX = 255, VOLUME_TREES_MAX = TEMPLATE_TREES_MAX + 1 };

/* The version of a codebase that a volume was created with, and where its sandbox sees it. */
struct volume_codebase {
    char id[CODEBASE_ID_MAX + 1];
    char path[CODEBASE_PATH_MAX + 1];
    uint32_t version;
};

/* Mounts to pass to holt-init, in order; mounts[0] is "/". Plain data. */
struct volume_mounts {
    const char *targets[VOLUME_TREES_MAX]; /* valid while the volume is open */
    int fds[VOLUME_TREES_MAX];
    size_t count;
    bool has_codebase;  /* the last one is the codebase */
    bool allows_setuid; /* from the template; the mounts are nosuid otherwise */
};

/* Creates an empty volume that the next store_open removes. fsync in it is free, and it has
 * neither snapshots nor, at first, a quota. Takes ownership of the template on success. */
int volume_create_scratch(struct store *store, const char *id, struct template *template,
                          struct volume **ret, struct err *err);

/* Limits a scratch volume; ERR_UNSUPPORTED if the storage of scratch volumes has no quotas. */
int volume_limit_scratch(struct volume *volume, uint64_t quota_bytes, struct err *err);

/* Changes the quota (0: none) of a volume with its snapshots, at once. ERR_INVALID for a quota
 * below what they use, ERR_UNSUPPORTED if the storage cannot limit this volume. */
int volume_set_quota(struct volume *volume, uint64_t quota_bytes, struct err *err);

/* Creates an empty volume, generation 1, that persists until it is destroyed. A quota (0: none)
 * limits the volume together with its snapshots; ERR_UNSUPPORTED if the storage has no quotas.
 * Leaves nothing behind on failure. Takes ownership of the template on success. */
int volume_create(struct store *store, const char *id, struct template *template,
                  uint64_t quota_bytes, struct volume **ret, struct err *err);

/* Opens an existing volume; generation is its live tree. Takes ownership of the template on
 * success. */
int volume_open(struct store *store, const char *id, struct template *template, uint32_t generation,
                struct volume **ret, struct err *err);

/* Gives an open volume its codebase: one more copy-on-write tree, which snapshots and forks of the
 * volume contain, and templates made of it do not. ERR_UNSUPPORTED if the storage cannot. */
int volume_set_codebase(struct volume *volume, const struct volume_codebase *codebase,
                        struct err *err);
bool volume_has_codebase(const struct volume *volume);

/* Makes the codebase of a live tree, which is not mounted, that of a version with the changes that
 * lead to the tree copy_fd (negative: none). */
int volume_set_layer(struct volume *volume, uint32_t generation, uint32_t version, int copy_fd,
                     struct err *err);

/* Returns the version that the changes of a live tree were made to. */
int volume_layer_version(const struct volume *volume, uint32_t generation, uint32_t *ret,
                         struct err *err);

/* What the storage has of a volume. */
struct volume_summary {
    uint32_t generation;      /* the live tree to look for, given by the caller */
    bool has_generation;      /* it is there */
    uint32_t last_generation; /* the newest live tree; 0: none */
    size_t snapshots;
    const char *wanted; /* a snapshot to look for, given by the caller; NULL: none */
    bool has_wanted;
};

/* Summarizes a volume, which need not be open. ERR_NOT_FOUND if the storage has nothing of it. */
int volume_summarize(struct store *store, const char *id, struct volume_summary *summary,
                     struct err *err);

/* Calls each for the id of every volume that the storage has, complete or not, with a row in the
 * registry or not. */
int volume_each(struct store *store, int (*each)(void *context, const char *id), void *context,
                struct err *err);

/* Creates a volume, generation 1, as a copy-on-write copy of another: of its live tree (snapshot
 * NULL) or of a snapshot. Opens the template again. */
int volume_fork(struct volume *from, const char *snapshot, const char *id, uint64_t quota_bytes,
                struct volume **ret, struct err *err);

/* Assembles the live tree as detached mounts, id-mapped so that owners in the user namespace are
 * those on disk, from 0. first_uid is the host uid of the namespace's root. With userns_fd -1 and
 * first_uid 0, owners are those on disk. */
int volume_mount(struct volume *volume, int userns_fd, uid_t first_uid, struct volume_mounts *ret,
                 struct err *err);

/* Does the same, but shows of the codebase what a mask (host/view/mask.h) leaves of the version of
 * the tree's layer, which must be untouched, with owners that the sandbox does not have: nothing
 * there can be written, and the layer is not part of the mount. mask_fd -1: there is none. */
int volume_mount_masked(struct volume *volume, int userns_fd, uid_t first_uid, int mask_fd,
                        struct volume_mounts *ret, struct err *err);

/* The owners that trees have on disk. No sandbox has one of these users of the host. */
enum { VOLUME_OWNERS_MAX = 65536 };

/* Reads which version the layer of the codebase belongs to, and whether nothing was ever changed
 * in it. */
int volume_look_at_layer(struct volume *volume, uint32_t *ret_version, bool *ret_is_untouched,
                         struct err *err);

/* Returns where the index-th mount of the live tree belongs, "/" first; NULL behind the last. */
const char *volume_target(const struct volume *volume, size_t index);

/* Returns whether set-user-ID files count in the mounts of the volume. */
bool volume_allows_setuid(const struct volume *volume);

void volume_mounts_done(struct volume_mounts *mounts);

/* Takes a snapshot of the live tree under a name (letters, digits, '_', '.', '-', starting with a
 * letter or digit). It is either complete or absent. ERR_EXISTS, ERR_INVALID. */
int volume_snapshot(struct volume *volume, const char *name, struct err *err);

/* Returns whether a text is valid as the name of a snapshot. */
bool volume_snapshot_is_name(const char *name);

/* Returns whether the snapshot exists. */
bool volume_has_snapshot(struct volume *volume, const char *name);

/* Creates another live tree from a snapshot, beside the current one, and returns its generation,
 * which is higher than any before. ERR_NOT_FOUND if there is no such snapshot. */
int volume_branch(struct volume *volume, const char *snapshot, uint32_t *ret_generation,
                  struct err *err);

/* Makes an existing generation the live one. */
void volume_switch(struct volume *volume, uint32_t generation);
uint32_t volume_generation(const struct volume *volume);

/* Removes a live tree that is neither current nor mounted. Returns 0 or -errno. */
int volume_drop(struct volume *volume, uint32_t generation);

/* Removes every live tree except the current one: leftovers of an interrupted branch or drop. */
int volume_tidy(struct volume *volume);

int volume_remove_snapshot(struct volume *volume, const char *name, struct err *err);

/* Lists the names of all snapshots, sorted; the caller frees each name and the array. */
int volume_list_snapshots(struct volume *volume, char ***ret_names, size_t *ret_count,
                          struct err *err);

/* Measures the bytes that the volume and its snapshots use, without the template. */
int volume_usage(struct volume *volume, uint64_t *ret_bytes, struct err *err);

/* Returns the same directly after volume_snapshot, cheaply; 0 if the storage would have to walk
 * the trees. */
uint64_t volume_usage_settled(struct volume *volume);

/* Closes the volume; its data stays in storage. Accepts NULL. */
void volume_close(struct volume *volume);

/* Deletes all data of the volume and closes it in any case. Accepts NULL. Returns 0 or -errno of
 * the deletion. */
int volume_destroy(struct volume *volume);

/* Deletes a part of a scratch volume's files, or all of another volume. Returns -EAGAIN when there
 * are more, so that the caller can turn to other volumes first; otherwise the volume is closed and
 * *volume is NULL. Accepts NULL in it. */
int volume_destroy_some(struct volume **volume);

/* Deletes a volume that is not open, complete or not. Returns 0 or -errno. */
int volume_purge(struct store *store, const char *id);

/* A state of a volume for reading: each tree as the layers that it is merged from, topmost first,
 * by the rules of overlayfs (whiteouts, opaque directories); a single layer is used as it is. In
 * the first tree, owners on disk are owner_shift higher than in the sandbox; in the others they
 * are equal. */
struct volume_view {
    struct {
        const char *target; /* "/", "/usr", ...; valid while the volume is open */
        int fds[2 + TEMPLATE_LAYERS_MAX];
        size_t count;
    } trees[VOLUME_TREES_MAX];
    size_t tree_count;
    uid_t owner_shift;
    char *temporary; /* private to the backend */
};

/* Opens a state for reading: the live tree (snapshot NULL), the template before anything was
 * written (""), or a snapshot. */
int volume_view(struct volume *volume, const char *snapshot, struct volume_view *ret,
                struct err *err);

/* Makes the codebase in a view that of a version without changes. */
int volume_view_set_version(const struct volume *volume, struct volume_view *view, uint32_t version,
                            struct err *err);

/* Closes a view. volume may be NULL if the view has no temporary. */
void volume_view_done(struct volume *volume, struct volume_view *view);
