// SPDX-License-Identifier: Apache-2.0
#include "console/throttle.h"

#include <stdio.h>
#include <string.h>

static const struct throttle_entry *entry_find(const struct throttle *throttle, const char *address)
{
    for (size_t i = 0; i < THROTTLE_ADDRESSES; i++)
        if (strcmp(throttle->entries[i].address, address) == 0)
            return &throttle->entries[i];
    return NULL;
}

/* Each failure moves the time at which all are forgotten; the distance to it is their number. */
uint64_t throttle_check(const struct throttle *throttle, const char *address, uint64_t now_ms)
{
    const struct throttle_entry *entry = entry_find(throttle, address);
    uint64_t full_ms = now_ms + (uint64_t)(THROTTLE_FAILURES - 1) * THROTTLE_PAUSE_MS;

    return entry && entry->clear_ms > full_ms ? entry->clear_ms - full_ms : 0;
}

void throttle_add(struct throttle *throttle, const char *address, uint64_t now_ms)
{
    struct throttle_entry *entry =
        (struct throttle_entry *)(uintptr_t)entry_find(throttle, address);

    if (!entry) {
        entry = &throttle->entries[0];
        for (size_t i = 1; i < THROTTLE_ADDRESSES; i++)
            if (throttle->entries[i].clear_ms < entry->clear_ms)
                entry = &throttle->entries[i];
        (void)snprintf(entry->address, sizeof(entry->address), "%s", address);
        entry->clear_ms = now_ms;
    }
    if (entry->clear_ms < now_ms)
        entry->clear_ms = now_ms;
    entry->clear_ms += THROTTLE_PAUSE_MS;
}
