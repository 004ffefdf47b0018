// SPDX-License-Identifier: Apache-2.0
/* Statements, transactions and lists of rows: what the tables of the registry share. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "host/registry/registry_internal.h"

void row_list_done(struct row_list *list)
{
    free(list->items);
}

/* Returns a zeroed item at the end, which is not counted yet; NULL without memory. */
static void *row_list_next(struct row_list *list)
{
    void *next;

    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 8;
        char *items = reallocarray(list->items, capacity, list->item_size);

        if (!items)
            return NULL;
        list->items = items;
        list->capacity = capacity;
    }
    next = list->items + list->count * list->item_size;
    memset(next, 0, list->item_size);
    return next;
}

void registry_reset(sqlite3_stmt **statement)
{
    (void)sqlite3_reset(*statement);
    (void)sqlite3_clear_bindings(*statement);
}

int registry_bind_text(sqlite3_stmt *statement, int index, const char *text)
{
    return sqlite3_bind_text(statement, index, text, -1, SQLITE_STATIC);
}

int registry_run(struct registry *registry, enum registry_statement which, const char *doing,
                 struct err *err)
{
    cleanup_with(registry_reset) sqlite3_stmt *statement = registry->statements[which];

    if (sqlite3_step(statement) != SQLITE_DONE)
        return registry_explain(registry, doing, err);
    return 0;
}

int registry_begin(struct registry *registry, struct err *err)
{
    lock_take(&registry->lock);
    return registry_run(registry, STATEMENT_BEGIN, "begin a transaction", err);
}

/* Notes that the log is on disk up to here, unless the mark says more. */
static void mark_advance(struct registry *registry, const struct wal_position *to)
{
    lock_scope(&registry->lock);
    struct wal_position *marked = &registry->marked;
    bool is_same = memcmp(marked->salt, to->salt, sizeof(to->salt)) == 0;
    bool is_older =
        is_same ? to->frames <= marked->frames : (int32_t)(to->salt[0] - marked->salt[0]) < 0;

    if (marked->frames > 0 && is_older)
        return;
    *marked = *to;
    wal_mark_write(registry->mark_fd, marked);
}

int registry_flush(struct registry *registry, const struct registry_write *write, struct err *err)
{
    int r = flush_wait(&registry->flush, registry->wal_fd, write->number);

    if (r < 0)
        return err_sys(err, r, "flush registry %s", registry->path);
    mark_advance(registry, &write->end);
    return 0;
}

int registry_commit(struct registry *registry, int r, struct registry_write *ret_write,
                    struct err *err)
{
    struct err ignored;

    if (r >= 0)
        r = registry_run(registry, STATEMENT_COMMIT, "commit", err);
    if (r < 0 && !sqlite3_get_autocommit(registry->db))
        (void)registry_run(registry, STATEMENT_ROLLBACK, "roll back", &ignored);
    if (r >= 0)
        *ret_write = (struct registry_write){ .number = flush_count_write(&registry->flush),
                                              .end = registry->wal };
    lock_release(&registry->lock);
    return r;
}

int registry_end(struct registry *registry, int r, struct err *err)
{
    struct registry_write write;

    r = registry_commit(registry, r, &write, err);
    return r < 0 ? r : registry_flush(registry, &write, err);
}

bool registry_is_duplicate(const struct registry *registry)
{
    return sqlite3_extended_errcode(registry->db) == SQLITE_CONSTRAINT_UNIQUE;
}

int registry_read_rows(struct registry *registry, sqlite3_stmt *statement,
                       const struct row_layout *layout, struct row_list *list, struct err *err)
{
    int rc;

    while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
        void *item = row_list_next(list);
        const char *bad;

        if (!item)
            return err_sys(err, -ENOMEM, "list registry %s", registry->path);
        bad = row_read(statement, layout, item);
        if (bad)
            return registry_bad_value(registry, layout, bad, err);
        list->count++;
    }
    return rc == SQLITE_DONE ? 0 : registry_explain(registry, "list", err);
}

int registry_read_of(struct registry *registry, enum registry_statement which, const char *key,
                     const struct row_layout *layout, struct row_list *list, struct err *err)
{
    cleanup_with(registry_reset) sqlite3_stmt *statement = registry->statements[which];

    if (registry_bind_text(statement, 1, key) != SQLITE_OK)
        return registry_explain(registry, "list", err);
    return registry_read_rows(registry, statement, layout, list, err);
}
