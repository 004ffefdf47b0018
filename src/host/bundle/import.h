/* Makes sandboxes of bundles. Nothing in a bundle is trusted: a sandbox is created as by a create
 * that asks for what the bundle says. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct bundle_spool;
struct caller;
struct err;
struct host;
struct sandbox;

/* Receives a bundle from a descriptor, which is closed; see bundle_receive. */
int import_receive(struct host *host, int fd, struct bundle_spool *ret, struct err *err);

struct import_spec {
    const char *id;   /* NULL: a new one */
    const char *name; /* NULL: none */
    const char
        *template; /* a word of the caller's, if the bundle omits its own; NULL: it does not */
    bool flushes;  /* the files are on disk before the sandbox is started */
};

/* Creates a sandbox of the caller's from a bundle. The caller owns one reference. Leaves nothing
 * behind on failure. */
int import_sandbox(struct host *host, const struct caller *caller, const struct bundle_spool *spool,
                   const struct import_spec *spec, struct sandbox **ret, struct err *err);

/* Writes the files and the snapshots of a bundle to the empty volume of the sandbox that the bundle
 * was made of. The caller runs an operation, and the sandbox has no machine. */
int import_refill(struct sandbox *sandbox, const struct bundle_spool *spool, struct err *err);
