/* What rollback and fork need of snapshots. */
#pragma once

#include "host/sandbox/sandbox_internal.h"

/* Stops the processes of a running sandbox while its files are copied, where that is needed. */
int sandbox_still(struct sandbox *sandbox, bool on, struct err *err);

/* Removes a snapshot, within an operation. */
int sandbox_forget_snapshot(struct sandbox *sandbox, const char *name, struct err *err);
