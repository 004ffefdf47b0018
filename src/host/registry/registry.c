// SPDX-License-Identifier: Apache-2.0
/* The tables of sandboxes and their snapshots. */
#include "host/registry/registry.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/lock.h"
#include "base/xalloc.h"
#include "host/registry/registry_internal.h"
#include "host/view/permission.h"

static void sandbox_list_done(struct row_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        sandbox_info_done((struct sandbox_info *)(void *)list->items + i);
    row_list_done(list);
}

static int put_labels(struct registry *registry, const struct sandbox_info *info, struct err *err)
{
    static const char *const doing = "record labels";
    int r;

    if (registry_bind_text(registry->statements[STATEMENT_DROP_LABELS], 1, info->id) != SQLITE_OK)
        return registry_explain(registry, doing, err);
    r = registry_run(registry, STATEMENT_DROP_LABELS, doing, err);
    for (size_t i = 0; r >= 0 && i < info->label_count; i++) {
        sqlite3_stmt *add = registry->statements[STATEMENT_ADD_LABEL];

        if (registry_bind_text(add, 1, info->id) != SQLITE_OK ||
            sqlite3_bind_int64(add, 2, (sqlite3_int64)i) != SQLITE_OK ||
            row_bind(add, 3, &row_label, &info->labels[i]) != SQLITE_OK)
            return registry_explain(registry, doing, err);
        r = registry_run(registry, STATEMENT_ADD_LABEL, doing, err);
    }
    return r;
}

static int put_sandbox(struct registry *registry, const struct sandbox_info *info, struct err *err)
{
    cleanup_with(registry_reset) sqlite3_stmt *put = registry->statements[STATEMENT_PUT];

    if (row_bind(put, 1, &row_sandbox, info) != SQLITE_OK || sqlite3_step(put) != SQLITE_DONE) {
        if (registry_is_duplicate(registry))
            return err_refuse(err, CAUSE_SESSION_EXISTS, "a sandbox named '%s' exists already",
                              info->name);
        return registry_explain(registry, "record a sandbox", err);
    }
    return put_labels(registry, info, err);
}

/* Runs a statement that records a text of a sandbox. */
static int put_text(struct registry *registry, enum registry_statement which, const char *id,
                    const char *text, struct err *err)
{
    const char *doing = which == STATEMENT_PUT_METADATA      ? "record metadata"
                        : which == STATEMENT_PUT_NETWORK     ? "record a network policy"
                        : which == STATEMENT_PUT_PERMISSIONS ? "record permissions"
                                                             : "record the secrets of a sandbox";
    sqlite3_stmt *put = registry->statements[which];

    if (registry_bind_text(put, 1, id) != SQLITE_OK ||
        registry_bind_text(put, 2, text) != SQLITE_OK)
        return registry_explain(registry, doing, err);
    return registry_run(registry, which, doing, err);
}

static int put_mounts(struct registry *registry, const struct sandbox_info *info, struct err *err)
{
    sqlite3_stmt *add = registry->statements[STATEMENT_ADD_MOUNT];
    int r = 0;

    for (size_t i = 0; r >= 0 && i < info->mount_count; i++) {
        if (registry_bind_text(add, 1, info->id) != SQLITE_OK ||
            row_bind(add, 2, &row_mount, &info->mounts[i]) != SQLITE_OK)
            return registry_explain(registry, "record mounts", err);
        r = registry_run(registry, STATEMENT_ADD_MOUNT, "record mounts", err);
    }
    return r;
}

/* Records the parts that are written once, at creation. The metadata and the network policy have
 * their own updates later. */
static int put_created_parts(struct registry *registry, const struct sandbox_info *info,
                             struct err *err)
{
    int r = put_mounts(registry, info, err);

    if (r >= 0 && info->metadata)
        r = put_text(registry, STATEMENT_PUT_METADATA, info->id, info->metadata, err);
    if (r >= 0 && info->network)
        r = put_text(registry, STATEMENT_PUT_NETWORK, info->id, info->network, err);
    if (r >= 0 && info->secrets)
        r = put_text(registry, STATEMENT_PUT_GRANTS, info->id, info->secrets, err);
    if (r >= 0 && info->permissions)
        r = put_text(registry, STATEMENT_PUT_PERMISSIONS, info->id, info->permissions, err);
    return r;
}

