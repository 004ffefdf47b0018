/* Selects files by a glob such as *.c or *.{ts,tsx}: without a slash it matches names, with a slash
 * paths relative to the start of the search. */
#pragma once

#include <stdbool.h>

#include "wire/tool.h"

struct glob_set;
struct glob_states;

struct name_filter {
    struct glob_set *set; /* NULL: no filter */
    struct glob_states *start;
    bool is_for_paths;
};

/* Compiles the glob; "" means no filter. Returns false and a sentence in *ret_why if it is invalid.
 */
bool name_filter_init(struct name_filter *filter, const struct tool_text *glob,
                      const char **ret_why);
void name_filter_done(struct name_filter *filter);

/* Returns whether the filter is for names and matches this one. */
bool name_filter_has_name(const struct name_filter *filter, const char *name, size_t len);

/* Returns whether the filter is for paths and matches this one. */
bool name_filter_has_path(struct name_filter *filter, const char *path);
