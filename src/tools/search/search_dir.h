/* A directory that was met on a walk. Whoever has a reference knows its path; who has a use of it
 * also has its descriptor. Threads may give both back in any order. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct search_dir {
    struct search_dir *parent; /* a reference; NULL at the top */
    atomic_uint refs, uses;
    int fd; /* while there are uses */
    size_t name_len;
    char name[];
};

/* With one reference and one use, which owns fd. */
struct search_dir *search_dir_new(struct search_dir *parent, const char *name, int fd);

/* One more reference and one more use, for who has both. */
struct search_dir *search_dir_share(struct search_dir *dir);

/* Gives both back. */
void search_dir_give_back(struct search_dir *dir);

/* Gives back the use alone, and gets one again: 0, or -errno when it has to be opened again and
 * cannot. Only the walk does that. */
void search_dir_park(struct search_dir *dir);
int search_dir_resume(struct search_dir *dir);
void search_dir_unref(struct search_dir *dir);

/* The path from the top to a name in it, to be freed. */
char *search_dir_path(const struct search_dir *dir, const char *name);
