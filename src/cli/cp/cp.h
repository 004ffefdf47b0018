/* What the files of `holt cp` share: a copy has a source, a destination, and troubles on its way
 * that do not end it. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "cli/core/progress.h"
#include "client/typed/tree.h"

struct holt_error;

/* A place on this machine or in a sandbox. */
struct cp_place {
    const char *text;    /* as it was written */
    const char *sandbox; /* NULL: on this machine */
    const char *path;
    char id[128]; /* of the sandbox */
};

/* What is there. */
struct cp_target {
    bool exists;
    bool is_directory;
};

struct cp {
    struct cp_place from, to;
    bool keeps_owner, follows_link;

    /* Decided before anything is copied: into which directory, under which name. */
    char into[PATH_MAX];
    char name[NAME_MAX + 1]; /* "": what is in the source goes there, not the source itself */

    struct progress progress; /* of a single file its total is known */
    unsigned troubles;        /* what was left out */
    int status;               /* after a report */
};

/* Finds out `into` and `name`: 0, or the exit status after a report. */
int cp_aim(struct cp *cp, bool is_source_directory, const struct cp_target *target);

/* The path that an entry of the tree gets: 0, or -1 when it is too long. */
int cp_entry_path(const struct cp *cp, const char *path, char ret[ENTRY_PATH_MAX + 1]);

/* Tells of something that is left out. */
void cp_trouble(struct cp *cp, const char *path, const char *why);

/* So many bytes were copied. */
void cp_moved(struct cp *cp, size_t bytes);

/* Each copies: the exit status. */
int cp_up(struct cp *cp);
int cp_down(struct cp *cp);
int cp_across(struct cp *cp);

/* What is at a place in a sandbox: 0, with ret->type ENTRY_NONE where nothing is, or -1. */
struct holt;
int cp_stat_remote(struct holt *holt, const struct cp_place *place, bool follows,
                   struct file_entry *ret, struct holt_error *error);
