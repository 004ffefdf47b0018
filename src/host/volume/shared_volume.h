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

enum { DEPOT_ID_MAX = 64, DEPOT_PATH_MAX = 4096, DEPOT_ENTRIES_MAX = 10000, DEPOT_DEPTH_MAX = 32 };

enum { DEPOT_OWNER = 1000 }; /* of what is made and not told whose it is */

#define DEPOT_KEEP UINT32_MAX /* of an owner or a mode: as it is, or as what is new is */

struct depot_file {
    const char *depot;
    const char *path;
    uint32_t uid, gid, mode;
};

/* Every call: ERR_NOT_FOUND (FileNotFound) where there is no such path, ERR_INVALID where it is not
 * of the right kind, NoSpace where the disk is full. */

/* With the quota that a sandbox has who asks for none, where the storage has any. */
int depot_create(struct host *host, const char *id, struct err *err);

/* ERR_BUSY while a sandbox has it mounted. */
int depot_destroy(struct host *host, const char *id, struct err *err);

/* What is at the path itself; target has DEPOT_PATH_MAX bytes, "" for what is no link. */
int depot_stat(struct host *host, const struct depot_file *file, struct stat *ret, char *target,
               struct err *err);

/* Tells of each entry of a directory, by its path below it, down to this depth. */
typedef int depot_fn(void *context, const char *below);
int depot_list(struct host *host, const struct depot_file *file, unsigned depth, depot_fn *each,
               void *context, struct err *err);

/* With parents, those that are missing are made as well, and one that is there is fine. */
int depot_make_dir(struct host *host, const struct depot_file *file, bool parents, struct err *err);

int depot_change(struct host *host, const struct depot_file *file, struct err *err);

/* With all that is in it. */
int depot_remove(struct host *host, const struct depot_file *file, struct err *err);

/* A file to read from, or an empty one to write to; ERR_EXISTS unless an old one may go. The
 * descriptor is the caller's. */
int depot_open_read(struct host *host, const struct depot_file *file, int *ret_fd, struct err *err);
int depot_open_write(struct host *host, const struct depot_file *file, bool replaces, int *ret_fd,
                     struct err *err);
