/* What OCI layouts and docker archives share. */
#pragma once

#include "base/buf.h"
#include "store/import/image.h"

enum {
    IMAGE_JSON_BYTES_MAX = 4 << 20,
    IMAGE_LAYERS_MAX = 1024,
    IMAGE_NAMES_BYTES_MAX = 120, /* of the images listed in a refusal */
    IMAGE_BLOB_PATH_MAX = 96
};

/* This machine as images spell it, "amd64" or "arm64". */
const char *image_arch(void);

/* The path of a blob "sha256:HEX". */
int image_blob_path(const char *digest, char ret_path[static IMAGE_BLOB_PATH_MAX], struct err *err);

/* Opens a blob and compares its content with the digest that names it. */
int image_blob_open(int image_fd, const char *digest, int *ret_fd, struct err *err);

/* Parses a JSON document of bounded size; name is for the error. The caller owns the result. */
int image_json_read(int fd, const char *name, json_t **ret, struct err *err);

/* Refuses an image whose configuration says that it is for another machine. */
int image_config_check(const json_t *config, struct err *err);

/* Applies one layer. */
int image_layer_apply(int fd, const char *name, struct import_root *root, struct err *err);

/* Adds one more name to the list of a refusal; what does not fit is left out. */
void image_names_add(struct buf *names, const char *name);
