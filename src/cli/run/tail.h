/* Where the last lines of a process's output begin. */
#pragma once

#include <stdint.h>

struct holt;
struct holt_attach_options;
struct holt_error;

enum { TAIL_LINES_MAX = 1000000 };

/* Sets the offsets of the request so that each stream starts with its last lines, of what is
 * written now. Returns 0 or -1. */
int tail_find(struct holt *holt, struct holt_attach_options *request, uint32_t lines,
              struct holt_error *error);

/* The same for the last bytes of each stream. */
int tail_find_bytes(struct holt *holt, struct holt_attach_options *request, uint64_t bytes,
                    struct holt_error *error);
