/* Where templates and volumes live: one state directory on the host. */
#pragma once

#include <stdint.h>

struct err;
struct store;

struct store_options {
    const char *state_dir;       /* absolute; made 0700 when missing */
    uint64_t template_bytes_max; /* what an import may unpack to */
    uint64_t template_files_max;
    const char *storage; /* "auto" or "dir" */
};

/* Opens the state directory, removes half-made imports and volumes of an earlier life, and brings
 * the host template up to date. */
int store_open(const struct store_options *options, struct store **ret, struct err *err);

/* Where volumes are, and why there, for a person. */
const char *store_storage(const struct store *store);

/* Accepts NULL. Every template and volume must be closed. */
void store_close(struct store *store);
