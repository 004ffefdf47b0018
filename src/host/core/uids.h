/* Ranges of 65,536 user ids, one for each machine. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct host;
struct machine;

enum { HOST_UID_RANGES = 28663 };

/* Allocates the table; the search for a free range starts at a position derived from the seed. */
void host_uids_init(struct host *host, uint32_t seed);

/* Gives the machine a free range; -ENOSPC when there is none. */
int host_take_uids(struct host *host, struct machine *machine);

/* Marks the range that an adopted machine has already. */
void host_claim_uids(struct host *host, struct machine *machine, unsigned slot);

/* Gives the machine the range at first_uid, which it shares with others. */
void host_share_uids(struct host *host, struct machine *machine, uid_t first_uid);

/* Returns the machine's range. A shared range stays taken, so that no machine gets it as its own.
 */
void host_return_uids(struct host *host, const struct machine *machine);

/* Keeps the range of a machine that is not the daemon's, and ends that. */
void host_reserve_slot(struct host *host, unsigned slot);
void host_release_slot(struct host *host, unsigned slot);

/* Returns the first uid of a range. */
uid_t host_first_uid(unsigned slot);
