/* The archives that clients have uploaded for builds: DIRECTORY/HASH.tar.gz, and beside it
 * HASH.tar.gz.XXXXXX while one is on its way. */
#pragma once

#include <stdbool.h>

#define E2B_ARCHIVE_BYTES_MAX (2ULL << 30) /* of one */
#define E2B_ARCHIVES_BYTES_MAX (8ULL << 30)

/* Makes sure that there is the directory, and that what is in it was used in the last days and is
 * not more than so many bytes: of what is whole the longest unused goes first. What is on its way
 * goes only when it can be no more. */
int e2b_archives_prune(const char *directory);

/* Whether it is there; if so, it has been used now. */
bool e2b_archive_use(const char *path);
