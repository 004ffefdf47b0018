/* Named volumes, as every front end knows them: shared volumes (host/volume/shared_volume.h) that
 * the registry records with an id and a name. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/access/caller.h"

struct err;
struct host;
struct sandbox_mount;

enum {
    VOLUME_ID_MAX = 63,
    VOLUME_NAME_MAX = 128,
    VOLUME_TOKEN_SIZE = 65, /* 64 hexadecimal digits and a NUL */
};

struct volume_info {
    char id[VOLUME_ID_MAX + 1];
    char owner[OWNER_NAME_MAX + 1];
    char name[VOLUME_NAME_MAX + 1];
    char token[VOLUME_TOKEN_SIZE]; /* gives access to the files of this volume over HTTP */
};

/* Creates an empty volume for the caller's owner. Fails with ERR_INVALID for a bad name, ERR_EXISTS
 * for one that this owner uses. */
int named_volume_create(struct host *host, const struct caller *caller, const char *name,
                        struct volume_info *ret, struct err *err);

/* Finds a volume that the caller sees or that is shared with it, by id, name or OWNER/NAME; a name
 * of the caller's own comes first. Fails with ERR_NOT_FOUND, and with ERR_INVALID for a name that
 * stands for several volumes. */
int named_volume_find(struct host *host, const struct caller *caller, const char *word,
                      struct volume_info *ret, struct err *err);

/* Finds a volume by its id, whoever owns it. Fails with ERR_NOT_FOUND. */
int named_volume_get(struct host *host, const char *id, struct volume_info *ret, struct err *err);

/* Finds a volume that the caller may change: its own, or any for an admin. Fails with ERR_DENIED
 * for one that is only shared with it. */
int named_volume_find_own(struct host *host, const struct caller *caller, const char *word,
                          struct volume_info *ret, struct err *err);

/* Returns whether the volume is the caller's own, or the caller is an admin. */
bool named_volume_is_own(const struct volume_info *info, const struct caller *caller);

/* Lists the volumes that the caller sees or that are shared with it, oldest first. The caller frees
 * the array. */
int named_volume_list(struct host *host, const struct caller *caller, struct volume_info **ret,
                      size_t *ret_count, struct err *err);

/* Removes a volume with its files. Fails with ERR_BUSY while a sandbox has it mounted. */
int named_volume_remove(struct host *host, const struct caller *caller, const char *word,
                        struct err *err);

/* Replaces what a volume of the caller's is shared with, see share_set. */
struct sharing;
int named_volume_share(struct host *host, const struct caller *caller, const char *word,
                       const struct sharing *sharing, struct volume_info *ret, struct err *err);

/* Lists the owners that a volume is shared with, for those that may change it; none for others. The
 * caller frees the array. */
struct share;
int named_volume_shares(struct host *host, const struct caller *caller,
                        const struct volume_info *info, struct share **ret, size_t *ret_count,
                        struct err *err);

/* Records the files of a shared volume that has an id and no record under a name, as root's. */
int named_volume_record(struct host *host, const char *id, const char *name, struct err *err);

/* Makes the empty files of a recorded volume again that a power failure took before they were on
 * disk. */
int named_volumes_recover(struct host *host, struct err *err);

struct named_mount {
    const char *volume; /* a word for named_volume_find */
    const char *path;
    bool is_read_only;
    bool adapts; /* one that is only shared with the caller is mounted read-only; else: ERR_DENIED
                  * unless is_read_only */
};

/* Fills in the mount of a volume at a path of a sandbox. */
int named_volume_mount(struct host *host, const struct caller *caller,
                       const struct named_mount *wanted, struct sandbox_mount *ret,
                       struct err *err);

/* Moves the volumes of a state directory from before version 4 of the registry into it: they were
 * kept in e2b-volumes.json. */
int named_volumes_migrate(struct host *host, struct err *err);
