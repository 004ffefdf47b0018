// SPDX-License-Identifier: Apache-2.0
/* The host's table of sandboxes: which there are, and which one a word of a caller stands for. */
#include "host/process/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "host/core/host_internal.h"
#include "host/sandbox/mount.h"
#include "host/sandbox/name.h"
#include "host/sandbox/sandbox_internal.h"

enum { START_MIN = 4 }; /* digits of an id that stand for all of it */

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

/* Locked. Names and keys are unique for each owner, ids for all. */
static struct sandbox *index_find(const struct host *host, enum sandbox_word kind,
                                  const char *owner, const char *word)
{
    struct sandbox *sandbox = *word ? *index_chain(host, kind, word) : NULL;

    while (sandbox && (strcmp(sandbox_word(sandbox, kind), word) != 0 ||
                       (kind != SANDBOX_WORD_ID && strcmp(sandbox->info.owner, owner) != 0)))
        sandbox = sandbox->next_of_word[kind];
    return sandbox;
}

/* Locked. Ids and names of an owner share one namespace. */
static struct sandbox *table_find_own(const struct host *host, const char *owner, const char *word)
{
    struct sandbox *sandbox = index_find(host, SANDBOX_WORD_ID, owner, word);

    if (sandbox && strcmp(sandbox->info.owner, owner) == 0)
        return sandbox;
    return index_find(host, SANDBOX_WORD_NAME, owner, word);
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

struct sandbox *sandbox_find_by_key(struct host *host, const char *owner, const char *key)
{
    struct sandbox *sandbox;

    lock_take(&host->lock);
    sandbox = index_find(host, SANDBOX_WORD_KEY, owner, key);
    if (sandbox)
        (void)sandbox_ref(sandbox);
    lock_release(&host->lock);
    return sandbox;
}

int sandbox_enter_table(struct sandbox *sandbox, struct err *err)
{
    struct host *host = sandbox->host;
    const char *owner = sandbox->info.owner, *name = sandbox->info.name;
    bool is_taken, is_being_removed;

    sandbox->process_table = process_table_new(host, &sandbox->info);
    sandbox_begin_times(sandbox);
    lock_take(&host->lock);
    is_taken = index_find(host, SANDBOX_WORD_ID, owner, sandbox->info.id) ||
               index_find(host, SANDBOX_WORD_NAME, owner, sandbox->info.id) ||
               (*name && table_find_own(host, owner, name)) ||
               index_find(host, SANDBOX_WORD_KEY, owner, sandbox->info.request_key);
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
    other = *name ? table_find_own(host, sandbox->info.owner, name) : NULL;
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
    host_dismiss(host, &sandbox->charge);
    lock_take(&sandbox->lock);
    sandbox->is_gone = true;
    cond_broadcast(&sandbox->changed);
    lock_release(&sandbox->lock);
    sandbox_unref(sandbox);
}

/* Locked. The lock also protects the labels, see update.c. */
static bool caller_sees_it(const struct caller *caller, const struct sandbox *sandbox)
{
    const struct sandbox_info *info = &sandbox->info;

    return caller_sees(caller, info->owner, info->labels, info->label_count);
}

bool sandbox_is_seen(struct sandbox *sandbox, const struct caller *caller)
{
    lock_scope(&sandbox->host->lock);

    return caller_sees_it(caller, sandbox);
}

/* Locked. Finds the only sandbox whose id starts with the text; *ret_count is how many there are.
 * A text without "sb-" and four digits is never the start of an id: it is more likely the name of a
 * sandbox that does not exist, which must not remove another. */
static struct sandbox *table_find_start(const struct host *host, const struct caller *caller,
                                        const char *start, size_t *ret_count)
{
    const size_t len = strlen(start);
    struct sandbox *found = NULL;

    *ret_count = 0;
    if (strncmp(start, SANDBOX_ID_PREFIX, strlen(SANDBOX_ID_PREFIX)) != 0 ||
        len < strlen(SANDBOX_ID_PREFIX) + START_MIN)
        return NULL;
    for (struct sandbox *sandbox = host->sandboxes; sandbox; sandbox = sandbox->next) {
        if (strncmp(sandbox->info.id, start, len) != 0 || !caller_sees_it(caller, sandbox))
            continue;
        found = sandbox;
        ++*ret_count;
    }
    return *ret_count == 1 ? found : NULL;
}

/* Locked. Finds the only sandbox of this name, whoever owns it, for an admin. */
static struct sandbox *table_find_name(const struct host *host, const struct caller *caller,
                                       const char *name, size_t *ret_count)
{
    struct sandbox *found = NULL;

    *ret_count = 0;
    for (struct sandbox *each = *index_chain(host, SANDBOX_WORD_NAME, name); each;
         each = each->next_of_word[SANDBOX_WORD_NAME]) {
        if (strcmp(each->info.name, name) != 0 || !caller_sees_it(caller, each))
            continue;
        found = each;
        ++*ret_count;
    }
    return *ret_count == 1 ? found : NULL;
}

/* Locked. An id comes first, then a name of the caller's own, then what only one sandbox can mean;
 * *ret_count is how many it may mean. */
static struct sandbox *table_find(const struct host *host, const struct caller *caller,
                                  const char *word, size_t *ret_count)
{
    struct sandbox *sandbox = index_find(host, SANDBOX_WORD_ID, caller->owner, word);

    *ret_count = 0;
    if (!sandbox || !caller_sees_it(caller, sandbox))
        sandbox = index_find(host, SANDBOX_WORD_NAME, caller->owner, word);
    if (sandbox && caller_sees_it(caller, sandbox))
        return sandbox;
    sandbox = *word ? table_find_name(host, caller, word, ret_count) : NULL;
    return sandbox || *ret_count > 0 ? sandbox : table_find_start(host, caller, word, ret_count);
}

int sandbox_find(struct host *host, const struct caller *caller, const char *word,
                 struct sandbox **ret, struct err *err)
{
    struct sandbox *sandbox;
    size_t count = 0;

