/* The volumes of libholt; holt.h includes this file. A volume is a directory that belongs to no
 * sandbox; any number of sandboxes can mount it at the same time. The volumes of a sandbox are
 * chosen when it is created (volumes of struct holt_sandbox_options). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holt.h"

#ifdef __cplusplus
extern "C" {
#endif

struct holt_volume {
    const char *id;
    const char *name;
    const char *owner; /* names are unique for each owner */
    const char *const
        *shared_with; /* owners that may mount it read-only; for its owner and admins */
    size_t shared_count;
    bool is_public; /* all owners of the host may mount it read-only */
};

/* A volume that the daemon keeps although the registry has no record of it. */
struct holt_unrecorded_volume {
    const char *id; /* of the sandbox whose files these are, or of the shared volume */
    bool is_shared;
    bool is_running; /* the processes of the sandbox still run */
};

struct holt_volume_list {
    size_t count;
    const struct holt_volume *const *items;
    size_t unrecorded_count;
    const struct holt_unrecorded_volume *const *unrecorded;
};

/* Creates an empty volume. The name is unique and has 1 to 128 letters, digits, '.', '_' and '-', a
 * letter or digit first. ret may be NULL. */
HOLT_API int holt_volume_create(struct holt *holt, const char *name, int64_t deadline,
                                struct holt_volume **ret, struct holt_error *error);
HOLT_API int holt_volume_list(struct holt *holt, int64_t deadline, struct holt_volume_list **ret,
                              struct holt_error *error);

/* Removes a volume, by name or id, and its files. Fails while a sandbox in any state mounts it. */
HOLT_API int holt_volume_remove(struct holt *holt, const char *volume, int64_t deadline,
                                struct holt_error *error);

/* Replaces the owners that may mount a volume read-only, see holt_template_share. */
HOLT_API int holt_volume_share(struct holt *holt, const char *volume,
                               const struct holt_share_options *options, int64_t deadline,
                               struct holt_volume **ret, struct holt_error *error);

struct holt_adopt_options {
    size_t size;
    const char *name;          /* NULL: that of the audit log, or none; a shared volume needs one */
    const char *template_name; /* NULL: that of the audit log */
};

struct holt_adopted_volume {
    const char *sandbox; /* its id; "" for a shared volume */
};

/* Records a volume, by id, that the registry has no record of: the files of a sandbox become a
 * stopped sandbox with all its snapshots, a shared volume gets a name. options and ret may be NULL.
 */
HOLT_API int holt_volume_adopt(struct holt *holt, const char *volume,
                               const struct holt_adopt_options *options, int64_t deadline,
                               struct holt_adopted_volume **ret, struct holt_error *error);

#ifdef __cplusplus
}
#endif
