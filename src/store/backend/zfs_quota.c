// SPDX-License-Identifier: Apache-2.0
/* Temporarily lifted quotas. While snapshots move from one tree of a volume to another they count
 * twice, which does not fit into a full volume; and full volumes are the ones that need a
 * rollback. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/text/parse.h"
#include "base/xalloc.h"
#include "store/backend/zfs_internal.h"

/* The original value of a lifted quota; set only until it is restored. */
#define QUOTA_PROPERTY "holt:quota"

enum { QUOTA_TRIES = 4, SLACK_BYTES = 1 << 20 };

/* Sets the quota as low as zfs allows, just above the usage. */
static void quota_set_minimum(const char *parent)
{
    uint64_t slack = SLACK_BYTES;
    struct err ignored;
    int r = -EDQUOT;

    for (int i = 0; r == -EDQUOT && i < QUOTA_TRIES; i++, slack *= 2) {
        cleanup_free char *used = NULL, *option = NULL;
        uint64_t bytes;

        if (zfs_get(parent, "used", &used, &ignored) < 0 || parse_u64(used, &bytes) < 0)
            return;
        option = xasprintf("quota=%" PRIu64, bytes + slack);
        r = ZFS(NULL, &ignored, "set", option, parent);
    }
}

void zfs_restore_quota(const char *parent)
{
    cleanup_free char *wanted = NULL, *option = NULL;
    struct err ignored;
    int r;

    if (zfs_get(parent, QUOTA_PROPERTY, &wanted, &ignored) < 0 || strcmp(wanted, "-") == 0)
        return;
    option = xasprintf("quota=%s", wanted);
    r = ZFS(NULL, &ignored, "set", option, parent);
    if (r == 0)
        (void)ZFS(NULL, &ignored, "inherit", QUOTA_PROPERTY, parent);
    else if (r == -EDQUOT)
        quota_set_minimum(parent);
}

int zfs_lift_quota(const char *parent)
{
    cleanup_free char *quota = NULL, *lifted = NULL, *record = NULL;
    struct err ignored;
    int r = 0;

    (void)zfs_get(parent, "quota", &quota, &ignored);
    (void)zfs_get(parent, QUOTA_PROPERTY, &lifted, &ignored);
    if (!quota || !lifted)
        return -EIO;
    if (strcmp(quota, "0") == 0 && strcmp(lifted, "-") == 0)
        return -ENOSPC; /* no quota: the pool is full */
    record = xasprintf(QUOTA_PROPERTY "=%s", quota);
    /* Recorded first, so that it can be restored after a crash. */
    if (strcmp(lifted, "-") == 0)
        r = ZFS(NULL, &ignored, "set", record, parent);
    return r < 0 ? r : ZFS(NULL, &ignored, "set", "quota=none", parent);
}
