// SPDX-License-Identifier: Apache-2.0
#include "host/owner/ceiling_registry.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "host/registry/registry_internal.h"

static int row_put(struct registry *registry, const struct ceiling_row *row, struct err *err)
{
    enum registry_statement which = row->value[0] ? STATEMENT_PUT_CEILING : STATEMENT_DROP_CEILING;
    sqlite3_stmt *statement = registry->statements[which];

    if (registry_bind_text(statement, 1, row->owner) != SQLITE_OK ||
        registry_bind_text(statement, 2, row->name) != SQLITE_OK ||
        (row->value[0] && registry_bind_text(statement, 3, row->value) != SQLITE_OK))
        return registry_explain(registry, "record a ceiling", err);
    return registry_run(registry, which, "record a ceiling", err);
}

int registry_put_ceilings(struct registry *registry, const struct ceiling_row *rows, size_t count,
                          struct err *err)
{
    int r = registry_begin(registry, err);

    for (size_t i = 0; r >= 0 && i < count; i++)
        r = row_put(registry, &rows[i], err);
    return registry_end(registry, r, err);
}

int registry_remove_ceilings(struct registry *registry, const char *owner, struct err *err)
{
    int r = registry_begin(registry, err);

    if (r >= 0 &&
        registry_bind_text(registry->statements[STATEMENT_DROP_CEILINGS], 1, owner) != SQLITE_OK)
        r = registry_explain(registry, "remove ceilings", err);
    if (r >= 0)
        r = registry_run(registry, STATEMENT_DROP_CEILINGS, "remove ceilings", err);
    return registry_end(registry, r, err);
}

int registry_list_ceilings(struct registry *registry, struct ceiling_row **ret, size_t *ret_count,
                           struct err *err)
{
    cleanup_with(row_list_done) struct row_list list = { .item_size = sizeof(**ret) };
    lock_scope(&registry->lock);
    cleanup_with(registry_reset) sqlite3_stmt *statement =
        registry->statements[STATEMENT_LIST_CEILINGS];
    int r = registry_read_rows(registry, statement, &row_ceiling, &list, err);

    if (r < 0)
        return r;
    *ret_count = list.count;
    *ret = (struct ceiling_row *)(void *)TAKE_PTR(list.items);
    return 0;
}
