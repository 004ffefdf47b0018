// SPDX-License-Identifier: Apache-2.0
#include "tools/search/name_filter.h"

#include <stdlib.h>
#include <string.h>

#include "tools/search/glob_set.h"

/* Removes a leading "./" or "/", and a trailing "/" or slash and double star. */
static void glob_trim(const char **text, size_t *len)
{
    if (*len > 2 && memcmp(*text, "./", 2) == 0) {
        *text += 2;
        *len -= 2;
    }
    while (*len > 1 && **text == '/') {
        ++*text;
        --*len;
    }
    if (*len > 3 && memcmp(*text + *len - 3, "/**", 3) == 0)
        *len -= 3;
    while (*len > 1 && (*text)[*len - 1] == '/')
        --*len;
}

bool name_filter_init(struct name_filter *filter, const struct tool_text *glob,
                      const char **ret_why)
{
    const char *text = glob->data;
    size_t len = glob->len;

    *filter = (struct name_filter){ 0 };
    if (len == 0)
        return true;
    glob_trim(&text, &len);
    filter->set = glob_set_new(text, len, true, ret_why);
    if (!filter->set)
        return false;
    filter->is_for_paths = memchr(text, '/', len) != NULL;
    filter->start = glob_set_start(filter->set);
    return true;
}

void name_filter_done(struct name_filter *filter)
{
    glob_set_free(filter->set);
    free(filter->start);
    *filter = (struct name_filter){ 0 };
}

bool name_filter_has_name(const struct name_filter *filter, const char *name, size_t len)
{
    return filter->set && !filter->is_for_paths &&
           glob_set_accepts(filter->set, filter->start, name, len);
}

bool name_filter_has_path(struct name_filter *filter, const char *path)
{
    return filter->set && filter->is_for_paths && glob_set_matches_path(filter->set, path);
}
