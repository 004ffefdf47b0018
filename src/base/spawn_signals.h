/* What every program that we start with posix_spawn needs. */
#pragma once

#include <spawn.h>

/* Signals as they are for any program, whatever this thread blocks or ignores. flags are further
 * POSIX_SPAWN_* ones. 0 or -errno. */
int spawn_signals_reset(posix_spawnattr_t *attributes, int flags);
