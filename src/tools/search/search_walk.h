/* Walks a tree in the order of strcmp on paths. Links are followed only with with_links and if
 * `enter` allows it. The depth is limited only by memory. /proc and /sys are entered only as the
 * start. Files that are removed meanwhile are skipped. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct search_dir;

struct search_entry {
    const char *name;
    size_t len;
    bool is_dir;
    bool is_link; /* to a file or directory */
};

struct search_walk {
    bool hidden;       /* enter directories whose name starts with a dot */
    bool gitignore;    /* skip files that git ignores */
    bool with_links;   /* report links to files and directories, too */
    const char *start; /* path of the start directory */
    int fd;            /* of the start directory; search_walk closes it */
    void *context;

    /* Returns whether an entry is wanted, by its name and type; data is that of its directory.
     * NULL: all are. */
    bool (*wants)(void *context, void *data, const struct search_entry *entry);

    /* Makes the data of a directory, which `leave` frees; parent and entry are NULL for the start.
     * Returns false to skip it. NULL: no data, all are entered. */
    bool (*enter)(void *context, void *parent, const struct search_entry *entry, void **ret_data);
    void (*leave)(void *context, void *data);

    /* Handles a file; the path is relative to the start. A negative result ends the walk. */
    int (*file)(void *context, struct search_dir *dir, const char *path,
                const struct search_entry *entry);

    /* Reports a directory that cannot be read; the path is "" for the start. */
    void (*unreadable)(void *context, const char *path, int error);

    size_t hidden_count; /* skipped hidden directories */
};

void search_walk(struct search_walk *walk);
