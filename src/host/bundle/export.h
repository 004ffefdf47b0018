/* Exports sandboxes as bundles (store/bundle/bundle.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "store/bundle/bundle.h"

struct err;
struct export;
struct sandbox;

/* Prepares the export of a sandbox as it is now, or of a snapshot (NULL: none) with those that it
 * derives from. Reads all files once. The caller keeps its reference until export_end. */
int export_begin(struct sandbox *sandbox, const char *snapshot, struct export **ret,
                 struct err *err);

/* What is exported. */
struct export_spec {
    const char *snapshot; /* NULL: the present files */
    bool is_claimed;      /* the caller runs an operation, and the sandbox has no machine */
    bool omits_template;  /* the layer of the template is empty */
};

/* Does the same by a specification. With is_claimed, the export ends before the operation. */
int export_begin_as(struct sandbox *sandbox, const struct export_spec *spec, struct export **ret,
                    struct err *err);

/* Returns the size of the archive. */
uint64_t export_size(const struct export *export);

/* Writes the archive. */
int export_write(struct export *export, bundle_write_fn *write, void *context, struct err *err);

/* Accepts NULL. */
void export_end(struct export *export);
