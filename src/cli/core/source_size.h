/* How much there is to copy or to import, for the totals of progress lines. */
#pragma once

#include <stdint.h>

struct progress;

/* Sets the total of a progress line that is shown to the size of a source on this machine: of a
 * file, of all files of a directory, or of an archive that is not compressed. The total stays
 * unknown for others, and if counting would take too long. */
void source_size_set(struct progress *progress, const char *path);
