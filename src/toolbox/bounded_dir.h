/* A directory with a maximum number and size of files; the oldest are removed first. All functions
 * are thread-safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/lock.h"

enum { BOUNDED_DIR_NAME_MAX = 64, BOUNDED_DIR_PATH_MAX = 256 };

struct bounded_dir_entry {
    char name[BOUNDED_DIR_NAME_MAX + 1];
    uint64_t bytes;
};

struct bounded_dir {
    int root_fd; /* the path is below it; not owned */
    char path[BOUNDED_DIR_PATH_MAX];
    size_t files_max;
    uint64_t bytes_max;

    struct lock lock; /* protects all fields below */
    bool is_loaded;
    bool is_purged;                    /* no longer accepts files */
    struct bounded_dir_entry *entries; /* oldest first */
    size_t count;
    uint64_t bytes;
    uint64_t last_number; /* the highest in names that are a letter and a number */
    unsigned last_new;
};

/* A new file that bounded_dir_put has not added yet. */
struct bounded_dir_file {
    int fd;
    char name[24];
};

#define BOUNDED_DIR_FILE_INIT                                                                      \
    {                                                                                              \
        .fd = -1                                                                                   \
    }

void bounded_dir_init(struct bounded_dir *bounded_dir, int root_fd, const char *path,
                      size_t files_max, uint64_t bytes_max);
void bounded_dir_done(struct bounded_dir *bounded_dir);

/* Creates a file, which the caller passes to bounded_dir_put or bounded_dir_drop. */
int bounded_dir_create(struct bounded_dir *bounded_dir, struct bounded_dir_file *ret);

/* Adds the file under a name, atomically, and removes the oldest ones beyond the limits. Closes the
 * file, also on failure. */
int bounded_dir_put(struct bounded_dir *bounded_dir, struct bounded_dir_file *file,
                    const char *name);
/* Removes a file that was not added; accepts one that is closed. */
void bounded_dir_drop(struct bounded_dir *bounded_dir, struct bounded_dir_file *file);

/* Returns a number that is in no name of a present or earlier file. */
uint64_t bounded_dir_next_number(struct bounded_dir *bounded_dir);

/* Opens a file for reading; returns a descriptor or -errno. */
int bounded_dir_open(struct bounded_dir *bounded_dir, const char *name);

/* Removes the directory; later files are refused. */
void bounded_dir_purge(struct bounded_dir *bounded_dir);
