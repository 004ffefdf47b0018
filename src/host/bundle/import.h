/* Makes sandboxes of bundles. Nothing in a bundle is trusted: a sandbox is created as by a create
 * that asks for what the bundle says. */
#pragma once

#include <jansson.h>

struct bundle_spool;
struct caller;
struct err;
struct host;
struct sandbox;

/* Receives a bundle from a descriptor, which is closed; see bundle_receive. */
int import_receive(struct host *host, int fd, struct bundle_spool *ret, struct err *err);

/* Creates a sandbox of the caller's with a name (NULL: none) from a bundle. The caller owns one
 * reference. Leaves nothing behind on failure. */
int import_sandbox(struct host *host, const struct caller *caller, const struct bundle_spool *spool,
                   const char *name, struct sandbox **ret, struct err *err);
