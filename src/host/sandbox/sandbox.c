// SPDX-License-Identifier: Apache-2.0
#include "host/sandbox/sandbox.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/xalloc.h"
#include "host/core/extension.h"
#include "host/core/host_internal.h"
#include "host/core/registry.h"
#include "host/observe/audit.h"
#include "host/process/table.h"
#include "host/sandbox/expiry.h"
#include "host/sandbox/mount.h"
#include "host/sandbox/name.h"
#include "host/sandbox/sandbox_internal.h"
#include "host/shell/state.h"
#include "store/volume/volume.h"

#define ID_PREFIX "sb-"

enum { START_MIN = 4 }; /* digits of an id that stand for all of it */

static void sandbox_make_id(char *id)
{
    (void)snprintf(id, SANDBOX_ID_MAX, ID_PREFIX "%016" PRIx64, random_u64());
}

struct sandbox *sandbox_new(struct host *host)
{
    struct sandbox *sandbox = xcalloc(1, sizeof(*sandbox));

    sandbox->host = host;
    atomic_init(&sandbox->refs, 1);
    sandbox_make_id(sandbox->info.id);
    sandbox->info.created_ms = sandbox->info.last_active_ms = clock_wall_ms();
    lock_init(&sandbox->lock, LOCK_SANDBOX);
    cond_init(&sandbox->changed);
    return sandbox;
}

struct sandbox *sandbox_ref(struct sandbox *sandbox)
{
    atomic_fetch_add(&sandbox->refs, 1);
    return sandbox;
}

void sandbox_unref(struct sandbox *sandbox)
{
    if (!sandbox || atomic_fetch_sub(&sandbox->refs, 1) != 1)
        return;
    shells_free(sandbox);
    if (sandbox->extension_data)
        sandbox->host->extension->sandbox_free(sandbox->extension_data);
    volume_close(sandbox->volume);
    process_table_unref(sandbox->process_table);
    sandbox_info_done(&sandbox->info);
    cond_destroy(&sandbox->changed);
    lock_destroy(&sandbox->lock);
    free(sandbox);
}

struct host *sandbox_host(const struct sandbox *sandbox)
{
    return sandbox->host;
}

const char *sandbox_id(const struct sandbox *sandbox)
{
    return sandbox->info.id;
}

uint32_t sandbox_generation(struct sandbox *sandbox)
{
    uint32_t generation;

    lock_take(&sandbox->lock);
    generation = sandbox->info.generation;
    lock_release(&sandbox->lock);
    return generation;
}

void *sandbox_extension_data(struct sandbox *sandbox)
{
    void *data;

    lock_take(&sandbox->lock);
    if (!sandbox->extension_data)
        sandbox->extension_data = sandbox->host->extension->sandbox_new(sandbox);
    data = sandbox->extension_data;
    lock_release(&sandbox->lock);
    return data;
}

/* Constant while the sandbox is in the table; sandbox_rename changes a name under the lock. */
static const char *sandbox_word(const struct sandbox *sandbox, enum sandbox_word kind)
{
    const struct sandbox_info *info = &sandbox->info;

    if (kind == SANDBOX_WORD_ID)
        return info->id;
    return kind == SANDBOX_WORD_NAME ? info->name : info->request_key;
}

