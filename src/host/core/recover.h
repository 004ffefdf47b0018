/* Recovery: takes over the sandboxes that an earlier daemon process has left. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct err;
struct host;
struct registry;
struct sandbox_info;

struct recovery {
    struct sandbox_info *infos;
    size_t count;
};

/* Reads the recorded sandboxes. */
int recovery_open(struct registry *registry, struct recovery *ret, struct err *err);

/* Returns whether a cgroup belongs to a sandbox that may still run: a cgroup_keep_fn. */
bool recover_keeps(const char *group, void *context);

/* Puts every sandbox back into the table of a host whose store and runtime are open. One that
 * cannot be recovered is in the table too, failed, with the reason. */
void recovery_run(struct recovery *recovery, struct host *host);

void recovery_done(struct recovery *recovery);
