/* The root of the host template: generated, with a few public files of the host's /etc. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "store/import/digest.h"

struct err;
struct import_root;

/* A directory of the host that the template shares, where it is one and not a link. */
struct host_tree {
    const char *target; /* "/usr" */
    const char *name;   /* "usr" */
    bool needs_content; /* an empty one is not worth a mount */
};

extern const struct host_tree host_trees[];
extern const size_t host_tree_count;

int import_host_build(struct import_root *root, struct err *err);

/* Changes whenever import_host_build would build something else. */
int import_host_fingerprint(char ret_hex[static DIGEST_HEX_LEN + 1], struct err *err);
