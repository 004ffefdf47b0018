/* Writes versions of codebases as commits of git repositories on the host. */
#pragma once

#include <stdint.h>

#include "host/codebase/git_head.h"

struct caller;
struct err;
struct host;

enum { CODEBASE_BRANCH_MAX = 255 };

struct codebase_branch_spec {
    const char *codebase;  /* a name or id */
    const char *branch;    /* "feature/x" */
    const char *directory; /* the top of a repository, absolute; "": where the codebase came from */
    const uint32_t *version; /* NULL: the newest */
};

struct codebase_branching {
    uint32_t version;
    uint32_t commits; /* that are new */
    char commit[GIT_HEAD_SIZE];
};

/* Gives a branch one commit for each version that it lacks, as the owner of the directory; for
 * admins only. A new branch begins at the commit that version 0 was copied from. Nothing else of
 * the directory changes. The branch gets all commits or none. */
int codebase_branch(struct host *host, const struct caller *caller,
                    const struct codebase_branch_spec *spec, struct codebase_branching *ret,
                    struct err *err);
