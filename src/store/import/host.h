/* The root of the host template: generated, with a few public files of the host's /etc. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "store/import/digest.h"

struct err;
struct import_root;

/* A directory of the host that the template shares, unless it is a symbolic link there. */
struct host_tree {
    const char *target; /* "/usr" */
    const char *name;   /* "usr" */
    bool needs_content; /* not mounted if empty */
};

extern const struct host_tree host_trees[];
extern const size_t host_tree_count;

/* Writes the generated root. */
int import_host_build(struct import_root *root, struct err *err);

/* Computes a fingerprint that changes whenever import_host_build would build something else. */
int import_host_fingerprint(char ret_hex[static DIGEST_HEX_LEN + 1], struct err *err);
