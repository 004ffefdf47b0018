/* How far a long work is: one line on stderr, where somebody is looking, and gone at the end. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct progress {
    const char *label; /* may be changed on the way */
    uint64_t total;    /* bytes; 0: nobody knows */
    uint64_t done;
    uint64_t began_ms, drawn_ms;
    bool is_shown; /* stderr is a terminal */
    bool is_drawn; /* there is a line to clear */
};

/* Draws nothing yet: what is over in a moment needs no line. */
void progress_begin(struct progress *progress, const char *label, uint64_t total);

/* So many bytes more; draws at most ten times a second. */
void progress_add(struct progress *progress, uint64_t bytes);

/* Clears the line, if there is one. May be called twice. */
void progress_end(struct progress *progress);
