// SPDX-License-Identifier: Apache-2.0
/* How long sandboxes live and stay idle.
 *
 * Guarantee: both are measured in elapsed time, also over a suspend of the machine, and no step of
 * the wall clock shortens or lengthens them while a daemon runs. What clients see and the registry
 * keeps are wall times, as only those survive a reboot; after a step they are corrected when the
 * expiry thread visits the sandbox (within a minute) or a client asks. A step that no daemon
 * notices, because none runs or it is killed within that minute, moves the end of a sandbox by as
 * much as the clock. */
#include "base/clock.h"
#include "host/core/host_internal.h"
#include "host/registry/registry.h"
#include "host/sandbox/sandbox_internal.h"

enum { STEP_MIN_MS = 1000 }; /* the slewing of an NTP daemon stays below, between two visits */

void sandbox_touch(struct sandbox *sandbox)
{
    sandbox->info.last_active_ms = clock_wall_ms();
    sandbox->times.active = clock_boot_ms();
}

void sandbox_begin_times(struct sandbox *sandbox)
{
    sandbox->times = (struct sandbox_times){
        .created = clock_boot_of_wall(sandbox->info.created_ms),
        .active = clock_boot_of_wall(sandbox->info.last_active_ms),
        .expires = clock_boot_of_wall(sandbox->info.expires_ms),
    };
}

void sandbox_expire_at(struct sandbox *sandbox, uint64_t expires_ms)
{
    sandbox->info.expires_ms = expires_ms;
    sandbox->times.expires = clock_boot_of_wall(expires_ms);
}

uint64_t sandbox_life_ms(const struct sandbox *sandbox)
{
    int64_t life_ms = sandbox->times.expires - sandbox->times.created;

    if (sandbox->info.expires_ms == 0)
        return 0;
    return life_ms > 0 ? (uint64_t)life_ms : 1;
}

/* Moves a wall time to what the clock shows at `at`, a moment of clock_boot_ms; returns whether it
 * moved. boot_of_1970 is the moment at which the clock showed 0. */
static bool wall_correct(uint64_t *wall_ms, int64_t at, int64_t boot_of_1970)
{
    int64_t off_ms = at - boot_of_1970 - (int64_t)*wall_ms;

    if (off_ms > -STEP_MIN_MS && off_ms < STEP_MIN_MS)
        return false;
    *wall_ms += (uint64_t)off_ms;
    return true;
}

bool sandbox_times_correct(const struct sandbox_times *times, struct sandbox_info *info)
{
    int64_t boot_of_1970 = clock_boot_of_wall(0);

    (void)wall_correct(&info->last_active_ms, times->active, boot_of_1970);
    return info->expires_ms && wall_correct(&info->expires_ms, times->expires, boot_of_1970);
}

void sandbox_correct_times(struct sandbox *sandbox)
{
    uint64_t expires_ms;
    enum sandbox_action action;
    struct err ignored;
    bool has_moved;

    lock_take(&sandbox->lock);
    has_moved = sandbox_times_correct(&sandbox->times, &sandbox->info);
    expires_ms = sandbox->info.expires_ms;
    action = sandbox->info.expire_action;
    lock_release(&sandbox->lock);
    if (has_moved)
        (void)registry_put_expiry(sandbox->host->registry, sandbox->info.id, expires_ms, action,
                                  &ignored);
}
