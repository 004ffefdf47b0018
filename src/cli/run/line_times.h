/* The times of the lines of a process's output, for `holt logs`. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct buf;
struct holt_process_event;
struct holt_process_info;

/* What has been shown of both streams. */
struct line_times {
    const struct holt_process_info *info; /* has the marks; outlives this */
    bool is_inside[2];                    /* the last byte of stdout and stderr was no line end */
};

/* Returns the offset of the output that came at this time or later, in stdout (0) or stderr (1).
 * Where the marks leave open when output came, it starts with some earlier output. */
uint64_t line_times_since(const struct holt_process_info *info, int stream, int64_t time_ms);

/* Appends output with the time before each line. Output beyond the marks comes now. */
void line_times_add(struct line_times *times, int stream, const struct holt_process_event *event,
                    struct buf *out);
