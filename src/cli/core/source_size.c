// SPDX-License-Identifier: Apache-2.0
#include "cli/core/source_size.h"

#include <fcntl.h>
#include <fts.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/xalloc.h"
#include "cli/core/progress.h"

enum { COUNT_MS = 2000, MAGIC_BYTES = 6 };

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

static bool is_compressed(const char *path)
{
    static const struct {
        const char *bytes;
        size_t len;
    } magics[] = { { "\x1f\x8b", 2 }, { "\x28\xb5\x2f\xfd", 4 }, { "\3757zXZ", 5 }, { "BZh", 3 } };
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    char start[MAGIC_BYTES] = "";

    if (fd < 0 || read_full(fd, start, sizeof(start)) < 0)
        return true;
    for (size_t i = 0; i < ARRAY_SIZE(magics); i++)
        if (memcmp(start, magics[i].bytes, magics[i].len) == 0)
            return true;
    return false;
}

/* The blobs of an OCI layout are compressed, too. */
static bool is_oci_layout(const char *path)
{
    cleanup_free char *mark = xasprintf("%s/oci-layout", path);

    return access(mark, F_OK) == 0;
}

void source_size_set(struct progress *progress, const char *path)
{
    struct stat st;

    progress->total = 0;
    if (!progress->is_shown || stat(path, &st) < 0)
        return;
    if (S_ISREG(st.st_mode) && !is_compressed(path))
        progress->total = (uint64_t)st.st_size;
    else if (S_ISDIR(st.st_mode) && !is_oci_layout(path))
        progress->total = tree_count(path);
}
