/* A directory of files that is bounded in number and bytes: the oldest go first. Every call may
 * come from any thread. */
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

    struct lock lock; /* over all below */
    bool is_loaded;
    bool is_purged;                    /* nothing is put here any more */
    struct bounded_dir_entry *entries; /* oldest first */
    size_t count;
    uint64_t bytes;
    uint64_t last_number; /* of names that are a letter and a number */
    unsigned last_new;
};

/* A file that is not on the object store yet. */
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

/* 0 or -errno; the file ends with one of the next two. */
int bounded_dir_create(struct bounded_dir *bounded_dir, struct bounded_dir_file *ret);

/* Puts it in its place, whole, and what is too much away. */
int bounded_dir_put(struct bounded_dir *bounded_dir, struct bounded_dir_file *file,
                    const char *name);
void bounded_dir_drop(struct bounded_dir *bounded_dir, struct bounded_dir_file *file);

/* A number that no file here has, nor has had. */
uint64_t bounded_dir_next_number(struct bounded_dir *bounded_dir);

/* For reading: a descriptor or -errno. */
int bounded_dir_open(struct bounded_dir *bounded_dir, const char *name);

/* Removes all, for good. */
void bounded_dir_purge(struct bounded_dir *bounded_dir);
