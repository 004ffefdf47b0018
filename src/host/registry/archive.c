// SPDX-License-Identifier: Apache-2.0
#include "host/registry/archive.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "host/registry/registry_internal.h"

int registry_put_archive(struct registry *registry, const struct archive_record *record,
                         struct err *err)
{
    sqlite3_stmt *put = registry->statements[STATEMENT_PUT_ARCHIVE];
    int r = registry_begin(registry, err);

    if (r >= 0 && row_bind(put, 1, &row_archive, record) != SQLITE_OK)
        r = registry_explain(registry, "record an archive", err);
    if (r >= 0)
        r = registry_run(registry, STATEMENT_PUT_ARCHIVE, "record an archive", err);
    return registry_end(registry, r, err);
}

int registry_remove_archive(struct registry *registry, const char *mark, struct err *err)
{
    sqlite3_stmt *remove = registry->statements[STATEMENT_REMOVE_ARCHIVE];
    int r = registry_begin(registry, err);

    if (r >= 0 && registry_bind_text(remove, 1, mark) != SQLITE_OK)
        r = registry_explain(registry, "remove the record of an archive", err);
    if (r >= 0)
        r = registry_run(registry, STATEMENT_REMOVE_ARCHIVE, "remove the record of an archive",
                         err);
    return registry_end(registry, r, err);
}

int registry_list_archives(struct registry *registry, struct archive_record **ret,
                           size_t *ret_count, struct err *err)
{
    cleanup_with(row_list_done) struct row_list list = { .item_size = sizeof(**ret) };
    lock_scope(&registry->lock);
    cleanup_with(registry_reset) sqlite3_stmt *statement =
        registry->statements[STATEMENT_LIST_ARCHIVES];
    int r = registry_read_rows(registry, statement, &row_archive, &list, err);

    if (r < 0)
        return r;
    *ret_count = list.count;
    *ret = (struct archive_record *)(void *)TAKE_PTR(list.items);
    return 0;
}
