/* A branch of a git repository that gets versions of a codebase as commits. Objects are written
 * first; the branch changes last, at once. No filter, hook or program of the repository is used. */
#pragma once

#include <git2.h>
#include <stdbool.h>
#include <stdint.h>

#include "git/control.h"

struct err;

enum { BRANCH_REF_SIZE = 300 };

struct branch {
    git_repository *repository;
    git_odb *odb;
    git_index *index;   /* in memory: what the next commit has */
    git_reference *old; /* the branch as it was; NULL: it is new */
    git_oid tip, tree;  /* of the last commit, if there is one */
    bool has_tip;
    char ref[BRANCH_REF_SIZE];
    char codebase[64], name[160];
    uint32_t version; /* that the tip has */
    uint32_t made;    /* commits */
};

/* Opens the repository in "/". ERR_INVALID if there is none, if the branch is checked out, or if it
 * has commits of others on top. `base` is where a new branch begins ("": without a commit). */
int branch_open(struct branch *branch, const char *const texts[GIT_TEXTS], struct err *err);
void branch_close(struct branch *branch);

/* Change what the next commit has. Files that git ignores and has not yet are left out. */
int branch_put_file(struct branch *branch, const char *path, uint32_t mode, int fd,
                    struct err *err);
int branch_put_link(struct branch *branch, const char *path, const char *target, struct err *err);
int branch_remove(struct branch *branch, const char *path, struct err *err);

/* Makes a commit, unless nothing has changed. */
struct branch_commit {
    uint32_t version;
    int64_t time;
    const char *message, *sandbox;
};
int branch_commit(struct branch *branch, const struct branch_commit *commit, struct err *err);

/* Lets the branch have the commits. ERR_BUSY if it was changed meanwhile. */
int branch_finish(struct branch *branch, char ret[GIT_ID_LEN + 1], struct err *err);
