/* Shared by all kinds of imports: the budget, and names from an archive. */
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

/* What the threads of an import have unpacked together. */
struct import_total {
    _Atomic uint64_t bytes, files, source_bytes;
    uint64_t source_total;
};

/* What an import has unpacked so far, and its limits. */
struct import_budget {
    uint64_t bytes, bytes_max;
    uint64_t files, files_max;
    uint64_t source_bytes, source_total; /* as in struct template_progress */
    uint64_t reported_bytes, reported_files;
    template_progress_fn progress; /* may be NULL */
    void *context;
    struct import_total
        *total; /* the limits are for this, and it is reported; NULL: for the above */
};

/* Notes how much was read of the source. */
void budget_read(struct import_budget *budget, uint64_t source_bytes);

/* Tells how far the import is. */
void budget_report(struct import_budget *budget);

/* Charges the budget, and reports from time to time, or fails with ERR_EXHAUSTED before anything is
 * written. */
int budget_spend(struct import_budget *budget, uint64_t files, uint64_t bytes, struct err *err);

/* Adds to what is to be read from the source. The size may come from the source: it is only for the
 * progress. */
void budget_expect(struct import_budget *budget, uint64_t bytes);

/* An untrusted name made safe for one line of a message: printable, bounded, keeping its end. */
struct import_label {
    char text[80];
};

struct import_label import_label(const char *name);

/* Sets an error for a failed call about one entry: ERR_EXHAUSTED for a full disk, otherwise
 * ERR_INTERNAL. */
int import_error(struct err *err, int r, const char *what, const char *name);

/* Converts a name from an archive to a path below the root: no leading slash, no "." and no empty
 * component, "" for the root itself. Fails for ".." and for names that are too deep or too long.
 */
int import_path(const char *name, char ret_path[static PATH_MAX], struct err *err);

/* Returns whether an extended attribute is kept. {trusted,user}.overlay.* in particular would let
 * an archive control the overlay of a sandbox's root. */
bool import_keeps_xattr(const char *name);
