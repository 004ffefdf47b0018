/* Trees of files from and into a sandbox, as `holt cp` wants them. One connection each, which is
 * busy until they are closed. 0, or -1 with error filled. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/files/file_entry.h"

struct holt;
struct holt_error;
struct tree_pull;
struct tree_push;

struct tree_place {
    const char *sandbox;
    const char *path;
    const char *user;  /* NULL: root */
    bool keeps_owner;  /* push */
    bool follows_link; /* pull */
};

/* What is at a path, following links or not. The path of the entry is not set. */
int tree_stat(struct holt *holt, const struct tree_place *place, struct file_entry *ret,
              struct holt_error *error);

int tree_pull_open(struct holt *holt, const struct tree_place *place, struct tree_pull **ret,
                   struct holt_error *error);

enum tree_piece_kind { TREE_ENTRY, TREE_DATA, TREE_TROUBLE };

struct tree_piece {
    enum tree_piece_kind kind;
    struct file_entry entry; /* with trouble only its path */
    const char *data;        /* bytes, or why there is trouble */
    size_t len;
};

/* What comes next, valid until the next call: 1, or 0 at the good end, or -1. */
int tree_pull_next(struct tree_pull *pull, struct tree_piece *ret, struct holt_error *error);
void tree_pull_close(struct tree_pull *pull);

/* Everything goes into the directory that place names. */
int tree_push_open(struct holt *holt, const struct tree_place *place, struct tree_push **ret,
                   struct holt_error *error);
int tree_push_entry(struct tree_push *push, const struct file_entry *entry,
                    struct holt_error *error);
int tree_push_data(struct tree_push *push, const void *data, size_t len, struct holt_error *error);
int tree_push_finish(struct tree_push *push, struct holt_error *error);

/* Before finish, what is not whole is undone. */
void tree_push_close(struct tree_push *push);
