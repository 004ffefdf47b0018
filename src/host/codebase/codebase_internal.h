/* Internals shared by the files of codebases. */
#pragma once

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
