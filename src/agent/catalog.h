/* The agent types of a host: the shipped files, and those of the host's administrator, which
 * precede. They are read for each call, so a change needs no reload. */
#pragma once

#include <stddef.h>

struct agent_type;
struct err;

/* Reads the type of this name. Names that begin one shipped or own name stand for it ("claude" for
 * "claude-code") unless several do. own_dir may be "". Fails with ERR_NOT_FOUND. */
int agent_catalog_find(const char *own_dir, const char *name, struct agent_type *ret,
                       struct err *err);

/* Lists the names in order. The caller frees the array and each name. */
void agent_catalog_names(const char *own_dir, char ***ret, size_t *ret_count);