static int put_snapshot(struct registry *registry, const char *id,
                        const struct snapshot_info *snapshot, struct err *err)
{
    cleanup_with(registry_reset) sqlite3_stmt *add = registry->statements[STATEMENT_ADD_SNAPSHOT];

    if (registry_bind_text(add, 1, id) != SQLITE_OK ||
        row_bind(add, 2, &row_snapshot, snapshot) != SQLITE_OK ||
        sqlite3_step(add) != SQLITE_DONE) {
        if (registry_is_duplicate(registry))
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
    r = registry_begin(registry, err);
    for (size_t i = 0; r >= 0 && i < count; i++) {
        r = put_sandbox(registry, &infos[i], err);
        if (r >= 0 && infos[i].state == SANDBOX_CREATING)
            r = put_created_parts(registry, &infos[i], err);
    }
    return registry_commit(registry, r, ret_write, err);
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

static int drop_mounts(struct registry *registry, const char *id, struct err *err)
{
    if (registry_bind_text(registry->statements[STATEMENT_DROP_MOUNTS], 1, id) != SQLITE_OK)
        return registry_explain(registry, "record mounts", err);
    return registry_run(registry, STATEMENT_DROP_MOUNTS, "record mounts", err);
}

/* Begins a transaction and puts the sandbox. */
static int begin_with(struct registry *registry, const struct sandbox_info *info, struct err *err)
{
    int r = registry_begin(registry, err);

    if (r >= 0)
        r = labels_check(info, err);
    return r >= 0 ? put_sandbox(registry, info, err) : r;
}

int registry_put_changed(struct registry *registry, const struct sandbox_info *info,
                         struct err *err)
{
    int r = begin_with(registry, info, err);

    if (r >= 0)
        r = drop_mounts(registry, info->id, err);
    if (r >= 0)
        r = put_mounts(registry, info, err);
    return registry_end(registry, r, err);
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
    int r = registry_begin(registry, err);

    if (r >= 0)
        r = put_text(registry, STATEMENT_PUT_METADATA, id, metadata, err);
    return registry_end(registry, r, err);
}

int registry_put_network(struct registry *registry, const char *id, const char *policy,
                         struct err *err)
{
    int r = registry_begin(registry, err);

    if (r >= 0)
        r = put_text(registry, STATEMENT_PUT_NETWORK, id, policy, err);
    return registry_end(registry, r, err);
}

int registry_put_permissions(struct registry *registry, const char *id, const char *rules,
                             struct err *err)
{
    int r = registry_begin(registry, err);

    if (r >= 0)
        r = put_text(registry, STATEMENT_PUT_PERMISSIONS, id, rules, err);
    return registry_end(registry, r, err);
}

int registry_put_expiry(struct registry *registry, const char *id, uint64_t expires_ms,
                        enum sandbox_action action, struct err *err)
{
    int r = registry_begin(registry, err);
    sqlite3_stmt *put = registry->statements[STATEMENT_PUT_EXPIRY];

    if (r >= 0 && (registry_bind_text(put, 1, id) != SQLITE_OK ||
                   sqlite3_bind_int64(put, 2, (sqlite3_int64)expires_ms) != SQLITE_OK ||
                   registry_bind_text(put, 3, sandbox_action_name(action)) != SQLITE_OK))
        r = registry_explain(registry, "record an expiry time", err);
    if (r >= 0)
        r = registry_run(registry, STATEMENT_PUT_EXPIRY, "record an expiry time", err);
    return registry_end(registry, r, err);
}

int registry_put_snapshot(struct registry *registry, const struct sandbox_info *info,
                          const struct snapshot_info *snapshot, struct err *err)
{
    int r = begin_with(registry, info, err);

    if (r >= 0)
        r = put_snapshot(registry, info->id, snapshot, err);
    return registry_end(registry, r, err);
}

int registry_remove(struct registry *registry, const char *id, struct err *err)
{
    struct registry_write ignored;
    int r = registry_begin(registry, err);

    if (r >= 0 && registry_bind_text(registry->statements[STATEMENT_REMOVE], 1, id) != SQLITE_OK)
        r = registry_explain(registry, "remove", err);
    if (r >= 0)
        r = registry_run(registry, STATEMENT_REMOVE, "remove", err);
    return registry_commit(registry, r, &ignored, err);
}

static int bind_snapshot(struct registry *registry, enum registry_statement which, const char *id,
                         const char *name, struct err *err)
{
    sqlite3_stmt *statement = registry->statements[which];

    if (registry_bind_text(statement, 1, id) != SQLITE_OK ||
        registry_bind_text(statement, 2, name) != SQLITE_OK)
        return registry_explain(registry, "remove a snapshot", err);
    return 0;
}

static int change_snapshot(struct registry *registry, enum registry_statement which, const char *id,
                           const char *name, struct err *err)
{
    int r = bind_snapshot(registry, which, id, name, err);

    return r < 0 ? r : registry_run(registry, which, "remove a snapshot", err);
}

static int remove_snapshot(struct registry *registry, const char *id, const char *name,
                           char parent[static SNAPSHOT_NAME_MAX + 1], struct err *err)
{
    cleanup_with(registry_reset) sqlite3_stmt *remove =
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
    int r = registry_begin(registry, err);

    if (r >= 0)
        r = change_snapshot(registry, STATEMENT_REPARENT, id, name, err);
    if (r >= 0)
        r = change_snapshot(registry, STATEMENT_REBASE, id, name, err);
    if (r >= 0)
        r = remove_snapshot(registry, id, name, parent, err);
    r = registry_end(registry, r, err);
    if (r >= 0)
        memcpy(ret_parent, parent, sizeof(parent));
    return r;
}

static int note_put(struct registry *registry, const char *id, const char *name, const char *note,
                    struct err *err)
{
    cleanup_with(registry_reset) sqlite3_stmt *statement =
        registry->statements[STATEMENT_NOTE_SNAPSHOT];
    bool is_found = false;
    int rc, r = bind_snapshot(registry, STATEMENT_NOTE_SNAPSHOT, id, name, err);

    if (r < 0)
        return r;
    if (registry_bind_text(statement, 3, note) != SQLITE_OK)
        return registry_explain(registry, "note a snapshot", err);
    while ((rc = sqlite3_step(statement)) == SQLITE_ROW)
        is_found = true;
    if (rc != SQLITE_DONE)
        return registry_explain(registry, "note a snapshot", err);
    if (is_found)
        return 0;
    return err_refuse(err, CAUSE_SNAPSHOT_NOT_FOUND, "sandbox '%s' has no snapshot '%s'", id, name);
}

int registry_note_snapshot(struct registry *registry, const char *id, const char *name,
                           const char *note, struct err *err)
{
    int r = registry_begin(registry, err);

    if (r >= 0)
        r = note_put(registry, id, name, note, err);
    return registry_end(registry, r, err);
}

static int read_labels(struct registry *registry, struct sandbox_info *info, struct err *err)
{
    cleanup_with(row_list_done) struct row_list list = { .item_size = sizeof(struct label) };
    int r = registry_read_of(registry, STATEMENT_LIST_LABELS, info->id, &row_label, &list, err);

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
    int r = registry_read_of(registry, STATEMENT_LIST_MOUNTS, info->id, &row_mount, &list, err);

    if (r < 0)
        return r;
    if (list.count > SANDBOX_MOUNTS_MAX)
        return registry_damaged(registry, "too many mounts", err);
    info->mount_count = list.count;
    info->mounts = (struct sandbox_mount *)(void *)TAKE_PTR(list.items);
    return 0;
}

/* Reads the text that a statement finds for a sandbox, if there is one. */
static int read_text_of(struct registry *registry, enum registry_statement which, const char *id,
                        int max, char **ret, struct err *err)
{
    cleanup_with(registry_reset) sqlite3_stmt *statement = registry->statements[which];
    int rc;

    if (registry_bind_text(statement, 1, id) != SQLITE_OK)
        return registry_explain(registry, "read a sandbox", err);
    rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW) {
        if (sqlite3_column_bytes(statement, 0) > max)
            return registry_damaged(registry,
                                    which == STATEMENT_GET_METADATA      ? "metadata too long"
                                    : which == STATEMENT_GET_NETWORK     ? "network policy too long"
                                    : which == STATEMENT_GET_PERMISSIONS ? "permissions too long"
                                                                         : "secrets too long",
                                    err);
        *ret = xstrdup((const char *)sqlite3_column_text(statement, 0));
        rc = SQLITE_DONE;
    }
    return rc == SQLITE_DONE ? 0 : registry_explain(registry, "read a sandbox", err);
}

static int read_texts(struct registry *registry, struct sandbox_info *info, struct err *err)
{
    int r = read_text_of(registry, STATEMENT_GET_METADATA, info->id, SANDBOX_METADATA_MAX,
                         &info->metadata, err);

    if (r == 0)
        r = read_text_of(registry, STATEMENT_GET_NETWORK, info->id, SANDBOX_NETWORK_MAX,
                         &info->network, err);
    if (r == 0)
        r = read_text_of(registry, STATEMENT_GET_GRANTS, info->id, SANDBOX_SECRETS_TEXT_MAX,
                         &info->secrets, err);
    if (r == 0)
        r = read_text_of(registry, STATEMENT_GET_PERMISSIONS, info->id, PERMISSIONS_TEXT_MAX,
                         &info->permissions, err);
    return r;
}

int registry_list(struct registry *registry, struct sandbox_info **ret, size_t *ret_count,
                  struct err *err)
{
    cleanup_with(sandbox_list_done) struct row_list list = { .item_size =
                                                                 sizeof(struct sandbox_info) };
    lock_scope(&registry->lock);
    cleanup_with(registry_reset) sqlite3_stmt *statement = registry->statements[STATEMENT_LIST];
    int r;

    r = registry_read_rows(registry, statement, &row_sandbox, &list, err);
    for (size_t i = 0; r >= 0 && i < list.count; i++) {
        r = read_labels(registry, (struct sandbox_info *)(void *)list.items + i, err);
        if (r >= 0)
            r = read_mounts(registry, (struct sandbox_info *)(void *)list.items + i, err);
        if (r >= 0)
            r = read_texts(registry, (struct sandbox_info *)(void *)list.items + i, err);
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
    cleanup_with(registry_reset) sqlite3_stmt *statement =
        registry->statements[STATEMENT_LIST_SNAPSHOTS];
    int r;

    if (registry_bind_text(statement, 1, id) != SQLITE_OK)
        return registry_explain(registry, "list snapshots", err);
    r = registry_read_rows(registry, statement, &row_snapshot, &list, err);
    if (r < 0)
        return r;
    *ret_count = list.count;
    *ret = (struct snapshot_info *)(void *)TAKE_PTR(list.items);
    return 0;
}
