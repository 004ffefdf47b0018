/* Pushes templates to registries as images. */
#pragma once

#include "base/text/image_ref.h"
#include "store/template/template.h"

struct caller;
struct err;
struct host;

struct image_push {
    const char *template;          /* a word of the caller's, as for a create */
    const char *reference;         /* with a tag, see base/text/image_ref.h */
    const char *user, *password;   /* "": those of a login of the owner, if any */
    template_progress_fn progress; /* called in the calling thread */
    void *context;
};

/* Pushes a template that the caller may use, in the calling thread. Blobs that the registry has are
 * not sent. The image has its name only when all of it is there. Writes the digest of its manifest.
 */
int image_push(struct host *host, const struct caller *caller, const struct image_push *asked,
               char ret_digest[static IMAGE_DIGEST_LEN + 1], struct err *err);
