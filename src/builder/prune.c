// SPDX-License-Identifier: Apache-2.0
#include "builder/prune.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/xalloc.h"
#include "builder/build.h"
#include "host/core/host.h"
#include "host/core/owned_template.h"
#include "host/image/sweep.h"
#include "store/template/usage.h"

/* What is known of the templates while it is decided which go. */
struct pruning {
    struct host *host;
    const struct caller *caller;
    const struct template_prune *asked;
    struct template_info *infos; /* of the whole store */
    size_t info_count;
    struct owned_template *list; /* of the caller; those that go come first, in their order */
    size_t count, gone;
};

static void pruning_done(struct pruning *pruning)
{
    free(pruning->infos);
    free(pruning->list);
}

/* Returns 1 if the caller asked for such a template, whether or not something uses it, else 0. */
static int is_asked_for(const struct pruning *pruning, const struct owned_template *owned,
                        struct err *err)
{
    const char *name = owned->info.name;
    cleanup_free struct share *shares = NULL;
    cleanup_free char *part_of = NULL;
    size_t count = 0;
    int64_t age_ms = ((int64_t)time(NULL) - owned->info.created_at) * 1000;
    int r;

    if (strcmp(owned->record.owner, pruning->caller->owner) != 0 || owned->info.is_host ||
        host_is_default_template(pruning->host, name))
        return 0;
    if ((!pruning->asked->wants_all && !owned->info.digest[0]) ||
        (pruning->asked->older_ms > 0 && age_ms < (int64_t)pruning->asked->older_ms))
        return 0;
    if (build_is_step(name))
        return 1;
    r = host_get_template_owner(pruning->host, name, &part_of, err);
    if (r == 0 && !part_of)
        r = owned_template_shares(pruning->host, pruning->caller, &owned->record, &shares, &count,
                                  err);
    return r < 0 ? r : !part_of && count == 0;
}

static bool is_gone(const struct pruning *pruning, const char *name)
{
    for (size_t i = 0; i < pruning->gone; i++)
        if (strcmp(pruning->list[i].info.name, name) == 0)
            return true;
    return false;
}

/* Returns whether a template that stays is based on this one. */
static bool is_base(const struct pruning *pruning, const char *name)
{
    for (size_t i = 0; i < pruning->info_count; i++)
        if (strcmp(pruning->infos[i].base, name) == 0 && !is_gone(pruning, pruning->infos[i].name))
            return true;
    return false;
}

/* Keeps those that were asked for and that no sandbox uses. */
static int candidates_find(struct pruning *pruning, struct err *err)
{
    size_t asked = 0, kept = 0;

    for (size_t i = 0; i < pruning->count; i++) {
        int r = is_asked_for(pruning, &pruning->list[i], err);

        if (r < 0)
            return r;
        if (r == 0)
            continue;
        host_release_template(pruning->host, pruning->list[i].info.name);
        pruning->list[asked++] = pruning->list[i];
    }
    host_wait_reaped(pruning->host);
    for (size_t i = 0; i < asked; i++)
        if (!template_is_used(host_store(pruning->host), pruning->list[i].info.name))
            pruning->list[kept++] = pruning->list[i];
    pruning->count = kept;
    return 0;
}

/* Removes a template, or only says so. Returns whether it is gone. */
static bool template_drop(const struct pruning *pruning, const char *name)
{
    struct err ignored;

    return pruning->asked->is_dry || host_remove_template(pruning->host, name, &ignored) == 0;
}

/* Removes what nothing is based on, again and again: what was below it may be next. */
static void candidates_remove(struct pruning *pruning)
{
    for (bool has_progress = true; has_progress;) {
        has_progress = false;
        for (size_t i = pruning->gone; i < pruning->count; i++) {
            struct owned_template found = pruning->list[i];

            if (is_base(pruning, found.info.name) || !template_drop(pruning, found.info.name))
                continue;
            pruning->list[i] = pruning->list[pruning->gone];
            pruning->list[pruning->gone++] = found;
            has_progress = true;
            fault_point("prune.removed");
        }
    }
}

static uint64_t freed_bytes(const struct pruning *pruning)
{
    struct template_usage usage;
    uint64_t bytes = 0;

    template_usage_init(&usage, pruning->infos, pruning->info_count, NULL);
    for (size_t i = 0; i < pruning->gone; i++)
        bytes += template_usage_remove(&usage, pruning->list[i].info.name);
    template_usage_done(&usage);
    return bytes;
}

/* Lists the digests of the caller's images that stay, for the caller to free; all of them if
 * nothing is removed. */
static const char **digests_list(const struct pruning *pruning, const struct owned_template *all,
                                 size_t count, size_t *ret_count)
{
    const char **digests = xcalloc(count + 1, sizeof(*digests));

    *ret_count = 0;
    for (size_t i = 0; i < count; i++)
        if (all[i].info.digest[0] && !is_gone(pruning, all[i].info.name) &&
            strcmp(all[i].record.owner, pruning->caller->owner) == 0)
            digests[(*ret_count)++] = all[i].info.digest;
    return digests;
}

static int blobs_drop(const struct pruning *pruning, uint64_t *ret_bytes, struct err *err)
{
    cleanup_free struct owned_template *all = NULL;
    cleanup_free const char **digests = NULL;
    size_t count = 0, digest_count = 0;
    int r = owned_template_list(pruning->host, pruning->caller, &all, &count, err);

    if (r < 0)
        return r;
    digests = digests_list(pruning, all, count, &digest_count);
    return image_blobs_sweep(pruning->host,
                             &(struct image_sweep){ pruning->caller->owner, digests, digest_count,
                                                    pruning->asked->older_ms,
                                                    pruning->asked->is_dry },
                             ret_bytes, err);
}

int template_prune(struct host *host, const struct caller *caller,
                   const struct template_prune *prune, struct template_pruned *ret, struct err *err)
{
    cleanup_with(
        pruning_done) struct pruning pruning = { .host = host, .caller = caller, .asked = prune };
    uint64_t blob_bytes = 0;
    int r = caller_check_labels(caller, NULL, 0, err); /* templates have no labels */

    if (r == 0)
        r = template_list(host_store(host), &pruning.infos, &pruning.info_count, err);
    if (r == 0)
        r = owned_template_list(host, caller, &pruning.list, &pruning.count, err);
    if (r == 0)
        r = candidates_find(&pruning, err);
    if (r < 0)
        return r;
    candidates_remove(&pruning);
    r = blobs_drop(&pruning, &blob_bytes, err);
    if (r < 0)
        return r;
    *ret = (struct template_pruned){ .count = pruning.gone,
                                     .freed_bytes = freed_bytes(&pruning) + blob_bytes };
    ret->items = TAKE_PTR(pruning.list);
    return 0;
}
