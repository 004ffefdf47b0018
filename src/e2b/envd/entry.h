/* A file as filesystem.Filesystem of E2B's envd describes it. */
#pragma once

#include <jansson.h>

#include "e2b/envd_messages.h"

struct file_entry;

enum { E2B_PERMISSIONS_SIZE = 16, E2B_OWNER_SIZE = 16 };

/* An EntryInfo and the texts that no struct file_entry has. */
struct e2b_entry {
    struct envd_entry_info info;
    struct pair *metadata;
    char permissions[E2B_PERMISSIONS_SIZE];
    char uid[E2B_OWNER_SIZE], gid[E2B_OWNER_SIZE];
};

/* Fills an EntryInfo, which points into the path (from the root), the entry and *ret itself. The
 * entry must have its details. The caller calls e2b_entry_done. */
void e2b_entry_init(struct e2b_entry *ret, const char *path, const struct file_entry *entry);
void e2b_entry_done(struct e2b_entry *entry);

/* Returns {name: value}, the metadata of a file. */
json_t *e2b_meta_json(const struct file_entry *entry);
