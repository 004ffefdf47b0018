/* Backups: archives of bundles under backups/NAME, which live as long as their owner wants. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "host/sandbox/info.h"
#include "remote/archive.h"

struct caller;
struct err;
struct host;
struct sandbox;

enum { BACKUP_NAME_MAX = 128 };

struct backup_info {
    char name[BACKUP_NAME_MAX + 1];
    char sandbox[SANDBOX_ID_MAX];
    char sandbox_name[SANDBOX_NAME_MAX + 1];
    char snapshot[SNAPSHOT_NAME_MAX + 1]; /* "": the files at that time */
    char template[IMAGE_REF_MAX + 1];     /* that the backup omits; "": none */
    uint64_t created_ms;
    uint64_t size, stored;
};

/* Makes a backup of the present files (snapshot NULL) or of a snapshot, with the snapshots that
 * they derive from. */
int backup_create(struct host *host, const struct caller *caller, const char *word,
                  const char *snapshot, struct backup_info *ret, struct err *err);

/* Lists the backups of the caller's owner, oldest first: of a sandbox (NULL: of all), by its id or,
 * if it is here, its name. The caller frees the array. */
int backup_list(struct host *host, const struct caller *caller, const char *word,
                struct backup_info **ret, size_t *ret_count, struct err *err);

int backup_remove(struct host *host, const struct caller *caller, const char *name,
                  struct err *err);

/* Creates a sandbox with a name (NULL: none) from a backup. The caller owns one reference. */
int backup_restore(struct host *host, const struct caller *caller, const char *name,
                   const char *sandbox_name, struct sandbox **ret, struct err *err);

/* Removes what no archive of the caller's owner uses. ERR_BUSY while one is being written. */
int backup_collect(struct host *host, const struct caller *caller, struct archive_collected *ret,
                   struct err *err);
