/* How much there is to copy or to import, for the totals of progress lines. */
#pragma once

#include <stdint.h>

struct progress;

/* Sets the total of a progress line that is shown to the size of a source on this machine: of a
 * file, or of all files of a directory. The total stays unknown if counting takes too long. */
void source_size_set(struct progress *progress, const char *path);
