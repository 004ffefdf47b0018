/* Pulls images from registries and makes templates of them. */
#pragma once

#include "store/template/template.h"

struct caller;
struct err;
struct host;
struct template_record;

struct image_pull {
    const char *reference;         /* see base/text/image_ref.h */
    const char *user, *password;   /* "": those of a login of the owner, if any */
    template_progress_fn progress; /* called in the calling thread */
    void *context;
};

/* Pulls an image for the caller's owner, in the calling thread. Blobs that the owner has are not
 * fetched again, nor is a template made again if the image has not changed. Otherwise the new
 * template takes over the name, and an earlier one is removed, or named by its digest while it is
 * in use. On failure nothing has changed, except that fetched blobs are kept for the next try. */
int image_pull(struct host *host, const struct caller *caller, const struct image_pull *asked,
               struct template_record *ret_record, struct template_info *ret, struct err *err);
