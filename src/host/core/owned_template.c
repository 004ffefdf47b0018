// SPDX-License-Identifier: Apache-2.0
#include "host/core/owned_template.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/random.h"
#include "base/text/hex.h"
#include "base/text/image_ref.h"
#include "base/text/parse.h"
#include "base/xalloc.h"
#include "host/core/host.h"
#include "host/core/host_internal.h"
#include "host/core/share.h"
#include "store/template/usage.h"

enum { MADE_NAME_BYTES = 10 };

static const char host_template[] = "host";

/* --- find ------------------------------------------------------------------------------------- */

static bool is_own(const struct template_record *record, const struct caller *caller)
{
    return caller_sees(caller, record->owner, NULL, 0);
}

/* Returns 1 if the template exists for the caller, else 0. */
static int is_visible(struct host *host, const struct caller *caller,
                      const struct template_record *record, struct err *err)
{
    const char *name = record->store_name;

    if (caller->role == ROLE_NONE)
        return 0;
    if (is_own(record, caller) || strcmp(name, host_template) == 0 ||
        strcmp(name, host->default_template) == 0)
        return 1;
    return share_reaches(host, SHARE_TEMPLATE, name, caller, err);
}

static void record_init(struct template_record *record, const char *owner, const char *name)
{
    *record = (struct template_record){ .store_name = "" };
    (void)snprintf(record->store_name, sizeof(record->store_name), "%s", name);
    (void)snprintf(record->owner, sizeof(record->owner), "%s", owner);
    (void)snprintf(record->name, sizeof(record->name), "%s", name);
}

/* Lists the templates of this name, of all owners, also those of root without a record. */
static int candidates_list(struct host *host, const char *name, struct template_record **ret,
                           size_t *ret_count, struct err *err)
{
    cleanup_free struct template_record *list = NULL;
    struct template_record unused;
    size_t count = 0;
    int r = registry_list_templates(host->registry, name, &list, &count, err);

    if (r == 0)
        r = registry_get_template(host->registry, name, &unused, err);
    if (r < 0)
        return r;
    if (r == 0) {
        list = xreallocarray(list, count + 1, sizeof(*list));
        record_init(&list[count++], OWNER_ROOT, name);
    }
    *ret_count = count;
    *ret = TAKE_PTR(list);
    return 0;
}

/* Returns whether the template is an image whose pull is not over. */
static bool is_unnamed(const struct template_record *record)
{
    return strcmp(record->name, record->store_name) == 0 && !is_name(record->store_name);
}

/* Moves those that exist for the caller to the front. */
static int candidates_filter(struct host *host, const struct caller *caller,
                             struct template_record *list, size_t *count, struct err *err)
{
    size_t kept = 0;

    for (size_t i = 0; i < *count; i++) {
        int r = template_exists(host->store, list[i].store_name)
                    ? is_visible(host, caller, &list[i], err)
                    : 0;

        if (r < 0)
            return r;
        if (r > 0)
            list[kept++] = list[i];
    }
    *count = kept;
    return 0;
}

static const struct template_record *candidate_of(const struct template_record *list, size_t count,
                                                  const char *owner)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].owner, owner) == 0)
            return &list[i];
    return NULL;
}

static int template_not_found(const char *word, struct err *err)
{
    return err_refuse(err, CAUSE_TEMPLATE_NOT_FOUND, "no template '%.130s'", word);
}

static int image_not_found(const char *reference, struct err *err)
{
    (void)err_refuse(err, CAUSE_TEMPLATE_NOT_FOUND, "image '%.160s' was not pulled", reference);
    return err_remedy(err, "Pull it: holt template pull %.160s", reference);
}

int owned_template_find(struct host *host, const struct caller *caller, const char *word,
                        struct template_record *ret, struct err *err)
{
    cleanup_free struct template_record *list = NULL;
    const struct template_record *found;
    struct image_ref image;
    struct share_word split;
    size_t count = 0;
    int r;

    if (!word) {
        record_init(ret, OWNER_ROOT, host->default_template);
        return 0;
    }
    if (image_ref_parse(word, &image) == 0 && image_ref_is(word))
        split = (struct share_word){ .name = image.familiar };
    else if (!share_word_split(word, caller, &split) || !template_is_store_name(split.name))
        return err_set(err, ERR_INVALID, "invalid template name '%.130s'", word);
    if (split.name == image.familiar)
        (void)snprintf(split.owner, sizeof(split.owner), "%s", caller->owner);
    r = candidates_list(host, split.name, &list, &count, err);
    if (r == 0)
        r = candidates_filter(host, caller, list, &count, err);
    if (r < 0)
        return r;
    found = candidate_of(list, count, split.owner);
    if (!found && !split.has_owner)
        found = candidate_of(list, count, OWNER_ROOT);
    if (!found && !split.has_owner && count > 1)
        return err_set(err, ERR_INVALID, "'%.64s' stands for %zu templates: write OWNER/NAME", word,
                       count);
    if (!found && !split.has_owner && count == 1)
        found = &list[0];
    if (!found && split.name == image.familiar)
        return image_not_found(image.familiar, err);
    if (!found)
        return template_not_found(word, err);
    *ret = *found;
    return 0;
}

