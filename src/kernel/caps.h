/* Capabilities as 64-bit sets, by the raw system calls (holt-init has no libcap). -errno on
 * failure. */
#pragma once

#include <stdint.h>

/* The set that Docker gives a container by default. */
uint64_t caps_docker_default(void);

/* Replaces permitted, effective and inheritable. */
int caps_set(uint64_t permitted, uint64_t effective, uint64_t inheritable);

/* Puts `add` into the effective set of this thread, as far as it is permitted. */
int caps_raise(uint64_t add);

/* All that is permitted also survives an exec by a user who is not root (ambient). Makes system
 * calls only: fit for the time between clone and exec. */
int caps_keep_over_exec(void);

/* Takes all but `keep` out of the bounding set, and empties the ambient set. */
int caps_limit(uint64_t keep);
