// SPDX-License-Identifier: Apache-2.0
#include "host/machine/pool_share.h"

#include <stdio.h>
#include <string.h>

uint32_t pool_share_ask(struct pool_share *share, const char *owner, uint64_t now_ms, uint32_t size)
{
    size_t own = 0, others = 0;

    for (size_t i = 0; i < POOL_REQUESTS; i++) {
        if (share->requests[i].at_ms == 0 || now_ms - share->requests[i].at_ms > POOL_REQUEST_MS)
            continue;
        if (strcmp(share->requests[i].owner, owner) == 0)
            own++;
        else
            others++;
    }
    (void)snprintf(share->requests[share->next].owner, sizeof(share->requests[0].owner), "%s",
                   owner);
    share->requests[share->next].at_ms = now_ms;
    share->next = (share->next + 1) % POOL_REQUESTS;
    if (others == 0 || own <= others || size < 2)
        return 0;
    return (size + POOL_REST_DIVISOR - 1) / POOL_REST_DIVISOR;
}
