/* Volumes of E2B as sandboxes have them. */
#pragma once

#include <jansson.h>
#include <stddef.h>

struct e2b_request;
struct err;
struct sandbox;
struct sandbox_mount;

/* What the volumeMounts of a new sandbox's metadata are to Holt; those of its template, if that is
 * a snapshot, where the metadata has none, and these are put into it. ret has room for
 * SANDBOX_MOUNTS_MAX. */
int e2b_volume_mounts(const struct e2b_request *request, const char *template, json_t *metadata,
                      struct sandbox_mount *ret, size_t *ret_count, struct err *err);

/* Copies the volumeMounts of a sandbox into its snapshot. */
void e2b_volume_remember(struct sandbox *sandbox, json_t *snapshot);
