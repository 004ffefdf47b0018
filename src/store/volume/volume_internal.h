/* Internals shared by the files of volumes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

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

enum { VOLUME_CODEBASE_BYTES = 24 };

/* Names the upper directory of the codebase in a tree (negative: none yet), and the version below
 * it. Returns 0 or -errno. */
int volume_codebase_layer(const struct volume *volume, int tree_fd,
                          char ret_name[static VOLUME_CODEBASE_BYTES], uint32_t *ret_version);

/* Makes the upper and an empty work directory of one tree. Returns 0 or -errno. */
int volume_layer_make(int dir_fd, const char *tree);
