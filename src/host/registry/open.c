// SPDX-License-Identifier: Apache-2.0
/* The file has the application_id "Holt"; its user_version is the version of its schema (schema.c).
 *
 * SQLite keeps recent changes in holt.db-wal. A restored holt.db next to another file's -wal would
 * be damaged, so all of holt.db* must be moved together. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/access/session.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "host/image/login_registry.h"
#include "host/registry/registry_internal.h"
#include "host/secret/secret_registry.h"

enum {
    APPLICATION_ID = 0x486f6c74,
    BUSY_MS = 2000,
    VALUE_BYTES_MAX = 64 << 10, /* far above any row of ours; rejects what others wrote */
    SQL_BYTES_MAX = 8 << 10,
    WAL_FRAMES_MAX = 1000,
};

/* The missing statements name every field of a struct and are generated from its layout. */
static const char *const statement_texts[STATEMENTS] = {
    [STATEMENT_BEGIN] = "BEGIN IMMEDIATE",
    [STATEMENT_COMMIT] = "COMMIT",
    [STATEMENT_ROLLBACK] = "ROLLBACK",
    [STATEMENT_DROP_LABELS] = "DELETE FROM labels WHERE sandbox = ?1",
    [STATEMENT_ADD_LABEL] =
        "INSERT INTO labels (sandbox, position, key, value) VALUES (?1, ?2, ?3, ?4)",
    [STATEMENT_DROP_MOUNTS] = "DELETE FROM mounts WHERE sandbox = ?1",
    [STATEMENT_ADD_MOUNT] =
        "INSERT INTO mounts (sandbox, path, depot, read_only) VALUES (?1, ?2, ?3, ?4)",
    [STATEMENT_PUT_METADATA] = ("INSERT INTO notes (sandbox, note) VALUES (?1, ?2)"
                                " ON CONFLICT (sandbox) DO UPDATE SET note = excluded.note"),
    [STATEMENT_PUT_NETWORK] = ("INSERT INTO networks (sandbox, policy) VALUES (?1, ?2)"
                               " ON CONFLICT (sandbox) DO UPDATE SET policy = excluded.policy"),
    [STATEMENT_PUT_EXPIRY] =
        "UPDATE sandboxes SET expires_ms = ?2, expire_action = ?3 WHERE id = ?1",
    [STATEMENT_GET_METADATA] = "SELECT note FROM notes WHERE sandbox = ?1",
    [STATEMENT_GET_NETWORK] = "SELECT policy FROM networks WHERE sandbox = ?1",
    [STATEMENT_REMOVE] = "DELETE FROM sandboxes WHERE id = ?1",
    [STATEMENT_REPARENT] = ("UPDATE snapshots SET parent = coalesce((SELECT parent FROM snapshots"
                            " WHERE sandbox = ?1 AND name = ?2), '')"
                            " WHERE sandbox = ?1 AND parent = ?2"),
    [STATEMENT_REBASE] = ("UPDATE sandboxes SET base = coalesce((SELECT parent FROM snapshots"
                          " WHERE sandbox = ?1 AND name = ?2), '')"
                          " WHERE id = ?1 AND base = ?2"),
    [STATEMENT_REMOVE_SNAPSHOT] =
        "DELETE FROM snapshots WHERE sandbox = ?1 AND name = ?2 RETURNING parent",
    [STATEMENT_NOTE_SNAPSHOT] =
        "UPDATE snapshots SET note = ?3 WHERE sandbox = ?1 AND name = ?2 RETURNING 1",
    [STATEMENT_LIST_LABELS] = "SELECT key, value FROM labels WHERE sandbox = ?1 ORDER BY position",
    [STATEMENT_ADD_VOLUME] = "INSERT INTO volumes (id, owner, name, token) VALUES (?1, ?2, ?3, ?4)",
    [STATEMENT_REMOVE_VOLUME] = "DELETE FROM volumes WHERE id = ?1",
    [STATEMENT_FIND_VOLUME] =
        ("SELECT id, owner, name, token FROM volumes WHERE id = ?1 OR name = ?1"
         " ORDER BY id = ?1 DESC, number"),
    [STATEMENT_LIST_VOLUMES] = "SELECT id, owner, name, token FROM volumes ORDER BY number",
    [STATEMENT_ADD_TEMPLATE] =
        "INSERT INTO templates (store_name, owner, name) VALUES (?1, ?2, ?3)",
    [STATEMENT_REMOVE_TEMPLATE] = "DELETE FROM templates WHERE store_name = ?1",
    [STATEMENT_UNNAME_TEMPLATE] = "UPDATE templates SET name = ?3 WHERE owner = ?1 AND name = ?2",
    [STATEMENT_NAME_TEMPLATE] = "UPDATE templates SET name = ?2 WHERE store_name = ?1",
    [STATEMENT_GET_TEMPLATE] =
        "SELECT store_name, owner, name FROM templates WHERE store_name = ?1",
    [STATEMENT_FIND_TEMPLATE] =
        "SELECT store_name, owner, name FROM templates WHERE name = ?1 ORDER BY number",
    [STATEMENT_LIST_TEMPLATES] = "SELECT store_name, owner, name FROM templates ORDER BY number",
    [STATEMENT_DROP_SHARES] = "DELETE FROM shares WHERE kind = ?1 AND object = ?2",
    [STATEMENT_ADD_SHARE] = "INSERT INTO shares (kind, object, owner) VALUES (?1, ?2, ?3)",
    [STATEMENT_LIST_SHARES] =
        "SELECT owner FROM shares WHERE kind = ?1 AND object = ?2 ORDER BY owner",
    [STATEMENT_HAS_SHARE] =
        "SELECT 1 FROM shares WHERE kind = ?1 AND object = ?2 AND owner IN ('*', ?3) LIMIT 1",
    [STATEMENT_PUT_OWNER] = ("INSERT INTO template_owners (template, owner) VALUES (?1, ?2)"
                             " ON CONFLICT (template) DO UPDATE SET owner = excluded.owner"),
    [STATEMENT_DROP_OWNER] = "DELETE FROM template_owners WHERE template = ?1",
    [STATEMENT_GET_OWNER] = "SELECT owner FROM template_owners WHERE template = ?1",
    [STATEMENT_PUT_CEILING] = ("INSERT INTO ceilings (owner, name, value) VALUES (?1, ?2, ?3)"
                               " ON CONFLICT (owner, name) DO UPDATE SET value = excluded.value"),
    [STATEMENT_DROP_CEILING] = "DELETE FROM ceilings WHERE owner = ?1 AND name = ?2",
    [STATEMENT_DROP_CEILINGS] = "DELETE FROM ceilings WHERE owner = ?1",
    [STATEMENT_LIST_CEILINGS] = "SELECT owner, name, value FROM ceilings ORDER BY owner, name",
    [STATEMENT_PUT_SESSION] =
        ("INSERT INTO sessions (id, owner, role, token, main_mark, scope, cookie_hash, key_hash,"
         " address, agent, created_ms, expires_ms, sandbox, port, parent)"
         " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)"),
    [STATEMENT_REMOVE_SESSION] = "DELETE FROM sessions WHERE id = ?1",
    [STATEMENT_LIST_SESSIONS] =
        ("SELECT id, owner, role, token, main_mark, scope, cookie_hash, key_hash, address, agent,"
         " created_ms, expires_ms, sandbox, port, parent FROM sessions ORDER BY created_ms, id"),
    [STATEMENT_PUT_SECRET] =
        ("INSERT INTO secrets (id, owner, name, kind, use, sealed, created_ms, changed_ms)"
         " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
         " ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, use = excluded.use,"
         " sealed = excluded.sealed, changed_ms = excluded.changed_ms"),
    [STATEMENT_REMOVE_SECRET] = "DELETE FROM secrets WHERE id = ?1",
    [STATEMENT_LIST_SECRETS] =
        ("SELECT id, owner, name, kind, use, sealed, created_ms, changed_ms FROM secrets"
         " ORDER BY number"),
    [STATEMENT_PUT_LOGIN] =
        ("INSERT INTO image_logins (owner, registry, username, sealed, changed_ms)"
         " VALUES (?1, ?2, ?3, ?4, ?5)"
         " ON CONFLICT (owner, registry) DO UPDATE SET username = excluded.username,"
         " sealed = excluded.sealed, changed_ms = excluded.changed_ms"),
    [STATEMENT_REMOVE_LOGIN] = "DELETE FROM image_logins WHERE owner = ?1 AND registry = ?2",
    [STATEMENT_LIST_LOGINS] = ("SELECT owner, registry, username, sealed, changed_ms"
                               " FROM image_logins ORDER BY owner, registry"),
    [STATEMENT_COUNT_LOGINS] = "SELECT count(*) FROM image_logins",
    [STATEMENT_PUT_GRANTS] = ("INSERT INTO secret_grants (sandbox, grants) VALUES (?1, ?2)"
                              " ON CONFLICT (sandbox) DO UPDATE SET grants = excluded.grants"),
    [STATEMENT_GET_GRANTS] = "SELECT grants FROM secret_grants WHERE sandbox = ?1",
    [STATEMENT_COUNT_SEALED_NETWORKS] =
        "SELECT count(*) FROM networks WHERE policy LIKE '%\"sealed\":%'",
    [STATEMENT_PUT_PERMISSIONS] = ("INSERT INTO permissions (sandbox, rules) VALUES (?1, ?2)"
                                   " ON CONFLICT (sandbox) DO UPDATE SET rules = excluded.rules"),
    [STATEMENT_GET_PERMISSIONS] = "SELECT rules FROM permissions WHERE sandbox = ?1",
    [STATEMENT_ADD_CODEBASE] =
        "INSERT INTO codebases (id, owner, name, source, head) VALUES (?1, ?2, ?3, ?4, ?5)",
    [STATEMENT_REMOVE_CODEBASE] = "DELETE FROM codebases WHERE id = ?1",
    [STATEMENT_LIST_CODEBASES] = ("SELECT id, owner, name, source, head FROM codebases WHERE id IN"
                                  " (SELECT codebase FROM codebase_versions) ORDER BY number"),
    [STATEMENT_LIST_INCOMPLETE_CODEBASES] =
        ("SELECT id, owner, name, source, head FROM codebases WHERE id NOT IN"
         " (SELECT codebase FROM codebase_versions) ORDER BY number"),
    [STATEMENT_MOVE_CODEBASE] = "UPDATE codebases SET head = ?2 WHERE id = ?1 AND head = ?3",
    [STATEMENT_MOVE_CODEBASE_BASE] = "UPDATE sandboxes SET codebase_base = ?2 WHERE id = ?1",
    [STATEMENT_ADD_VERSION] =
        ("INSERT INTO codebase_versions (codebase, version, created_ms, sandbox, message, files)"
         " VALUES (?1, ?2, ?3, ?4, ?5, ?6)"),
    [STATEMENT_LIST_VERSIONS] =
        ("SELECT version, created_ms, sandbox, message, files FROM codebase_versions"
         " WHERE codebase = ?1 ORDER BY version DESC"),
    [STATEMENT_PUT_APPLIED] =
        ("INSERT INTO codebase_applied (codebase, directory, version, wanted)"
         " VALUES (?1, ?2, ?3, ?4) ON CONFLICT (codebase, directory)"
         " DO UPDATE SET version = excluded.version, wanted = excluded.wanted"),
    [STATEMENT_LIST_APPLIED] = ("SELECT codebase, directory, version, wanted FROM codebase_applied"
                                " ORDER BY codebase, directory"),
    [STATEMENT_PUT_ARCHIVE] =
        ("INSERT INTO archives (mark, sandbox, owner, stage) VALUES (?1, ?2, ?3, ?4)"
         " ON CONFLICT (mark) DO UPDATE SET stage = excluded.stage"),
    [STATEMENT_REMOVE_ARCHIVE] = "DELETE FROM archives WHERE mark = ?1",
    [STATEMENT_LIST_ARCHIVES] =
        "SELECT mark, sandbox, owner, stage FROM archives ORDER BY owner, sandbox, mark",
    [STATEMENT_LIST_MOUNTS] =
        "SELECT path, depot, read_only FROM mounts WHERE sandbox = ?1 ORDER BY path",
};

