/* The steps of a sandbox's making, which create and fork share. */
#pragma once

#include "host/sandbox/sandbox_internal.h"

/* Counts a new sandbox in, puts it into the table and records it, all or nothing. */
int sandbox_admit(struct sandbox *sandbox, struct err *err);

/* Its maker has done; ERR_BUSY when somebody has destroyed it meanwhile. */
int sandbox_deliver(struct sandbox *sandbox, struct err *err);

/* Undoes whatever there is of it. */
void sandbox_unmake(struct sandbox *sandbox);
