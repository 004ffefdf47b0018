/* Internals shared by the files of volumes. */
#pragma once

#include <stdbool.h>

struct volume;

/* An open tree of a volume. */
struct volume_tree {
    struct volume *volume;
    int fd;
    char *temporary; /* private to the backend */
};

/* Returns whether its trees are whole roots rather than layers. A scratch volume always has
 * layers. */
bool volume_is_whole(const struct volume *volume);

/* Opens a snapshot, or the live tree (NULL). Returns 0 or -errno. */
int volume_tree_open(struct volume_tree *tree, const char *snapshot);
void volume_tree_done(struct volume_tree *tree);
