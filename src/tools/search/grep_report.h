/* The reply of grep: the results of files, sorted by path, up to the limits. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "tools/search/grep_file.h"

struct regex;
struct tool_reply;
struct tool_values;

/* Files or directories that could not be read. */
struct grep_unreadable {
    uint64_t count;
    char *first;
};

struct grep_report {
    const struct grep_search *search;
    char *prefix;     /* of all paths, or the path of the single file */
    bool is_one_file; /* `path` is a file */
    struct buf body;
    uint64_t matches, files; /* found so far */
    uint64_t shown;          /* matches, or files in the other modes */
    uint64_t searched, binary_files;
    struct grep_unreadable unreadable_files;
    struct grep_unreadable unreadable_dirs; /* separate, because the walk has its own thread */
    size_t hidden_count;
    bool is_cut;   /* a limit was reached */
    char *failure; /* why the search was ended */
};

/* Adds the result of a file. Returns false when no more files are needed. */
bool grep_report_add(struct grep_report *report, const struct grep_found *found, grep_path_fn *path,
                     void *context);

/* Adds a directory that cannot be read. */
void grep_report_unreadable(struct grep_report *report, const char *path, int error);

/* Writes the reply. */
void grep_report_write(const struct grep_report *report, const struct tool_values *values,
                       const struct regex *regex, struct tool_reply *reply);
void grep_report_done(struct grep_report *report);
