/* Checks SQLite's write-ahead log, which SQLite itself does not: it takes a missing log for an
 * empty one, and ends it at the first damaged frame.
 *
 * While a registry is open there is a mark beside it, holt.db-open. It says that there is a log,
 * and how many frames of it are certainly on disk. It is written after the flush and is not flushed
 * itself, so after a crash of the machine it may say less, never more. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct err;

/* A position in the log: SQLite changes the salt when it begins the log anew. */
struct wal_position {
    uint32_t salt[2];
    uint32_t frames;
};

/* Checks the log of the registry at this path before SQLite opens it. Fails with ERR_INTERNAL when
 * it is missing, damaged, or older than the mark. *ret_lost is the number of frames that are
 * missing at its end. */
int wal_check(const char *path, uint32_t *ret_lost, struct err *err);

/* Makes or opens the mark of a registry that has a log. Returns a descriptor. */
int wal_mark_open(const char *path, struct err *err);

/* Notes that the frames up to this position are on disk. Errors do not matter. */
void wal_mark_write(int mark_fd, const struct wal_position *position);

/* Removes the mark of a registry whose log is no longer needed. */
void wal_mark_remove(const char *path);

/* Reads the salt of the log. Returns 0 or -errno. */
int wal_read_salt(int wal_fd, uint32_t ret_salt[2]);
