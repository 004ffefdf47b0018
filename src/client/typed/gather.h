/* The output of a command on its way into a result, or to whoever wants it as it comes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "holt.h"

struct gather {
    holt_output_fn on_output; /* NULL: bytes are kept */
    void *context;
    struct buf kept[2]; /* of stdout and stderr */
    bool is_cut;
    bool has_end;
    struct holt_end end; /* its texts are our own */
};

/* output_max 0 is the default. */
void gather_init(struct gather *gather, holt_output_fn on_output, void *context, size_t output_max);
void gather_done(struct gather *gather);

/* 0, or -1 where the caller wants no more. */
int gather_take(struct gather *gather, enum holt_piece_kind kind, const char *data, size_t len,
                struct holt_error *error);

/* Keeps a copy. */
void gather_end(struct gather *gather, const struct holt_end *end);

/* 0 with the result, or -1 where there was no end. */
int gather_result(const struct gather *gather, const char *sandbox_id, const char *process_id,
                  struct holt_result **ret, struct holt_error *error);
