/* What outlives the process of a shell: its state at a snapshot, at a stop, over a restart of the
 * daemon. A sandbox that has no shells pays nothing for it. */
#pragma once

struct sandbox;

/* Writes down what has changed in shells that nobody uses at the moment; others keep what is known
 * of them. Waits a quarter of a second at most for each. */
void shells_remember(struct sandbox *sandbox);

/* What is known now belongs to this snapshot; the snapshot is gone. */
void shells_keep(struct sandbox *sandbox, const char *snapshot);
void shells_drop(struct sandbox *sandbox, const char *snapshot);

/* All processes have ended with the machine, or by a rollback to this snapshot: shells that it has
 * are as they were then, others are gone. */
void shells_sleep(struct sandbox *sandbox);
void shells_return(struct sandbox *sandbox, const char *snapshot);

/* What an earlier life of the daemon has left. */
void shells_load(struct sandbox *sandbox);

/* The sandbox is destroyed; the daemon lets go of it. */
void shells_remove(struct sandbox *sandbox);
void shells_free(struct sandbox *sandbox);
