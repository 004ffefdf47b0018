/* What the files of volumes share. */
#pragma once

#include <stdbool.h>

struct volume;

/* One tree of a volume, open. */
struct volume_tree {
    struct volume *volume;
    int fd;
    char *temporary; /* the backend's */
};

/* Whether its trees are whole roots, not layers. A scratch volume always has layers. */
bool volume_is_whole(const struct volume *volume);

/* Opens a snapshot, or (NULL) the live tree. 0 or -errno. */
int volume_tree_open(struct volume_tree *tree, const char *snapshot);
void volume_tree_done(struct volume_tree *tree);
