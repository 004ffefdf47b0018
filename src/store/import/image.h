/* Layered images, unpacked in a directory: OCI image layouts and `docker save` archives. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct import_root;

/* Return whether the directory is an OCI image layout, or the output of `docker save`. */
bool image_is_oci(int image_fd);
bool image_is_docker(int image_fd);

/* Returns whether a path can belong to an archive of either kind. */
bool image_has_path(const char *path);

/* Apply the layers of the only image in the directory that matches this machine. */
int image_apply_oci(int image_fd, struct import_root *root, struct err *err);
int image_apply_docker(int image_fd, struct import_root *root, struct err *err);

/* Applies the layers of the image whose manifest or index has this digest. The blobs of the
 * directory were verified when they got their names (store/import/blobs.h). */
int image_apply_blobs(int image_fd, const char *digest, struct import_root *root, struct err *err);

/* Reads the manifest and the configuration of the only image in an OCI image layout that matches
 * this machine, which the caller owns. Layers are opened one by one, verified against their digest.
 */
int image_layout_read(int image_fd, json_t **ret_manifest, json_t **ret_config, struct err *err);
size_t image_layer_count(const json_t *manifest);
uint64_t image_layer_size(const json_t *manifest, size_t index);
int image_layer_open(int image_fd, const json_t *manifest, size_t index, int *ret_fd,
                     struct err *err);

/* Reads the configuration of the only image in a `docker save` archive, which the caller owns. */
int image_docker_config(int image_fd, json_t **ret, struct err *err);

/* Makes settings of the configuration of an image, as a document or by the digest of its manifest
 * or index. */
struct template_settings;
int image_config_settings(const json_t *document, struct template_settings *ret, struct err *err);
int image_settings(int image_fd, const char *digest, struct template_settings *ret,
                   struct err *err);

/* Returns this machine's architecture as images spell it, such as "amd64" or "arm64". */
const char *image_arch(void);
