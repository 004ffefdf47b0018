// SPDX-License-Identifier: Apache-2.0
#include "host/sandbox/info.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text/parse.h"
#include "base/xalloc.h"

static const char *const states[SANDBOX_STATES] = {
    [SANDBOX_CREATING] = "creating",       [SANDBOX_ACTIVE] = "active",
    [SANDBOX_PAUSING] = "pausing",         [SANDBOX_PAUSED] = "paused",
    [SANDBOX_STOPPED] = "stopped",         [SANDBOX_ROLLING_BACK] = "rolling-back",
    [SANDBOX_DESTROYING] = "destroying",   [SANDBOX_FAILED] = "failed",
    [SANDBOX_DEEP_PAUSED] = "deep-paused",
};

static const char *const actions[] = {
    [ACTION_KILL] = "kill",
    [ACTION_PAUSE] = "pause",
    [ACTION_STOP] = "stop",
    [ACTION_DEEP_PAUSE] = "deep-pause",
};

static const char *const kinds[] = {
    [SNAPSHOT_TURN] = "turn",
    [SNAPSHOT_TOOL] = "tool",
    [SNAPSHOT_NAMED] = "named",
};

static const char *name_at(const char *const *names, size_t count, unsigned index)
{
    return index < count ? names[index] : "unknown";
}

static bool name_find(const char *const *names, size_t count, const char *name, unsigned *ret)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0) {
            *ret = (unsigned)i;
            return true;
        }
    }
    return false;
}

const char *sandbox_state_name(enum sandbox_state state)
{
    return name_at(states, ARRAY_SIZE(states), state);
}

bool sandbox_state_parse(const char *name, enum sandbox_state *ret)
{
    unsigned index;

    if (!name_find(states, ARRAY_SIZE(states), name, &index))
        return false;
    *ret = (enum sandbox_state)index;
    return true;
}

const char *sandbox_action_name(enum sandbox_action action)
{
    return name_at(actions, ARRAY_SIZE(actions), action);
}

bool sandbox_action_parse(const char *name, enum sandbox_action *ret)
{
    unsigned index;

    if (!name_find(actions, ARRAY_SIZE(actions), name, &index))
        return false;
    *ret = (enum sandbox_action)index;
    return true;
}

const char *snapshot_kind_name(enum snapshot_kind kind)
{
    return name_at(kinds, ARRAY_SIZE(kinds), kind);
}

bool snapshot_kind_parse(const char *name, enum snapshot_kind *ret)
{
    unsigned index;

    if (!name_find(kinds, ARRAY_SIZE(kinds), name, &index))
        return false;
    *ret = (enum snapshot_kind)index;
    return true;
}

void sandbox_info_done(struct sandbox_info *info)
{
    free(info->labels);
    free(info->mounts);
    free(info->metadata);
    free(info->network);
    free(info->secrets);
    free(info->permissions);
    info->labels = NULL;
    info->mounts = NULL;
    info->metadata = NULL;
    info->network = NULL;
    info->secrets = NULL;
    info->permissions = NULL;
    info->label_count = info->mount_count = 0;
}

static void *items_copy(const void *items, size_t count, size_t size)
{
    void *copy = count > 0 ? xcalloc(count, size) : NULL;

    if (copy)
        memcpy(copy, items, count * size);
    return copy;
}

void sandbox_info_copy(const struct sandbox_info *info, struct sandbox_info *ret)
{
    *ret = *info;
    ret->labels = items_copy(info->labels, info->label_count, sizeof(*ret->labels));
    ret->mounts = items_copy(info->mounts, info->mount_count, sizeof(*ret->mounts));
    ret->metadata = info->metadata ? xstrdup(info->metadata) : NULL;
    ret->network = info->network ? xstrdup(info->network) : NULL;
    ret->secrets = info->secrets ? xstrdup(info->secrets) : NULL;
    ret->permissions = info->permissions ? xstrdup(info->permissions) : NULL;
}

bool snapshot_turn_parse(const char *name, const char *prefix, uint32_t *ret)
{
    size_t len = strlen(prefix);
    uint64_t number;

    if (strncmp(name, prefix, len) != 0 || parse_u64(name + len, &number) < 0 || number == 0 ||
        number > UINT32_MAX)
        return false;
    *ret = (uint32_t)number;
    return true;
}
