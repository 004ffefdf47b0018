/* Internals shared by the files of codebases. */
#pragma once

#include <stdint.h>

#include "host/codebase/codebase.h"

struct err;
struct host;

/* What uses the versions of a codebase alone: a commit, a rebase, a merge, an apply, its removal.
 */
struct codebase_work {
    const char *codebase;
    struct codebase_work *next;
};

/* Returns ERR_BUSY if other work on the codebase is under way. */
int codebase_work_begin(struct host *host, struct codebase_work *work, struct err *err);
void codebase_work_end(struct host *host, struct codebase_work *work);

/* Opens the top of a version; of CODEBASE_NO_VERSION, an empty directory. */
int codebase_version_open(struct host *host, const struct codebase_info *info, uint32_t version,
                          int *ret_fd, struct err *err);

/* Resolves the directory of the host that a request names; "": where the codebase came from. */
int codebase_directory_find(const struct codebase_info *info, const char *directory,
                            char ret[CODEBASE_SOURCE_MAX + 1], struct err *err);

/* ERR_NOT_FOUND for a version that the codebase does not have. */
int codebase_check_version(const struct codebase_info *info, uint32_t version, struct err *err);
