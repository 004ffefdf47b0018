/* What the daemon must know after it has died: sandboxes and snapshots, in SQLite (state/holt.db).
 * One connection, one lock; every call is one transaction, and is on its way to the disk when it
 * returns (a crash of the daemon loses nothing; one of the machine at most the last moments). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "host/sandbox/info.h"

struct err;
struct registry;

/* Opens or makes the file, and reads all of it once. Never deletes or repairs: ERR_BUSY when
 * another process writes to it, ERR_EXHAUSTED when the disk is full, ERR_INTERNAL with the remedy
 * when it is damaged, is not ours, is newer than this program, or cannot be written. */
int registry_open(const char *path, struct registry **ret, struct err *err);

/* Accepts NULL. */
void registry_close(struct registry *registry);

/* Inserts the sandbox, or replaces what is known of it (labels too, snapshots not; its metadata
 * only while it is being made). ERR_EXISTS (SessionExists) when another one has its name. This and
 * every other change may be refused with ERR_EXHAUSTED (the disk is full) or ERR_BUSY (somebody
 * else writes, and has for two seconds); it has then left nothing behind, and a later one may work.
 */
int registry_put(struct registry *registry, const struct sandbox_info *info, struct err *err);

/* The same with several, all or none. */
int registry_put_all(struct registry *registry, const struct sandbox_info *infos, size_t count,
                     struct err *err);

/* Replaces the metadata of a sandbox that is recorded. */
int registry_put_metadata(struct registry *registry, const char *id, const char *metadata,
                          struct err *err);

/* Replaces when the time of a sandbox is over, and what happens then. */
int registry_put_expiry(struct registry *registry, const char *id, uint64_t expires_ms,
                        enum sandbox_action action, struct err *err);

/* Removes the sandbox with its snapshots; fine when there is none. */
int registry_remove(struct registry *registry, const char *id, struct err *err);

/* Records a snapshot and what it changed of its sandbox together. ERR_EXISTS (SnapshotExists) when
 * the sandbox has one of that name. */
int registry_put_snapshot(struct registry *registry, const struct sandbox_info *info,
                          const struct snapshot_info *snapshot, struct err *err);

/* Fine when there is none. Whatever had it as its parent or base now has its parent there, whose
 * name is in ret_parent ("" also when there was no such snapshot): names may come again. */
int registry_remove_snapshot(struct registry *registry, const char *id, const char *name,
                             char ret_parent[static SNAPSHOT_NAME_MAX + 1], struct err *err);

/* All sandboxes, oldest first; one's snapshots, oldest first: by the order in which they were first
 * recorded, as clocks go back at times. The caller frees the arrays (and each sandbox_info with
 * sandbox_info_done); an empty one is NULL. */
int registry_list(struct registry *registry, struct sandbox_info **ret, size_t *ret_count,
                  struct err *err);
int registry_list_snapshots(struct registry *registry, const char *id, struct snapshot_info **ret,
                            size_t *ret_count, struct err *err);
