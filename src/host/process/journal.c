// SPDX-License-Identifier: Apache-2.0
#include "host/process/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "host/process/journal_text.h"
#include "host/process/record_internal.h"
#include "wire/frame.h"

enum { SCHEMA_VERSION = 1, BUSY_MS = 10 * 1000 };

/* The numeric columns. */
enum number {
    NUMBER,
    STARTED_MS,
    PID,
    OOM_KILLS, /* of the sandbox, before the process started */
    ENDED_MS,
    RESTARTS,
    HOST_PORT,
    OUT_BYTES,
    ERR_BYTES,
    OUT_BASE, /* where the output of the present run begins */
    ERR_BASE,
    NUMBERS
};

#define NUMBER_COLUMNS                                                                             \
    "number, started_ms, pid, oom_kills, ended_ms, restarts, host_port, out_bytes, err_bytes, "    \
    "out_base, err_base"

/* The columns after them: spec, outcome (or NULL), and output that is in no file. */
enum { SPEC = NUMBERS, ENDED, OUT, ERR, SANDBOX };

static const char *const times_names[PROCESS_STREAMS] = { "outTimes", "errTimes" };

static const char schema[] = "CREATE TABLE IF NOT EXISTS processes (" NUMBER_COLUMNS
                             ", spec TEXT NOT NULL, ended TEXT, out BLOB, err BLOB,"
                             " sandbox TEXT NOT NULL,"
                             " PRIMARY KEY (sandbox, number)) WITHOUT ROWID;";

enum statement { PUT, LOAD, REMOVE, REMOVE_SANDBOX, BEGIN, COMMIT, ROLLBACK, STATEMENTS };

static const char *const statement_texts[STATEMENTS] = {
    [PUT] = ("INSERT OR REPLACE INTO processes VALUES "
             "(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)"),
    [LOAD] = "SELECT * FROM processes WHERE sandbox = ?1 ORDER BY number",
    [REMOVE] = "DELETE FROM processes WHERE sandbox = ?1 AND number = ?2",
    [REMOVE_SANDBOX] = "DELETE FROM processes WHERE sandbox = ?1",
    [BEGIN] = "BEGIN IMMEDIATE",
    [COMMIT] = "COMMIT",
    [ROLLBACK] = "ROLLBACK",
};

struct journal {
    char *path;
    sqlite3 *db;
    struct lock lock; /* protects the connection and its statements */
    sqlite3_stmt *statements[STATEMENTS];
};

static int journal_error(const struct journal *journal, const char *doing, struct err *err)
{
    return err_set(err, ERR_INTERNAL, "%s in journal %s: %.100s", doing, journal->path,
                   sqlite3_errmsg(journal->db));
}

static void statement_reset(sqlite3_stmt **statement)
{
    (void)sqlite3_reset(*statement);
    (void)sqlite3_clear_bindings(*statement);
}

/* --- opening --------------------------------------------------------------------------------- */

