/* Ranges of user ids; the calls that take and return them are in host_internal.h. */
#pragma once

#include <stdint.h>

struct host;

enum { HOST_UID_RANGES = 28663 };

/* Starts looking for a free range at a place that depends on the seed. */
void host_uids_init(struct host *host, uint32_t seed);
