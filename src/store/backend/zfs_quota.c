// SPDX-License-Identifier: Apache-2.0
/* Quotas that have to be lifted for a moment. Snapshots that are handed from one tree of a volume
 * to another count twice meanwhile, which a full volume has no room for; and a full volume is what
 * people roll back. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/text/parse.h"
#include "base/xalloc.h"
#include "store/backend/zfs_internal.h"

/* What a quota was before it had to be lifted; there only until it is back. */
#define QUOTA_PROPERTY "holt:quota"

enum { QUOTA_TRIES = 4, SLACK_BYTES = 1 << 20 };

/* A quota as close to what is used as can be: zfs refuses one below that. */
static void set_least_quota(const char *place)
{
    uint64_t slack = SLACK_BYTES;
    struct err ignored;
    int r = -EDQUOT;

    for (int i = 0; r == -EDQUOT && i < QUOTA_TRIES; i++, slack *= 2) {
        cleanup_free char *used = NULL, *option = NULL;
        uint64_t bytes;

        if (zfs_get(place, "used", &used, &ignored) < 0 || parse_u64(used, &bytes) < 0)
            return;
        option = xasprintf("quota=%" PRIu64, bytes + slack);
        r = ZFS(NULL, &ignored, "set", option, place);
    }
}

void zfs_restore_quota(const char *place)
{
    cleanup_free char *wanted = NULL, *option = NULL;
    struct err ignored;
    int r;

    if (zfs_get(place, QUOTA_PROPERTY, &wanted, &ignored) < 0 || strcmp(wanted, "-") == 0)
        return;
    option = xasprintf("quota=%s", wanted);
    r = ZFS(NULL, &ignored, "set", option, place);
    if (r == 0)
        (void)ZFS(NULL, &ignored, "inherit", QUOTA_PROPERTY, place);
    else if (r == -EDQUOT)
        set_least_quota(place);
}

int zfs_lift_quota(const char *place)
{
    cleanup_free char *quota = NULL, *lifted = NULL, *note = NULL;
    struct err ignored;
    int r = 0;

    (void)zfs_get(place, "quota", &quota, &ignored);
    (void)zfs_get(place, QUOTA_PROPERTY, &lifted, &ignored);
    if (!quota || !lifted)
        return -EIO;
    if (strcmp(quota, "0") == 0 && strcmp(lifted, "-") == 0)
        return -ENOSPC; /* there is none: it is the pool that is full */
    note = xasprintf(QUOTA_PROPERTY "=%s", quota);
    /* Noted first: whoever comes after a crash knows what to set back. */
    if (strcmp(lifted, "-") == 0)
        r = ZFS(NULL, &ignored, "set", note, place);
    return r < 0 ? r : ZFS(NULL, &ignored, "set", "quota=none", place);
}