DEFINE_CLEANUP(registry_close, struct registry *);

DEFINE_CLEANUP(sqlite3_finalize, sqlite3_stmt *);

int registry_damaged(const struct registry *registry, const char *why, struct err *err)
{
    const char *slash = strrchr(registry->path, '/');
    const char *file = slash ? slash + 1 : registry->path;

    return err_set(err, ERR_INTERNAL,
                   "registry %s is damaged (%.50s); stop holtd, move %s* away, then restore a "
                   "backup or what 'sqlite3 %s .dump' can read (docs/registry.md)",
                   registry->path, why, file, file);
}

int registry_bad_value(const struct registry *registry, const struct row_layout *layout,
                       const char *column, struct err *err)
{
    char why[64];

    (void)snprintf(why, sizeof(why), "bad %s in %s", column, layout->table);
    return registry_damaged(registry, why, err);
}

static int registry_read_only(const struct registry *registry, struct err *err)
{
    return err_set(err, ERR_INTERNAL,
                   "registry %s cannot be written; make the file and its directory writable",
                   registry->path);
}

int registry_explain(const struct registry *registry, const char *doing, struct err *err)
{
    int code = sqlite3_errcode(registry->db) & 0xff;
    bool has_errno = code == SQLITE_IOERR || code == SQLITE_CANTOPEN;
    int errnum = has_errno ? sqlite3_system_errno(registry->db) : 0;
    const char *why = sqlite3_errmsg(registry->db);

    if (code == SQLITE_BUSY || code == SQLITE_LOCKED)
        return err_set(err, ERR_BUSY, "registry %s is locked by another process", registry->path);
    if (code == SQLITE_FULL || errnum == ENOSPC || errnum == EDQUOT)
        return err_set(err, ERR_EXHAUSTED, "%s in registry %s: the disk is full", doing,
                       registry->path);
    if (code == SQLITE_READONLY || errnum == EROFS)
        return registry_read_only(registry, err);
    if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB || code == SQLITE_TOOBIG)
        return registry_damaged(registry, why, err);
    if (errnum > 0)
        return err_sys(err, -errnum, "%s in registry %s: %.60s", doing, registry->path, why);
    return err_set(err, ERR_INTERNAL, "%s in registry %s: %.100s", doing, registry->path, why);
}

