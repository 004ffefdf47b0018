/* References to images in registries: [REGISTRY[:PORT]/]REPOSITORY[:TAG][@sha256:HEX]. */
#pragma once

#include <stdbool.h>

enum {
    IMAGE_REF_MAX = 255, /* of a whole reference in its familiar form */
    IMAGE_DIGEST_LEN = 71
};

#define IMAGE_DOCKER_HUB "docker.io"

struct image_ref {
    char registry[IMAGE_REF_MAX + 1];   /* "docker.io", "localhost:5000", "[::1]:5000" */
    char repository[IMAGE_REF_MAX + 1]; /* "library/debian" */
    char tag[129];                      /* "": the reference has a digest */
    char digest[IMAGE_DIGEST_LEN + 1];  /* "": none */
    char familiar[IMAGE_REF_MAX + 1];   /* as people write it: "debian:12" */
};

/* Parses a reference as Docker does: a first component with '.' or ':', or "localhost", is a
 * registry, any other reference is one of Docker Hub, and the tag is "latest" if there is neither
 * tag nor digest. A tag beside a digest is dropped. Returns 0 or -EINVAL. */
int image_ref_parse(const char *text, struct image_ref *ret);

/* Returns whether a word that may be a template is a reference instead: it has a tag or a digest,
 * which no name of a template has. */
bool image_ref_is(const char *word);

/* Returns whether text is "sha256:" and 64 lower-case hexadecimal digits. */
bool image_digest_is(const char *text);
