/* The journal stores the processes of all sandboxes on disk (state/processes.db), so that a
 * restarted daemon knows what it started and how it ended. Writes are not synced: the journal
 * survives a crash of the daemon but not a power failure, which no process survives either.
 * Every function may be called from any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct err;
struct journal;
struct record;

/* Opens the journal. A journal that cannot be read is renamed and replaced by an empty one: no
 * sandbox depends on it. */
int journal_open(const char *path, struct journal **ret, struct err *err);

/* Accepts NULL. */
void journal_close(struct journal *journal);

/* Writes the present state of processes, of one sandbox or several: all or none. */
struct journal_entry {
    const char *sandbox;
    struct record *record;
};
int journal_put(struct journal *journal, const struct journal_entry *entries, size_t count,
                struct err *err);

/* Calls `each` for every process of a sandbox, oldest first, with a new record (one reference),
 * which contains the output as far as the journal stores it. */
typedef void (*journal_fn)(void *context, struct record *record);
int journal_load(struct journal *journal, const char *sandbox, uint64_t disk_bytes, journal_fn each,
                 void *context, struct err *err);

/* Removes one process, or all processes of a sandbox. */
int journal_remove(struct journal *journal, const char *sandbox, uint32_t number, struct err *err);
int journal_remove_sandbox(struct journal *journal, const char *sandbox, struct err *err);
