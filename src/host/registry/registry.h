/* The registry: the daemon's durable record of sandboxes, snapshots, named volumes and owners of
 * templates, in SQLite (state/holt.db).
 * One connection, one lock; every call is one transaction. A crash of the daemon loses none. Unless
 * its comment says otherwise, a call returns after its transaction is on disk, so that a crash of
 * the machine does not lose it either. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/access/caller.h"
#include "base/text/image_ref.h"
#include "host/sandbox/info.h"

struct err;
struct registry;
struct volume_info;

/* Opens or creates the file, and reads all of it once. Never deletes or repairs anything: returns
 * ERR_BUSY when another process writes to it, ERR_EXHAUSTED when the disk is full, ERR_INTERNAL
 * with the remedy when it or its write-ahead log is damaged or the log is missing, when it belongs
 * to another program, is newer than this program, or is read-only. */
int registry_open(const char *path, struct registry **ret, struct err *err);

/* Returns how many frames were missing at the end of the write-ahead log when it was opened:
 * changes that were on disk once, and are lost. */
uint32_t registry_lost_frames(const struct registry *registry);

/* Closes the file. Accepts NULL. */
void registry_close(struct registry *registry);

/* Inserts the sandbox, or replaces its row and labels; its metadata, mounts, network policy,
 * secrets and permissions only while it is being created. Returns ERR_EXISTS (SessionExists) when
 * another sandbox has its name. Like every other change it can fail with ERR_EXHAUSTED (the disk is
 * full) or ERR_BUSY (another process held the lock for two seconds); nothing has changed then, and
 * a retry may succeed. */
int registry_put(struct registry *registry, const struct sandbox_info *info, struct err *err);

/* Does the same for several sandboxes in one transaction. */
int registry_put_all(struct registry *registry, const struct sandbox_info *infos, size_t count,
                     struct err *err);

/* Does the same without waiting for the disk: a crash of the machine may lose it, until
 * registry_sync or any later change that waits. */
int registry_put_later(struct registry *registry, const struct sandbox_info *infos, size_t count,
                       struct err *err);

/* Records a sandbox whose properties were changed, also its mounts. */
int registry_put_changed(struct registry *registry, const struct sandbox_info *info,
                         struct err *err);

/* Waits until all changes so far are on disk. */
int registry_sync(struct registry *registry, struct err *err);

/* Replaces the metadata of a recorded sandbox. */
int registry_put_metadata(struct registry *registry, const char *id, const char *metadata,
                          struct err *err);

/* Replaces the network policy of a recorded sandbox, which is JSON. */
int registry_put_network(struct registry *registry, const char *id, const char *policy,
                         struct err *err);

/* Replaces the path permissions of a recorded sandbox, which are JSON. */
int registry_put_permissions(struct registry *registry, const char *id, const char *rules,
                             struct err *err);

/* Replaces the expiry time of a sandbox, and the action at that time. */
int registry_put_expiry(struct registry *registry, const char *id, uint64_t expires_ms,
                        enum sandbox_action action, struct err *err);

/* Removes the sandbox with its snapshots; no error when there is none. Does not wait for the disk:
 * the row says `destroying` or `creating` until it is gone, and recovery finishes both. */
int registry_remove(struct registry *registry, const char *id, struct err *err);

/* Records a snapshot together with the changed sandbox. Returns ERR_EXISTS (SnapshotExists) when
 * the sandbox has a snapshot of that name. */
int registry_put_snapshot(struct registry *registry, const struct sandbox_info *info,
                          const struct snapshot_info *snapshot, struct err *err);

/* Removes a snapshot; no error when there is none. Snapshots and sandboxes that were based on it
 * are then based on its parent, whose name is in ret_parent ("" also when there was no such
 * snapshot), because a name can be used again. */
int registry_remove_snapshot(struct registry *registry, const char *id, const char *name,
                             char ret_parent[static SNAPSHOT_NAME_MAX + 1], struct err *err);

