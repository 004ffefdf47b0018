/* Cutting a text that is too long: in the middle, at the ends of lines. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct buf;

struct tool_cut {
    size_t head;            /* bytes from the beginning that stay */
    size_t tail;            /* where the rest that stays begins */
    uint64_t missing_lines; /* ends of lines between them */
};

/* What stays of a text that has more than budget bytes, about half of it at each end. */
struct tool_cut tool_cut(const char *text, size_t len, size_t budget);

/* Appends what stays, with a line in the middle that says what is missing and (unless handle is
 * NULL) how to read it. 0, -ENOBUFS or -ENOMEM. */
int tool_cut_add(struct buf *out, const char *text, size_t len, const struct tool_cut *cut,
                 const char *handle);
