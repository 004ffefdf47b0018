// SPDX-License-Identifier: Apache-2.0
/* What each owner uses, in memory. It is computed again from the sandboxes at every start. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "host/core/limits.h"
#include "host/owner/owner_internal.h"

enum { OWNER_CHAINS = 1024 };

struct owner {
    struct owner *next; /* in its chain */
    char name[OWNER_NAME_MAX + 1];
    uint64_t used[CEILING_AMOUNTS];
    struct ceilings set;      /* by command */
    struct ceilings ceilings; /* in force */
    bool has_set;
};

struct owner_table {
    struct owner *chains[OWNER_CHAINS];
    struct owner_settings settings; /* of holt.conf */
    size_t count, set_count;
};

const char *ceiling_source_name(enum ceiling_source source)
{
    static const char *const names[] = { "none", "default", "holt.conf", "command" };

    return names[source];
}

void owner_charge_fill(const char *owner, const struct sandbox_limits *limits, uint64_t quota_bytes,
                       struct owner_charge *ret)
{
    uint64_t memory = limits->memory_bytes, cpus = limits->cpu_millis, pids = limits->pids;

    if (memory == 0)
        memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    if (cpus == 0)
        cpus = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN) * 1000;
    *ret = (struct owner_charge){
        .amounts = { [CEILING_SANDBOXES] = 1,
                     [CEILING_MEMORY] = memory,
                     [CEILING_CPUS] = cpus,
                     [CEILING_DISK] = quota_bytes,
                     [CEILING_PIDS] = pids ? pids : SANDBOX_PIDS_MAX },
    };
    (void)snprintf(ret->owner, sizeof(ret->owner), "%s", *owner ? owner : OWNER_ROOT);
}

struct owner_table *owner_table_new(void)
{
    return xcalloc(1, sizeof(struct owner_table));
}

void owner_table_free(struct owner_table *table)
{
    if (!table)
        return;
    for (size_t i = 0; i < OWNER_CHAINS; i++) {
        while (table->chains[i]) {
            struct owner *owner = table->chains[i];

            table->chains[i] = owner->next;
            free(owner);
        }
    }
    owner_settings_done(&table->settings);
    free(table);
}

