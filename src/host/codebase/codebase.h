/* Codebases (store/codebase/codebase.h) with owners, names and a log of their versions. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/access/caller.h"
#include "host/sandbox/info.h"
#include "store/codebase/codebase.h"

struct err;
struct host;
struct sandbox;
struct sandbox_spec;

enum {
    CODEBASE_NAME_MAX = 128,
    CODEBASE_SOURCE_MAX = 1024,
    CODEBASE_MESSAGE_MAX = 1024,
    CODEBASES_MAX = 1000,
    CODEBASE_VERSIONS_MAX = 100000,
};

#define CODEBASE_ID_PREFIX "cb"
#define CODEBASE_MOUNT_POINT "/workspace" /* unless a request names another */

struct codebase_info {
    char id[CODEBASE_ID_MAX + 1];
    char owner[OWNER_NAME_MAX + 1];
    char name[CODEBASE_NAME_MAX + 1]; /* unique for its owner */
    char source[CODEBASE_SOURCE_MAX +
                1]; /* the directory or volume that version 0 was copied from */
    uint32_t head;  /* the newest version */
};

struct codebase_version {
    uint32_t version;
    uint64_t created_ms;
    char sandbox[SANDBOX_ID_MAX]; /* that committed it; "": imported */
    char message[CODEBASE_MESSAGE_MAX + 1];
    uint64_t files; /* files imported, or paths that differ from the version before */
};

/* Imports a directory of the host (an absolute path; for admins only) or a volume that the caller
 * may read, as version 0. ERR_EXISTS if the caller's owner has a codebase of this name. */
int codebase_add(struct host *host, const struct caller *caller, const char *name,
                 const char *source, struct codebase_info *ret, struct err *err);

/* Finds a codebase that the caller sees, by name or id. ERR_NOT_FOUND. */
int codebase_find(struct host *host, const struct caller *caller, const char *word,
                  struct codebase_info *ret, struct err *err);

/* Lists the codebases that the caller sees, oldest first. The caller frees the array. */
int codebase_list(struct host *host, const struct caller *caller, struct codebase_info **ret,
                  size_t *ret_count, struct err *err);

/* Lists the versions of a codebase, newest first. The caller frees the array. */
int codebase_log(struct host *host, const struct caller *caller, const char *word,
                 struct codebase_version **ret, size_t *ret_count, struct err *err);

/* Removes a codebase with all versions. ERR_BUSY while a sandbox in any state uses it. */
int codebase_remove(struct host *host, const struct caller *caller, const char *word,
                    struct err *err);

/* Removes what an import or a removal that was interrupted has left. */
int codebases_recover(struct host *host, struct err *err);

/* Gives the info of a new sandbox the newest version of the codebase of its spec, if there is
 * one. ERR_INVALID for a mount point that a volume uses or hides. */
int codebase_assign(struct host *host, const struct sandbox_spec *spec, struct sandbox_info *info,
                    struct err *err);

/* Makes the next version of the codebase of what a sandbox sees of it. Either the version is
 * complete and recorded, or nothing has changed. ERR_BUSY (with what happened) if another commit
 * runs, or if the codebase has a newer version than the one that the sandbox derives from;
 * ERR_INVALID if there is nothing to commit. */
int sandbox_commit_codebase(struct sandbox *sandbox, const char *message,
                            struct codebase_version *ret, struct err *err);
