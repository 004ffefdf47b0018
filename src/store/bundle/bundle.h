/* Bundles: a sandbox's files with their history as an OCI image layout in a tar archive.
 *
 *   oci-layout, index.json                 as in every layout
 *   blobs/sha256/HEX                       the manifest, then the configuration, then the layers
 *
 * The first layer is the whole template, each further one the difference to the state before it:
 * the snapshots in the order in which they were taken, then the present files. So tools for images
 * see an image with the present files. What Holt knows beyond the files is in the member "holt" of
 * the configuration; see host/bundle/document.h. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/import/digest.h"
#include "store/template/template.h"

struct err;
struct store;
struct volume;

enum { BUNDLE_LAYERS_MAX = 1024 };

/* A state of the volume, see volume_view. */
struct bundle_state {
    const char *snapshot; /* "": the template; NULL: the live tree, which does not change */
    uint64_t taken_ms;    /* wall-clock time of a snapshot; else 0 */
};

struct bundle_layer {
    char hex[DIGEST_HEX_LEN + 1];
    uint64_t size;
};

/* A bundle to write. */
struct bundle {
    struct volume *volume;
    const struct bundle_state *states; /* the first is the template */
    size_t count;
    bool omits_template; /* its layer is empty: who imports the bundle has the template */

    struct bundle_layer *layers; /* what follows is made by bundle_measure */
    struct bundle_layer config_blob, manifest_blob;
    char *config, *manifest, *index;
    uint64_t size;
};

typedef int bundle_write_fn(void *context, const void *data, size_t len);

/* Reads all files to compute the digests of the layers, and the size of the archive. config is the
 * configuration of the image without its layers, which are added. */
int bundle_measure(struct bundle *bundle, json_t *config, struct err *err);

/* Writes the archive. Fails if a state has changed or was removed since then, or with the -errno
 * that the function returns. */
int bundle_write(struct bundle *bundle, bundle_write_fn *write, void *context, struct err *err);

/* Frees what bundle_measure has made. */
void bundle_done(struct bundle *bundle);

/* An archive that was received, unpacked in a directory that the next store_open removes. */
struct bundle_spool {
    struct store *store;
    char temp[32]; /* name of the directory; "": none */
    int fd;
    json_t *manifest, *config;
};

/* Unpacks an archive that is read from fd, which is closed, and reads its manifest and
 * configuration. bytes_max bounds it. ERR_INVALID if it is not an image layout, ERR_EXHAUSTED if
 * the disk is full. */
int bundle_receive(struct store *store, int fd, uint64_t bytes_max, struct bundle_spool *ret,
                   struct err *err);

/* Makes a template of the first layer. */
struct template_settings;
int bundle_make_template(const struct bundle_spool *spool, const char *name,
                         const struct template_settings *settings, struct template_info *ret,
                         struct err *err);

/* Writes layers to the live tree of a volume that no sandbox uses. */
struct bundle_fill;
int bundle_fill_begin(const struct bundle_spool *spool, struct volume *volume,
                      struct bundle_fill **ret, struct err *err);

/* Applies a layer; afterwards the volume may be snapshotted. */
int bundle_fill_layer(struct bundle_fill *fill, size_t index, struct err *err);

/* Accepts NULL. */
void bundle_fill_end(struct bundle_fill *fill);

/* Removes the directory. */
void bundle_spool_done(struct bundle_spool *spool);
