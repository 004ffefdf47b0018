/* Volumes as all faces of the daemon know them: shared volumes (host/volume/shared_volume.h) with a
 * name each, which are on the object store as {id, name, token}. */
#pragma once

#include <jansson.h>

struct e2b_objects;
struct err;
struct host;
struct sandbox_mount;

/* Makes one; *ret is what is on the object store, for the caller. ERR_EXISTS, ERR_INVALID. */
int named_volume_create(struct host *host, struct e2b_objects *objects, const char *name,
                        json_t **ret, struct err *err);

/* By id or name, for the caller, or ERR_NOT_FOUND. */
int named_volume_find(struct e2b_objects *objects, const char *word, json_t **ret, struct err *err);

/* With its files. ERR_BUSY while a sandbox has it mounted. */
int named_volume_remove(struct host *host, struct e2b_objects *objects, const char *word,
                        struct err *err);

/* What it is to a sandbox that is to have it at a path. */
int named_volume_mount(struct e2b_objects *objects, const char *word, const char *path,
                       struct sandbox_mount *ret, struct err *err);