/* Sets the note of a snapshot; ERR_NOT_FOUND (SnapshotNotFound) when there is none. */
int registry_note_snapshot(struct registry *registry, const char *id, const char *name,
                           const char *note, struct err *err);

/* Lists all sandboxes, or the snapshots of one, in the order in which they were first recorded
 * (clocks can go back). The caller frees the arrays, and each sandbox_info with sandbox_info_done;
 * an empty array is NULL. */
int registry_list(struct registry *registry, struct sandbox_info **ret, size_t *ret_count,
                  struct err *err);
int registry_list_snapshots(struct registry *registry, const char *id, struct snapshot_info **ret,
                            size_t *ret_count, struct err *err);

/* Records a named volume. Returns ERR_EXISTS when another one has its name, ERR_EXHAUSTED when
 * there are VOLUMES_MAX. */
enum { VOLUMES_MAX = 10000 };
int registry_add_volume(struct registry *registry, const struct volume_info *info, struct err *err);

/* Removes a volume by its id; no error when there is none. */
int registry_remove_volume(struct registry *registry, const char *id, struct err *err);

/* Finds the volumes with this id or name, of all owners; one with the id comes first. The caller
 * frees the array. */
int registry_find_volumes(struct registry *registry, const char *word, struct volume_info **ret,
                          size_t *ret_count, struct err *err);

/* Lists all volumes, oldest first. The caller frees the array. */
int registry_list_volumes(struct registry *registry, struct volume_info **ret, size_t *ret_count,
                          struct err *err);

/* Records what a template belongs to, in words; NULL: to nothing. */
int registry_put_template_owner(struct registry *registry, const char *template, const char *owner,
                                struct err *err);

/* Returns what a template belongs to, for the caller to free; NULL: nothing. */
int registry_get_template_owner(struct registry *registry, const char *template, char **ret,
                                struct err *err);

/* A template of the store with its owner and the name that the owner gave it. */
struct template_record {
    char store_name[TEMPLATE_NAME_MAX + 1];
    char owner[OWNER_NAME_MAX + 1];
    char name[IMAGE_REF_MAX + 1]; /* a name, or the reference of an image; that of an image that is
                                     being pulled is its store_name, which no caller can write */
};

/* Records a template, private. Returns ERR_EXISTS when its owner has another one of this name. */
int registry_add_template(struct registry *registry, const struct template_record *record,
                          struct err *err);

/* Removes the record and the shares of a template; no error when there is none. */
int registry_remove_template(struct registry *registry, const char *store_name, struct err *err);

/* Gives a template this name; the owner's other template of that name, if there is one, gets
 * old_name. */
int registry_name_template(struct registry *registry, const struct template_record *record,
                           const char *old_name, struct err *err);

/* Reads the record of a template by its name in the store. Returns 1, or 0 if there is none. */
int registry_get_template(struct registry *registry, const char *store_name,
                          struct template_record *ret, struct err *err);

/* Lists the records with this name, of all owners; NULL: all records. The caller frees the array.
 */
int registry_list_templates(struct registry *registry, const char *name,
                            struct template_record **ret, size_t *ret_count, struct err *err);

enum share_kind { SHARE_TEMPLATE, SHARE_VOLUME };

#define SHARE_ALL "*" /* instead of an owner: all owners of this host */

struct share {
    char owner[OWNER_NAME_MAX + 1];
};

/* Replaces the owners that a template (by its name in the store) or a volume (by its id) is shared
 * with, in one transaction. */
int registry_put_shares(struct registry *registry, enum share_kind kind, const char *object,
                        const struct share *shares, size_t count, struct err *err);

/* Lists the owners that an object is shared with. The caller frees the array. */
int registry_list_shares(struct registry *registry, enum share_kind kind, const char *object,
                         struct share **ret, size_t *ret_count, struct err *err);

/* Returns 1 if an object is shared with this owner or with all, else 0. */
int registry_has_share(struct registry *registry, enum share_kind kind, const char *object,
                       const char *owner, struct err *err);