static int journal_set_up(struct journal *journal, struct err *err)
{
    cleanup_free char *version = xasprintf("PRAGMA user_version = %d", SCHEMA_VERSION);
    /* Mode 0600, as an environment may contain secrets. */
    cleanup_close int fd = open(journal->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0)
        return err_sys(err, -errno, "create journal %s", journal->path);
    if (sqlite3_open_v2(journal->path, &journal->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                        NULL) != SQLITE_OK)
        return journal_error(journal, "open the file", err);
    (void)sqlite3_busy_timeout(journal->db, BUSY_MS);
    if (sqlite3_exec(journal->db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF", NULL, NULL,
                     NULL) != SQLITE_OK ||
        sqlite3_exec(journal->db, schema, NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_exec(journal->db, version, NULL, NULL, NULL) != SQLITE_OK)
        return journal_error(journal, "create the table", err);
    for (int i = 0; i < STATEMENTS; i++)
        if (sqlite3_prepare_v3(journal->db, statement_texts[i], -1, SQLITE_PREPARE_PERSISTENT,
                               &journal->statements[i], NULL) != SQLITE_OK)
            return journal_error(journal, "prepare statements", err);
    return 0;
}

static void journal_close_db(struct journal *journal)
{
    for (int i = 0; i < STATEMENTS; i++) {
        (void)sqlite3_finalize(journal->statements[i]);
        journal->statements[i] = NULL;
    }
    (void)sqlite3_close(journal->db);
    journal->db = NULL;
}

static void journal_rename_bad(const struct journal *journal)
{
    static const char *const endings[] = { "", "-wal", "-shm" };

    for (size_t i = 0; i < ARRAY_SIZE(endings); i++) {
        cleanup_free char *from = xasprintf("%s%s", journal->path, endings[i]);
        cleanup_free char *to = xasprintf("%s.bad%s", journal->path, endings[i]);

        (void)rename(from, to);
    }
}

int journal_open(const char *path, struct journal **ret, struct err *err)
{
    struct journal *journal = xcalloc(1, sizeof(*journal));
    int r;

    journal->path = xstrdup(path);
    lock_init(&journal->lock, LOCK_JOURNAL);
    r = journal_set_up(journal, err);
    if (r < 0) {
        log_warn("%s; starting an empty journal, the old one is kept as %s.bad", err->msg, path);
        journal_close_db(journal);
        journal_rename_bad(journal);
        r = journal_set_up(journal, err);
    }
    if (r < 0)
        journal_close(journal);
    else
        *ret = journal;
    return r;
}

void journal_close(struct journal *journal)
{
    if (!journal)
        return;
    journal_close_db(journal);
    lock_destroy(&journal->lock);
    free(journal->path);
    free(journal);
}

/* --- writing --------------------------------------------------------------------------------- */

/* Runs a statement whose parameters are bound and that returns no rows. */
static int statement_run(struct journal *journal, enum statement which, const char *doing,
                         struct err *err)
{
    cleanup_with(statement_reset) sqlite3_stmt *statement = journal->statements[which];

    return sqlite3_step(statement) == SQLITE_DONE ? 0 : journal_error(journal, doing, err);
}

/* A row, copied from a record under its lock. */
struct journal_row {
    uint64_t numbers[NUMBERS];
    char *spec, *ended;
    char *data[PROCESS_STREAMS]; /* output of an ended process; NULL: in a file, or empty */
    size_t lens[PROCESS_STREAMS];
};

static void row_done(struct journal_row *row)
{
    free(row->spec);
    free(row->ended);
    for (int i = 0; i < PROCESS_STREAMS; i++)
        free(row->data[i]);
}

/* Locked. */
static bool record_has_end(const struct record *record)
{
    return record->is_over && !record->is_left;
}

/* Locked. */
static void row_copy_output(const struct record *record, int stream, struct journal_row *row)
{
    const struct window *window = &record->streams[stream].window;
    size_t len = (size_t)(window->end - window->start);

    row->numbers[OUT_BYTES + stream] = window->end;
    row->numbers[OUT_BASE + stream] = record->base[stream];
    if (!record_has_end(record) || record->streams[stream].spool.fd >= 0 || len == 0)
        return;
    row->data[stream] = malloc(len);
    if (row->data[stream])
        row->lens[stream] = window_copy(window, window->start, row->data[stream], len);
}

static char *json_to_text(json_t *value)
{
    cleanup_json json_t *owned = value;

    return owned ? json_dumps(owned, JSON_COMPACT) : NULL;
}

/* Returns the end of a process, with the times of its output. */
static json_t *end_write(const struct record *record)
{
    json_t *end = journal_end_write(&record->end);

    for (int i = 0; end && i < PROCESS_STREAMS; i++) {
        json_t *times = output_times_write(&record->streams[i].times);

        if (times)
            (void)json_object_set_new(end, times_names[i], times);
    }
    return end;
}

static void row_fill(struct record *record, struct journal_row *ret)
{
    ret->spec = json_to_text(journal_spec_write(record->spec));
    lock_take(&record->lock);
    ret->numbers[NUMBER] = record->number;
    ret->numbers[STARTED_MS] = record->started_ms;
    ret->numbers[PID] = record->pid;
    ret->numbers[OOM_KILLS] = record->oom_kills_before;
    ret->numbers[ENDED_MS] = record->ended_ms;
    ret->numbers[RESTARTS] = record->restarts;
    ret->numbers[HOST_PORT] = record->host_port;
    ret->ended = record_has_end(record) ? json_to_text(end_write(record)) : NULL;
    for (int i = 0; i < PROCESS_STREAMS; i++)
        row_copy_output(record, i, ret);
    lock_release(&record->lock);
}

/* Columns count from 0, parameters from 1. Returns an SQLite result code. */
static int row_bind(sqlite3_stmt *put, const char *sandbox, const struct journal_row *row)
{
    int rc = SQLITE_OK;

    for (int i = 0; rc == SQLITE_OK && i < NUMBERS; i++)
        rc = sqlite3_bind_int64(put, i + 1, (sqlite3_int64)row->numbers[i]);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_text(put, SPEC + 1, row->spec, -1, SQLITE_STATIC);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_text(put, ENDED + 1, row->ended, -1, SQLITE_STATIC);
    for (int i = 0; rc == SQLITE_OK && i < PROCESS_STREAMS; i++)
        rc = sqlite3_bind_blob64(put, OUT + i + 1, row->data[i], row->lens[i], SQLITE_STATIC);
    return rc == SQLITE_OK ? sqlite3_bind_text(put, SANDBOX + 1, sandbox, -1, SQLITE_STATIC) : rc;
}

static int journal_put_one(struct journal *journal, const struct journal_entry *entry,
                           struct err *err)
{
    cleanup_with(row_done) struct journal_row row = { .spec = NULL };
    cleanup_with(statement_reset) sqlite3_stmt *put = journal->statements[PUT];

    row_fill(entry->record, &row);
    if (!row.spec)
        return err_set(err, ERR_INTERNAL, "cannot encode process '%s': out of memory",
                       entry->record->id);
    if (row_bind(put, entry->sandbox, &row) != SQLITE_OK || sqlite3_step(put) != SQLITE_DONE)
        return journal_error(journal, "record a process", err);
    return 0;
}

int journal_put(struct journal *journal, const struct journal_entry *entries, size_t count,
                struct err *err)
{
    struct err ignored;
    int r;

    lock_scope(&journal->lock);
    r = statement_run(journal, BEGIN, "begin a transaction", err);
    if (r < 0)
        return r;
    for (size_t i = 0; r == 0 && i < count; i++)
        r = journal_put_one(journal, &entries[i], err);
    if (r == 0)
        r = statement_run(journal, COMMIT, "commit a transaction", err);
    if (r < 0 && !sqlite3_get_autocommit(journal->db))
        (void)statement_run(journal, ROLLBACK, "roll back a transaction", &ignored);
    return r;
}

/* --- reading --------------------------------------------------------------------------------- */

static json_t *column_json(sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);

    return text ? json_loads(text, 0, NULL) : NULL;
}