int owned_template_find_own(struct host *host, const struct caller *caller, const char *word,
                            struct template_record *ret, struct err *err)
{
    int r = owned_template_find(host, caller, word, ret, err);

    if (r == 0 && !is_own(ret, caller))
        r = err_set(err, ERR_DENIED, "template '%s' belongs to '%s', which shares it for reading",
                    ret->name, ret->owner);
    return r;
}

void owned_template_word(struct host *host, const struct caller *caller, const char *store_name,
                         char ret[static TEMPLATE_WORD_MAX + 1])
{
    struct template_record record;
    struct err ignored;

    (void)snprintf(ret, TEMPLATE_WORD_MAX + 1, "%s", store_name);
    if (is_name(store_name) ||
        registry_get_template(host->registry, store_name, &record, &ignored) <= 0)
        return;
    if (strcmp(record.owner, caller->owner) == 0)
        (void)snprintf(ret, TEMPLATE_WORD_MAX + 1, "%s", record.name);
    else
        (void)snprintf(ret, TEMPLATE_WORD_MAX + 1, "%s/%s", record.owner, record.name);
}

/* --- list ------------------------------------------------------------------------------------- */

static int record_compare(const void *a, const void *b)
{
    return strcmp(((const struct template_record *)a)->store_name,
                  ((const struct template_record *)b)->store_name);
}

static int owned_compare(const void *a, const void *b)
{
    const struct template_record *one = &((const struct owned_template *)a)->record;
    const struct template_record *two = &((const struct owned_template *)b)->record;
    int r = strcmp(one->name, two->name);

    return r != 0 ? r : strcmp(one->owner, two->owner);
}

int owned_template_list(struct host *host, const struct caller *caller, struct owned_template **ret,
                        size_t *ret_count, struct err *err)
{
    cleanup_free struct template_info *infos = NULL;
    cleanup_free struct template_record *records = NULL;
    cleanup_free struct owned_template *list = NULL;
    cleanup_with(template_usage_done) struct template_usage usage = { .parts = NULL };
    cleanup_free bool *seen = NULL;
    size_t count = 0, record_count = 0, kept = 0;
    int r = template_list(host->store, &infos, &count, err);

    if (r == 0)
        r = registry_list_templates(host->registry, NULL, &records, &record_count, err);
    if (r < 0)
        return r;
    if (record_count > 1)
        qsort(records, record_count, sizeof(*records), record_compare);
    list = xcalloc(count + 1, sizeof(*list));
    seen = xcalloc(count + 1, sizeof(*seen));
    for (size_t i = 0; i < count; i++) {
        const struct template_record *found = NULL;

        record_init(&list[kept].record, OWNER_ROOT, infos[i].name);
        if (record_count > 0)
            found = bsearch(&list[kept].record, records, record_count, sizeof(*records),
                            record_compare);
        if (found)
            list[kept].record = *found;
        list[kept].info = infos[i];
        r = is_unnamed(&list[kept].record) ? 0 : is_visible(host, caller, &list[kept].record, err);
        if (r < 0)
            return r;
        seen[i] = r > 0;
        kept += r > 0;
    }
    /* Templates that the caller does not see change nothing of what it is told. */
    template_usage_init(&usage, infos, count, seen);
    for (size_t i = 0; i < kept; i++)
        list[i].info.shared_bytes = template_usage_shared(&usage, list[i].info.name);
    if (kept > 1)
        qsort(list, kept, sizeof(*list), owned_compare);
    *ret_count = kept;
    *ret = TAKE_PTR(list);
    return 0;
}

/* --- create, remove --------------------------------------------------------------------------- */

/* The record comes first: a daemon killed in between leaves no template without an owner. */
static int record_add(struct host *host, const struct template_record *record, struct err *err)
{
    int r;

    if (template_exists(host->store, record->store_name))
        return err_set(err, ERR_EXISTS, "template '%s' already exists", record->name);
    r = registry_add_template(host->registry, record, err);
    fault_point("template.recorded");
    return r;
}

static int made_name_set(struct template_record *record, struct err *err)
{
    char digits[HEX_SIZE(MADE_NAME_BYTES)];

    if (random_hex(digits, MADE_NAME_BYTES) < 0)
        return err_sys(err, -EIO, "get random bytes");
    (void)snprintf(record->store_name, sizeof(record->store_name), TEMPLATE_MADE_PREFIX "%s",
                   digits);
    return 0;
}

