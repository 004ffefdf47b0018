/* Writes versions of codebases to directories of the host. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "host/codebase/codebase.h"
#include "store/codebase/conflict.h"

enum { CODEBASE_NO_VERSION = INT32_MAX }; /* of a directory that was empty */

/* What a directory has of a codebase. */
struct codebase_applied {
    char codebase[CODEBASE_ID_MAX + 1];
    char directory[CODEBASE_SOURCE_MAX + 1];
    uint32_t version;
    uint32_t wanted; /* another one than version: it is being written */
};

struct codebase_apply_spec {
    const char *codebase;    /* a name or id */
    const char *directory;   /* an absolute path; "": where the codebase came from */
    const uint32_t *version; /* NULL: the newest */
};

struct codebase_applying {
    uint32_t version;
    size_t files; /* paths that were written or removed */
    struct conflicts conflicts;
};

/* Writes what differs between the version that a directory has and another one, as the owner of the
 * directory; for admins only. Nothing is written if there are conflicts: paths that were changed in
 * the directory. Either everything is written or nothing; what was interrupted is finished when the
 * daemon starts. The caller frees the conflicts, also after a failure. */
int codebase_apply(struct host *host, const struct caller *caller,
                   const struct codebase_apply_spec *spec, struct codebase_applying *ret,
                   struct err *err);

/* Finishes what was interrupted. */
int codebase_applies_recover(struct host *host, struct err *err);
