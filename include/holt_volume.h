/* libholt's volumes, a part of holt.h, which includes it: files that belong to no sandbox and that
 * any number of them have mounted at a time. A sandbox says at its creation which it wants
 * (volumes of struct holt_sandbox_options). */
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

/* An empty one: 1 to 128 letters, digits, '.', '_' and '-', a letter or digit first; unique. ret
 * may be NULL. */
HOLT_API int holt_volume_create(struct holt *holt, const char *name, int64_t deadline,
                                struct holt_volume **ret, struct holt_error *error);
HOLT_API int holt_volume_list(struct holt *holt, int64_t deadline, struct holt_volume_list **ret,
                              struct holt_error *error);

/* By name or id, with its files. Refused while a sandbox, in whatever state, has it. */
HOLT_API int holt_volume_remove(struct holt *holt, const char *volume, int64_t deadline,
                                struct holt_error *error);

#ifdef __cplusplus
}
#endif
