/* A file as filesystem.Filesystem of E2B's envd describes it. */
#pragma once

#include <jansson.h>

struct file_entry;

/* An EntryInfo, by this path from the root; the entry must have its details. NULL: no memory. */
json_t *e2b_entry_json(const char *path, const struct file_entry *entry);

/* Returns {name: value}, the metadata of a file. */
json_t *e2b_meta_json(const struct file_entry *entry);
