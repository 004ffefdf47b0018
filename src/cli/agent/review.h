/* Shows the changes of an agent to the user. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

struct holt;
struct repo;
struct repo_changes;

struct review {
    struct holt *holt;
    const char *sandbox;
    const char *from, *to; /* snapshots */
    const struct repo *repo;
    struct repo_changes *changes; /* collected if patch is NULL */
    FILE *patch;                  /* where to write a patch; NULL: nowhere */
    bool is_safe;                 /* control characters in the patch become visible */
    bool continues;               /* the patch of the last change is written */
};

/* Collects the changes between the snapshots, or writes them as a patch whose paths are relative to
 * the directory. Returns 0, or the exit status after a report. */
int review_run(struct review *review);

/* Prints one line for each change, and what is left out, to stderr. */
void review_summary(const struct repo_changes *changes);
