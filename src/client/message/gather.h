/* Collects the output of a command in a result, or passes it to a callback. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "holt.h"

struct gather {
    holt_output_fn on_output; /* NULL: collect the bytes */
    void *context;
    struct buf kept[2]; /* of stdout and stderr */
    bool is_cut;
    bool has_end;
    struct holt_end end; /* owns its texts */
};

/* output_max 0: the default limit. */
void gather_init(struct gather *gather, holt_output_fn on_output, void *context, size_t output_max);
void gather_done(struct gather *gather);

/* Adds output. Returns 0, or -1 if the callback ends the call. */
int gather_take(struct gather *gather, enum holt_piece_kind kind, const char *data, size_t len,
                struct holt_error *error);

/* Stores a copy of the exit. */
void gather_end(struct gather *gather, const struct holt_end *end);

/* Returns 0 with the result, or -1 if the process has not ended. */
int gather_result(const struct gather *gather, const char *sandbox_id, const char *process_id,
                  struct holt_result **ret, struct holt_error *error);
