/* Recovery: takes over the sandboxes that an earlier daemon process has left. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct audit_facts_list;
struct err;
struct host;
struct registry;
struct sandbox;
struct sandbox_info;
struct unrecorded_machine;

struct recovery {
    struct sandbox_info *infos;
    size_t count;
    struct unrecorded_machine *machines; /* of sandboxes without a row */
    size_t machine_count;
};

/* Reads the recorded sandboxes. */
int recovery_open(struct registry *registry, struct recovery *ret, struct err *err);

/* Returns whether a cgroup belongs to a sandbox that may still run, or to one that the registry has
 * no row of: a cgroup_keep_fn. */
bool recover_keeps(const char *group, void *context);

/* Puts every sandbox back into the table of a host whose store and runtime are open. One that
 * cannot be recovered is in the table too, failed, with the reason. */
void recovery_run(struct recovery *recovery, struct host *host);

/* Reads what the audit log proves about all sandboxes and volumes that are recorded or in storage,
 * once, when it is first needed; valid until recovery_finish. */
const struct audit_facts_list *recovery_facts(struct host *host);

/* Ends the recovery; the host uses the recovery no more. */
void recovery_finish(struct host *host);

/* Makes the records of a sandbox's snapshots agree with its volume. */
int recover_snapshots(struct sandbox *sandbox, struct err *err);

void recovery_done(struct recovery *recovery);
