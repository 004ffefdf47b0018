/* The ProcessSpec message as the host's own spec. */
#pragma once

#include "host/process/process.h"
#include "wire/holt_v1.h"

struct arena;
struct err;

/* Fills a spec, which points into the message and the arena. */
int process_spec_fill(const struct msg_process_spec *message, struct arena *arena,
                      struct process_spec *ret, struct err *err);

/* Returns "NAME=value" of each pair, with NULL behind the last. */
char **variables_make(const struct pair *pairs, size_t count, struct arena *arena);
