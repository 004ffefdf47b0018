/* Taking up what an earlier life of the daemon has left. */
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

/* Reads what there was. */
int recovery_open(struct registry *registry, struct recovery *ret, struct err *err);

/* Whether a control group belongs to a sandbox that may go on: a cgroup_keep_fn. */
bool recover_keeps(const char *group, void *context);

/* Puts every sandbox back into the table of a host that has its store and its runtime. One that
 * cannot be recovered is there too, with the reason. */
void recovery_run(struct recovery *recovery, struct host *host);

void recovery_done(struct recovery *recovery);
