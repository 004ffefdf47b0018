// SPDX-License-Identifier: Apache-2.0
#include "cli/core/lifetime.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text/parse.h"
#include "base/xalloc.h"

int lifetime_parse(const char *value, uint64_t *ret_ms, const char **ret_action)
{
    static const char *const actions[] = { "kill", "pause", "stop" };
    size_t len = strcspn(value, ":");
    cleanup_free char *time = xasprintf("%.*s", (int)len, value);

    *ret_action = NULL;
    if (parse_duration_ms(time, ret_ms) < 0)
        return -EINVAL;
    for (size_t i = 0; value[len] && i < ARRAY_SIZE(actions); i++)
        if (strcmp(actions[i], value + len + 1) == 0)
            *ret_action = actions[i];
    return value[len] && !*ret_action ? -EINVAL : 0;
}
