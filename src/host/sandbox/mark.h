/* A mark is a hidden snapshot to compare the files with later. It does not survive the daemon. */
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

/* Takes a mark. Waits for the running operation, as sandbox_snapshot does. */
int sandbox_mark(struct sandbox *sandbox, struct sandbox_mark *ret, struct err *err);

/* Lists the differences between the mark and the present files. */
int sandbox_diff_mark(struct sandbox *sandbox, const struct sandbox_mark *mark, diff_fn each,
                      void *context, struct err *err);

/* Removes a mark. Waits for every operation, including a rollback, which may have ended the call
 * that used the mark. */
void sandbox_unmark(struct sandbox *sandbox, const struct sandbox_mark *mark);
