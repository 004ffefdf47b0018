/* Signal settings for programs started with posix_spawn. */
#pragma once

#include <spawn.h>

/* Resets all signals of the new program to their defaults, whatever this thread blocks or ignores.
 * flags are further POSIX_SPAWN_* flags. Returns 0 or -errno. */
int spawn_signals_reset(posix_spawnattr_t *attributes, int flags);
