/* Where templates and volumes live: one state directory on the host. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct store;

struct store_options {
    const char *state_dir;       /* absolute; made 0700 when missing */
    uint64_t template_bytes_max; /* what an import may unpack to */
    uint64_t template_files_max;
    const char *storage; /* "auto", "btrfs", "zfs:POOL/DATASET" or "dir" */
};

/* Bytes of the storage that volumes are in. An image can grow only as far as the filesystem below
 * it lets it, so `available` is the least of both. */
struct store_space {
    uint64_t used;
    uint64_t available;
};

/* Opens the state directory, removes half-made imports and volumes of an earlier life, and brings
 * the host template up to date. */
int store_open(const struct store_options *options, struct store **ret, struct err *err);

/* Where volumes are, and why there, for a person. */
const char *store_storage(const struct store *store);

int store_space(struct store *store, struct store_space *ret, struct err *err);

/* ONLINE, DEGRADED (something has failed, all is there), or, in the backend's own words, why it
 * cannot be used: FAULTED, OFFLINE, REMOVED, UNAVAIL. An error means that nobody can say. */
enum { STORE_STATE_SIZE = 16 };
int store_state(struct store *store, char ret[static STORE_STATE_SIZE], struct err *err);

/* The backend's name as the configuration spells it: btrfs, zfs, dir. */
const char *store_backend(const struct store *store);

/* Whether a snapshot is of one moment, or copies one file after the other. */
bool store_is_atomic(const struct store *store);
bool store_has_quota(const struct store *store);

/* Storage that cannot map owners keeps every volume with the owners of one range of uids, which all
 * of its sandboxes then have: its first uid, or 0 where every sandbox may have its own. */
uid_t store_shared_uid(const struct store *store);

/* Accepts NULL. Every template and volume must be closed. */
void store_close(struct store *store);
