/* Shared by the files of `holt cp`. A copy has a source, a destination, and warnings about skipped
 * files that do not end it. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "cli/core/progress.h"
#include "client/message/tree.h"

struct holt_error;

/* A place on this machine or in a sandbox. */
struct cp_place {
    const char *text;    /* as the user wrote it */
    const char *sandbox; /* NULL: on this machine */
    bool is_stream;      /* "-": standard input or output */
    const char *path;
    char id[128]; /* of the sandbox */
};

/* The type of the file at the place. */
struct cp_target {
    bool exists;
    bool is_directory;
};

struct cp {
    struct cp_place from, to;
    bool keeps_owner, follows_link;

    /* The directory to copy into and the name there, decided before the copy begins. */
    char into[PATH_MAX];
    char name[NAME_MAX + 1]; /* "": copy the contents of the source directory */
    char followed[PATH_MAX]; /* the destination, if it was a symbolic link */

    struct progress progress;
    unsigned troubles; /* number of skipped files */
    int status;        /* after a report */
};

/* Sets `into` and `name`. Returns 0, or the exit status after a report. */
int cp_aim(struct cp *cp, bool is_source_directory, const struct cp_target *target);

/* Stores the destination path of an entry of the tree. Returns 0, or -1 if it is too long. */
int cp_entry_path(const struct cp *cp, const char *path, char ret[ENTRY_PATH_MAX + 1]);

/* Reports a skipped file. */
void cp_trouble(struct cp *cp, const char *path, const char *why);

/* Adds copied bytes to the progress. */
void cp_moved(struct cp *cp, size_t bytes);

/* The receiver of a tree from a sandbox. Both return 0 or -errno; after -EEXIST of entry the entry
 * is skipped. */
struct cp_taker {
    int (*entry)(void *context, const struct file_entry *entry);
    int (*data)(void *context, const void *data, size_t len);
};

/* Passes every entry on until the end, with its path at the destination. Returns 0, -1 with error
 * set, or the error of the receiver. */
int cp_take(struct cp *cp, struct tree_pull *pull, const struct cp_taker *taker, void *context,
            struct holt_error *error);

/* Writes the bytes of one file to a descriptor. Returns the exit status. */
int cp_pull_bytes(struct cp *cp, struct tree_pull *pull, int fd);

/* Writes a tree to standard output as a tar archive. Returns the exit status. */
int cp_pull_tar(struct cp *cp, struct tree_pull *pull);

/* Pushes standard input as one file, or the entries of the tar archive in it. Returns the exit
 * status. */
int cp_push_bytes(struct cp *cp, struct tree_push *push);
int cp_push_tar(struct cp *cp, struct tree_push *push);

/* Each copies and returns the exit status. */
int cp_up(struct cp *cp);
int cp_down(struct cp *cp);
int cp_across(struct cp *cp);

/* Makes the destination in a sandbox the file that a symbolic link there leads to, as cp does for
 * one file. Returns 0, or the exit status after a report. */
struct holt;
int cp_follow_remote(struct cp *cp, struct holt *holt);

/* Stats a path in a sandbox. Returns 0 (with ret->type ENTRY_NONE if nothing is there) or -1. */
int cp_stat_remote(struct holt *holt, const struct cp_place *place, bool follows,
                   struct file_entry *ret, struct holt_error *error);
