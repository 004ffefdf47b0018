/* The store: templates and volumes in one state directory on the host. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct store;

struct store_options {
    const char *state_dir;       /* absolute path; created with mode 0700 if missing */
    uint64_t template_bytes_max; /* limit of what an import may unpack */
    uint64_t template_files_max;
    const char *storage; /* "auto", "btrfs", "zfs:POOL/DATASET" or "dir" */
};

/* Space of the storage that holds the volumes. `available` includes what an image can still grow
 * by; that of a sparse image is not more than the filesystem below it has. */
struct store_space {
    uint64_t used;
    uint64_t available;
};

/* Opens the state directory, removes incomplete imports and volumes of an earlier run, and
 * refreshes the host template. */
int store_open(const struct store_options *options, struct store **ret, struct err *err);

/* Waits until what was made and removed so far is on disk. */
void store_flush(struct store *store);

/* Describes the storage of volumes and the reason for its choice, for people. */
const char *store_storage(const struct store *store);

/* Reads the space of the storage of volumes. */
int store_space(struct store *store, struct store_space *ret, struct err *err);

/* Reads the space of the disk below the state directory (store/disk.h). */
struct disk_space;
int store_disk(const struct store *store, struct disk_space *ret, struct err *err);

/* Reports the state of the storage: ONLINE, DEGRADED (a part has failed, all data is available),
 * or a state of the backend in which it is unusable: FAULTED, OFFLINE, REMOVED, UNAVAIL. An error
 * means that the state is unknown. */
enum { STORE_STATE_SIZE = 16 };
int store_state(struct store *store, char ret[static STORE_STATE_SIZE], struct err *err);

/* Returns the backend's name as in the configuration: btrfs, zfs, dir. */
const char *store_backend(const struct store *store);

/* Returns whether a snapshot is taken at one point in time, rather than file by file. */
bool store_is_atomic(const struct store *store);

/* Returns whether a volume cannot be removed while a tree of it is mounted. */
bool store_needs_unmount(const struct store *store);

/* Returns whether volumes may have a quota. */
bool store_has_quota(const struct store *store);

/* Returns whether volumes may have a quota without a change of the whole filesystem, which may be
 * in use for more than this store. */
bool store_is_quota_on(const struct store *store);

/* Storage that cannot map owners keeps the files of all volumes in one range of uids, which all of
 * its sandboxes then share. Returns the first uid of that range, or 0 if every sandbox may have
 * its own. */
uid_t store_shared_uid(const struct store *store);

/* Closes the store; every template and volume must be closed before. Accepts NULL. */
void store_close(struct store *store);
