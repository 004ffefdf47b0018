/* The processes of all sandboxes on disk (state/processes.db), so that a daemon that comes back
 * knows what it started and what became of it. Written without waiting for the disk: it survives
 * the daemon, not a power cut, which no process does either. Safe from any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct err;
struct journal;
struct record;

/* One that cannot be read is put aside and begun anew: it holds nothing that cannot be done
 * without. */
int journal_open(const char *path, struct journal **ret, struct err *err);

/* Accepts NULL. */
void journal_close(struct journal *journal);

/* Writes what is known now of processes of one sandbox or several; all or none. */
struct journal_entry {
    const char *sandbox;
    struct record *record;
};
int journal_put(struct journal *journal, const struct journal_entry *entries, size_t count,
                struct err *err);

/* Those of a sandbox, oldest first, each new (refs 1) and with what it wrote, as far as that is in
 * the journal. */
typedef void (*journal_fn)(void *context, struct record *record);
int journal_load(struct journal *journal, const char *sandbox, uint64_t disk_bytes, journal_fn each,
                 void *context, struct err *err);

int journal_remove(struct journal *journal, const char *sandbox, uint32_t number, struct err *err);
int journal_remove_sandbox(struct journal *journal, const char *sandbox, struct err *err);