int owned_template_reserve_image(struct host *host, const struct caller *caller,
                                 struct template_record *ret, struct err *err)
{
    int r = caller_check_labels(caller, NULL, 0, err); /* templates have no labels */

    if (r < 0)
        return r;
    record_init(ret, caller->owner, "");
    r = made_name_set(ret, err);
    if (r < 0)
        return r;
    (void)snprintf(ret->name, sizeof(ret->name), "%s", ret->store_name);
    return record_add(host, ret, err);
}

int owned_template_name(struct host *host, struct template_record *record, const char *reference,
                        const char *old_name, struct err *err)
{
    (void)snprintf(record->name, sizeof(record->name), "%s", reference);
    return registry_name_template(host->registry, record, old_name, err);
}

int owned_template_reserve(struct host *host, const struct caller *caller, const char *name,
                           struct template_record *ret, struct err *err)
{
    int r = caller_check_labels(caller, NULL, 0, err); /* templates have no labels */

    if (r < 0)
        return r;
    if (!is_name(name))
        return err_set(err, ERR_INVALID, "invalid template name '%.80s'", name);
    record_init(ret, caller->owner, name);
    /* Nobody could have another template of this name without confusion. */
    if (strcmp(name, host_template) == 0)
        return err_set(err, ERR_EXISTS, "template '%s' already exists", name);
    if (strcmp(caller->owner, OWNER_ROOT) != 0)
        r = made_name_set(ret, err);
    return r < 0 ? r : record_add(host, ret, err);
}

int owned_template_reserve_internal(struct host *host, const char *owner, const char *store_name,
                                    struct err *err)
{
    struct template_record record;

    record_init(&record, owner, store_name);
    return record_add(host, &record, err);
}

void owned_template_release(struct host *host, const char *store_name)
{
    struct err ignored;

    /* A record that stays is removed at the next start. */
    (void)registry_remove_template(host->registry, store_name, &ignored);
}

/* Errors of the store name templates of other owners, by their names in the store. */
static int removal_explain(const struct caller *caller, const char *word, int r, struct err *err)
{
    if (caller_is_admin(caller))
        return r;
    if (err->kind == ERR_BUSY)
        return err_refuse(err, CAUSE_TEMPLATE_IN_USE, "template '%.64s' is in use", word);
    return err->kind == ERR_NOT_FOUND ? template_not_found(word, err) : r;
}

int owned_template_remove(struct host *host, const struct caller *caller, const char *word,
                          struct err *err)
{
    struct template_record record;
    int r = owned_template_find(host, caller, word, &record, err);

    if (r == 0 && strcmp(record.store_name, host_template) != 0)
        r = owned_template_find_own(host, caller, word, &record, err);
    if (r < 0)
        return r;
    r = host_remove_template(host, record.store_name, err);
    return r < 0 ? removal_explain(caller, word, r, err) : 0;
}

int owned_template_share(struct host *host, const struct caller *caller, const char *word,
                         const struct sharing *sharing, struct owned_template *ret, struct err *err)
{
    struct template_record *record = &ret->record;
    const struct share_object object = { SHARE_TEMPLATE, record->store_name, record->owner,
                                         record->name };
    int r = owned_template_find_own(host, caller, word, record, err);

    if (r == 0 && strcmp(record->store_name, host_template) == 0)
        r = err_set(err, ERR_DENIED, "the template '%s' is always shared with all", host_template);
    if (r == 0)
        r = share_set(host, &object, sharing, err);
    return r == 0 ? template_get_info(host->store, record->store_name, &ret->info, err) : r;
}

int owned_template_shares(struct host *host, const struct caller *caller,
                          const struct template_record *record, struct share **ret,
                          size_t *ret_count, struct err *err)
{
    *ret_count = 0;
    if (strcmp(record->store_name, host_template) == 0) {
        *ret = xcalloc(1, sizeof(**ret));
        (void)snprintf((*ret)->owner, sizeof((*ret)->owner), "%s", SHARE_ALL);
        *ret_count = 1;
        return 0;
    }
    if (!is_own(record, caller))
        return 0;
    return registry_list_shares(host->registry, SHARE_TEMPLATE, record->store_name, ret, ret_count,
                                err);
}

int owned_templates_recover(struct host *host, struct err *err)
{
    cleanup_free struct template_record *list = NULL;
    size_t count = 0;
    int r = registry_list_templates(host->registry, NULL, &list, &count, err);

    for (size_t i = 0; r == 0 && i < count; i++) {
        if (is_unnamed(&list[i]) && template_exists(host->store, list[i].store_name))
            r = template_remove(host->store, list[i].store_name, err);
        if (r == 0 && !template_exists(host->store, list[i].store_name))
            r = registry_remove_template(host->registry, list[i].store_name, err);
    }
    template_layers_collect(host->store);
    return r;
}
