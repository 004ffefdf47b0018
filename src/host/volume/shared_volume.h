/* Files that clients keep on the host beside sandboxes, in trees with an id each. Sandboxes may
 * have them mounted (host/sandbox/mount.h) and write what they like. So paths are taken as if the
 * tree's top were "/", and nothing in one, not even a link, leads out of it. Owners and modes are
 * those in sandboxes, and mean nothing to the host. */
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

enum { SHARED_VOLUME_OWNER = 1000 }; /* of what is made and not told whose it is */

#define SHARED_VOLUME_KEEP UINT32_MAX /* of an owner or a mode: as it is, or as what is new is */

struct shared_volume_file {
    const char *shared_volume;
    const char *path;
    uint32_t uid, gid, mode;
};

/* Every call: ERR_NOT_FOUND (FileNotFound) where there is no such path, ERR_INVALID where it is not
 * of the right kind, NoSpace where the disk is full. */

/* With the quota that a sandbox has who asks for none, where the storage has any. */
int shared_volume_create(struct host *host, const char *id, struct err *err);

/* ERR_BUSY while a sandbox has it mounted. */
int shared_volume_destroy(struct host *host, const char *id, struct err *err);

/* What is at the path itself; target has SHARED_VOLUME_PATH_MAX bytes, "" for what is no link. */
int shared_volume_stat(struct host *host, const struct shared_volume_file *file, struct stat *ret,
                       char *target, struct err *err);

/* Tells of each entry of a directory, by its path below it, down to this depth. */
typedef int shared_volume_fn(void *context, const char *below);
int shared_volume_list(struct host *host, const struct shared_volume_file *file, unsigned depth,
                       shared_volume_fn *each, void *context, struct err *err);

/* With parents, those that are missing are made as well, and one that is there is fine. */
int shared_volume_make_dir(struct host *host, const struct shared_volume_file *file, bool parents,
                           struct err *err);

int shared_volume_change(struct host *host, const struct shared_volume_file *file, struct err *err);

/* With all that is in it. */
int shared_volume_remove(struct host *host, const struct shared_volume_file *file, struct err *err);

/* A file to read from, or an empty one to write to; ERR_EXISTS unless an old one may go. The
 * descriptor is the caller's. */
int shared_volume_open_read(struct host *host, const struct shared_volume_file *file, int *ret_fd,
                            struct err *err);
int shared_volume_open_write(struct host *host, const struct shared_volume_file *file,
                             bool replaces, int *ret_fd, struct err *err);
