/* Shared by the files of the registry. */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/flush.h"
#include "base/lock.h"
#include "host/registry/registry.h"
#include "host/registry/wal.h"

struct buf;
struct row_layout;

enum registry_statement {
    STATEMENT_BEGIN,
    STATEMENT_COMMIT,
    STATEMENT_ROLLBACK,
    STATEMENT_PUT,
    STATEMENT_DROP_LABELS,
    STATEMENT_ADD_LABEL,
    STATEMENT_DROP_MOUNTS,
    STATEMENT_ADD_MOUNT,
    STATEMENT_PUT_METADATA,
    STATEMENT_PUT_NETWORK,
    STATEMENT_PUT_EXPIRY,
    STATEMENT_REMOVE,
    STATEMENT_ADD_SNAPSHOT,
    STATEMENT_REPARENT,
    STATEMENT_REBASE,
    STATEMENT_REMOVE_SNAPSHOT,
    STATEMENT_NOTE_SNAPSHOT,
    STATEMENT_LIST,
    STATEMENT_LIST_LABELS,
    STATEMENT_LIST_MOUNTS,
    STATEMENT_GET_METADATA,
    STATEMENT_GET_NETWORK,
    STATEMENT_LIST_SNAPSHOTS,
    STATEMENT_ADD_VOLUME,
    STATEMENT_REMOVE_VOLUME,
    STATEMENT_FIND_VOLUME,
    STATEMENT_LIST_VOLUMES,
    STATEMENT_ADD_TEMPLATE,
    STATEMENT_REMOVE_TEMPLATE,
    STATEMENT_UNNAME_TEMPLATE,
    STATEMENT_NAME_TEMPLATE,
    STATEMENT_GET_TEMPLATE,
    STATEMENT_FIND_TEMPLATE,
    STATEMENT_LIST_TEMPLATES,
    STATEMENT_DROP_SHARES,
    STATEMENT_ADD_SHARE,
    STATEMENT_LIST_SHARES,
    STATEMENT_HAS_SHARE,
    STATEMENT_PUT_OWNER,
    STATEMENT_DROP_OWNER,
    STATEMENT_GET_OWNER,
    STATEMENT_PUT_CEILING,
    STATEMENT_DROP_CEILING,
    STATEMENT_DROP_CEILINGS,
    STATEMENT_LIST_CEILINGS,
    STATEMENT_PUT_SESSION,
    STATEMENT_REMOVE_SESSION,
    STATEMENT_LIST_SESSIONS,
    STATEMENT_PUT_SECRET,
    STATEMENT_REMOVE_SECRET,
    STATEMENT_LIST_SECRETS,
    STATEMENT_PUT_GRANTS,
    STATEMENT_GET_GRANTS,
    STATEMENT_COUNT_SEALED_NETWORKS,
    STATEMENT_PUT_PERMISSIONS,
    STATEMENT_GET_PERMISSIONS,
    STATEMENT_ADD_CODEBASE,
    STATEMENT_REMOVE_CODEBASE,
    STATEMENT_LIST_CODEBASES,
    STATEMENT_LIST_INCOMPLETE_CODEBASES,
    STATEMENT_MOVE_CODEBASE,
    STATEMENT_MOVE_CODEBASE_BASE,
    STATEMENT_ADD_VERSION,
    STATEMENT_LIST_VERSIONS,
    STATEMENT_PUT_APPLIED,
    STATEMENT_LIST_APPLIED,
    STATEMENT_PUT_LOGIN,
    STATEMENT_REMOVE_LOGIN,
    STATEMENT_LIST_LOGINS,
    STATEMENT_COUNT_LOGINS,
    STATEMENT_PUT_ARCHIVE,
    STATEMENT_REMOVE_ARCHIVE,
    STATEMENT_LIST_ARCHIVES,
    STATEMENTS
};

enum { REGISTRY_VERSION = 19 };

/* The SQL that leads from each version of the tables to the next. */
extern const char *const registry_schema[REGISTRY_VERSION];

struct registry {
    char *path;
    sqlite3 *db;
    struct lock lock; /* protects the connection and its statements */
    sqlite3_stmt *statements[STATEMENTS];
    int wal_fd; /* for flushes; SQLite keeps no lock on this file that closing it would drop */
    int mark_fd;
    struct wal_position wal;    /* the end of the log after the last transaction */
    struct wal_position marked; /* what the mark says */
    uint32_t lost_frames;       /* that were missing when it was opened */
    struct flush flush;
};

