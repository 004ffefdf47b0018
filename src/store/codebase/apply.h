/* Writes the difference of two trees into a third: the three-way step of apply, rebase and merge.
 *
 * A path that differs between `from` and `to` is written if the directory has there what `from`
 * has, left alone if it has already what `to` has, and is a conflict otherwise. First everything is
 * planned, and nothing is written; so a run without conflicts can still be refused. A run that was
 * interrupted can be resumed, in either direction: each path is then at one of its two ends, or
 * missing. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "store/codebase/entry.h"

struct err;

/* What to do about a path that was changed on both sides. */
struct apply_choice {
    enum apply_side {
        APPLY_KEEP, /* what the directory has */
        APPLY_TAKE, /* what `to` has */
        APPLY_TEXT, /* a file with this content, which the plan frees */
    } side;
    char *text;
    size_t text_len;
    mode_t mode; /* of that file */
};

struct apply_conflict {
    const struct tree_entry *from, *to, *here; /* `here` has the path */
};

/* Returns 0 with a choice, or -errno (and err is set) to stop. */
typedef int (*apply_conflict_fn)(void *context, const struct apply_conflict *conflict,
                                 struct apply_choice *choice, struct err *err);

struct apply {
    int dir_fd;
    int from_fd;
    int to_fd;
    const char *path;      /* only this path and those below it, absolute; NULL: all */
    const char *temporary; /* name that only incomplete files of this operation have */
    bool keeps_owner;      /* files get the owner and times that `to` has; otherwise they are made
                              and removed as uid and gid, with the rights of these */
    uid_t uid;
    gid_t gid;
    bool is_resumed;
    apply_conflict_fn conflict;
    void *context;
};

struct apply_plan;

/* Plans without writing anything, except that a resumed run removes incomplete files. */
int apply_plan(const struct apply *apply, struct apply_plan **ret, struct err *err);

/* Writes what was planned. ERR_BUSY, without completing, if a path has changed since. */
int apply_run(struct apply_plan *plan, struct err *err);

/* Returns how many paths are to be written. */
size_t apply_count(const struct apply_plan *plan);
/* Returns one of them. */
const char *apply_path(const struct apply_plan *plan, size_t index);
void apply_plan_free(struct apply_plan *plan);
