/* A directory of a walk. A reference keeps its path, a use also keeps its descriptor open. Threads
 * may drop both in any order. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct search_dir {
    struct search_dir *parent; /* referenced; NULL for the start */
    atomic_uint refs, uses;
    int fd; /* valid while there are uses */
    size_t name_len;
    char name[];
};

/* Makes a directory with one reference and one use, which owns fd. */
struct search_dir *search_dir_new(struct search_dir *parent, const char *name, int fd);

/* Adds a reference and a use; the caller has both. */
struct search_dir *search_dir_share(struct search_dir *dir);

/* Drops a reference and a use. */
void search_dir_release(struct search_dir *dir);

/* Drop only a use, and get one again; the directory is opened again if necessary, which can fail
 * with -errno. Only the walk calls search_dir_resume. */
void search_dir_park(struct search_dir *dir);
int search_dir_resume(struct search_dir *dir);
void search_dir_unref(struct search_dir *dir);

/* Returns the path of a name in it relative to the start; the caller frees it. */
char *search_dir_path(const struct search_dir *dir, const char *name);
