/* When the output of a process was received: marks at offsets of a stream, each with the time at
 * which the output from there on came. They are sparse: at most one in 10 ms, and in longer
 * intervals once there are OUTPUT_MARKS_MAX. Without locks of its own. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

enum { OUTPUT_MARKS_MAX = 256, OUTPUT_STEP_MS = 10 };

struct output_mark {
    uint64_t offset;
    uint64_t time_ms; /* since 1970 */
};

struct output_times {
    struct output_mark *marks; /* NULL: no output yet */
    size_t count;
    size_t room;
    uint64_t step_ms; /* the least time between two marks; 0: OUTPUT_STEP_MS */
};

/* Notes that output at this offset comes now. */
void output_times_add(struct output_times *times, uint64_t offset, uint64_t now_ms);

/* Encodes the marks as [offset, time, offset, time, ...]; NULL: there are none. */
json_t *output_times_write(const struct output_times *times);

/* Decodes marks that output_times_write has written, into empty ones. What is malformed (NULL: none
 * at all) is left out. */
void output_times_read(struct output_times *times, const json_t *value);

void output_times_done(struct output_times *times);
