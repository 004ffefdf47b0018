// SPDX-License-Identifier: Apache-2.0
#include "cli/run/leave_keys.h"

size_t leave_keys_filter(struct leave_keys *keys, const char *typed, size_t len, char *ret,
                         bool *ret_leaves)
{
    size_t kept = 0;

    *ret_leaves = false;
    for (size_t i = 0; i < len; i++) {
        if (keys->is_held && typed[i] == LEAVE_KEY_SECOND) {
            *ret_leaves = true;
            return kept;
        }
        if (keys->is_held)
            ret[kept++] = LEAVE_KEY_FIRST;
        keys->is_held = typed[i] == LEAVE_KEY_FIRST;
        if (!keys->is_held)
            ret[kept++] = typed[i];
    }
    return kept;
}
