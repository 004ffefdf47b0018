/* Which files are meant by a glob such as *.c or *.{ts,tsx}: without a slash it is about names,
 * with one about paths from where the search begins. */
#pragma once

#include <stdbool.h>

#include "wire/tool.h"

struct glob_set;
struct glob_states;

struct name_filter {
    struct glob_set *set; /* NULL: there is none */
    struct glob_states *start;
    bool is_for_paths;
};

/* False when it is no glob; *ret_why says so. An empty one is none. */
bool name_filter_init(struct name_filter *filter, const struct tool_text *glob,
                      const char **ret_why);
void name_filter_done(struct name_filter *filter);

/* Whether it is about names and matches this one. */
bool name_filter_has_name(const struct name_filter *filter, const char *name, size_t len);

/* Whether it is about paths and matches this one. */
bool name_filter_has_path(struct name_filter *filter, const char *path);
