/* The bundles of libholt; holt.h includes this file. A bundle is a sandbox with its history as an
 * OCI image layout in a tar archive, which another daemon imports, on any storage. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "holt.h"

#ifdef __cplusplus
extern "C" {
#endif

struct holt_export_options {
    size_t size;
    const char *snapshot; /* with those that it derives from; NULL: the present files, with all */
    holt_data_fn on_data; /* required */
    void (*on_size)(void *context, uint64_t bytes); /* before the first bytes; NULL: not called */
    void *context;
};

/* Exports a sandbox. The daemon reads all of its files before the first bytes come. */
HOLT_API int holt_export(struct holt *holt, const char *sandbox,
                         const struct holt_export_options *options, int64_t deadline,
                         struct holt_error *error);

struct holt_import_bundle_options {
    size_t size;
    const char *name; /* of the new sandbox; NULL: none */

    /* Reads at most size bytes: returns their number, 0 at the end, or -1, which ends the call with
     * "canceled". Required. */
    ptrdiff_t (*read)(void *context, void *data, size_t size);
    void *context;
};

/* Creates and starts a sandbox from a bundle. What the bundle says of limits, labels and network is
 * asked for as in a create; its secrets are not given. ret may be NULL. */
HOLT_API int holt_import_bundle(struct holt *holt, const struct holt_import_bundle_options *options,
                                int64_t deadline, struct holt_sandbox **ret,
                                struct holt_error *error);

#ifdef __cplusplus
}
#endif
