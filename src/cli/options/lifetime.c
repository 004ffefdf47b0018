// SPDX-License-Identifier: Apache-2.0
#include "cli/options/lifetime.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text/parse.h"
#include "base/xalloc.h"

/* Returns NULL for a word that is no action. */
static const char *action_find(const char *word)
{
    static const char *const actions[] = { "kill", "pause", "stop", "deep-pause" };

    for (size_t i = 0; i < ARRAY_SIZE(actions); i++)
        if (strcmp(actions[i], word) == 0)
            return actions[i];
    return NULL;
}

int lifetime_parse(const char *value, uint64_t *ret_ms, const char **ret_action)
{
    size_t len = strcspn(value, ":");
    cleanup_free char *time = xasprintf("%.*s", (int)len, value);

    *ret_action = NULL;
    if (parse_duration_ms(time, ret_ms) < 0)
        return -EINVAL;
    if (value[len])
        *ret_action = action_find(value + len + 1);
    return value[len] && !*ret_action ? -EINVAL : 0;
}

int lifetime_parse_change(const char *value, bool *ret_has_time, uint64_t *ret_ms,
                          const char **ret_action)
{
    *ret_has_time = value[0] != ':';
    if (*ret_has_time)
        return lifetime_parse(value, ret_ms, ret_action);
    *ret_action = action_find(value + 1);
    return *ret_action ? 0 : -EINVAL;
}
