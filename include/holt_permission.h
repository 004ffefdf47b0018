/* Permissions by path of libholt; holt.h includes this file. Rules say what the processes of a
 * sandbox may do with the files of its codebase. A rule is "[TYPE:]PATTERN=LEVEL[@PRIORITY]", such
 * as "/docs=read"; docs/permissions.md describes the language. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The rules that a sandbox gets. */
struct holt_permission_rules {
    const char *preset; /* view-only, read-only, full-access, agent-safe, development; NULL: none */
    const char *const *rules; /* behind those of the preset; ends with NULL; NULL: none */
    const char *view;         /* what is to enforce them: fuse or kernel; NULL: Holt chooses */
};

struct holt_permissions {
    bool is_enforced; /* false: there are no rules, and all paths can be written */
    const char *preset;
    const char *const *rules; /* a path that none matches is hidden */
    size_t rule_count;
    uint64_t generation; /* increases with every change */
    const char *engine;  /* what enforces them, and why this */
    const char *engine_reason;
    const char *path;         /* where they apply in the sandbox */
    uint64_t denials;         /* operations that were refused */
    uint32_t open_files;      /* after a change: files that are open with more than is granted */
    uint32_t ended_processes; /* after a change that revokes */
};

/* Returns the permissions of a sandbox, which must have a codebase. */
HOLT_API int holt_permission_list(struct holt *holt, const char *sandbox, int64_t deadline,
                                  struct holt_permissions **ret, struct holt_error *error);

struct holt_permission_change {
    const char *preset;       /* for holt_permission_set alone; NULL: none */
    const char *const *rules; /* ends with NULL */
    /* Kill the processes that opened files which would be refused now; false: these stay open. */
    bool is_revoking;
};

/* Change the rules: all of them, or some. Every later lookup and open is decided by the new ones.
 * ret may be NULL. */
HOLT_API int holt_permission_set(struct holt *holt, const char *sandbox,
                                 const struct holt_permission_change *change, int64_t deadline,
                                 struct holt_permissions **ret, struct holt_error *error);
HOLT_API int holt_permission_add(struct holt *holt, const char *sandbox,
                                 const struct holt_permission_change *change, int64_t deadline,
                                 struct holt_permissions **ret, struct holt_error *error);
HOLT_API int holt_permission_remove(struct holt *holt, const char *sandbox,
                                    const struct holt_permission_change *change, int64_t deadline,
                                    struct holt_permissions **ret, struct holt_error *error);

struct holt_permission_why {
    const char *path;       /* relative to the mount point */
    const char *level;      /* "none", "view", "read" or "write" */
    const char *rule;       /* that decides; "": none matches */
    uint32_t number;        /* its place in the list, from 1 on; 0: none matches */
    bool is_traversable;    /* hidden, but there as a directory above what may be seen */
    const char *would_take; /* a rule that makes it writable; "": it is */
};

/* Returns the level of a path: absolute in the sandbox, or relative to the mount point. */
HOLT_API int holt_permission_why(struct holt *holt, const char *sandbox, const char *path,
                                 int64_t deadline, struct holt_permission_why **ret,
                                 struct holt_error *error);

struct holt_permission_test {
    bool is_allowed;
    const char *error; /* "ENOENT" or "EACCES"; "": it is allowed */
    const char *path;  /* that decides, its level and its rule */
    const char *level;
    const char *rule;
};

struct holt_permission_operation {
    /* stat, list, read, exec, write, create, delete, rename, link, chmod or chown */
    const char *name;
    const char *path;
    const char *to; /* the second path of rename and link; else NULL */
};

/* Returns whether an operation would be allowed. */
HOLT_API int holt_permission_test(struct holt *holt, const char *sandbox,
                                  const struct holt_permission_operation *operation,
                                  int64_t deadline, struct holt_permission_test **ret,
                                  struct holt_error *error);

struct holt_permission_entry {
    const char *path; /* relative to the mount point */
    bool is_directory;
    const char *level;
    uint32_t number; /* of the deciding rule, from 1 on; 0: none */
};

struct holt_permission_tree {
    size_t count;
    const struct holt_permission_entry *const *items; /* a directory before what it has */
    bool is_truncated;                                /* there are more than 10000 */
};

struct holt_permission_part {
    const char *path; /* a directory; NULL: the mount point */
    uint32_t depth;   /* levels below it; 0: all */
};

/* Lists the files of the version that the sandbox derives from, or a part of them (NULL: all), also
 * those that are hidden in the sandbox. */
HOLT_API int holt_permission_tree(struct holt *holt, const char *sandbox,
                                  const struct holt_permission_part *part, int64_t deadline,
                                  struct holt_permission_tree **ret, struct holt_error *error);

#ifdef __cplusplus
}
#endif
