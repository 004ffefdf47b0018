/* Codebases: trees with numbered versions that never change. A sandbox sees a version
 * copy-on-write (volume_set_codebase); a commit makes the next version of what it sees.
 *
 * A codebase is stored as a volume without a template whose snapshots v0, v1, ... are the versions,
 * so a version is complete or absent. The caller records which versions count, and serialises
 * changes of one codebase. Only layered storage can hold codebases. */
#pragma once

#include <stdint.h>

struct err;
struct store;
struct volume;

enum { CODEBASE_ID_MAX = 32, CODEBASE_PATH_MAX = 255 };

/* What a new version is made of. */
struct codebase_changes {
    uint64_t files;   /* files and links written, or imported */
    uint64_t removed; /* names removed, each with what was below it */
    uint64_t skipped; /* sockets, pipes and devices, which a version cannot hold */
};

/* Returns ERR_UNSUPPORTED if the storage cannot hold codebases. */
int codebase_check_storage(const struct store *store, struct err *err);

/* Creates a codebase whose version 0 is a copy of a directory: files, directories and links, which
 * are not followed. Everything belongs to root there, and extended attributes are left out. Leaves
 * nothing behind on failure. */
int codebase_create(struct store *store, const char *id, int from_fd, struct codebase_changes *ret,
                    struct err *err);

/* Opens the top directory of a version. Returns a descriptor or -errno. */
int codebase_open_version(struct store *store, const char *id, uint32_t version);

/* Makes a version of what a snapshot of a volume with this codebase shows. It replaces one of this
 * number that was never recorded. ERR_INVALID for a symbolic link that was made in the sandbox and
 * leads out of the codebase. Leaves nothing behind on failure. */
int codebase_commit(struct volume *volume, const char *snapshot, uint32_t version,
                    struct codebase_changes *ret, struct err *err);

/* Opens a plain copy of what a snapshot of a volume shows of its codebase, to be changed freely.
 * The codebase has CODEBASE_COPIES of them, by number; an older one with this number is removed. It
 * lacks what a version lacks. */
enum { CODEBASE_COPIES = 2 };
int codebase_copy_make(struct volume *volume, const char *snapshot, unsigned number, int *ret_fd,
                       struct err *err);

/* Removes all copies, also those that an interrupted operation has left. Returns 0 or -errno. */
int codebase_copies_remove(struct store *store, const char *id);

/* Opens the directory in which the host keeps what it makes of versions for the rules of sandboxes
 * (host/view/mask.h); it goes with the codebase. Returns a descriptor of its own or -errno. */
int codebase_open_masks(struct store *store, const char *id);

/* Calls each for every name there. Returns 0 or -errno. */
int codebase_each_mask(int masks_fd, int (*each)(void *context, const char *name), void *context);

/* Removes a codebase with all versions. Returns 0, also if there is none, or -errno. */
int codebase_destroy(struct store *store, const char *id);
