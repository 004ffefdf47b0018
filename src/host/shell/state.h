/* Saved state of shells, for snapshots, stops and restarts of the daemon. It costs nothing in a
 * sandbox without shells. */
#pragma once

struct sandbox;

/* Saves the state of idle shells that have changed; busy ones keep the state saved before. Waits
 * a second at most for each. */
void shells_save(struct sandbox *sandbox);

/* Links the saved states to a snapshot, and removes those of a snapshot. */
void shells_link_snapshot(struct sandbox *sandbox, const char *snapshot);
void shells_drop_snapshot(struct sandbox *sandbox, const char *snapshot);

/* Marks all shells as dormant, after their processes have ended with the machine. */
void shells_set_dormant(struct sandbox *sandbox);

/* Restores the shells of a snapshot, after a rollback; removes the others. */
void shells_restore_snapshot(struct sandbox *sandbox, const char *snapshot);

/* Loads the shells of a previous daemon. */
void shells_load(struct sandbox *sandbox);

/* Removes all shells and their files, for a sandbox that is destroyed. */
void shells_remove(struct sandbox *sandbox);

/* Frees all shells and keeps their files. */
void shells_free(struct sandbox *sandbox);