static uint64_t column_u64(sqlite3_stmt *row, int column)
{
    sqlite3_int64 value = sqlite3_column_int64(row, column);

    return value > 0 ? (uint64_t)value : 0;
}

/* The row has the end of the stream. */
static void row_read_output(sqlite3_stmt *row, struct record *record, int stream)
{
    uint64_t total = column_u64(row, OUT_BYTES + stream);
    const void *data = sqlite3_column_blob(row, OUT + stream);
    size_t len = (size_t)sqlite3_column_bytes(row, OUT + stream);
    struct window *window = &record->streams[stream].window;

    if (len > total)
        len = 0;
    window_init(window, FRAME_WINDOW, total - len);
    if (len > 0 && window_add(window, data, len) == 0)
        window_trim(window);
}

/* Returns a new record; NULL for a malformed row. */
static struct record *row_read_record(sqlite3_stmt *row, uint64_t disk_bytes)
{
    cleanup_json json_t *spec_value = column_json(row, SPEC);
    cleanup_json json_t *end_value = column_json(row, ENDED);
    cleanup_free struct process_spec *spec = spec_value ? journal_spec_read(spec_value) : NULL;
    struct process_end end = { .outcome = OUTCOME_NONE };
    struct record *record;

    if (!spec || column_u64(row, NUMBER) > UINT32_MAX ||
        (end_value && !journal_end_read(end_value, &end)))
        return NULL;
    record = record_new((uint32_t)column_u64(row, NUMBER), spec, disk_bytes);
    record->started_ms = column_u64(row, STARTED_MS);
    record->pid = (uint32_t)column_u64(row, PID);
    record->oom_kills_before = column_u64(row, OOM_KILLS);
    record->ended_ms = column_u64(row, ENDED_MS);
    record->ended_at = clock_boot_of_wall(record->ended_ms);
    record->restarts = (uint32_t)column_u64(row, RESTARTS);
    record->host_port = (uint16_t)column_u64(row, HOST_PORT);
    record->is_over = end_value;
    record->end = end;
    for (int i = 0; i < PROCESS_STREAMS; i++) {
        record->base[i] = column_u64(row, OUT_BASE + i);
        if (record->is_over)
            row_read_output(row, record, i);
        output_times_read(&record->streams[i].times, json_object_get(end_value, times_names[i]));
    }
    return record;
}

int journal_load(struct journal *journal, const char *sandbox, uint64_t disk_bytes, journal_fn each,
                 void *context, struct err *err)
{
    lock_scope(&journal->lock);
    cleanup_with(statement_reset) sqlite3_stmt *load = journal->statements[LOAD]; /* while locked */
    int rc;

    if (sqlite3_bind_text(load, 1, sandbox, -1, SQLITE_STATIC) != SQLITE_OK)
        return journal_error(journal, "read processes", err);
    while ((rc = sqlite3_step(load)) == SQLITE_ROW) {
        struct record *record = row_read_record(load, disk_bytes);

        if (record)
            each(context, record);
    }
    return rc == SQLITE_DONE ? 0 : journal_error(journal, "read processes", err);
}

/* --- removing -------------------------------------------------------------------------------- */

int journal_remove(struct journal *journal, const char *sandbox, uint32_t number, struct err *err)
{
    sqlite3_stmt *statement = journal->statements[REMOVE];

    lock_scope(&journal->lock);
    if (sqlite3_bind_text(statement, 1, sandbox, -1, SQLITE_STATIC) != SQLITE_OK ||
        sqlite3_bind_int64(statement, 2, number) != SQLITE_OK)
        return journal_error(journal, "remove a process", err);
    return statement_run(journal, REMOVE, "remove a process", err);
}

int journal_remove_sandbox(struct journal *journal, const char *sandbox, struct err *err)
{
    lock_scope(&journal->lock);
    if (sqlite3_bind_text(journal->statements[REMOVE_SANDBOX], 1, sandbox, -1, SQLITE_STATIC) !=
        SQLITE_OK)
        return journal_error(journal, "remove the processes of a sandbox", err);
    return statement_run(journal, REMOVE_SANDBOX, "remove the processes of a sandbox", err);
}
