// SPDX-License-Identifier: Apache-2.0
/* The host's functions for owners. The registry has what was set by command; a change is recorded
 * before it is in force. */
#include "host/owner/owner.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/xalloc.h"
#include "host/core/host_internal.h"
#include "host/owner/ceiling_registry.h"
#include "host/owner/owner_internal.h"
#include "host/sandbox/network.h"
#include "host/sandbox/sandbox.h"
#include "store/store.h"

void host_get_owner(struct host *host, const char *name, struct owner_info *ret)
{
    lock_scope(&host->lock);

    owner_table_get(host->owners, name, ret);
}

void host_get_owner_for(struct host *host, const struct caller *caller, const char *name,
                        struct owner_info *ret)
{
    cleanup_free struct sandbox_info *infos = NULL;
    struct owner_charge charge;
    size_t count = 0;

    host_get_owner(host, name, ret);
    if (caller->scope_count == 0)
        return;
    memset(ret->used, 0, sizeof(ret->used));
    sandbox_list(host, caller, NULL, 0, &infos, &count);
    for (size_t i = 0; i < count; i++) {
        owner_charge_fill(infos[i].owner, &infos[i].limits, infos[i].quota_bytes, &charge);
        for (enum ceiling which = 0; which < CEILING_AMOUNTS; which++)
            ret->used[which] += strcmp(infos[i].owner, name) == 0 ? charge.amounts[which] : 0;
        sandbox_info_done(&infos[i]);
    }
}

void host_get_ceilings(struct host *host, const char *owner, struct ceilings *ret)
{
    lock_scope(&host->lock);

    owner_table_get_ceilings(host->owners, owner, ret);
}

int host_limit_ttl(struct host *host, const char *owner, uint64_t asked_ms, uint64_t *ret_ms,
                   struct err *err)
{
    struct ceilings ceilings;

    host_get_ceilings(host, owner, &ceilings);
    return ceilings_limit_ttl(&ceilings, owner, asked_ms, ret_ms, err);
}

static int owner_compare(const void *one, const void *other)
{
    return strcmp(((const struct owner_info *)one)->name, ((const struct owner_info *)other)->name);
}

void host_list_owners(struct host *host, struct owner_info **ret, size_t *ret_count)
{
    lock_take(&host->lock);
    owner_table_list(host->owners, ret, ret_count);
    lock_release(&host->lock);
    qsort(*ret, *ret_count, sizeof(**ret), owner_compare);
}

int host_load_owners(struct host *host, struct err *err)
{
    cleanup_free struct ceiling_row *rows = NULL;
    size_t count = 0;
    int r = registry_list_ceilings(host->registry, &rows, &count, err);

    for (size_t i = 0; r == 0 && i < count; i++) {
        struct ceilings set;
        enum ceiling which;

        owner_table_get_set(host->owners, rows[i].owner, &set);
        /* A newer Holt may know more ceilings: what this one cannot enforce stays recorded. */
        if (!ceiling_find(rows[i].name, &which))
            continue;
        r = ceiling_parse(&set, which, rows[i].value, err);
        if (r < 0)
            return err_wrap(err, "owner '%s' in the registry", rows[i].owner);
        owner_table_set(host->owners, rows[i].owner, &set);
    }
    return r;
}

/* Fills the rows of a change and applies it to `set`; returns whether any ceiling is left. */
static bool change_apply(const struct owner_change *change, struct ceilings *set,
                         struct ceiling_row rows[CEILINGS], size_t *ret_count)
{
    bool is_any = false;