/* Returns the chain with all sandboxes that may have this word (FNV-1a). */
static struct sandbox **index_chain(const struct host *host, enum sandbox_word kind,
                                    const char *word)
{
    uint32_t hash = 2166136261U;

    for (const char *c = word; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619U;
    return &host->sandbox_index->chains[kind][hash % SANDBOX_CHAINS];
}

/* Locked. */
static struct sandbox *index_find(const struct host *host, enum sandbox_word kind, const char *word)
{
    struct sandbox *sandbox = *word ? *index_chain(host, kind, word) : NULL;

    while (sandbox && strcmp(sandbox_word(sandbox, kind), word) != 0)
        sandbox = sandbox->next_of_word[kind];
    return sandbox;
}

/* Locked. Ids and names share one namespace. */
static struct sandbox *table_find(const struct host *host, const char *word)
{
    struct sandbox *sandbox = index_find(host, SANDBOX_WORD_ID, word);

    return sandbox ? sandbox : index_find(host, SANDBOX_WORD_NAME, word);
}

/* Locked. */
static void index_remove(struct host *host, struct sandbox *sandbox, enum sandbox_word kind)
{
    struct sandbox **slot = index_chain(host, kind, sandbox_word(sandbox, kind));

    while (*slot != sandbox)
        slot = &(*slot)->next_of_word[kind];
    *slot = sandbox->next_of_word[kind];
}

/* Locked. */
static void index_add(struct host *host, struct sandbox *sandbox, enum sandbox_word kind)
{
    struct sandbox **chain = index_chain(host, kind, sandbox_word(sandbox, kind));

    sandbox->next_of_word[kind] = *chain;
    *chain = sandbox;
}

/* Locked. */
static void table_add(struct host *host, struct sandbox *sandbox)
{
    sandbox->next = NULL;
    sandbox->slot = host->last_sandbox;
    *host->last_sandbox = sandbox;
    host->last_sandbox = &sandbox->next;
    for (enum sandbox_word kind = 0; kind < SANDBOX_WORDS; kind++)
        index_add(host, sandbox, kind);
}

/* Locked. */
static void table_remove(struct host *host, struct sandbox *sandbox)
{
    *sandbox->slot = sandbox->next;
    if (sandbox->next)
        sandbox->next->slot = sandbox->slot;
    else
        host->last_sandbox = sandbox->slot;
    sandbox->slot = NULL;
    for (enum sandbox_word kind = 0; kind < SANDBOX_WORDS; kind++)
        index_remove(host, sandbox, kind);
}

struct sandbox *sandbox_find_by_key(struct host *host, const char *key)
{
    struct sandbox *sandbox;

    lock_take(&host->lock);
    sandbox = index_find(host, SANDBOX_WORD_KEY, key);
    if (sandbox)
        (void)sandbox_ref(sandbox);
    lock_release(&host->lock);
    return sandbox;
}

int sandbox_enter_table(struct sandbox *sandbox, struct err *err)
{
    struct host *host = sandbox->host;
    const char *name = sandbox->info.name;
    bool is_taken, is_being_removed;

    sandbox->process_table = process_table_new(host, sandbox->info.id, sandbox->info.name);
    sandbox_begin_times(sandbox);
    lock_take(&host->lock);
    is_taken = table_find(host, sandbox->info.id) || (*name && table_find(host, name)) ||
               index_find(host, SANDBOX_WORD_KEY, sandbox->info.request_key);
    is_being_removed = sandbox_mounts_are_being_removed(host, &sandbox->info);
    if (!is_taken && !is_being_removed)
        table_add(host, sandbox_ref(sandbox));
    lock_release(&host->lock);
    if (is_being_removed)
        return err_set(err, ERR_NOT_FOUND, "a volume of sandbox '%s' is being removed",
                       sandbox->info.id);
    return is_taken ? err_refuse(err, CAUSE_SESSION_EXISTS, "sandbox '%s' already exists",
                                 *name ? name : sandbox->info.id)
                    : 0;
}

int sandbox_rename(struct sandbox *sandbox, const char *name, struct err *err)
{
    struct host *host = sandbox->host;
    const struct sandbox *other;

    lock_take(&host->lock);
    other = *name ? table_find(host, name) : NULL;
    if ((!other || other == sandbox) && sandbox->slot) {
        index_remove(host, sandbox, SANDBOX_WORD_NAME);
        lock_take(&sandbox->lock);
        sandbox_name_set(sandbox->info.name, name);
        lock_release(&sandbox->lock);
        index_add(host, sandbox, SANDBOX_WORD_NAME);
        other = NULL;
    }
    lock_release(&host->lock);
    return other ? err_refuse(err, CAUSE_SESSION_EXISTS, "sandbox '%s' already exists", name) : 0;
}

void sandbox_leave_table(struct sandbox *sandbox)
{
    struct host *host = sandbox->host;
    bool was_there;

    lock_take(&host->lock);
    was_there = sandbox->slot;
    if (was_there)
        table_remove(host, sandbox);
    lock_release(&host->lock);
    if (!was_there)
        return;
    host_dismiss(host);
    lock_take(&sandbox->lock);
    sandbox->is_gone = true;
    cond_broadcast(&sandbox->changed);
    lock_release(&sandbox->lock);
    sandbox_unref(sandbox);
}

/* Locked. Finds the only sandbox whose id starts with the text; *ret_count is how many there are.
 * A text without "sb-" and four digits is never the start of an id: it is more likely the name of a
 * sandbox that does not exist, which must not remove another. */
static struct sandbox *table_find_start(const struct host *host, const char *start,
                                        size_t *ret_count)
{
    const size_t len = strlen(start);
    struct sandbox *found = NULL;

    *ret_count = 0;
    if (strncmp(start, ID_PREFIX, strlen(ID_PREFIX)) != 0 || len < strlen(ID_PREFIX) + START_MIN)
        return NULL;
    for (struct sandbox *sandbox = host->sandboxes; sandbox; sandbox = sandbox->next) {
        if (strncmp(sandbox->info.id, start, len) != 0)
            continue;
        found = sandbox;
        ++*ret_count;
    }
    return *ret_count == 1 ? found : NULL;
}

int sandbox_find(struct host *host, const char *id, struct sandbox **ret, struct err *err)
{
    struct sandbox *sandbox;
    size_t count = 0;

    lock_take(&host->lock);
    sandbox = *id ? table_find(host, id) : NULL;
    if (!sandbox)
        sandbox = table_find_start(host, id, &count);
    if (sandbox)
        (void)sandbox_ref(sandbox);
    lock_release(&host->lock);
    if (count > 1)
        return err_set(err, ERR_INVALID, "the ids of %zu sandboxes start with '%.130s'", count, id);
    if (!sandbox)
        return err_refuse(err, CAUSE_SESSION_NOT_FOUND, "no sandbox '%.130s'", id);
    *ret = sandbox;
    return 0;
}

void sandbox_get_info(struct sandbox *sandbox, bool wants_space, struct sandbox_info *ret)
{
    struct volume *volume = wants_space ? sandbox_pin(sandbox) : NULL;
    struct err ignored;
    uint64_t used = 0;

    if (volume) {
        (void)volume_usage(volume, &used, &ignored);
        sandbox_unpin(sandbox);
    }
    lock_take(&sandbox->lock);
    sandbox_info_copy(&sandbox->info, ret);
    (void)sandbox_times_correct(&sandbox->times, ret);
    lock_release(&sandbox->lock);
    ret->space_used = used;
}

struct volume *sandbox_pin(struct sandbox *sandbox)
{
    struct volume *volume = NULL;

    lock_take(&sandbox->lock);
    if (sandbox->info.state != SANDBOX_CREATING && sandbox->info.state != SANDBOX_DESTROYING)
        volume = sandbox->volume;
    if (volume)
        sandbox->pins++;
    lock_release(&sandbox->lock);
    return volume;
}

void sandbox_unpin(struct sandbox *sandbox)
{
    lock_take(&sandbox->lock);
    sandbox->pins--;
    cond_broadcast(&sandbox->changed);
    lock_release(&sandbox->lock);
}

int sandbox_open_volume(struct sandbox *sandbox, struct volume **ret, struct err *err)
{
    struct store *store = sandbox->host->store;
    const struct sandbox_info *info = &sandbox->info;
    struct template *template;
    int r = template_open(store, info->template, &template, err);

    if (r < 0)
        return r;
    r = volume_open(store, info->id, template, info->generation, ret, err);
    if (r < 0)
        template_close(template);
    return r;
}

int sandbox_list(struct host *host, const struct label *labels, size_t label_count,
                 struct sandbox_info **ret, size_t *ret_count, struct err *err)
{
    struct sandbox_info *list;
    size_t count = 0, room = 1;

    (void)err;
    lock_take(&host->lock);
    for (const struct sandbox *sandbox = host->sandboxes; sandbox; sandbox = sandbox->next)
        room++;
    list = xcalloc(room, sizeof(*list));
    for (struct sandbox *sandbox = host->sandboxes; sandbox; sandbox = sandbox->next) {
        const struct sandbox_info *info = &sandbox->info; /* labels: update.c, under this lock */

        if (!labels_include(info->labels, info->label_count, labels, label_count))
            continue;
        sandbox_get_info(sandbox, false, &list[count++]);
    }
    lock_release(&host->lock);
    *ret = list;
    *ret_count = count;
    return 0;
}

struct sandbox **host_list_sandboxes(struct host *host, size_t *ret_count)
{
    struct sandbox **list;
    size_t count = 0;

    lock_take(&host->lock);
    for (const struct sandbox *sandbox = host->sandboxes; sandbox; sandbox = sandbox->next)
        count++;
    list = xcalloc(count + 1, sizeof(*list));
    count = 0;
    for (struct sandbox *sandbox = host->sandboxes; sandbox; sandbox = sandbox->next)
        list[count++] = sandbox_ref(sandbox);
    lock_release(&host->lock);
    *ret_count = count;
    return list;
}

int sandbox_record(struct sandbox *sandbox, enum sandbox_state state, struct err *err)
{
    return sandbox_record_all(&sandbox, 1, state, err);
}

/* Records the sandboxes with registry_put_all or registry_put_later. */
static int record_with(int (*put)(struct registry *registry, const struct sandbox_info *infos,
                                  size_t count, struct err *err),
                       struct sandbox *const *list, size_t count, enum sandbox_state state,
                       struct err *err)
{
    cleanup_free struct sandbox_info *infos = xcalloc(count, sizeof(*infos));
    int r;

    for (size_t i = 0; i < count; i++) {
        lock_take(&list[i]->lock);
        sandbox_info_copy(&list[i]->info, &infos[i]);
        lock_release(&list[i]->lock);
        if (infos[i].state != SANDBOX_DESTROYING)
            infos[i].state = state;
        if (state == SANDBOX_ACTIVE)
            infos[i].reason[0] = '\0';
    }
    r = put(list[0]->host->registry, infos, count, err);
    for (size_t i = 0; i < count; i++)
        sandbox_info_done(&infos[i]);
    return r;
}

int sandbox_record_all(struct sandbox *const *list, size_t count, enum sandbox_state state,
                       struct err *err)
{
    return record_with(registry_put_all, list, count, state, err);
}

int sandbox_record_later(struct sandbox *const *list, size_t count, enum sandbox_state state,
                         struct err *err)
{
    return record_with(registry_put_later, list, count, state, err);
}

void sandbox_attach(struct sandbox *sandbox)
{
    lock_take(&sandbox->lock);
    sandbox->attached++;
    lock_release(&sandbox->lock);
}

static void process_leave(struct sandbox *sandbox, struct process *process)
{
    struct err ignored;

    if (host_is_open(sandbox->host, &ignored) == 0)
        process_kill(process, KILLER_CLIENT);
    process_abandon(process);
}

void sandbox_detach(struct sandbox *sandbox, struct process *process)
{
    if (process)
        process_leave(sandbox, process);
    lock_take(&sandbox->lock);
    sandbox->attached--;
    sandbox_touch(sandbox);
    lock_release(&sandbox->lock);
    expiry_wake(sandbox->host->expiry);
}

/* Every sandbox has a network namespace with nothing but a loopback. */
bool sandbox_has_egress(struct sandbox *sandbox)
{
    (void)sandbox;
    return false;
}
