/* Where a search begins, and how the paths that it finds are told: as they can be given to another
 * tool, which is from the workspace on when they are in it. */
#pragma once

struct buf;

/* What is to be put before a path below the directory: "", "src/" or "/usr/include/". The path is
 * absolute, and `more` is below it unless it is absolute too. To be freed. */
char *search_path_prefix(const char *path, const char *more);

/* Appends a path as text_add_name does, at once where nothing in it has to be escaped. */
int search_path_add(struct buf *out, const char *path);
