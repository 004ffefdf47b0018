// SPDX-License-Identifier: Apache-2.0
#include "cli/options/source_size.h"

#include <fts.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/xalloc.h"
#include "cli/core/progress.h"

enum { COUNT_MS = 2000 };

/* Returns the bytes of all files below a directory; 0: unknown. */
static uint64_t tree_count(const char *path)
{
    cleanup_free char *root = xstrdup(path);
    char *const roots[] = { root, NULL };
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    uint64_t deadline_ms = clock_ms() + COUNT_MS, bytes = 0;
    const FTSENT *entry;

    while (walk && (entry = fts_read(walk))) {
        if (entry->fts_info == FTS_F)
            bytes += (uint64_t)entry->fts_statp->st_size;
        if (clock_ms() > deadline_ms) {
            bytes = 0;
            break;
        }
    }
    if (walk)
        (void)fts_close(walk);
    return bytes;
}

void source_size_set(struct progress *progress, const char *path)
{
    struct stat st;

    progress->total = 0;
    if (!progress->is_shown || stat(path, &st) < 0)
        return;
    if (S_ISREG(st.st_mode))
        progress->total = (uint64_t)st.st_size;
    else if (S_ISDIR(st.st_mode))
        progress->total = tree_count(path);
}
