/* A progress line on stderr, shown only on a terminal and removed at the end. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct progress {
    const char *label; /* the caller may change it at any time */
    uint64_t total;    /* bytes; 0: unknown */
    uint64_t done;
    uint64_t began_ms, drawn_ms;
    bool is_shown; /* stderr is a terminal */
    bool is_drawn; /* there is a line to clear */
};

/* Draws nothing yet, so that short operations print no line. */
void progress_begin(struct progress *progress, const char *label, uint64_t total);

/* Adds bytes; draws at most ten times a second. */
void progress_add(struct progress *progress, uint64_t bytes);

/* Clears the line, if there is one. May be called twice. */
void progress_end(struct progress *progress);
