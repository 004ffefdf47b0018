/* The tables of codebases and their versions. */
#pragma once

#include <stddef.h>

struct codebase_applied;
struct codebase_info;
struct codebase_version;
struct err;
struct registry;

/* Records a codebase without a version. ERR_EXISTS when its owner has another one of this name,
 * ERR_EXHAUSTED when there are CODEBASES_MAX. */
int registry_add_codebase(struct registry *registry, const struct codebase_info *info,
                          struct err *err);

/* Removes a codebase and its versions by id; no error when there is none. */
int registry_remove_codebase(struct registry *registry, const char *id, struct err *err);

/* Lists the codebases that have a version, or those that have none, oldest first. The caller frees
 * the array. */
int registry_list_codebases(struct registry *registry, struct codebase_info **ret,
                            size_t *ret_count, struct err *err);
int registry_list_incomplete_codebases(struct registry *registry, struct codebase_info **ret,
                                       size_t *ret_count, struct err *err);

/* Records a version as the newest one, and that a sandbox (NULL: none) derives from it, in one
 * transaction. ERR_BUSY unless it follows the newest one. */
int registry_add_version(struct registry *registry, const char *id,
                         const struct codebase_version *version, const char *sandbox,
                         struct err *err);

/* Lists the versions of a codebase, newest first. The caller frees the array. */
int registry_list_versions(struct registry *registry, const char *id, struct codebase_version **ret,
                           size_t *ret_count, struct err *err);

/* Records what a directory has of a codebase. */
int registry_put_applied(struct registry *registry, const struct codebase_applied *applied,
                         struct err *err);

/* Lists all such directories. The caller frees the array. */
int registry_list_applied(struct registry *registry, struct codebase_applied **ret,
                          size_t *ret_count, struct err *err);
