/* The codebases of libholt; holt.h includes this file. A codebase is a tree with numbered versions
 * that never change. A sandbox that is created with one (codebase of struct holt_sandbox_options)
 * sees the newest version copy-on-write. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "holt.h"

#ifdef __cplusplus
extern "C" {
#endif

struct holt_codebase {
    const char *id;
    const char *name;
    const char *owner;  /* names are unique for each owner */
    const char *source; /* the directory or volume that version 0 was copied from */
    uint32_t version;   /* the newest one */
};

struct holt_codebase_list {
    size_t count;
    const struct holt_codebase *const *items;
};

struct holt_codebase_version {
    uint32_t version;
    int64_t created_ms;
    const char *sandbox; /* that committed it; "": imported */
    const char *message;
    uint64_t files; /* files imported, or paths that differ from the version before */
};

struct holt_codebase_log {
    size_t count;
    const struct holt_codebase_version *const *items; /* newest first */
};

/* Imports a directory of the daemon's host (an absolute path; for admins) or a volume, by name or
 * id, as version 0. ret may be NULL. */
HOLT_API int holt_codebase_add(struct holt *holt, const char *name, const char *source,
                               int64_t deadline, struct holt_codebase **ret,
                               struct holt_error *error);
HOLT_API int holt_codebase_list(struct holt *holt, int64_t deadline,
                                struct holt_codebase_list **ret, struct holt_error *error);

/* Removes a codebase, by name or id, with all versions. Fails while a sandbox uses it. */
HOLT_API int holt_codebase_remove(struct holt *holt, const char *codebase, int64_t deadline,
                                  struct holt_error *error);
HOLT_API int holt_codebase_log(struct holt *holt, const char *codebase, int64_t deadline,
                               struct holt_codebase_log **ret, struct holt_error *error);

/* Makes the next version of the codebase of what a sandbox sees of it. Fails, without an effect, if
 * the codebase has a newer version than the one that the sandbox derives from. message and ret may
 * be NULL. */
HOLT_API int holt_codebase_commit(struct holt *holt, const char *sandbox, const char *message,
                                  int64_t deadline, struct holt_codebase_version **ret,
                                  struct holt_error *error);

/* Lines that both sides have changed, differently. */
struct holt_codebase_hunk {
    uint32_t line; /* the first of them in the file of the sandbox, from 1 on */
    const char *ours;
    const char *theirs;
};

/* A path that both sides have changed. */
struct holt_codebase_conflict {
    const char *path;   /* relative to the top of the codebase */
    const char *reason; /* for people */
    size_t count;
    const struct holt_codebase_hunk *const *hunks; /* of a text; at most 100 */
};

struct holt_codebase_applying {
    uint32_t version;
    uint64_t files; /* paths that were written or removed */
    uint64_t conflict_count;
    size_t count; /* of the conflicts that are listed, at most 1000 */
    const struct holt_codebase_conflict *const *conflicts;
};

struct holt_codebase_target {
    const char *directory;   /* absolute; NULL: the one that the codebase came from */
    const uint32_t *version; /* NULL: the newest */
};

/* Writes a version to a directory of the daemon's host, as its owner; for admins. All or nothing:
 * succeeds without an effect if there are conflicts, paths that were changed in the directory. */
HOLT_API int holt_codebase_apply(struct holt *holt, const char *codebase,
                                 const struct holt_codebase_target *target, int64_t deadline,
                                 struct holt_codebase_applying **ret, struct holt_error *error);

struct holt_codebase_branching {
    uint32_t version;
    uint32_t commits;   /* that are new */
    const char *commit; /* what the branch has now */
};

struct holt_codebase_branch_options {
    const char *branch;
    const char *directory;   /* absolute; NULL: the one that the codebase came from */
    const uint32_t *version; /* NULL: the newest */
};

/* Gives a branch of a git repository on the daemon's host a commit for each version, up to the one
 * of the options, that it lacks; for admins. The work tree stays. */
HOLT_API int holt_codebase_branch(struct holt *holt, const char *codebase,
                                  const struct holt_codebase_branch_options *options,
                                  int64_t deadline, struct holt_codebase_branching **ret,
                                  struct holt_error *error);

/* Whose side wins where both have changed. */
enum holt_codebase_side {
    HOLT_CODEBASE_NEITHER, /* conflicts are reported */
    HOLT_CODEBASE_OURS,    /* that of the sandbox */
    HOLT_CODEBASE_THEIRS,  /* that of the codebase, or of the other sandbox */
    HOLT_CODEBASE_MARKERS, /* both, between lines with markers; only in files that are text */
};

struct holt_codebase_merging {
    uint32_t base;  /* the version that the changes of the sandbox are compared with now */
    uint64_t files; /* paths that were taken */
    uint64_t conflict_count;
    size_t count; /* of the conflicts that are listed, at most 1000 */
    const struct holt_codebase_conflict *const *conflicts;
};

/* Takes what others have committed since the version that a sandbox derives from, and ends its
 * processes. All or nothing: succeeds without an effect if there are conflicts. */
HOLT_API int holt_codebase_rebase(struct holt *holt, const char *sandbox,
                                  enum holt_codebase_side side, int64_t deadline,
                                  struct holt_codebase_merging **ret, struct holt_error *error);

struct holt_codebase_source {
    const char *sandbox; /* of the same codebase */
    enum holt_codebase_side side;
};

/* Takes what another sandbox has changed, in the same way. */
HOLT_API int holt_codebase_merge(struct holt *holt, const char *sandbox,
                                 const struct holt_codebase_source *source, int64_t deadline,
                                 struct holt_codebase_merging **ret, struct holt_error *error);

/* Makes the codebase in a sandbox, or one path of it (NULL: all; absolute, or relative to its top),
 * that of the version it derives from, and ends its processes. holt_diff with is_from_codebase
 * reports what would be lost. */
HOLT_API int holt_codebase_discard(struct holt *holt, const char *sandbox, const char *path,
                                   int64_t deadline, struct holt_error *error);

#ifdef __cplusplus
}
#endif
