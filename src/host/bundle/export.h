/* Exports sandboxes as bundles (store/bundle/bundle.h). */
#pragma once

#include <stdint.h>

#include "store/bundle/bundle.h"

struct err;
struct export;
struct sandbox;

/* Prepares the export of a sandbox as it is now, or of a snapshot (NULL: none) with those that it
 * derives from. Reads all files once. The caller keeps its reference until export_end. */
int export_begin(struct sandbox *sandbox, const char *snapshot, struct export **ret,
                 struct err *err);

/* Returns the size of the archive. */
uint64_t export_size(const struct export *export);

/* Writes the archive. */
int export_write(struct export *export, bundle_write_fn *write, void *context, struct err *err);

/* Accepts NULL. */
void export_end(struct export *export);
