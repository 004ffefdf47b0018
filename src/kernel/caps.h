/* Capabilities as 64-bit sets, by raw system calls (holt-init has no libcap). Functions return
 * -errno on failure. */
#pragma once

#include <stdint.h>

/* Returns the set that Docker gives a container by default. */
uint64_t caps_docker_default(void);

/* Returns the permitted capabilities of this thread. */
uint64_t caps_permitted(void);

/* Replaces the permitted, effective and inheritable sets. */
int caps_set(uint64_t permitted, uint64_t effective, uint64_t inheritable);

/* Adds capabilities to the effective set of this thread, as far as they are permitted. */
int caps_raise(uint64_t add);

/* Keeps all permitted capabilities across an exec by a user other than root (ambient). Makes only
 * system calls, so it may run between clone and exec. */
int caps_keep_over_exec(void);

/* Removes everything except `keep` from the bounding set, and clears the ambient set. */
int caps_limit(uint64_t keep);