/* Returns the number of the chain of an owner (FNV-1a). */
static size_t owner_chain(const char *name)
{
    uint32_t hash = 2166136261U;

    for (const char *c = name; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619U;
    return hash % OWNER_CHAINS;
}

/* Returns the pointer to an owner, or to the end of its chain. */
static struct owner **owner_slot(struct owner_table *table, const char *name)
{
    struct owner **slot = &table->chains[owner_chain(name)];

    while (*slot && strcmp((*slot)->name, name) != 0)
        slot = &(*slot)->next;
    return slot;
}

static const struct owner *owner_find(const struct owner_table *table, const char *name)
{
    const struct owner *owner = table->chains[owner_chain(name)];

    while (owner && strcmp(owner->name, name) != 0)
        owner = owner->next;
    return owner;
}

/* Takes over the ceilings that are set, instead of those from a weaker source. */
static void ceilings_override(struct owner_info *info, const struct ceilings *from,
                              enum ceiling_source source)
{
    for (enum ceiling which = 0; from && which < CEILINGS; which++) {
        if (!from->is_set[which])
            continue;
        ceiling_copy(&info->ceilings, from, which);
        info->sources[which] = source;
    }
}

static void ceilings_resolve(const struct owner_table *table, const char *name,
                             const struct ceilings *set, struct owner_info *ret)
{
    memset(&ret->ceilings, 0, sizeof(ret->ceilings));
    memset(ret->sources, 0, sizeof(ret->sources));
    if (strcmp(name, OWNER_ROOT) != 0)
        ceilings_override(ret, owner_settings_find(&table->settings, OWNER_EVERY), SOURCE_DEFAULT);
    ceilings_override(ret, owner_settings_find(&table->settings, name), SOURCE_FILE);
    ceilings_override(ret, set, SOURCE_COMMAND);
}

static void owner_resolve(const struct owner_table *table, struct owner *owner)
{
    struct owner_info info;

    ceilings_resolve(table, owner->name, owner->has_set ? &owner->set : NULL, &info);
    owner->ceilings = info.ceilings;
}

static struct owner *owner_obtain(struct owner_table *table, const char *name)
{
    struct owner **slot = owner_slot(table, name);

    if (!*slot) {
        *slot = xcalloc(1, sizeof(**slot));
        (void)snprintf((*slot)->name, sizeof((*slot)->name), "%s", name);
        table->count++;
        owner_resolve(table, *slot);
    }
    return *slot;
}

/* Forgets an owner without objects and ceilings of its own. */
static void owner_release(struct owner_table *table, const char *name)
{
    struct owner **slot = owner_slot(table, name);
    struct owner *owner = *slot;

    if (!owner || owner->has_set || owner->used[CEILING_SANDBOXES] > 0)
        return;
    *slot = owner->next;
    table->count--;
    free(owner);
}

static int ceiling_refuse(const struct owner *owner, enum ceiling which, uint64_t more,
                          struct err *err)
{
    char used[CEILING_TEXT_SIZE], most[CEILING_TEXT_SIZE], asked[CEILING_TEXT_SIZE];
    const char *name = ceiling_name(which);

    ceiling_format_number(which, owner->used[which], used);
    ceiling_format_number(which, ceiling_number(&owner->ceilings, which), most);
    ceiling_format_number(which, more, asked);
    if (which == CEILING_SANDBOXES && more == 1)
        (void)err_refuse(err, CAUSE_CEILING_REACHED,
                         "owner '%s' has %.20s of %.20s sandboxes (ceiling owner.sandboxes)",
                         owner->name, used, most);
    else
        (void)err_refuse(err, CAUSE_CEILING_REACHED,
                         "owner '%s' has %.20s of %.20s %s and asks for %.20s more (ceiling "
                         "owner.%s)",
                         owner->name, used, most, name, asked, name);
    return err_remedy(err,
                      "remove sandboxes, ask for less, or let an administrator raise it: "
                      "'holt owner set %s --%s ...'",
                      owner->name, name);
}

/* Fails if the owner would exceed a ceiling with `count` times this amount more. */
static int ceiling_check(const struct owner *owner, enum ceiling which, uint64_t amount,
                         size_t count, struct err *err)
{
    uint64_t most = ceiling_number(&owner->ceilings, which), more;
    bool is_huge = __builtin_mul_overflow(amount, (uint64_t)count, &more);

    if (most == CEILING_UNLIMITED || amount == 0)
        return 0;
    if (!is_huge && more <= most && owner->used[which] <= most - more)
        return 0;
    return ceiling_refuse(owner, which, is_huge ? amount : more, err);
}

int owner_table_add(struct owner_table *table, const struct owner_charge *charge, size_t count,
                    struct err *err)
{
    struct owner *owner = owner_obtain(table, charge->owner);
    int r = 0;

    for (enum ceiling which = 0; r == 0 && which < CEILING_AMOUNTS; which++)
        r = ceiling_check(owner, which, charge->amounts[which], count, err);
    if (r < 0) {
        owner_release(table, charge->owner);
        return r;
    }
    for (enum ceiling which = 0; which < CEILING_AMOUNTS; which++)
        owner->used[which] += charge->amounts[which] * count;
    return 0;
}

void owner_table_count_in(struct owner_table *table, const struct owner_charge *charge)
{
    struct owner *owner = owner_obtain(table, charge->owner);

    for (enum ceiling which = 0; which < CEILING_AMOUNTS; which++)
        owner->used[which] += charge->amounts[which];
}

void owner_table_subtract(struct owner_table *table, const struct owner_charge *charge)
{
    struct owner *owner = owner_obtain(table, charge->owner);

    for (enum ceiling which = 0; which < CEILING_AMOUNTS; which++)
        owner->used[which] -= charge->amounts[which];
    owner_release(table, charge->owner);
}

int owner_table_change(struct owner_table *table, const struct owner_charge *from,
                       const struct owner_charge *to, struct err *err)
{
    struct owner *owner = owner_obtain(table, from->owner);
    int r = 0;

    for (enum ceiling which = 0; r == 0 && which < CEILING_AMOUNTS; which++)
        if (to->amounts[which] > from->amounts[which])
            r = ceiling_check(owner, which, to->amounts[which] - from->amounts[which], 1, err);
    for (enum ceiling which = 0; r == 0 && which < CEILING_AMOUNTS; which++)
        owner->used[which] += to->amounts[which] - from->amounts[which];
    return r;
}

void owner_table_configure(struct owner_table *table, const struct owner_settings *settings)
{
    owner_settings_done(&table->settings);
    owner_settings_copy(settings, &table->settings);
    for (size_t i = 0; i < OWNER_CHAINS; i++)
        for (struct owner *owner = table->chains[i]; owner; owner = owner->next)
            owner_resolve(table, owner);
}

void owner_table_set(struct owner_table *table, const char *name, const struct ceilings *set)
{
    struct owner *owner = owner_obtain(table, name);

    table->set_count -= owner->has_set;
    owner->has_set = set;
    table->set_count += owner->has_set;
    if (set)
        owner->set = *set;
    owner_resolve(table, owner);
    owner_release(table, name);
}

void owner_table_get_set(const struct owner_table *table, const char *name, struct ceilings *ret)
{
    const struct owner *owner = owner_find(table, name);

    if (owner && owner->has_set)
        *ret = owner->set;
    else
        *ret = (struct ceilings){ .runtimes = "" };
}

size_t owner_table_set_count(const struct owner_table *table)
{
    return table->set_count;
}

void owner_table_get_ceilings(const struct owner_table *table, const char *name,
                              struct ceilings *ret)
{
    const struct owner *owner = owner_find(table, name);
    struct owner_info info;

    if (owner) {
        *ret = owner->ceilings;
        return;
    }
    ceilings_resolve(table, name, NULL, &info);
    *ret = info.ceilings;
}

void owner_table_get(const struct owner_table *table, const char *name, struct owner_info *ret)
{
    const struct owner *owner = owner_find(table, name);

    memset(ret, 0, sizeof(*ret));
    (void)snprintf(ret->name, sizeof(ret->name), "%s", name);
    if (owner)
        memcpy(ret->used, owner->used, sizeof(ret->used));
    ceilings_resolve(table, name, owner && owner->has_set ? &owner->set : NULL, ret);
}

void owner_table_list(const struct owner_table *table, struct owner_info **ret, size_t *ret_count)
{
    struct owner_info *list = xcalloc(table->count + 1, sizeof(*list));
    size_t count = 0;

    for (size_t i = 0; i < OWNER_CHAINS; i++)
        for (const struct owner *owner = table->chains[i]; owner; owner = owner->next)
            owner_table_get(table, owner->name, &list[count++]);
    *ret = list;
    *ret_count = count;
}
