// SPDX-License-Identifier: Apache-2.0
/* The size of a layer is its own; the size of a template includes all that is below it. */
#include "store/template/usage.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "store/template/template.h"

/* More than a template can be based on: damaged metadata may lead in a circle. */
enum { DEPTH_MAX = 4 * TEMPLATE_LAYERS_MAX };

struct template_part {
    uint64_t own_bytes;
    size_t users; /* templates that it is a part of, without layers */
};

static int name_compare(const void *key, const void *item)
{
    return strcmp(key, ((const struct template_info *)item)->name);
}

static size_t info_find(const struct template_usage *usage, const char *name)
{
    const struct template_info *found =
        *name && usage->count > 0
            ? bsearch(name, usage->infos, usage->count, sizeof(*usage->infos), name_compare)
            : NULL;

    return found ? (size_t)(found - usage->infos) : usage->count;
}

static bool is_layer(const struct template_info *info)
{
    return strncmp(info->name, TEMPLATE_LAYER_PREFIX, strlen(TEMPLATE_LAYER_PREFIX)) == 0;
}

/* Returns the size of what a template is based on. */
static uint64_t base_bytes(const struct template_usage *usage, size_t at)
{
    uint64_t bytes = 0;

    for (size_t depth = 0; depth < DEPTH_MAX; depth++) {
        at = info_find(usage, usage->infos[at].base);
        if (at == usage->count)
            return bytes;
        bytes += usage->infos[at].size_bytes;
        if (!is_layer(&usage->infos[at]))
            return bytes;
    }
    return bytes;
}

void template_usage_init(struct template_usage *usage, const struct template_info *infos,
                         size_t count, const bool *is_user)
{
    *usage = (struct template_usage){ .infos = infos, .count = count };
    usage->parts = xcalloc(count + 1, sizeof(*usage->parts));
    for (size_t i = 0; i < count; i++) {
        uint64_t size = infos[i].size_bytes, base = is_layer(&infos[i]) ? 0 : base_bytes(usage, i);
        bool counts = !is_layer(&infos[i]) && (!is_user || is_user[i]);
        size_t depth = 0;

        usage->parts[i].own_bytes = size > base ? size - base : 0;
        for (size_t at = i; counts && at < count && depth < DEPTH_MAX; depth++) {
            usage->parts[at].users++;
            at = info_find(usage, infos[at].base);
        }
    }
}

void template_usage_done(struct template_usage *usage)
{
    free(usage->parts);
}

uint64_t template_usage_shared(const struct template_usage *usage, const char *name)
{
    size_t at = info_find(usage, name), depth = 0;
    uint64_t bytes = 0;

    for (; at < usage->count && depth < DEPTH_MAX; depth++) {
        if (usage->parts[at].users > 1)
            bytes += usage->parts[at].own_bytes;
        at = info_find(usage, usage->infos[at].base);
    }
    return bytes;
}

uint64_t template_usage_remove(struct template_usage *usage, const char *name)
{
    size_t at = info_find(usage, name), depth = 0;
    uint64_t bytes = 0;

    for (; at < usage->count && depth < DEPTH_MAX; depth++) {
        if (usage->parts[at].users > 0 && --usage->parts[at].users == 0)
            bytes += usage->parts[at].own_bytes;
        at = info_find(usage, usage->infos[at].base);
    }
    return bytes;
}
