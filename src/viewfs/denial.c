// SPDX-License-Identifier: Apache-2.0
#include "viewfs/denial.h"

#include <string.h>

void denial_note(struct denials *denials, const struct denial *denial)
{
    lock_scope(&denials->lock);

    denials->total++;
    if (denials->count < DENIALS_KEPT)
        denials->kept[denials->count++] = *denial;
}

size_t denials_take(struct denials *denials, struct denial ret[DENIALS_KEPT], uint64_t *ret_total)
{
    lock_scope(&denials->lock);
    const size_t count = denials->count;

    memcpy(ret, denials->kept, count * sizeof(*ret));
    denials->count = 0;
    *ret_total = denials->total;
    return count;
}
