/* Sends an image to a registry: blobs that it lacks, then the manifest. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/text/image_ref.h"

struct err;
struct session;

struct push_blob {
    char digest[IMAGE_DIGEST_LEN + 1];
    uint64_t size;
    const char *from; /* another repository of the registry that perhaps has it; "": none */
};

struct push {
    struct session *session;
    const char *reference; /* the tag */
    const char *type;      /* media type of the manifest */
    struct push_blob manifest;
    const struct push_blob *blobs;
    size_t count;
};

/* Pushes an image. An upload that is cut goes on where it ended. */
int push_image(const struct push *push, struct err *err);
