/* The archives that clients have uploaded for builds: DIRECTORY/HASH.tar.gz, and beside it
 * HASH.tar.gz.XXXXXX while one is on its way. */
#pragma once

#include <stdbool.h>

#define E2B_ARCHIVE_BYTES_MAX (2ULL << 30) /* of one */
#define E2B_ARCHIVES_BYTES_MAX (8ULL << 30)

/* Creates the directory if missing and prunes it: files unused for days, then the least recently
 * used ones beyond the size limit. Incomplete uploads are removed only when they are abandoned. */
int e2b_archives_prune(const char *directory);

/* Whether it is there; if so, it has been used now. */
bool e2b_archive_use(const char *path);