    lock_take(&host->lock);
    sandbox = table_find(host, caller, word, &count);
    if (sandbox)
        (void)sandbox_ref(sandbox);
    lock_release(&host->lock);
    if (count > 1)
        return err_set(err, ERR_INVALID, "'%.130s' stands for %zu sandboxes: write an id", word,
                       count);
    if (!sandbox)
        return err_refuse(err, CAUSE_SESSION_NOT_FOUND, "no sandbox '%.130s'", word);
    *ret = sandbox;
    return 0;
}

void sandbox_list(struct host *host, const struct caller *caller, const struct label *labels,
                  size_t label_count, struct sandbox_info **ret, size_t *ret_count)
{
    struct sandbox_info *list;
    size_t count = 0, room = 1;

    lock_take(&host->lock);
    for (const struct sandbox *sandbox = host->sandboxes; sandbox; sandbox = sandbox->next)
        room++;
    list = xcalloc(room, sizeof(*list));
    for (struct sandbox *sandbox = host->sandboxes; sandbox; sandbox = sandbox->next) {
        const struct sandbox_info *info = &sandbox->info;

        if (caller_sees_it(caller, sandbox) &&
            labels_include(info->labels, info->label_count, labels, label_count))
            sandbox_get_info(sandbox, false, &list[count++]);
    }
    lock_release(&host->lock);
    *ret = list;
    *ret_count = count;
}

struct sandbox **host_list_sandboxes(struct host *host, const struct caller *caller,
                                     size_t *ret_count)
{
    struct sandbox **list;
    size_t count = 0;

    lock_take(&host->lock);
    for (const struct sandbox *sandbox = host->sandboxes; sandbox; sandbox = sandbox->next)
        count++;
    list = xcalloc(count + 1, sizeof(*list));
    count = 0;
    for (struct sandbox *sandbox = host->sandboxes; sandbox; sandbox = sandbox->next)
        if (caller_sees_it(caller, sandbox))
            list[count++] = sandbox_ref(sandbox);
    lock_release(&host->lock);
    *ret_count = count;
    return list;
}
