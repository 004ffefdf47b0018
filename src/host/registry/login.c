// SPDX-License-Identifier: Apache-2.0
#include "base/cleanup.h"
#include "base/err.h"
#include "host/image/login_registry.h"
#include "host/registry/registry_internal.h"

int registry_put_login(struct registry *registry, const struct login_row *row, struct err *err)
{
    sqlite3_stmt *put = registry->statements[STATEMENT_PUT_LOGIN];
    int r = registry_begin(registry, err);

    if (r >= 0 && row_bind(put, 1, &row_login, row) != SQLITE_OK)
        r = registry_explain(registry, "record a login", err);
    if (r >= 0)
        r = registry_run(registry, STATEMENT_PUT_LOGIN, "record a login", err);
    return registry_end(registry, r, err);
}

int registry_remove_login(struct registry *registry, const char *owner, const char *name,
                          struct err *err)
{
    sqlite3_stmt *remove = registry->statements[STATEMENT_REMOVE_LOGIN];
    int r = registry_begin(registry, err);

    if (r >= 0 && (registry_bind_text(remove, 1, owner) != SQLITE_OK ||
                   registry_bind_text(remove, 2, name) != SQLITE_OK))
        r = registry_explain(registry, "remove a login", err);
    if (r >= 0)
        r = registry_run(registry, STATEMENT_REMOVE_LOGIN, "remove a login", err);
    return registry_end(registry, r, err);
}

int registry_list_logins(struct registry *registry, struct login_row **ret, size_t *ret_count,
                         struct err *err)
{
    cleanup_with(row_list_done) struct row_list list = { .item_size = sizeof(**ret) };
    lock_scope(&registry->lock);
    cleanup_with(registry_reset) sqlite3_stmt *statement =
        registry->statements[STATEMENT_LIST_LOGINS];
    int r = registry_read_rows(registry, statement, &row_login, &list, err);

    if (r < 0)
        return r;
    *ret_count = list.count;
    *ret = (struct login_row *)(void *)TAKE_PTR(list.items);
    return 0;
}

int registry_count_logins(struct registry *registry, size_t *ret, struct err *err)
{
    lock_scope(&registry->lock);
    cleanup_with(registry_reset) sqlite3_stmt *statement =
        registry->statements[STATEMENT_COUNT_LOGINS];

    if (sqlite3_step(statement) != SQLITE_ROW)
        return registry_explain(registry, "count the logins", err);
    *ret = (size_t)sqlite3_column_int64(statement, 0);
    return 0;
}
