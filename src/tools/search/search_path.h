/* Paths in the results of a search, in the form in which other tools accept them: relative to the
 * workspace if they are in it. */
#pragma once

struct buf;

/* Returns the prefix of the paths below a directory: "", "src/" or "/usr/include/". The path is
 * absolute; `more` is relative to it or absolute. The caller frees the result. */
char *search_path_prefix(const char *path, const char *more);

/* Appends a path as text_add_name does, but faster if nothing must be escaped. */
int search_path_add(struct buf *out, const char *path);
