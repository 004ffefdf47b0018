/* What grep answers: results of files, in the order of their paths, as far as the limits go. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "tools/search/grep_file.h"

struct regex;
struct tool_reply;
struct tool_values;

/* What could not be read. */
struct grep_trouble {
    uint64_t count;
    char *first;
};

struct grep_report {
    const struct grep_search *search;
    char *prefix;     /* of all paths, or the only one */
    bool is_one_file; /* it was named */
    struct buf body;
    uint64_t matches, files; /* found, in the files that were looked at */
    uint64_t shown;          /* matches, or files where these are asked for */
    uint64_t searched, binary_files;
    struct grep_trouble with_files;
    struct grep_trouble with_dirs; /* of the walk, which has a thread of its own */
    size_t hidden_count;
    bool is_cut;   /* there is more than the limits allow */
    char *failure; /* the search cannot go on */
};

/* One more file; false when no more are wanted. */
bool grep_report_add(struct grep_report *report, const struct grep_found *found, grep_path_fn *path,
                     void *context);

/* A directory that cannot be read. */
void grep_report_trouble(struct grep_report *report, const char *path, int error);

void grep_report_write(const struct grep_report *report, const struct tool_values *values,
                       const struct regex *regex, struct tool_reply *reply);
void grep_report_done(struct grep_report *report);
