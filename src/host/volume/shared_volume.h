/* Shared volumes: file trees on the host, each with an id, that outlive sandboxes. Sandboxes can
 * mount them (host/sandbox/mount.h) and write anything into them, so paths are resolved with the
 * tree's root as "/", and no symbolic link leads out of it. Owners and modes are those seen in
 * sandboxes and have no meaning on the host. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct err;
struct host;

enum {
    SHARED_VOLUME_ID_MAX = 64,
    SHARED_VOLUME_PATH_MAX = 4096,
    SHARED_VOLUME_ENTRIES_MAX = 10000,
    SHARED_VOLUME_DEPTH_MAX = 32
};

enum { SHARED_VOLUME_OWNER = 1000 }; /* of new files without an explicit owner */

#define SHARED_VOLUME_KEEP UINT32_MAX /* keeps an owner or a mode, or uses the default */

struct shared_volume_file {
    const char *shared_volume;
    const char *path;
    uint32_t uid, gid, mode;
};

/* Every call fails with ERR_NOT_FOUND (FileNotFound) for a missing path, ERR_INVALID for a file of
 * the wrong type, and NoSpace when the disk is full. */

/* Creates a volume, with the default quota of sandboxes if the storage supports quotas. */
int shared_volume_create(struct host *host, const char *id, struct err *err);

/* Returns ERR_NOT_FOUND unless the volume has its files. */
int shared_volume_check(struct host *host, const char *id, struct err *err);

/* Removes a volume. ERR_BUSY while a sandbox has it mounted. */
int shared_volume_destroy(struct host *host, const char *id, struct err *err);

/* Describes the file at the path, without following a link; target has SHARED_VOLUME_PATH_MAX
 * bytes, "" if the file is no link. */
int shared_volume_stat(struct host *host, const struct shared_volume_file *file, struct stat *ret,
                       char *target, struct err *err);

/* Calls each() for the entries of a directory, with their paths below it, down to this depth. */
typedef int shared_volume_fn(void *context, const char *below);
int shared_volume_list(struct host *host, const struct shared_volume_file *file, unsigned depth,
                       shared_volume_fn *each, void *context, struct err *err);

/* Creates a directory. With parents, missing parents are created too, and an existing directory is
 * no error. */
int shared_volume_make_dir(struct host *host, const struct shared_volume_file *file, bool parents,
                           struct err *err);

int shared_volume_change(struct host *host, const struct shared_volume_file *file, struct err *err);

/* Removes a file or a directory with its contents. */
int shared_volume_remove(struct host *host, const struct shared_volume_file *file, struct err *err);

/* Opens a file for reading, or an empty one for writing; ERR_EXISTS unless it may replace an old
 * one. The caller owns the descriptor. */
int shared_volume_open_read(struct host *host, const struct shared_volume_file *file, int *ret_fd,
                            struct err *err);
int shared_volume_open_write(struct host *host, const struct shared_volume_file *file,
                             bool replaces, int *ret_fd, struct err *err);
