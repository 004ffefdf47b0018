/* What every kind of import shares: the budget it may spend, and names from an archive. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "store/template/template.h"

struct err;

enum {
    IMPORT_DEPTH_MAX = 128,  /* directories in one path */
    IMPORT_OWNER_MAX = 65535 /* a sandbox has this many uids and gids, from 0 */
};

/* What an import has unpacked so far and how far it may go. */
struct import_budget {
    uint64_t bytes, bytes_max;
    uint64_t files, files_max;
    uint64_t reported_bytes, reported_files;
    template_progress_fn progress; /* may be NULL */
    void *context;
};

/* Spends, or refuses with ERR_EXHAUSTED before anything is written. */
int budget_spend(struct import_budget *budget, uint64_t files, uint64_t bytes, struct err *err);

/* A foreign name made fit for one line of a message: printable, bounded, its end kept. */
struct import_label {
    char text[80];
};

struct import_label import_label(const char *name);

/* A failed call about one entry. A full disk is ERR_EXHAUSTED, the rest ERR_INTERNAL. */
int import_fail(struct err *err, int r, const char *what, const char *name);

/* A name from an archive as a path below the root: no leading slash, no "." and no empty
 * component, "" for the root itself. Refuses "..", and what is too deep or too long. */
int import_path(const char *name, char ret_path[static PATH_MAX], struct err *err);

/* Whether an extended attribute is kept. {trusted,user}.overlay.*, above all, would let an
 * archive steer the overlay that a sandbox's root is. */
bool import_keeps_xattr(const char *name);
