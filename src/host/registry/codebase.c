// SPDX-License-Identifier: Apache-2.0
#include "host/registry/codebase.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "host/codebase/apply.h"
#include "host/codebase/codebase.h"
#include "host/registry/registry_internal.h"

static int list_codebases(struct registry *registry, enum registry_statement which,
                          struct codebase_info **ret, size_t *ret_count, struct err *err)
{
    cleanup_with(row_list_done) struct row_list list = { .item_size = sizeof(**ret) };
    lock_scope(&registry->lock);
    cleanup_with(registry_reset) sqlite3_stmt *statement = registry->statements[which];
    int r = registry_read_rows(registry, statement, &row_codebase, &list, err);

    if (r < 0)
        return r;
    *ret_count = list.count;
    *ret = (struct codebase_info *)(void *)TAKE_PTR(list.items);
    return 0;
}

int registry_list_codebases(struct registry *registry, struct codebase_info **ret,
                            size_t *ret_count, struct err *err)
{
    return list_codebases(registry, STATEMENT_LIST_CODEBASES, ret, ret_count, err);
}

int registry_list_incomplete_codebases(struct registry *registry, struct codebase_info **ret,
                                       size_t *ret_count, struct err *err)
{
    return list_codebases(registry, STATEMENT_LIST_INCOMPLETE_CODEBASES, ret, ret_count, err);
}

/* Fails if there are as many codebases as there may be, in all or for this owner. */
static int codebases_check(struct registry *registry, const char *owner, struct err *err)
{
    cleanup_free struct codebase_info *list = NULL;
    size_t count = 0, own = 0;
    int r = registry_list_codebases(registry, &list, &count, err);

    if (r < 0)
        return r;
    for (size_t i = 0; i < count; i++)
        own += strcmp(list[i].owner, owner) == 0;
    if (count >= CODEBASES_MAX || own >= owner_share(owner, CODEBASES_MAX))
        return err_set(err, ERR_EXHAUSTED, "codebase limit of owner '%s' reached", owner);
    return 0;
}

int registry_add_codebase(struct registry *registry, const struct codebase_info *info,
                          struct err *err)
{
    sqlite3_stmt *add = registry->statements[STATEMENT_ADD_CODEBASE];
    int r = codebases_check(registry, info->owner, err);

    if (r < 0)
        return r;
    r = registry_begin(registry, err);
    if (r >= 0 && row_bind(add, 1, &row_codebase, info) != SQLITE_OK)
        r = registry_explain(registry, "record a codebase", err);
    if (r >= 0)
        r = registry_run(registry, STATEMENT_ADD_CODEBASE, "record a codebase", err);
    if (r < 0 && registry_is_duplicate(registry))
        r = err_set(err, ERR_EXISTS, "codebase '%s' exists already", info->name);
    return registry_end(registry, r, err);
}

int registry_remove_codebase(struct registry *registry, const char *id, struct err *err)
{
    sqlite3_stmt *statement = registry->statements[STATEMENT_REMOVE_CODEBASE];
    int r = registry_begin(registry, err);

    if (r >= 0 && registry_bind_text(statement, 1, id) != SQLITE_OK)
        r = registry_explain(registry, "remove a codebase", err);
    if (r >= 0)
        r = registry_run(registry, STATEMENT_REMOVE_CODEBASE, "remove a codebase", err);
    return registry_end(registry, r, err);
}

/* Moves the newest version of the codebase, which must be the one before. */
static int head_move(struct registry *registry, const char *id, uint32_t version, struct err *err)
{
    sqlite3_stmt *move = registry->statements[STATEMENT_MOVE_CODEBASE];
    int r;

    if (registry_bind_text(move, 1, id) != SQLITE_OK ||
        sqlite3_bind_int64(move, 2, version) != SQLITE_OK ||
        sqlite3_bind_int64(move, 3, version > 0 ? version - 1 : 0) != SQLITE_OK)
        return registry_explain(registry, "record a version", err);
    r = registry_run(registry, STATEMENT_MOVE_CODEBASE, "record a version", err);
    if (r >= 0 && sqlite3_changes(registry->db) != 1)
        r = err_set(err, ERR_BUSY, "the codebase has a newer version");
    return r;
}

static int base_move(struct registry *registry, const char *sandbox, uint32_t version,
                     struct err *err)
{
    sqlite3_stmt *move = registry->statements[STATEMENT_MOVE_CODEBASE_BASE];

    if (registry_bind_text(move, 1, sandbox) != SQLITE_OK ||
        sqlite3_bind_int64(move, 2, version) != SQLITE_OK)
        return registry_explain(registry, "record a version", err);
    return registry_run(registry, STATEMENT_MOVE_CODEBASE_BASE, "record a version", err);
}

int registry_add_version(struct registry *registry, const char *id,
                         const struct codebase_version *version, const char *sandbox,
                         struct err *err)
{
    sqlite3_stmt *add = registry->statements[STATEMENT_ADD_VERSION];
    int r = version->version < CODEBASE_VERSIONS_MAX
                ? registry_begin(registry, err)
                : err_set(err, ERR_EXHAUSTED, "a codebase has at most %d versions",
                          CODEBASE_VERSIONS_MAX);

    if (version->version >= CODEBASE_VERSIONS_MAX)
        return r;
    if (r >= 0)
        r = head_move(registry, id, version->version, err);
    if (r >= 0 && (registry_bind_text(add, 1, id) != SQLITE_OK ||
                   row_bind(add, 2, &row_version, version) != SQLITE_OK))
        r = registry_explain(registry, "record a version", err);
    if (r >= 0)
        r = registry_run(registry, STATEMENT_ADD_VERSION, "record a version", err);
    if (r >= 0 && sandbox)
        r = base_move(registry, sandbox, version->version, err);
    return registry_end(registry, r, err);
}

int registry_list_versions(struct registry *registry, const char *id, struct codebase_version **ret,
                           size_t *ret_count, struct err *err)
{
    cleanup_with(row_list_done) struct row_list list = { .item_size = sizeof(**ret) };
    lock_scope(&registry->lock);
    int r = registry_read_of(registry, STATEMENT_LIST_VERSIONS, id, &row_version, &list, err);

    if (r < 0)
        return r;
    *ret_count = list.count;
    *ret = (struct codebase_version *)(void *)TAKE_PTR(list.items);
    return 0;
}

int registry_put_applied(struct registry *registry, const struct codebase_applied *applied,
                         struct err *err)
{
    sqlite3_stmt *put = registry->statements[STATEMENT_PUT_APPLIED];
    int r = registry_begin(registry, err);

    if (r >= 0 && row_bind(put, 1, &row_applied, applied) != SQLITE_OK)
        r = registry_explain(registry, "record a directory of a codebase", err);
    if (r >= 0)
        r = registry_run(registry, STATEMENT_PUT_APPLIED, "record a directory of a codebase", err);
    return registry_end(registry, r, err);
}

int registry_list_applied(struct registry *registry, struct codebase_applied **ret,
                          size_t *ret_count, struct err *err)
{
    cleanup_with(row_list_done) struct row_list list = { .item_size = sizeof(**ret) };
    lock_scope(&registry->lock);
    cleanup_with(registry_reset) sqlite3_stmt *statement =
        registry->statements[STATEMENT_LIST_APPLIED];
    int r = registry_read_rows(registry, statement, &row_applied, &list, err);

    if (r < 0)
        return r;
    *ret_count = list.count;
    *ret = (struct codebase_applied *)(void *)TAKE_PTR(list.items);
    return 0;
}
