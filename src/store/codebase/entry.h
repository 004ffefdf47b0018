/* What a plain directory tree has at a path. Trees are hostile and may change meanwhile: paths are
 * resolved beneath the top without following links, and only regular files are read. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

struct tree_entry {
    int tree_fd;      /* borrowed */
    const char *path; /* relative to the top; borrowed */
    bool exists;
    struct stat st;
};

/* Looks a path up. A path below something other than a directory does not exist. Returns 0 or
 * -errno. */
int tree_entry_find(int tree_fd, const char *path, struct tree_entry *ret);

/* Opens a regular file for reading. Returns a descriptor, -ESTALE if it is not the file that was
 * found, or another -errno. */
int tree_entry_open(const struct tree_entry *entry);

/* Reads the target of a link, with a NUL. Returns 0 or -errno. */
int tree_entry_read_link(const struct tree_entry *entry, char *into, size_t size);

/* Returns whether type, mode and contents are equal, and the owner if that counts: 1, 0 or
 * -errno. */
int tree_entry_same(const struct tree_entry *a, const struct tree_entry *b, bool owner_counts);

/* Opens the directory that contains a path (O_PATH), and finds the last component. Returns a
 * descriptor or -errno. */
int tree_parent_open(int tree_fd, const char *path, const char **ret_name);
