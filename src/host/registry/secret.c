// SPDX-License-Identifier: Apache-2.0
#include "base/cleanup.h"
#include "base/err.h"
#include "host/registry/registry_internal.h"
#include "host/secret/secret_registry.h"

int registry_put_secret(struct registry *registry, const struct secret_row *row, struct err *err)
{
    sqlite3_stmt *put = registry->statements[STATEMENT_PUT_SECRET];
    int r = registry_begin(registry, err);

    if (r >= 0 && row_bind(put, 1, &row_secret, row) != SQLITE_OK)
        r = registry_explain(registry, "record a secret", err);
    if (r >= 0)
        r = registry_run(registry, STATEMENT_PUT_SECRET, "record a secret", err);
    if (r < 0 && registry_is_duplicate(registry))
        r = err_set(err, ERR_EXISTS, "secret '%s' exists already", row->name);
    return registry_end(registry, r, err);
}

int registry_remove_secret(struct registry *registry, const char *id, struct err *err)
{
    sqlite3_stmt *remove = registry->statements[STATEMENT_REMOVE_SECRET];
    int r = registry_begin(registry, err);

    if (r >= 0 && registry_bind_text(remove, 1, id) != SQLITE_OK)
        r = registry_explain(registry, "remove a secret", err);
    if (r >= 0)
        r = registry_run(registry, STATEMENT_REMOVE_SECRET, "remove a secret", err);
    return registry_end(registry, r, err);
}

int registry_list_secrets(struct registry *registry, struct secret_row **ret, size_t *ret_count,
                          struct err *err)
{
    cleanup_with(row_list_done) struct row_list list = { .item_size = sizeof(**ret) };
    lock_scope(&registry->lock);
    cleanup_with(registry_reset) sqlite3_stmt *statement =
        registry->statements[STATEMENT_LIST_SECRETS];
    int r = registry_read_rows(registry, statement, &row_secret, &list, err);

    if (r < 0)
        return r;
    *ret_count = list.count;
    *ret = (struct secret_row *)(void *)TAKE_PTR(list.items);
    return 0;
}

int registry_count_sealed_networks(struct registry *registry, size_t *ret, struct err *err)
{
    lock_scope(&registry->lock);
    cleanup_with(registry_reset) sqlite3_stmt *statement =
        registry->statements[STATEMENT_COUNT_SEALED_NETWORKS];

    if (sqlite3_step(statement) != SQLITE_ROW)
        return registry_explain(registry, "count the sealed headers of sandboxes", err);
    *ret = (size_t)sqlite3_column_int64(statement, 0);
    return 0;
}