/* Makes an empty file that only root can read, unless the file exists. SQLite would delete a -wal
 * next to an empty file, and that may be the only copy of the data. */
static int make_file(const char *path, struct err *err)
{
    cleanup_free char *wal = xasprintf("%s-wal", path);
    cleanup_close int fd = -EBADF;
    struct stat st;

    if (stat(path, &st) == 0 && (!S_ISREG(st.st_mode) || st.st_size > 0))
        return 0;
    if (stat(wal, &st) == 0 && st.st_size > 0)
        return err_set(err, ERR_INTERNAL,
                       "registry %s is missing or empty, but there are changes to it in %s; "
                       "restore the file, or move both away",
                       path, wal);
    fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno != EEXIST)
        return err_sys(err, -errno, "make registry %s", path);
    return 0;
}

/* Remembers the end of the log after a commit, and lets SQLite move a long log into the file, which
 * it would do itself without this hook. */
static int wal_committed(void *context, sqlite3 *db, const char *name, int frames)
{
    struct registry *registry = context;

    if (registry->wal_fd >= 0 && wal_read_salt(registry->wal_fd, registry->wal.salt) == 0)
        registry->wal.frames = (uint32_t)frames;
    if (frames >= WAL_FRAMES_MAX)
        (void)sqlite3_wal_checkpoint_v2(db, name, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    return SQLITE_OK;
}

static int connect_file(struct registry *registry, struct err *err)
{
    /* Our own lock serializes all threads; SQLite's would be a second one. */
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;

    if (sqlite3_open_v2(registry->path, &registry->db, flags, NULL) != SQLITE_OK)
        return registry_explain(registry, "open the file", err);
    /* SQLite silently falls back to a read-only connection. */
    if (sqlite3_db_readonly(registry->db, "main"))
        return registry_read_only(registry, err);
    (void)sqlite3_limit(registry->db, SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX);
    (void)sqlite3_db_config(registry->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void)sqlite3_db_config(registry->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    (void)sqlite3_busy_timeout(registry->db, BUSY_MS);
    (void)sqlite3_wal_hook(registry->db, wal_committed, registry);
    return 0;
}

static int run_sql(struct registry *registry, const char *sql, const char *doing, struct err *err)
{
    if (sqlite3_exec(registry->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        return registry_explain(registry, doing, err);
    return 0;
}

/* Reads the only value of a query. */
static int read_number(struct registry *registry, const char *sql, int64_t *ret, struct err *err)
{
    cleanup_with(sqlite3_finalize_slot) sqlite3_stmt *statement = NULL;

    if (sqlite3_prepare_v2(registry->db, sql, -1, &statement, NULL) != SQLITE_OK ||
        sqlite3_step(statement) != SQLITE_ROW)
        return registry_explain(registry, "read", err);
    *ret = sqlite3_column_int64(statement, 0);
    return 0;
}

/* Reads the version of the schema, 0 for an empty file; fails when the file is not a registry that
 * this program knows. */
static int registry_identify(struct registry *registry, int64_t *ret_version, struct err *err)
{
    int64_t application = 0, version = 0, tables = 0;

    if (read_number(registry, "PRAGMA application_id", &application, err) < 0 ||
        read_number(registry, "PRAGMA user_version", &version, err) < 0 ||
        read_number(registry, "SELECT count(*) FROM sqlite_schema", &tables, err) < 0)
        return -err->errnum;
    *ret_version = version;
    if (application == 0 && version == 0 && tables == 0)
        return 0;
    if (application != APPLICATION_ID)
        return err_set(err, ERR_INTERNAL,
                       "%s is not a registry of Holt but another program's database; move it away",
                       registry->path);
    if (version < 1)
        return registry_damaged(registry, "it has no version", err);
    if (version > REGISTRY_VERSION)
        return err_set(err, ERR_INTERNAL,
                       "registry %s is newer than this program (version %" PRId64
                       ", supported is %d); "
                       "use the Holt that wrote it, or restore an older backup",
                       registry->path, version, REGISTRY_VERSION);
    return 0;
}

static int check_pages(struct registry *registry, struct err *err)
{
    static const char *const heading = "*** in database main ***\n";
    cleanup_with(sqlite3_finalize_slot) sqlite3_stmt *statement = NULL;
    const char *verdict;

    if (sqlite3_prepare_v2(registry->db, "PRAGMA quick_check(1)", -1, &statement, NULL) !=
            SQLITE_OK ||
        sqlite3_step(statement) != SQLITE_ROW)
        return registry_explain(registry, "check the pages", err);
    verdict = (const char *)sqlite3_column_text(statement, 0);
    if (verdict && strcmp(verdict, "ok") == 0)
        return 0;
    if (verdict && strncmp(verdict, heading, strlen(heading)) == 0)
        verdict += strlen(heading);
    return registry_damaged(registry, verdict ? verdict : "no verdict", err);
}

static int sql_write_select(const struct row_layout *layout, struct buf *sql)
{
    int r = buf_add_str(sql, "SELECT ");

    return r >= 0 ? row_sql_columns(layout, sql) : r;
}

/* Compiles a statement. A failure means that a table or a column is missing. */
static int statement_compile(struct registry *registry, const char *sql, unsigned flags,
                             sqlite3_stmt **ret, struct err *err)
{
    if (sqlite3_prepare_v3(registry->db, sql, -1, flags, ret, NULL) == SQLITE_OK)
        return 0;
    if ((sqlite3_errcode(registry->db) & 0xff) == SQLITE_ERROR)
        return registry_damaged(registry, sqlite3_errmsg(registry->db), err);
    return registry_explain(registry, "prepare statements", err);
}

/* Reads every value once. SQLite compares keys as a whole, however long they are, so texts that are
 * too long must be found before the first lookup. `key` is a column that is in no struct. */
static int check_rows(struct registry *registry, const struct row_layout *layout, const char *key,
                      struct err *err)
{
    cleanup_with(buf_done) struct buf sql = BUF_INIT(SQL_BYTES_MAX);
    cleanup_with(sqlite3_finalize_slot) sqlite3_stmt *statement = NULL;
    union {
        struct sandbox_info sandbox;
        struct label label;
        struct sandbox_mount mount;
        struct snapshot_info snapshot;
        struct template_record template;
        struct share share;
        struct session_row session;
        struct secret_row secret;
        struct login_row login;
    } row;
    int r = sql_write_select(layout, &sql);
    int rc;

    if (r >= 0)
        r = buf_printf(&sql, ", %s FROM %s", key, layout->table);
    if (r < 0)
        return err_sys(err, r, "check registry %s", registry->path);
    r = statement_compile(registry, sql.data, 0, &statement, err);
    if (r < 0)
        return r;
    while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
        const char *bad = row_read(statement, layout, &row);

        if (bad)
            return registry_bad_value(registry, layout, bad, err);
    }
    return rc == SQLITE_DONE ? 0 : registry_explain(registry, "check the rows", err);
}

static int check_tables(struct registry *registry, struct err *err)
{
    int r = check_rows(registry, &row_sandbox, "number", err);

    if (r >= 0)
        r = check_rows(registry, &row_label, "sandbox", err);
    if (r >= 0)
        r = check_rows(registry, &row_mount, "sandbox", err);
    if (r >= 0)
        r = check_rows(registry, &row_snapshot, "sandbox", err);
    if (r >= 0)
        r = check_rows(registry, &row_template, "number", err);
    if (r >= 0)
        r = check_rows(registry, &row_share, "kind", err);
    if (r >= 0)
        r = check_rows(registry, &row_session, "id", err);
    if (r >= 0)
        r = check_rows(registry, &row_secret, "number", err);
    if (r >= 0)
        r = check_rows(registry, &row_login, "owner", err);
    return r;
}

/* Creates or upgrades the tables in one transaction, whose lock also proves that no other process
 * writes. Identifies the file again under that lock. */
static int make_schema(struct registry *registry, struct err *err)
{
    cleanup_free char *pragmas = xasprintf("PRAGMA application_id = %d; PRAGMA user_version = %d;",
                                           APPLICATION_ID, REGISTRY_VERSION);
    int64_t version = 0;
    int r = run_sql(registry, "BEGIN IMMEDIATE", "begin a transaction", err);

    if (r < 0)
        return r;
    r = registry_identify(registry, &version, err);
    for (; r >= 0 && version < REGISTRY_VERSION; version++)
        r = run_sql(registry, registry_schema[version], "make the tables", err);
    if (r >= 0)
        r = check_tables(registry, err);
    if (r >= 0)
        r = run_sql(registry, pragmas, "make the tables", err);
    if (r >= 0)
        r = run_sql(registry, "COMMIT", "make the tables", err);
    return r;
}

static int sql_write_put(struct buf *sql)
{
    int r = buf_add_str(sql, "INSERT INTO sandboxes (");

    if (r >= 0)
        r = row_sql_columns(&row_sandbox, sql);
    if (r >= 0)
        r = buf_add_str(sql, ") VALUES (");
    if (r >= 0)
        r = row_sql_values(&row_sandbox, 1, sql);
    if (r >= 0)
        r = buf_add_str(sql, ") ON CONFLICT (id) DO UPDATE SET ");
    if (r >= 0)
        r = row_sql_updates(&row_sandbox, sql);
    return r;
}

static int sql_write_add_snapshot(struct buf *sql)
{
    int r = buf_add_str(sql, "INSERT INTO snapshots (sandbox, ");

    if (r >= 0)
        r = row_sql_columns(&row_snapshot, sql);
    if (r >= 0)
        r = buf_add_str(sql, ") VALUES (?1, ");
    if (r >= 0)
        r = row_sql_values(&row_snapshot, 2, sql);
    return r >= 0 ? buf_add_str(sql, ")") : r;
}

static int sql_write_list(const struct row_layout *layout, const char *where, struct buf *sql)
{
    int r = sql_write_select(layout, sql);

    return r >= 0 ? buf_printf(sql, " FROM %s %s ORDER BY number", layout->table, where) : r;
}

static int sql_write_statement(enum registry_statement which, struct buf *sql)
{
    if (which == STATEMENT_PUT)
        return sql_write_put(sql);
    if (which == STATEMENT_ADD_SNAPSHOT)
        return sql_write_add_snapshot(sql);
    if (which == STATEMENT_LIST)
        return sql_write_list(&row_sandbox, "", sql);
    if (which == STATEMENT_LIST_SNAPSHOTS)
        return sql_write_list(&row_snapshot, "WHERE sandbox = ?1", sql);
    return buf_add_str(sql, statement_texts[which]);
}

static int statements_prepare(struct registry *registry, struct err *err)
{
    cleanup_with(buf_done) struct buf sql = BUF_INIT(SQL_BYTES_MAX);

    for (unsigned i = 0; i < STATEMENTS; i++) {
        int r;

        buf_clear(&sql);
        r = sql_write_statement(i, &sql);
        if (r < 0)
            return err_sys(err, r, "prepare registry %s", registry->path);
        r = statement_compile(registry, sql.data, SQLITE_PREPARE_PERSISTENT,
                              &registry->statements[i], err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Writes nothing before the file is known to be a sound registry. */
static int registry_set_up(struct registry *registry, struct err *err)
{
    int64_t version = 0;
    int r = registry_identify(registry, &version, err);

    if (r >= 0)
        r = run_sql(registry, "PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY", "set up",
                    err);
    if (r >= 0 && version > 0)
        r = check_pages(registry, err);
    if (r >= 0 && version == REGISTRY_VERSION)
        r = check_tables(registry, err);
    if (r >= 0 && chmod(registry->path, 0600) < 0)
        r = err_sys(err, -errno, "make registry %s private", registry->path);
    /* NORMAL: a commit does not wait for the disk, registry_flush does, outside of the lock. */
    if (r >= 0)
        r = run_sql(registry,
                    "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
                    "PRAGMA foreign_keys = OFF", /* they would empty the tables of version 7 */
                    "set up", err);
    if (r >= 0)
        r = make_schema(registry, err);
    if (r >= 0)
        r = run_sql(registry, "PRAGMA foreign_keys = ON", "set up", err);
    return r >= 0 ? statements_prepare(registry, err) : r;
}

/* Opens the -wal for flushes. SQLite has just made it, if it did not exist, and removes it when the
 * last connection closes, so this one stays the same file. */
static int wal_open(struct registry *registry, struct err *err)
{
    cleanup_free char *wal = xasprintf("%s-wal", registry->path);
    cleanup_free char *path = xstrdup(registry->path);
    cleanup_close int dir_fd = open(dirname(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    registry->wal_fd = open(wal, O_RDWR | O_CLOEXEC);
    if (registry->wal_fd < 0)
        return err_sys(err, -errno, "open %s", wal);
    if (dir_fd < 0 || fdatasync(registry->wal_fd) < 0 || fsync(dir_fd) < 0)
        return err_sys(err, -errno, "flush registry %s", registry->path);
    registry->mark_fd = wal_mark_open(registry->path, err);
    return registry->mark_fd < 0 ? registry->mark_fd : 0;
}

/* Moves the whole log into the file. SQLite flushes both. */
static bool wal_empty(struct registry *registry)
{
    int frames = -1, moved = -1;

    return sqlite3_wal_checkpoint_v2(registry->db, NULL, SQLITE_CHECKPOINT_FULL, &frames, &moved) ==
               SQLITE_OK &&
           frames >= 0 && frames == moved;
}

int registry_open(const char *path, struct registry **ret, struct err *err)
{
    cleanup_with(registry_close_slot) struct registry *registry = NULL;
    uint32_t lost = 0;
    int r = make_file(path, err);

    if (r == 0)
        r = wal_check(path, &lost, err);
    if (r < 0)
        return r;
    registry = xcalloc(1, sizeof(*registry));
    registry->path = xstrdup(path);
    lock_init(&registry->lock, LOCK_REGISTRY);
    flush_init(&registry->flush);
    registry->wal_fd = registry->mark_fd = -EBADF;
    registry->lost_frames = lost;
    r = connect_file(registry, err);
    if (r >= 0)
        r = registry_set_up(registry, err);
    if (r >= 0)
        r = wal_open(registry, err);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(registry);
    return 0;
}

uint32_t registry_lost_frames(const struct registry *registry)
{
    return registry->lost_frames;
}

void registry_close(struct registry *registry)
{
    if (!registry)
        return;
    for (size_t i = 0; i < STATEMENTS; i++)
        (void)sqlite3_finalize(registry->statements[i]);
    /* In this order: there is a mark only while there is a log with all that is not in the file. */
    if (registry->mark_fd >= 0 && wal_empty(registry))
        wal_mark_remove(registry->path);
    (void)fd_close(registry->mark_fd);
    (void)sqlite3_close(registry->db);
    (void)fd_close(registry->wal_fd);
    flush_destroy(&registry->flush);
    lock_destroy(&registry->lock);
    free(registry->path);
    free(registry);
}
