// SPDX-License-Identifier: Apache-2.0
#include "host/core/uids.h"

#include <errno.h>

#include "base/xalloc.h"
#include "host/core/host_internal.h"
#include "host/machine/machine_internal.h"
#include "store/store.h"

enum {
    /* systemd reserves ids in this range neither for people nor for /etc/subuid. */
    UID_FIRST = 524288,
    UID_LAST = 1879048191,
};

_Static_assert(HOST_UID_RANGES == (UID_LAST - UID_FIRST) / RUNTIME_IDS_PER_SANDBOX,
               "every range lies between the first and the last uid");

void host_uids_init(struct host *host, uint32_t seed)
{
    host->uid_slots = xcalloc(HOST_UID_RANGES, 1);
    host->next_uid_slot = seed % HOST_UID_RANGES;
}

/* The caller holds the lock. */
static void take_slot(struct host *host, struct machine *machine, unsigned slot)
{
    machine->uid_slot = slot;
    host->uid_slots[slot] = 1;
}

int host_take_uids(struct host *host, struct machine *machine)
{
    int slot = -ENOSPC;

    lock_take(&host->lock);
    for (uint32_t i = 0; slot < 0 && i < HOST_UID_RANGES; i++) {
        uint32_t candidate = (host->next_uid_slot + i) % HOST_UID_RANGES;

        if (!host->uid_slots[candidate])
            slot = (int)candidate;
    }
    if (slot >= 0) {
        take_slot(host, machine, (unsigned)slot);
        host->next_uid_slot = (unsigned)slot + 1;
    }
    lock_release(&host->lock);
    return slot < 0 ? slot : 0;
}

void host_claim_uids(struct host *host, struct machine *machine, unsigned slot)
{
    machine->has_shared_uids = host_first_uid(slot) == store_shared_uid(host->store);
    lock_take(&host->lock);
    take_slot(host, machine, slot % HOST_UID_RANGES);
    lock_release(&host->lock);
}

void host_share_uids(struct host *host, struct machine *machine, uid_t first_uid)
{
    machine->has_shared_uids = true;
    lock_take(&host->lock);
    take_slot(host, machine, (first_uid - UID_FIRST) / RUNTIME_IDS_PER_SANDBOX);
    lock_release(&host->lock);
}

void host_return_uids(struct host *host, const struct machine *machine)
{
    lock_take(&host->lock);
    if (!machine->has_shared_uids)
        host->uid_slots[machine->uid_slot] = 0;
    cond_broadcast(&host->changed);
    lock_release(&host->lock);
}

void host_reserve_slot(struct host *host, unsigned slot)
{
    lock_take(&host->lock);
    host->uid_slots[slot % HOST_UID_RANGES] = 1;
    lock_release(&host->lock);
}

void host_release_slot(struct host *host, unsigned slot)
{
    lock_take(&host->lock);
    if (host_first_uid(slot) != store_shared_uid(host->store))
        host->uid_slots[slot % HOST_UID_RANGES] = 0;
    lock_release(&host->lock);
}

uid_t host_first_uid(unsigned slot)
{
    return (uid_t)(UID_FIRST + slot * RUNTIME_IDS_PER_SANDBOX);
}
