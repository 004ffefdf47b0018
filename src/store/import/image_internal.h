/* Shared by OCI layouts and docker archives. */
#pragma once

#include "base/buf.h"
#include "base/text/image_ref.h"
#include "store/import/image.h"

enum {
    IMAGE_JSON_BYTES_MAX = 4 << 20,
    IMAGE_LAYERS_MAX = 1024,
    IMAGE_NAMES_BYTES_MAX = 120, /* image names listed in an error */
    IMAGE_BLOB_PATH_MAX = 96
};

/* Returns the path of a blob "sha256:HEX". */
int image_blob_path(const char *digest, char ret_path[static IMAGE_BLOB_PATH_MAX], struct err *err);

/* Opens a blob and verifies its content against its digest. */
int image_blob_open(int image_fd, const char *digest, int *ret_fd, struct err *err);

/* Parses a JSON document of bounded size; name is used in errors. The caller owns the result. */
int image_json_read(int fd, const char *name, json_t **ret, struct err *err);

/* Fails for an image whose configuration names another platform. */
int image_config_check(const json_t *config, struct err *err);

/* Applies one layer. */
int image_layer_apply(int fd, const char *name, struct import_root *root, struct err *err);

/* Appends a name to the list in an error message; names that do not fit are omitted. */
void image_names_add(struct buf *names, const char *name);

/* Reads the manifest of the image for this machine whose manifest or index has this digest, and
 * writes the digest of the manifest. */
int image_manifest_read(int image_fd, const char *digest, json_t **ret,
                        char ret_digest[static IMAGE_DIGEST_LEN + 1], struct err *err);

/* Fails if the configuration that a manifest names is for another platform. */
int image_manifest_check(int image_fd, const json_t *manifest, struct err *err);

/* Reads the configuration of the image whose manifest or index has this digest. */
int image_config_read(int image_fd, const char *digest, json_t **ret, struct err *err);