/* A committed transaction that may not be on disk yet. */
struct registry_write {
    uint64_t number;
    struct wal_position end;
};

/* Turns SQLite's last error into err; `doing` is the failed action, in the infinitive. */
int registry_explain(const struct registry *registry, const char *doing, struct err *err);

/* Fails with ERR_INTERNAL, naming the file, the reason and the remedy. */
int registry_damaged(const struct registry *registry, const char *why, struct err *err);

/* Fails with a bad value in this column. */
int registry_bad_value(const struct registry *registry, const struct row_layout *layout,
                       const char *column, struct err *err);

/* Maps a struct to a row: one column for each field, in the order of the table. */
struct row_field {
    const char *column;
    enum row_type {
        ROW_TEXT,
        ROW_TEXT_OR_NULL, /* "" is stored as NULL, which a unique column may hold many times */
        ROW_U32,
        ROW_U64,  /* stored as a signed number with the same bits */
        ROW_BOOL, /* 0 or 1 */
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

extern const struct row_layout row_sandbox, row_label, row_mount, row_snapshot, row_volume,
    row_template, row_share, row_ceiling, row_session, row_secret, row_codebase, row_version,
    row_applied, row_login, row_archive;

/* Appends "a, b, c", "?2, ?3, ?4" (first = 2) or "b = excluded.b, c = excluded.c". The last one
 * leaves out the key, the first column: setting it, even to itself, would make SQLite search all
 * rows that refer to it. */
int row_sql_columns(const struct row_layout *layout, struct buf *sql);
int row_sql_values(const struct row_layout *layout, int first, struct buf *sql);
int row_sql_updates(const struct row_layout *layout, struct buf *sql);

/* Binds each field, starting at parameter `first`; texts must stay valid until the statement is
 * reset. Returns an SQLite result code. */
int row_bind(sqlite3_stmt *statement, int first, const struct row_layout *layout, const void *from);

/* Reads the columns of the current row. Returns NULL, or the column whose value is invalid: too
 * long, out of range or not a known word. */
const char *row_read(sqlite3_stmt *statement, const struct row_layout *layout, void *into);

/* --- statement.c ------------------------------------------------------------------------------ */

/* Resets a statement for its next use, under the lock: declare it after lock_scope(). */
void registry_reset(sqlite3_stmt **statement);

/* Binds a text that stays valid until the statement is reset. Returns an SQLite result code. */
int registry_bind_text(sqlite3_stmt *statement, int index, const char *text);

/* Runs a bound statement that returns no rows. `doing` is the action for errors. */
int registry_run(struct registry *registry, enum registry_statement which, const char *doing,
                 struct err *err);

/* Returns whether a statement failed because of a unique column. */
bool registry_is_duplicate(const struct registry *registry);

/* Takes the lock and begins a transaction. registry_commit or registry_end must follow, with the
 * result so far. */
int registry_begin(struct registry *registry, struct err *err);

/* Commits if r is not negative, otherwise rolls back; releases the lock in both cases. */
int registry_commit(struct registry *registry, int r, struct registry_write *ret_write,
                    struct err *err);

/* Waits until a committed transaction is on disk, without the lock: threads that commit at the same
 * time share one flush. */
int registry_flush(struct registry *registry, const struct registry_write *write, struct err *err);

/* Commits or rolls back, and waits for the disk after a commit. */
int registry_end(struct registry *registry, int r, struct err *err);

/* A growing array of rows. */
struct row_list {
    char *items;
    size_t item_size;
    size_t count;
    size_t capacity;
};

void row_list_done(struct row_list *list);

/* Appends all rows of a bound statement to the list. The caller holds the lock. */
int registry_read_rows(struct registry *registry, sqlite3_stmt *statement,
                       const struct row_layout *layout, struct row_list *list, struct err *err);

/* Removes the shares of an object. The caller has begun a transaction. */
int registry_drop_shares(struct registry *registry, enum share_kind kind, const char *object,
                         struct err *err);

/* The same for a statement with one parameter, a text. */
int registry_read_of(struct registry *registry, enum registry_statement which, const char *key,
                     const struct row_layout *layout, struct row_list *list, struct err *err);
