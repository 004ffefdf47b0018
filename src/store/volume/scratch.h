/* The directories of scratch volumes: plain ones, or btrfs subvolumes where a quota can limit them.
 * A subvolume is also removed in one call, whatever is in it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct store;

/* Returns whether scratch volumes can be limited. Enables quotas on an image of our own. */
bool scratch_has_quota(const struct store *store);

/* Creates a directory and opens it. Returns the descriptor or -errno. */
int scratch_make(const struct store *store, const char *id);

/* Limits what is written to it from now on, together with what is there. Returns 0 or -errno. */
int scratch_limit(int dir_fd, uint64_t bytes);

/* Removes it with its contents. Returns 0 or -errno. */
int scratch_remove(const struct store *store, const char *id);
