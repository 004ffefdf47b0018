/* What the files of the registry share. */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/lock.h"
#include "host/core/registry.h"

struct buf;
struct row_layout;

enum registry_statement {
    STATEMENT_BEGIN,
    STATEMENT_COMMIT,
    STATEMENT_ROLLBACK,
    STATEMENT_PUT,
    STATEMENT_DROP_LABELS,
    STATEMENT_ADD_LABEL,
    STATEMENT_ADD_MOUNT,
    STATEMENT_PUT_METADATA,
    STATEMENT_PUT_EXPIRY,
    STATEMENT_REMOVE,
    STATEMENT_ADD_SNAPSHOT,
    STATEMENT_REPARENT,
    STATEMENT_REBASE,
    STATEMENT_REMOVE_SNAPSHOT,
    STATEMENT_LIST,
    STATEMENT_LIST_LABELS,
    STATEMENT_LIST_MOUNTS,
    STATEMENT_GET_METADATA,
    STATEMENT_LIST_SNAPSHOTS,
    STATEMENTS
};

struct registry {
    char *path;
    sqlite3 *db;
    struct lock lock; /* over the connection and its statements */
    sqlite3_stmt *statements[STATEMENTS];
};

/* Turns what SQLite said last into an error; doing is what it could not, in the infinitive. */
int registry_explain(const struct registry *registry, const char *doing, struct err *err);

/* ERR_INTERNAL with the file, the reason and the remedy. */
int registry_damaged(const struct registry *registry, const char *why, struct err *err);

/* Damaged in this column. */
int registry_bad_value(const struct registry *registry, const struct row_layout *layout,
                       const char *column, struct err *err);

/* How one struct is a row: a column for each field, in the order of the table. */
struct row_field {
    const char *column;
    enum row_type {
        ROW_TEXT,
        ROW_TEXT_OR_NULL, /* "" is NULL, of which a unique column may have many */
        ROW_U32,
        ROW_U64, /* with the sign bit as its highest: SQLite has no unsigned numbers */
        ROW_STATE,
        ROW_ACTION,
        ROW_KIND,
    } type;
    size_t offset;
    size_t size; /* of the member */
};

struct row_layout {
    const char *table;
    const struct row_field *fields;
    size_t count;
};

extern const struct row_layout row_sandbox, row_label, row_mount, row_snapshot;

/* Appends "a, b, c", "?2, ?3, ?4" (first = 2) or "b = excluded.b, c = excluded.c". The last leaves
 * out the key, which comes first: were it set, even to itself, all that refers to it would be
 * searched. */
int row_sql_columns(const struct row_layout *layout, struct buf *sql);
int row_sql_values(const struct row_layout *layout, int first, struct buf *sql);
int row_sql_updates(const struct row_layout *layout, struct buf *sql);

/* Binds each field from parameter `first` on; texts must stay until the statement is reset. An
 * SQLite result code. */
int row_bind(sqlite3_stmt *statement, int first, const struct row_layout *layout, const void *from);

/* Reads the columns of the present row from 0 on. NULL, or the column whose value no program of
 * ours has written: too long, too large, not a known word. */
const char *row_read(sqlite3_stmt *statement, const struct row_layout *layout, void *into);
