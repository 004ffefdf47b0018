/* A tool worker: a program of Holt that runs inside a sandbox, as a file worker does
 * (guest/files/file.h), and executes the file tools. It runs from a sealed memfd, with one socket,
 * as a process of the sandbox: the kernel resolves paths as for any other of its processes. */
#pragma once

#include "base/buf.h"
#include "wire/tool.h"

struct tool_reply {
    struct buf content; /* at most TOOL_CONTENT_MAX bytes; valid UTF-8, or an image */
    struct tool_outcome outcome;
    struct buf changed; /* EVENT messages of wire/file.h for created and written paths */
};

/* Executes a tool. A failure is a reply with TOOL_IS_ERROR and a text for the model. */
typedef void tool_fn(const struct tool_values *values, struct tool_reply *reply);

tool_fn tool_read_file, tool_write_file, tool_edit_file, tool_multi_edit, tool_list_dir, tool_grep,
    tool_glob;

/* Replaces the content of the reply by an error message for the model. */
void tool_reply_set_error(struct tool_reply *reply, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
