/* The object storage of holt.conf: the keys remote.*, the key that seals archives, and the archives
 * of each owner. Below an owner's folder, which archive.h describes, a claim says which host brings
 * a deep-paused sandbox back (claim.h).
 *
 * The storage is opened when it is first needed, and again after a failure, so that a daemon starts
 * without it. */
#pragma once

#include <stdbool.h>

#include "remote/archive.h"

struct config;
struct err;
struct host;
struct remote_store;

enum { REMOTE_HOST_LEN = 16 };

/* Copies the configuration. */
struct remote_store *remote_store_new(const struct config *config);

/* Accepts NULL. */
void remote_store_free(struct remote_store *remote);

/* Returns whether holt.conf names a storage. */
bool remote_store_is_set(const struct host *host);

/* Returns whether the storage has answered when it was last asked. */
bool remote_store_is_usable(const struct host *host);

/* Asks the storage whether it answers. Fails with ERR_UNSUPPORTED if none is configured. */
int remote_store_check(struct host *host, struct err *err);

/* Opens the archives of an owner, whose name stays valid with ret. Fails as remote_store_check. */
int remote_store_open(struct host *host, const char *owner, struct archive_store *ret,
                      struct err *err);

/* Checks a configuration in a process without a host: opens the storage and reads the key. Returns
 * 0, or 1 if no storage is configured. */
int remote_store_probe(const struct config *config, struct err *err);
