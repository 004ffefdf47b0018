/* Questions about the permissions of a sandbox: the level of a path, the outcome of an operation,
 * the tree of the codebase by level. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "host/view/permission.h"
#include "view/pattern.h"
#include "view/rules.h"

enum {
    PERMISSION_PATH_SIZE = VIEW_PATH_MAX + 1,
    PERMISSION_TREE_MAX = 10000,
    PERMISSION_TREE_BYTES_MAX = 2 << 20,
};

struct permission_answer {
    char path[PERMISSION_PATH_SIZE]; /* relative to the mount point */
    struct view_decision decision;
    bool is_traversable;                     /* of level none, but there as a directory */
    char rule[VIEW_RULE_TEXT_SIZE];          /* that decides; "": none matches */
    char would_take[VIEW_PATTERN_SIZE + 64]; /* a rule that makes it writable; "": it is */
};

/* Writes the level of a path of a client's. A sandbox without rules grants write everywhere. */
int permission_why(struct sandbox *sandbox, const char *path, struct permission_answer *ret,
                   struct err *err);

enum { PERMISSION_REASON_SIZE = VIEW_RULE_TEXT_SIZE + 32 };

/* Writes why a path of a client's cannot be written or read, "read-only by rule '/a=read'". Returns
 * false if no rule is the reason, or if the path is hidden: then it does not exist. */
bool permission_reason(struct sandbox *sandbox, const char *path, char ret[PERMISSION_REASON_SIZE]);

/* Writes the errno of a system call (0: it is allowed), and which path decides. The operations are
 * those of PermissionTestRequest; `to` is the second path of rename and link. */
struct permission_operation {
    const char *name, *path, *to;
};
int permission_test(struct sandbox *sandbox, const struct permission_operation *operation,
                    struct permission_answer *ret, int *ret_errno, struct err *err);

struct permission_entry {
    char *path;
    bool is_directory;
    struct view_decision decision; /* of what the entry is */
};

struct permission_tree {
    struct permission_entry *entries; /* each directory before what it has; names sorted */
    size_t count, bytes;
    bool is_truncated;
};

/* Lists the version of the codebase that the sandbox derives from, below a directory (NULL: all),
 * so many levels deep (0: all). */
int permission_tree(struct sandbox *sandbox, const char *path, unsigned depth,
                    struct permission_tree *ret, struct err *err);
void permission_tree_done(struct permission_tree *tree);
