/* Walks a tree in the order of the paths, as strcmp has it. No link is followed unless whoever asks
 * enters it by name; depth costs memory alone; /proc and /sys are not walked into from outside.
 * What vanishes meanwhile is passed over. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct search_dir;

struct search_entry {
    const char *name;
    size_t len;
    bool is_dir;
    bool is_link; /* to such a thing */
};

struct search_walk {
    bool hidden;       /* enter directories whose name begins with a dot */
    bool gitignore;    /* pass over what git ignores */
    bool with_links;   /* tell of links to files and directories too */
    const char *start; /* the path of the directory that is walked */
    int fd;            /* and itself, which the walk closes */
    void *context;

    /* Whether an entry is of interest at all, before anything is known about it but its name and
     * kind; data is that of its directory. NULL: all are. */
    bool (*wants)(void *context, void *data, const struct search_entry *entry);

    /* Data of a directory that is entered; `parent` is NULL and the entry too for the top. False to
     * stay out. NULL: no data, all are entered. */
    bool (*enter)(void *context, void *parent, const struct search_entry *entry, void **ret_data);
    void (*leave)(void *context, void *data);

    /* A file. The path begins below the top. A result below 0 ends the walk. */
    int (*file)(void *context, struct search_dir *dir, const char *path,
                const struct search_entry *entry);

    /* A directory that cannot be read, and why; the path is "" for the top. */
    void (*trouble)(void *context, const char *path, int error);

    size_t hidden_count; /* directories that were passed over because of their names */
};

void search_walk(struct search_walk *walk);
