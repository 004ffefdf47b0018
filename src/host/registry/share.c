// SPDX-License-Identifier: Apache-2.0
/* The tables of the templates' owners and of what is shared. */
#include "base/cleanup.h"
#include "base/err.h"
#include "host/registry/registry_internal.h"

static const char *const kind_names[] = {
    [SHARE_TEMPLATE] = "template",
    [SHARE_VOLUME] = "volume",
};

/* --- templates -------------------------------------------------------------------------------- */

/* Shares of a template of this name that a crash left behind must not apply to the new one. */
int registry_add_template(struct registry *registry, const struct template_record *record,
                          struct err *err)
{
    sqlite3_stmt *add = registry->statements[STATEMENT_ADD_TEMPLATE];
    int r = registry_begin(registry, err);

    if (r >= 0 && row_bind(add, 1, &row_template, record) != SQLITE_OK)
        r = registry_explain(registry, "record a template", err);
    if (r >= 0)
        r = registry_run(registry, STATEMENT_ADD_TEMPLATE, "record a template", err);
    if (r < 0 && registry_is_duplicate(registry))
        r = err_set(err, ERR_EXISTS, "template '%s' already exists", record->name);
    if (r >= 0)
        r = registry_drop_shares(registry, SHARE_TEMPLATE, record->store_name, err);
    return registry_end(registry, r, err);
}

int registry_remove_template(struct registry *registry, const char *store_name, struct err *err)
{
    sqlite3_stmt *remove = registry->statements[STATEMENT_REMOVE_TEMPLATE];
    int r = registry_begin(registry, err);

    if (r >= 0 && registry_bind_text(remove, 1, store_name) != SQLITE_OK)
        r = registry_explain(registry, "remove a template", err);
    if (r >= 0)
        r = registry_run(registry, STATEMENT_REMOVE_TEMPLATE, "remove a template", err);
    if (r >= 0)
        r = registry_drop_shares(registry, SHARE_TEMPLATE, store_name, err);
    return registry_end(registry, r, err);
}

int registry_name_template(struct registry *registry, const struct template_record *record,
                           const char *old_name, struct err *err)
{
    sqlite3_stmt *unname = registry->statements[STATEMENT_UNNAME_TEMPLATE];
    sqlite3_stmt *name = registry->statements[STATEMENT_NAME_TEMPLATE];
    int r = registry_begin(registry, err);

    if (r >= 0 && (registry_bind_text(unname, 1, record->owner) != SQLITE_OK ||
                   registry_bind_text(unname, 2, record->name) != SQLITE_OK ||
                   registry_bind_text(unname, 3, old_name) != SQLITE_OK ||
                   registry_bind_text(name, 1, record->store_name) != SQLITE_OK ||
                   registry_bind_text(name, 2, record->name) != SQLITE_OK))
        r = registry_explain(registry, "name a template", err);
    if (r >= 0)
        r = registry_run(registry, STATEMENT_UNNAME_TEMPLATE, "name a template", err);
    if (r >= 0)
        r = registry_run(registry, STATEMENT_NAME_TEMPLATE, "name a template", err);
    return registry_end(registry, r, err);
}

int registry_get_template(struct registry *registry, const char *store_name,
                          struct template_record *ret, struct err *err)
{
    cleanup_with(row_list_done) struct row_list list = { .item_size = sizeof(*ret) };
    lock_scope(&registry->lock);
    int r =
        registry_read_of(registry, STATEMENT_GET_TEMPLATE, store_name, &row_template, &list, err);

    if (r < 0 || list.count == 0)
        return r < 0 ? r : 0;
    *ret = *(const struct template_record *)(const void *)list.items;
    return 1;
}

int registry_list_templates(struct registry *registry, const char *name,
                            struct template_record **ret, size_t *ret_count, struct err *err)
{
    cleanup_with(row_list_done) struct row_list list = { .item_size = sizeof(**ret) };
    lock_scope(&registry->lock);
    int r;

    if (name) {
        r = registry_read_of(registry, STATEMENT_FIND_TEMPLATE, name, &row_template, &list, err);
    } else {
        cleanup_with(registry_reset) sqlite3_stmt *statement =
            registry->statements[STATEMENT_LIST_TEMPLATES];

        r = registry_read_rows(registry, statement, &row_template, &list, err);
    }
    if (r < 0)
        return r;
    *ret_count = list.count;
    *ret = (struct template_record *)(void *)TAKE_PTR(list.items);
    return 0;
}

/* --- shares ----------------------------------------------------------------------------------- */

static bool object_bind(sqlite3_stmt *statement, enum share_kind kind, const char *object)
{
    return registry_bind_text(statement, 1, kind_names[kind]) == SQLITE_OK &&
           registry_bind_text(statement, 2, object) == SQLITE_OK;
}

int registry_drop_shares(struct registry *registry, enum share_kind kind, const char *object,
                         struct err *err)
{
    if (!object_bind(registry->statements[STATEMENT_DROP_SHARES], kind, object))
        return registry_explain(registry, "record shares", err);
    return registry_run(registry, STATEMENT_DROP_SHARES, "record shares", err);
}

int registry_put_shares(struct registry *registry, enum share_kind kind, const char *object,
                        const struct share *shares, size_t count, struct err *err)
{
    sqlite3_stmt *add = registry->statements[STATEMENT_ADD_SHARE];
    int r = registry_begin(registry, err);

    if (r >= 0)
        r = registry_drop_shares(registry, kind, object, err);
    for (size_t i = 0; r >= 0 && i < count; i++) {
        if (!object_bind(add, kind, object) ||
            row_bind(add, 3, &row_share, &shares[i]) != SQLITE_OK)
            r = registry_explain(registry, "record shares", err);
        else
            r = registry_run(registry, STATEMENT_ADD_SHARE, "record shares", err);
    }
    return registry_end(registry, r, err);
}

int registry_list_shares(struct registry *registry, enum share_kind kind, const char *object,
                         struct share **ret, size_t *ret_count, struct err *err)
{
    cleanup_with(row_list_done) struct row_list list = { .item_size = sizeof(**ret) };
    lock_scope(&registry->lock);
    cleanup_with(registry_reset) sqlite3_stmt *statement =
        registry->statements[STATEMENT_LIST_SHARES];
    int r;

    if (!object_bind(statement, kind, object))
        return registry_explain(registry, "list shares", err);
    r = registry_read_rows(registry, statement, &row_share, &list, err);
    if (r < 0)
        return r;
    *ret_count = list.count;
    *ret = (struct share *)(void *)TAKE_PTR(list.items);
    return 0;
}

int registry_has_share(struct registry *registry, enum share_kind kind, const char *object,
                       const char *owner, struct err *err)
{
    lock_scope(&registry->lock);
    cleanup_with(registry_reset) sqlite3_stmt *statement =
        registry->statements[STATEMENT_HAS_SHARE];
    int rc = SQLITE_ERROR;

    if (object_bind(statement, kind, object) &&
        registry_bind_text(statement, 3, owner) == SQLITE_OK)
        rc = sqlite3_step(statement);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return registry_explain(registry, "read shares", err);
    return rc == SQLITE_ROW;
}
