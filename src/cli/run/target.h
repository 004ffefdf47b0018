/* The process that runs, and what can be done to it besides reading its output. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct holt;
struct holt_error;

struct run_target {
    const char *host; /* the daemon's address; the caller keeps it */
    char *sandbox_id;
    char *process_id;
    struct holt
        *control; /* the stream's connection is busy; this one is opened when first needed */
};

void run_target_done(struct run_target *target);

/* Each makes one call: 0 or -1. */
int run_target_signal(struct run_target *target, int number, bool is_for_tree,
                      struct holt_error *error);
int run_target_resize(struct run_target *target, uint32_t rows, uint32_t columns,
                      struct holt_error *error);

/* With is_eof, stdin is closed behind the bytes. */
int run_target_send(struct run_target *target, const void *data, size_t len, bool is_eof,
                    struct holt_error *error);
