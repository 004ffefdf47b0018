/* Removes the templates of an owner that nothing uses. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct caller;
struct err;
struct host;
struct owned_template;

struct template_prune {
    bool wants_all;    /* also what was imported, built or committed, and the cache of builds;
                          otherwise only images that were pulled */
    uint64_t older_ms; /* only those that were made this long ago */
    bool is_dry;       /* remove nothing */
};

struct template_pruned {
    struct owned_template *items; /* what was removed, or would be; the caller frees it */
    size_t count;
    uint64_t freed_bytes;
};

/* Removes templates of the caller's owner that no sandbox uses, that are not shared with others, on
 * which no other template is based that stays, and that are neither the default nor internal to
 * E2B's builds. Then removes the blobs that none of the images left consists of. What comes into
 * use meanwhile stays. */
int template_prune(struct host *host, const struct caller *caller,
                   const struct template_prune *prune, struct template_pruned *ret,
                   struct err *err);
