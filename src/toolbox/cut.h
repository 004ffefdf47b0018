/* Truncates long text in the middle, at line boundaries. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct buf;

struct tool_cut {
    size_t head;            /* bytes that remain at the beginning */
    size_t tail;            /* offset of the part that remains at the end */
    uint64_t missing_lines; /* newlines between them */
};

/* Computes the cut of a text to about budget bytes, half of them at each end. */
struct tool_cut tool_cut(const char *text, size_t len, size_t budget);

/* Appends the remaining text, with a marker line in the middle that gives the size of the missing
 * part and (unless handle is NULL) the call to read it. Returns 0, -ENOBUFS or -ENOMEM. */
int tool_cut_add(struct buf *out, const char *text, size_t len, const struct tool_cut *cut,
                 const char *handle);
