/* The backups of libholt; holt.h includes this file. A backup is a copy of a sandbox with its
 * history in the object storage of its host. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "holt.h"

#ifdef __cplusplus
extern "C" {
#endif

struct holt_backup {
    const char *name;
    const char *sandbox;      /* id of the sandbox that it was made of */
    const char *sandbox_name; /* that it had then; "": none */
    const char *snapshot;     /* whose files it has; "": the files at that time */
    int64_t created_ms;       /* since 1970 */
    uint64_t size_bytes;
    uint64_t stored_bytes;     /* that it has added to the storage */
    const char *template_name; /* that a host must have to restore it; "": it is in the backup */
};

struct holt_backup_list {
    size_t count;
    const struct holt_backup *const *items;
};

/* Makes a backup of a sandbox (snapshot NULL) or of a snapshot. ret may be NULL. */
HOLT_API int holt_backup_create(struct holt *holt, const char *sandbox, const char *snapshot,
                                int64_t deadline, struct holt_backup **ret,
                                struct holt_error *error);

/* Lists the backups of a sandbox, or of all (NULL). */
HOLT_API int holt_backup_list(struct holt *holt, const char *sandbox, int64_t deadline,
                              struct holt_backup_list **ret, struct holt_error *error);
HOLT_API int holt_backup_remove(struct holt *holt, const char *backup, int64_t deadline,
                                struct holt_error *error);

/* Creates and starts a sandbox with a name (NULL: none) from a backup. ret may be NULL. */
HOLT_API int holt_backup_restore(struct holt *holt, const char *backup, const char *name,
                                 int64_t deadline, struct holt_sandbox **ret,
                                 struct holt_error *error);

struct holt_backup_collected {
    uint64_t objects;
    uint64_t bytes;
};

/* Frees what no backup and no deep-paused sandbox uses. ret may be NULL. */
HOLT_API int holt_backup_collect(struct holt *holt, int64_t deadline,
                                 struct holt_backup_collected **ret, struct holt_error *error);

#ifdef __cplusplus
}
#endif
