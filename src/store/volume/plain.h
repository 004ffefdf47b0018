/* Plain trees: files of their own, above no template and with no history, that any number of
 * sandboxes may have mounted at a time. They lie where volumes do, and have their quota. */
#pragma once

#include <stdint.h>

struct err;
struct store;

/* An empty tree that everybody in a sandbox may write to. A quota (0: none) bounds what it holds,
 * where the storage has one for it. Nothing is left behind on failure. */
int plain_create(struct store *store, const char *id, uint64_t quota_bytes, struct err *err);

/* Its top; owners on disk are those in sandboxes, from 0. -ENOENT when there is none. */
int plain_open(struct store *store, const char *id);

/* A detached mount of it whose owners appear in the user namespace as they are on disk. Nobody
 * gains anything from a set-user-ID bit or a device in it. */
int plain_mount(struct store *store, const char *id, int userns_fd, int *ret_fd, struct err *err);

/* 0 or -errno; one that is not there is fine. */
int plain_destroy(struct store *store, const char *id);
