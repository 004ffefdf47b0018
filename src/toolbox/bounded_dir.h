/* A directory of files that is bounded in number and bytes: the oldest go first. Every call may
 * come from any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/lock.h"

enum { SHELF_NAME_MAX = 64, SHELF_PATH_MAX = 256 };

struct shelf_entry {
    char name[SHELF_NAME_MAX + 1];
    uint64_t bytes;
};

struct tool_shelf {
    int root_fd; /* the path is below it; not owned */
    char path[SHELF_PATH_MAX];
    size_t files_max;
    uint64_t bytes_max;

    struct lock lock; /* over all below */
    bool is_loaded;
    bool is_purged;              /* nothing is put here any more */
    struct shelf_entry *entries; /* oldest first */
    size_t count;
    uint64_t bytes;
    uint64_t last_number; /* of names that are a letter and a number */
    unsigned last_new;
};

/* A file that is not on the shelf yet. */
struct shelf_file {
    int fd;
    char name[24];
};

#define SHELF_FILE_INIT                                                                            \
    {                                                                                              \
        .fd = -1                                                                                   \
    }

void shelf_init(struct tool_shelf *shelf, int root_fd, const char *path, size_t files_max,
                uint64_t bytes_max);
void shelf_done(struct tool_shelf *shelf);

/* 0 or -errno; the file ends with one of the next two. */
int shelf_create(struct tool_shelf *shelf, struct shelf_file *ret);

/* Puts it in its place, whole, and what is too much away. */
int shelf_put(struct tool_shelf *shelf, struct shelf_file *file, const char *name);
void shelf_drop(struct tool_shelf *shelf, struct shelf_file *file);

/* A number that no file here has, nor has had. */
uint64_t shelf_next_number(struct tool_shelf *shelf);

/* For reading: a descriptor or -errno. */
int shelf_open(struct tool_shelf *shelf, const char *name);

/* Removes all, for good. */
void shelf_purge(struct tool_shelf *shelf);
