// SPDX-License-Identifier: Apache-2.0
/* The tables of shared volumes and of the owners of templates. */
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "host/registry/registry_internal.h"
#include "host/volume/named_volume.h"

/* Fails if the owner has its share of the volumes. */
static int share_check(const struct volume_info *all, size_t count, const char *owner,
                       struct err *err)
{
    const size_t share = owner_share(owner, VOLUMES_MAX);
    size_t own = 0;

    for (size_t i = 0; i < count; i++)
        own += strcmp(all[i].owner, owner) == 0;
    if (own < share)
        return 0;
    return err_set(err, ERR_EXHAUSTED, "volume limit of owner '%s' reached (%zu)", owner, share);
}

int registry_add_volume(struct registry *registry, const struct volume_info *info, struct err *err)
{
    cleanup_free struct volume_info *all = NULL;
    sqlite3_stmt *add = registry->statements[STATEMENT_ADD_VOLUME];
    size_t count = 0;
    int r = registry_list_volumes(registry, &all, &count, err);

    if (r == 0 && count >= VOLUMES_MAX)
        r = err_set(err, ERR_EXHAUSTED, "volume limit reached (%d)", VOLUMES_MAX);
    if (r == 0)
        r = share_check(all, count, info->owner, err);
    if (r < 0)
        return r;
    r = registry_begin(registry, err);
    if (r >= 0 && row_bind(add, 1, &row_volume, info) != SQLITE_OK)
        r = registry_explain(registry, "record a volume", err);
    if (r >= 0)
        r = registry_run(registry, STATEMENT_ADD_VOLUME, "record a volume", err);
    if (r < 0 && registry_is_duplicate(registry))
        r = err_set(err, ERR_EXISTS, "a volume of this name exists already");
    r = registry_end(registry, r, err);
    return r < 0 ? err_wrap(err, "volume '%s'", info->name) : 0;
}

int registry_remove_volume(struct registry *registry, const char *id, struct err *err)
{
    int r = registry_begin(registry, err);

    if (r >= 0 &&
        registry_bind_text(registry->statements[STATEMENT_REMOVE_VOLUME], 1, id) != SQLITE_OK)
        r = registry_explain(registry, "remove a volume", err);
    if (r >= 0)
        r = registry_run(registry, STATEMENT_REMOVE_VOLUME, "remove a volume", err);
    if (r >= 0)
        r = registry_drop_shares(registry, SHARE_VOLUME, id, err);
    return registry_end(registry, r, err);
}

int registry_find_volumes(struct registry *registry, const char *word, struct volume_info **ret,
                          size_t *ret_count, struct err *err)
{
    cleanup_with(row_list_done) struct row_list list = { .item_size = sizeof(**ret) };
    lock_scope(&registry->lock);
    int r = registry_read_of(registry, STATEMENT_FIND_VOLUME, word, &row_volume, &list, err);

    if (r < 0)
        return r;
    *ret_count = list.count;
    *ret = (struct volume_info *)(void *)TAKE_PTR(list.items);
    return 0;
}

int registry_list_volumes(struct registry *registry, struct volume_info **ret, size_t *ret_count,
                          struct err *err)
{
    cleanup_with(row_list_done) struct row_list list = { .item_size = sizeof(**ret) };
    lock_scope(&registry->lock);
    cleanup_with(registry_reset) sqlite3_stmt *statement =
        registry->statements[STATEMENT_LIST_VOLUMES];
    int r = registry_read_rows(registry, statement, &row_volume, &list, err);

    if (r < 0)
        return r;
    *ret_count = list.count;
    *ret = (struct volume_info *)(void *)TAKE_PTR(list.items);
    return 0;
}

int registry_put_template_owner(struct registry *registry, const char *template, const char *owner,
                                struct err *err)
{
    enum registry_statement which = owner ? STATEMENT_PUT_OWNER : STATEMENT_DROP_OWNER;
    sqlite3_stmt *statement = registry->statements[which];
    int r = registry_begin(registry, err);

    if (r >= 0 && (registry_bind_text(statement, 1, template) != SQLITE_OK ||
                   (owner && registry_bind_text(statement, 2, owner) != SQLITE_OK)))
        r = registry_explain(registry, "record the owner of a template", err);
    if (r >= 0)
        r = registry_run(registry, which, "record the owner of a template", err);
    return registry_end(registry, r, err);
}

int registry_get_template_owner(struct registry *registry, const char *template, char **ret,
                                struct err *err)
{
    lock_scope(&registry->lock);
    cleanup_with(registry_reset) sqlite3_stmt *statement =
        registry->statements[STATEMENT_GET_OWNER];
    int rc = SQLITE_ERROR;

    if (registry_bind_text(statement, 1, template) == SQLITE_OK)
        rc = sqlite3_step(statement);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return registry_explain(registry, "read the owner of a template", err);
    *ret = rc == SQLITE_ROW ? xstrdup((const char *)sqlite3_column_text(statement, 0)) : NULL;
    return 0;
}
