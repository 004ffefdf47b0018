/* Plain trees: directories without a template and without snapshots that any number of sandboxes
 * may mount at the same time. They are stored with the volumes and may have a quota. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct err;
struct store;

/* Creates an empty tree that every user of a sandbox may write to. A quota (0: none) limits it, if
 * the storage supports quotas for plain trees. Leaves nothing behind on failure. */
int plain_create(struct store *store, const char *id, uint64_t quota_bytes, struct err *err);

/* Opens the top directory; owners on disk are those in sandboxes, from 0. Returns -ENOENT if there
 * is no such tree. */
int plain_open(struct store *store, const char *id);

/* Clones a detached mount, id-mapped so that owners in the user namespace are those on disk. It is
 * nosuid and nodev, and read-only on request. */
int plain_mount(struct store *store, const char *id, int userns_fd, bool is_read_only, int *ret_fd,
                struct err *err);

/* Calls each for the id of every plain tree that volume_each does not report. */
int plain_each(struct store *store, int (*each)(void *context, const char *id), void *context,
               struct err *err);

/* Deletes a tree. Returns 0, also if there is none, or -errno. */
int plain_destroy(struct store *store, const char *id);
