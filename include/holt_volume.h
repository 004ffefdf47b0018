/* The volumes of libholt; holt.h includes this file. A volume is a directory that belongs to no
 * sandbox; any number of sandboxes can mount it at the same time. The volumes of a sandbox are
 * chosen when it is created (volumes of struct holt_sandbox_options). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "holt.h"

#ifdef __cplusplus
extern "C" {
#endif

struct holt_volume {
    const char *id;
    const char *name;
};

struct holt_volume_list {
    size_t count;
    const struct holt_volume *const *items;
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

#ifdef __cplusplus
}
#endif
