/* Makes an OCI image of a template, in the blobs of an owner (store/import/blobs.h). */
#pragma once

#include "base/text/image_ref.h"
#include "store/template/template.h"

struct err;
struct store;

struct image_export {
    char digest[IMAGE_DIGEST_LEN + 1];  /* of the manifest */
    char origin[TEMPLATE_NAME_MAX + 1]; /* template whose image gave the first layers; "": none */
    size_t origin_layers;               /* how many these are */
};

/* A template that was pulled becomes the image that it was, and the layers of one that was
 * committed on top of it follow those of its image, as long as the blobs are there. Other trees
 * become layers of their own. The same template gives the same image. */
int image_export(struct store *store, const char *template, int images_fd, struct image_export *ret,
                 struct err *err);

/* A blob that an image consists of. */
struct image_blob {
    char digest[IMAGE_DIGEST_LEN + 1];
    uint64_t size;
};

/* Lists the layers of an image, then its configuration, and its manifest itself. The caller frees
 * the list. */
struct image_parts {
    struct image_blob manifest;
    char type[96]; /* media type of the manifest */
    struct image_blob *blobs;
    size_t count;
};
int image_parts_read(int images_fd, const char *digest, struct image_parts *ret, struct err *err);
