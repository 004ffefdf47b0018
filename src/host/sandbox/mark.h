/* A moment of a sandbox's files, to say later what has changed since. It is a snapshot that nobody
 * sees and that does not survive the daemon. */
#pragma once

#include <stdint.h>

#include "store/diff/diff.h"
#include "store/volume/volume.h"

struct err;
struct sandbox;

struct sandbox_mark {
    char snapshot[SNAPSHOT_NAME_MAX + 1];
    uint64_t taken_ms;
};

/* Waits for an operation that goes on, as a snapshot does. */
int sandbox_mark(struct sandbox *sandbox, struct sandbox_mark *ret, struct err *err);

/* What differs from it now. */
int sandbox_diff_mark(struct sandbox *sandbox, const struct sandbox_mark *mark, diff_fn each,
                      void *context, struct err *err);

/* It goes, whatever goes on: also a rollback, which may have ended the call that it was for, is
 * waited for. */
void sandbox_unmark(struct sandbox *sandbox, const struct sandbox_mark *mark);
