/* A tool worker: a program of Holt's own that runs inside a sandbox, as a file worker does
 * (guest/files/file.h), and does what the tools about files do. It is executed from a sealed file
 * in memory, with one socket, and looks at the sandbox as any of its processes: a path means what
 * it means to them, and the kernel keeps it inside. */
#pragma once

#include "base/buf.h"
#include "wire/tool.h"

/* What a tool answers with. */
struct tool_reply {
    struct buf content; /* at most TOOL_CONTENT_MAX bytes; valid UTF-8 unless it is an image */
    struct tool_outcome outcome;
    struct buf changed; /* EVENT messages of wire/file.h: paths that were created or written */
};

/* Does the work; a failure is an answer too (TOOL_IS_ERROR), written for the model that reads it.
 */
typedef void tool_fn(const struct tool_values *values, struct tool_reply *reply);

tool_fn tool_read_file, tool_write_file, tool_edit_file, tool_multi_edit, tool_list_dir, tool_grep,
    tool_glob;

/* Replaces what the reply holds by an error with this text. */
void tool_refuse(struct tool_reply *reply, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
