// SPDX-License-Identifier: Apache-2.0
#include "host/owner/session_registry.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "host/core/host_internal.h"
#include "host/registry/registry_internal.h"

int host_put_session(struct host *host, const struct session_row *row, struct err *err)
{
    struct registry *registry = host->registry;
    sqlite3_stmt *put = registry->statements[STATEMENT_PUT_SESSION];
    int r = registry_begin(registry, err);

    if (r >= 0 && row_bind(put, 1, &row_session, row) != SQLITE_OK)
        r = registry_explain(registry, "record a session", err);
    if (r >= 0)
        r = registry_run(registry, STATEMENT_PUT_SESSION, "record a session", err);
    return registry_end(registry, r, err);
}

int host_remove_session(struct host *host, const char *id, struct err *err)
{
    struct registry *registry = host->registry;
    int r = registry_begin(registry, err);

    if (r >= 0 &&
        registry_bind_text(registry->statements[STATEMENT_REMOVE_SESSION], 1, id) != SQLITE_OK)
        r = registry_explain(registry, "remove a session", err);
    if (r >= 0)
        r = registry_run(registry, STATEMENT_REMOVE_SESSION, "remove a session", err);
    return registry_end(registry, r, err);
}

int host_list_sessions(struct host *host, struct session_row **ret, size_t *ret_count,
                       struct err *err)
{
    struct registry *registry = host->registry;
    cleanup_with(row_list_done) struct row_list list = { .item_size = sizeof(**ret) };
    lock_scope(&registry->lock);
    cleanup_with(registry_reset) sqlite3_stmt *statement =
        registry->statements[STATEMENT_LIST_SESSIONS];
    int r = registry_read_rows(registry, statement, &row_session, &list, err);

    if (r < 0)
        return r;
    *ret_count = list.count;
    *ret = (struct session_row *)(void *)TAKE_PTR(list.items);
    return 0;
}
