/* Transfers of file trees from and into a sandbox, for `holt cp`. Each uses one connection until it
 * is closed. Functions return 0, or -1 with error set. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* Stats a path, following symbolic links or not. Does not set the path of the entry. */
int tree_stat(struct holt *holt, const struct tree_place *place, struct file_entry *ret,
              struct holt_error *error);

/* Sums up the sizes of the files below a directory, for a total of progress. Fails, too, if it is
 * not done at the deadline of the monotonic clock. */
int tree_size(struct holt *holt, const struct tree_place *place, int64_t deadline, uint64_t *ret,
              struct holt_error *error);

/* Reads a symbolic link. Stores "" if the path is something else. */
int tree_read_link(struct holt *holt, const struct tree_place *place,
                   char ret_target[ENTRY_PATH_MAX + 1], struct holt_error *error);

int tree_pull_open(struct holt *holt, const struct tree_place *place, struct tree_pull **ret,
                   struct holt_error *error);

enum tree_piece_kind { TREE_ENTRY, TREE_DATA, TREE_TROUBLE };

struct tree_piece {
    enum tree_piece_kind kind;
    struct file_entry entry; /* for a skipped file, only its path is set */
    const char *data;        /* data, or the reason why the file was skipped */
    size_t len;
};

/* Receives the next item, valid until the next call. Returns 1, 0 at a successful end, or -1. */
int tree_pull_next(struct tree_pull *pull, struct tree_piece *ret, struct holt_error *error);
void tree_pull_close(struct tree_pull *pull);

/* Everything is written below the directory that place names. */
int tree_push_open(struct holt *holt, const struct tree_place *place, struct tree_push **ret,
                   struct holt_error *error);
int tree_push_entry(struct tree_push *push, const struct file_entry *entry,
                    struct holt_error *error);
int tree_push_data(struct tree_push *push, const void *data, size_t len, struct holt_error *error);
int tree_push_finish(struct tree_push *push, struct holt_error *error);

/* Closing before finish undoes an incomplete file. */
void tree_push_close(struct tree_push *push);