    *ret_count = 0;
    for (enum ceiling which = 0; which < CEILINGS; which++) {
        struct ceiling_row *row = &rows[*ret_count];

        if (change->set.is_set[which])
            ceiling_copy(set, &change->set, which);
        else if (change->is_unset[which])
            set->is_set[which] = false;
        is_any = is_any || set->is_set[which];
        if (!change->set.is_set[which] && !change->is_unset[which])
            continue;
        *row = (struct ceiling_row){ .value = "" };
        (void)snprintf(row->owner, sizeof(row->owner), "%s", change->owner);
        (void)snprintf(row->name, sizeof(row->name), "%s", ceiling_name(which));
        if (change->set.is_set[which])
            ceiling_format(&change->set, which, row->value);
        ++*ret_count;
    }
    return is_any;
}

int host_set_owner(struct host *host, const struct owner_change *change, struct err *err)
{
    struct ceiling_row rows[CEILINGS];
    struct ceilings set;
    size_t count;
    bool is_any, has_network;
    int r = owner_check_name(change->owner, err);

    if (r < 0)
        return r;
    lock_scope(&host->owners_lock);
    lock_take(&host->lock);
    owner_table_get_set(host->owners, change->owner, &set);
    count = owner_table_set_count(host->owners);
    lock_release(&host->lock);
    if (count >= OWNERS_MAX)
        return err_set(err, ERR_EXHAUSTED, "limit of owners with ceilings reached (%d)",
                       OWNERS_MAX);
    has_network = set.is_set[CEILING_NETWORK];
    is_any = change_apply(change, &set, rows, &count);
    r = registry_put_ceilings(host->registry, rows, count, err);
    if (r < 0)
        return r;
    fault_point("owner.recorded");
    lock_take(&host->lock);
    owner_table_set(host->owners, change->owner, is_any ? &set : NULL);
    lock_release(&host->lock);
    if (has_network || set.is_set[CEILING_NETWORK])
        network_apply(host);
    return 0;
}

int host_remove_owner(struct host *host, const char *name, struct err *err)
{
    struct owner_info info;
    struct ceilings set;
    bool is_any = false;
    int r;

    lock_scope(&host->owners_lock);
    lock_take(&host->lock);
    owner_table_get(host->owners, name, &info);
    owner_table_get_set(host->owners, name, &set);
    lock_release(&host->lock);
    for (enum ceiling which = 0; which < CEILINGS; which++)
        is_any = is_any || set.is_set[which];
    if (!is_any)
        return err_set(err, ERR_NOT_FOUND, "owner '%.64s' has no ceilings set by command", name);
    if (info.used[CEILING_SANDBOXES] > 0) {
        (void)err_set(err, ERR_BUSY, "owner '%s' has %u sandboxes", name,
                      (unsigned)info.used[CEILING_SANDBOXES]);
        return err_remedy(err,
                          "remove them first, or change ceilings with 'holt owner set --unset'");
    }
    r = registry_remove_ceilings(host->registry, name, err);
    if (r < 0)
        return r;
    lock_take(&host->lock);
    owner_table_set(host->owners, name, NULL);
    lock_release(&host->lock);
    return 0;
}

int host_choose_quota(const struct host *host, const char *owner, const struct ceilings *ceilings,
                      uint64_t asked_bytes, uint64_t *ret_bytes, struct err *err)
{
    uint64_t most = ceiling_number(ceilings, CEILING_DISK);
    uint64_t bytes = asked_bytes ? asked_bytes : host->default_quota;

    if (most != CEILING_UNLIMITED && !store_has_quota(host->store)) {
        (void)err_set(
            err, ERR_UNSUPPORTED,
            "owner '%s' has a ceiling of disk (owner.disk), which the '%s' storage backend "
            "cannot enforce",
            owner, store_backend(host->store));
        return err_remedy(err, "remove the ceiling, or set the storage to btrfs or zfs in "
                               "holt.conf(5)");
    }
    if (asked_bytes == 0 && (bytes == 0 || bytes > most) && most != CEILING_UNLIMITED)
        bytes = most;
    *ret_bytes = bytes;
    if (most == 0)
        return err_refuse(err, CAUSE_CEILING_REACHED,
                          "owner '%s' has 0 of 0 disk (ceiling owner.disk)", owner);
    return 0;
}
