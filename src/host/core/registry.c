// SPDX-License-Identifier: Apache-2.0
#include "host/core/registry.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/lock.h"
#include "base/xalloc.h"
#include "host/core/registry_internal.h"
#include "host/volume/named_volume.h"

/* A growing array of rows. */
struct row_list {
    char *items;
    size_t item_size;
    size_t count;
    size_t capacity;
};

static void row_list_done(struct row_list *list)
{
    free(list->items);
}

static void sandbox_list_done(struct row_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        sandbox_info_done((struct sandbox_info *)(void *)list->items + i);
    row_list_done(list);
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

/* Resets a statement for its next use, under the lock: declare it after lock_scope(). */
static void statement_reset(sqlite3_stmt **statement)
{
    (void)sqlite3_reset(*statement);
    (void)sqlite3_clear_bindings(*statement);
}

static int bind_text(sqlite3_stmt *statement, int index, const char *text)
{
    return sqlite3_bind_text(statement, index, text, -1, SQLITE_STATIC);
}

/* Runs a bound statement that returns no rows. */
static int statement_run(struct registry *registry, enum registry_statement which,
                         const char *doing, struct err *err)
{
    cleanup_with(statement_reset) sqlite3_stmt *statement = registry->statements[which];

    if (sqlite3_step(statement) != SQLITE_DONE)
        return registry_explain(registry, doing, err);
    return 0;
}

static int transaction_begin(struct registry *registry, struct err *err)
{
    lock_take(&registry->lock);
    return statement_run(registry, STATEMENT_BEGIN, "begin a transaction", err);
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

/* Waits until a committed transaction is on disk, without the lock: threads that commit at the same
 * time share one flush. */
static int registry_flush(struct registry *registry, const struct registry_write *write,
                          struct err *err)
{
    int r = flush_wait(&registry->flush, registry->wal_fd, write->number);

    if (r < 0)
        return err_sys(err, r, "flush registry %s", registry->path);
    mark_advance(registry, &write->end);
    return 0;
}

/* Commits when r is not negative, otherwise rolls back; releases the lock in both cases. */
static int transaction_finish(struct registry *registry, int r, struct registry_write *ret_write,
                              struct err *err)
{
    struct err ignored;

    if (r >= 0)
        r = statement_run(registry, STATEMENT_COMMIT, "commit", err);
    if (r < 0 && !sqlite3_get_autocommit(registry->db))
        (void)statement_run(registry, STATEMENT_ROLLBACK, "roll back", &ignored);
    if (r >= 0)
        *ret_write = (struct registry_write){ .number = flush_count_write(&registry->flush),
                                              .end = registry->wal };
    lock_release(&registry->lock);
    return r;
}

static int transaction_end(struct registry *registry, int r, struct err *err)
{
    struct registry_write write;

    r = transaction_finish(registry, r, &write, err);
    return r < 0 ? r : registry_flush(registry, &write, err);
}

static int put_labels(struct registry *registry, const struct sandbox_info *info, struct err *err)
{
    static const char *const doing = "record labels";
    int r;

    if (bind_text(registry->statements[STATEMENT_DROP_LABELS], 1, info->id) != SQLITE_OK)
        return registry_explain(registry, doing, err);
    r = statement_run(registry, STATEMENT_DROP_LABELS, doing, err);
    for (size_t i = 0; r >= 0 && i < info->label_count; i++) {
        sqlite3_stmt *add = registry->statements[STATEMENT_ADD_LABEL];

        if (bind_text(add, 1, info->id) != SQLITE_OK ||
            sqlite3_bind_int64(add, 2, (sqlite3_int64)i) != SQLITE_OK ||
            row_bind(add, 3, &row_label, &info->labels[i]) != SQLITE_OK)
            return registry_explain(registry, doing, err);
        r = statement_run(registry, STATEMENT_ADD_LABEL, doing, err);
    }
    return r;
}

/* Returns whether a statement failed because of a unique column. */
static bool is_unique_violation(const struct registry *registry)
{
    return sqlite3_extended_errcode(registry->db) == SQLITE_CONSTRAINT_UNIQUE;
}

static int put_sandbox(struct registry *registry, const struct sandbox_info *info, struct err *err)
{
    cleanup_with(statement_reset) sqlite3_stmt *put = registry->statements[STATEMENT_PUT];

    if (row_bind(put, 1, &row_sandbox, info) != SQLITE_OK || sqlite3_step(put) != SQLITE_DONE) {
        if (is_unique_violation(registry))
            return err_refuse(err, CAUSE_SESSION_EXISTS, "a sandbox named '%s' exists already",
                              info->name);
        return registry_explain(registry, "record a sandbox", err);
    }
    return put_labels(registry, info, err);
}

static int put_metadata(struct registry *registry, const char *id, const char *metadata,
                        struct err *err)
{
    sqlite3_stmt *put = registry->statements[STATEMENT_PUT_METADATA];

    if (bind_text(put, 1, id) != SQLITE_OK || bind_text(put, 2, metadata) != SQLITE_OK)
        return registry_explain(registry, "record metadata", err);
    return statement_run(registry, STATEMENT_PUT_METADATA, "record metadata", err);
}

static int put_mounts(struct registry *registry, const struct sandbox_info *info, struct err *err)
{
    sqlite3_stmt *add = registry->statements[STATEMENT_ADD_MOUNT];
    int r = 0;

    for (size_t i = 0; r >= 0 && i < info->mount_count; i++) {
        if (bind_text(add, 1, info->id) != SQLITE_OK ||
            row_bind(add, 2, &row_mount, &info->mounts[i]) != SQLITE_OK)
            return registry_explain(registry, "record mounts", err);
        r = statement_run(registry, STATEMENT_ADD_MOUNT, "record mounts", err);
    }
    return r;
}

/* Records the parts that are written once, at creation. The metadata has its own update later. */
static int put_created_parts(struct registry *registry, const struct sandbox_info *info,
                             struct err *err)
{
    int r = put_mounts(registry, info, err);

    return r >= 0 && info->metadata ? put_metadata(registry, info->id, info->metadata, err) : r;
}

static int put_snapshot(struct registry *registry, const char *id,
                        const struct snapshot_info *snapshot, struct err *err)
{
    cleanup_with(statement_reset) sqlite3_stmt *add = registry->statements[STATEMENT_ADD_SNAPSHOT];

    if (bind_text(add, 1, id) != SQLITE_OK ||
        row_bind(add, 2, &row_snapshot, snapshot) != SQLITE_OK ||
        sqlite3_step(add) != SQLITE_DONE) {
        if (is_unique_violation(registry))
            return err_refuse(err, CAUSE_SNAPSHOT_EXISTS,
                              "sandbox '%s' already has a snapshot '%.100s'", id, snapshot->name);
        return registry_explain(registry, "record a snapshot", err);
    }
    return 0;
}

static int labels_check(const struct sandbox_info *info, struct err *err)
{
    if (info->label_count <= SANDBOX_LABELS_MAX)
        return 0;
    return err_set(err, ERR_INVALID, "sandbox '%s' has %zu labels; at most %d are allowed",
                   info->id, info->label_count, SANDBOX_LABELS_MAX);
}

int registry_put(struct registry *registry, const struct sandbox_info *info, struct err *err)
{
    return registry_put_all(registry, info, 1, err);
}

/* Puts the sandboxes in one transaction, and returns the number of its write. */
static int put_all(struct registry *registry, const struct sandbox_info *infos, size_t count,
                   struct registry_write *ret_write, struct err *err)
{
    int r = 0;

    for (size_t i = 0; r >= 0 && i < count; i++)
        r = labels_check(&infos[i], err);
    if (r < 0)
        return r;
    r = transaction_begin(registry, err);
    for (size_t i = 0; r >= 0 && i < count; i++) {
        r = put_sandbox(registry, &infos[i], err);
        if (r >= 0 && infos[i].state == SANDBOX_CREATING)
            r = put_created_parts(registry, &infos[i], err);
    }
    return transaction_finish(registry, r, ret_write, err);
}

int registry_put_all(struct registry *registry, const struct sandbox_info *infos, size_t count,
                     struct err *err)
{
    struct registry_write write;
    int r = put_all(registry, infos, count, &write, err);

    return r < 0 ? r : registry_flush(registry, &write, err);
}

int registry_put_later(struct registry *registry, const struct sandbox_info *infos, size_t count,
                       struct err *err)
{
    struct registry_write ignored;

    return put_all(registry, infos, count, &ignored, err);
}

int registry_sync(struct registry *registry, struct err *err)
{
    struct registry_write write;

    lock_take(&registry->lock);
    write = (struct registry_write){ .number = flush_last_write(&registry->flush),
                                     .end = registry->wal };
    lock_release(&registry->lock);
    return registry_flush(registry, &write, err);
}

int registry_put_metadata(struct registry *registry, const char *id, const char *metadata,
                          struct err *err)
{
    int r = transaction_begin(registry, err);

    if (r >= 0)
        r = put_metadata(registry, id, metadata, err);
    return transaction_end(registry, r, err);
}

int registry_put_expiry(struct registry *registry, const char *id, uint64_t expires_ms,
                        enum sandbox_action action, struct err *err)
{
    int r = transaction_begin(registry, err);
    sqlite3_stmt *put = registry->statements[STATEMENT_PUT_EXPIRY];

    if (r >= 0 && (bind_text(put, 1, id) != SQLITE_OK ||
                   sqlite3_bind_int64(put, 2, (sqlite3_int64)expires_ms) != SQLITE_OK ||
                   bind_text(put, 3, sandbox_action_name(action)) != SQLITE_OK))
        r = registry_explain(registry, "record an expiry time", err);
    if (r >= 0)
        r = statement_run(registry, STATEMENT_PUT_EXPIRY, "record an expiry time", err);
    return transaction_end(registry, r, err);
}

int registry_put_snapshot(struct registry *registry, const struct sandbox_info *info,
                          const struct snapshot_info *snapshot, struct err *err)
{
    int r = labels_check(info, err);

    if (r < 0)
        return r;
    r = transaction_begin(registry, err);
    if (r >= 0)
        r = put_sandbox(registry, info, err);
    if (r >= 0)
        r = put_snapshot(registry, info->id, snapshot, err);
    return transaction_end(registry, r, err);
}

int registry_remove(struct registry *registry, const char *id, struct err *err)
{
    struct registry_write ignored;
    int r = transaction_begin(registry, err);

    if (r >= 0 && bind_text(registry->statements[STATEMENT_REMOVE], 1, id) != SQLITE_OK)
        r = registry_explain(registry, "remove", err);
    if (r >= 0)
        r = statement_run(registry, STATEMENT_REMOVE, "remove", err);
    return transaction_finish(registry, r, &ignored, err);
}

static int bind_snapshot(struct registry *registry, enum registry_statement which, const char *id,
                         const char *name, struct err *err)
{
    sqlite3_stmt *statement = registry->statements[which];

    if (bind_text(statement, 1, id) != SQLITE_OK || bind_text(statement, 2, name) != SQLITE_OK)
        return registry_explain(registry, "remove a snapshot", err);
    return 0;
}

static int change_snapshot(struct registry *registry, enum registry_statement which, const char *id,
                           const char *name, struct err *err)
{
    int r = bind_snapshot(registry, which, id, name, err);

    return r < 0 ? r : statement_run(registry, which, "remove a snapshot", err);
}

static int remove_snapshot(struct registry *registry, const char *id, const char *name,
                           char parent[static SNAPSHOT_NAME_MAX + 1], struct err *err)
{
    cleanup_with(statement_reset) sqlite3_stmt *remove =
        registry->statements[STATEMENT_REMOVE_SNAPSHOT];
    int rc, r = bind_snapshot(registry, STATEMENT_REMOVE_SNAPSHOT, id, name, err);

    if (r < 0)
        return r;
    parent[0] = '\0';
    while ((rc = sqlite3_step(remove)) == SQLITE_ROW)
        (void)snprintf(parent, SNAPSHOT_NAME_MAX + 1, "%s",
                       (const char *)sqlite3_column_text(remove, 0));
    return rc == SQLITE_DONE ? 0 : registry_explain(registry, "remove a snapshot", err);
}

int registry_remove_snapshot(struct registry *registry, const char *id, const char *name,
                             char ret_parent[static SNAPSHOT_NAME_MAX + 1], struct err *err)
{
    char parent[SNAPSHOT_NAME_MAX + 1];
    int r = transaction_begin(registry, err);

    if (r >= 0)
        r = change_snapshot(registry, STATEMENT_REPARENT, id, name, err);
    if (r >= 0)
        r = change_snapshot(registry, STATEMENT_REBASE, id, name, err);
    if (r >= 0)
        r = remove_snapshot(registry, id, name, parent, err);
    r = transaction_end(registry, r, err);
    if (r >= 0)
        memcpy(ret_parent, parent, sizeof(parent));
    return r;
}

/* Appends all rows of a bound statement to the list. */
static int read_rows(struct registry *registry, sqlite3_stmt *statement,
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

/* Appends the labels or mounts of one sandbox to the list. */
static int read_parts(struct registry *registry, enum registry_statement which, const char *id,
                      const struct row_layout *layout, struct row_list *list, struct err *err)
{
    cleanup_with(statement_reset) sqlite3_stmt *statement = registry->statements[which];

    if (bind_text(statement, 1, id) != SQLITE_OK)
        return registry_explain(registry, "list", err);
    return read_rows(registry, statement, layout, list, err);
}

static int read_labels(struct registry *registry, struct sandbox_info *info, struct err *err)
{
    cleanup_with(row_list_done) struct row_list list = { .item_size = sizeof(struct label) };
    int r = read_parts(registry, STATEMENT_LIST_LABELS, info->id, &row_label, &list, err);

    if (r < 0)
        return r;
    info->label_count = list.count;
    info->labels = (struct label *)(void *)TAKE_PTR(list.items);
    return 0;
}

static int read_mounts(struct registry *registry, struct sandbox_info *info, struct err *err)
{
    cleanup_with(row_list_done) struct row_list list = { .item_size =
                                                             sizeof(struct sandbox_mount) };
    int r = read_parts(registry, STATEMENT_LIST_MOUNTS, info->id, &row_mount, &list, err);

    if (r < 0)
        return r;
    if (list.count > SANDBOX_MOUNTS_MAX)
        return registry_damaged(registry, "too many mounts", err);
    info->mount_count = list.count;
    info->mounts = (struct sandbox_mount *)(void *)TAKE_PTR(list.items);
    return 0;
}

static int read_metadata(struct registry *registry, struct sandbox_info *info, struct err *err)
{
    cleanup_with(statement_reset) sqlite3_stmt *statement =
        registry->statements[STATEMENT_GET_METADATA];
    int rc;

    if (bind_text(statement, 1, info->id) != SQLITE_OK)
        return registry_explain(registry, "read metadata", err);
    rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW) {
        if (sqlite3_column_bytes(statement, 0) > SANDBOX_METADATA_MAX)
            return registry_damaged(registry, "metadata too long", err);
        info->metadata = xstrdup((const char *)sqlite3_column_text(statement, 0));
        rc = SQLITE_DONE;
    }
    return rc == SQLITE_DONE ? 0 : registry_explain(registry, "read metadata", err);
}

int registry_list(struct registry *registry, struct sandbox_info **ret, size_t *ret_count,
                  struct err *err)
{
    cleanup_with(sandbox_list_done) struct row_list list = { .item_size =
                                                                 sizeof(struct sandbox_info) };
    lock_scope(&registry->lock);
    cleanup_with(statement_reset) sqlite3_stmt *statement = registry->statements[STATEMENT_LIST];
    int r;

    r = read_rows(registry, statement, &row_sandbox, &list, err);
    for (size_t i = 0; r >= 0 && i < list.count; i++) {
        r = read_labels(registry, (struct sandbox_info *)(void *)list.items + i, err);
        if (r >= 0)
            r = read_mounts(registry, (struct sandbox_info *)(void *)list.items + i, err);
        if (r >= 0)
            r = read_metadata(registry, (struct sandbox_info *)(void *)list.items + i, err);
    }
    if (r < 0)
        return r;
    *ret_count = list.count;
    *ret = (struct sandbox_info *)(void *)TAKE_PTR(list.items);
    list.count = 0;
    return 0;
}

int registry_list_snapshots(struct registry *registry, const char *id, struct snapshot_info **ret,
                            size_t *ret_count, struct err *err)
{
    cleanup_with(row_list_done) struct row_list list = { .item_size =
                                                             sizeof(struct snapshot_info) };
    lock_scope(&registry->lock);
    cleanup_with(statement_reset) sqlite3_stmt *statement =
        registry->statements[STATEMENT_LIST_SNAPSHOTS];
    int r;

    if (bind_text(statement, 1, id) != SQLITE_OK)
        return registry_explain(registry, "list snapshots", err);
    r = read_rows(registry, statement, &row_snapshot, &list, err);
    if (r < 0)
        return r;
    *ret_count = list.count;
    *ret = (struct snapshot_info *)(void *)TAKE_PTR(list.items);
    return 0;
}

int registry_add_volume(struct registry *registry, const struct volume_info *info, struct err *err)
{
    cleanup_free struct volume_info *all = NULL;
    sqlite3_stmt *add = registry->statements[STATEMENT_ADD_VOLUME];
    size_t count = 0;
    int r = registry_list_volumes(registry, &all, &count, err);

    if (r == 0 && count >= VOLUMES_MAX)
        r = err_set(err, ERR_EXHAUSTED, "volume limit reached (%d)", VOLUMES_MAX);
    if (r < 0)
        return r;
    r = transaction_begin(registry, err);
    if (r >= 0 && row_bind(add, 1, &row_volume, info) != SQLITE_OK)
        r = registry_explain(registry, "record a volume", err);
    if (r >= 0)
        r = statement_run(registry, STATEMENT_ADD_VOLUME, "record a volume", err);
    if (r < 0 && is_unique_violation(registry))
        r = err_set(err, ERR_EXISTS, "a volume of this name exists already");
    r = transaction_end(registry, r, err);
    return r < 0 ? err_wrap(err, "volume '%s'", info->name) : 0;
}

int registry_remove_volume(struct registry *registry, const char *id, struct err *err)
{
    int r = transaction_begin(registry, err);

    if (r >= 0 && bind_text(registry->statements[STATEMENT_REMOVE_VOLUME], 1, id) != SQLITE_OK)
        r = registry_explain(registry, "remove a volume", err);
    if (r >= 0)
        r = statement_run(registry, STATEMENT_REMOVE_VOLUME, "remove a volume", err);
    return transaction_end(registry, r, err);
}

int registry_find_volume(struct registry *registry, const char *word, struct volume_info *ret,
                         struct err *err)
{
    cleanup_with(row_list_done) struct row_list list = { .item_size = sizeof(*ret) };
    lock_scope(&registry->lock);
    int r = read_parts(registry, STATEMENT_FIND_VOLUME, word, &row_volume, &list, err);

    if (r < 0)
        return r;
    if (list.count == 0)
        return err_set(err, ERR_NOT_FOUND, "volume '%.100s' not found", word);
    *ret = *(const struct volume_info *)(const void *)list.items;
    return 0;
}

int registry_list_volumes(struct registry *registry, struct volume_info **ret, size_t *ret_count,
                          struct err *err)
{
    cleanup_with(row_list_done) struct row_list list = { .item_size = sizeof(**ret) };
    lock_scope(&registry->lock);
    cleanup_with(statement_reset) sqlite3_stmt *statement =
        registry->statements[STATEMENT_LIST_VOLUMES];
    int r = read_rows(registry, statement, &row_volume, &list, err);

    if (r < 0)
        return r;
    *ret_count = list.count;
    *ret = (struct volume_info *)(void *)TAKE_PTR(list.items);
    return 0;
}

int registry_put_template_owner(struct registry *registry, const char *template, const char *owner,
                                struct err *err)
{
    enum registry_statement which = owner ? STATEMENT_PUT_OWNER : STATEMENT_DROP_OWNER;
    sqlite3_stmt *statement = registry->statements[which];
    int r = transaction_begin(registry, err);

    if (r >= 0 && (bind_text(statement, 1, template) != SQLITE_OK ||
                   (owner && bind_text(statement, 2, owner) != SQLITE_OK)))
        r = registry_explain(registry, "record the owner of a template", err);
    if (r >= 0)
        r = statement_run(registry, which, "record the owner of a template", err);
    return transaction_end(registry, r, err);
}

int registry_get_template_owner(struct registry *registry, const char *template, char **ret,
                                struct err *err)
{
    lock_scope(&registry->lock);
    cleanup_with(statement_reset) sqlite3_stmt *statement =
        registry->statements[STATEMENT_GET_OWNER];
    int rc = SQLITE_ERROR;

    if (bind_text(statement, 1, template) == SQLITE_OK)
        rc = sqlite3_step(statement);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return registry_explain(registry, "read the owner of a template", err);
    *ret = rc == SQLITE_ROW ? xstrdup((const char *)sqlite3_column_text(statement, 0)) : NULL;
    return 0;
}
