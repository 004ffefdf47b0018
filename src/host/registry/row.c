// SPDX-License-Identifier: Apache-2.0
#include <stdint.h>
#include <string.h>

#include "base/access/session.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "host/codebase/apply.h"
#include "host/codebase/codebase.h"
#include "host/image/login_registry.h"
#include "host/owner/ceiling_registry.h"
#include "host/registry/archive.h"
#include "host/registry/registry_internal.h"
#include "host/secret/secret_registry.h"
#include "host/volume/named_volume.h"

#define FIELD(of, type, column, member)                                                            \
    {                                                                                              \
        column, type, offsetof(struct of, member), sizeof(((struct of *)0)->member)                \
    }
#define SANDBOX(type, member) FIELD(sandbox_info, type, #member, member)
#define SNAPSHOT(type, member) FIELD(snapshot_info, type, #member, member)

static const struct row_field sandbox_fields[] = {
    SANDBOX(ROW_TEXT, id),
    SANDBOX(ROW_TEXT, owner),
    SANDBOX(ROW_TEXT_OR_NULL, name),
    SANDBOX(ROW_TEXT, template),
    SANDBOX(ROW_TEXT, runtime),
    SANDBOX(ROW_STATE, state),
    SANDBOX(ROW_TEXT, reason),
    SANDBOX(ROW_U64, created_ms),
    FIELD(sandbox_info, ROW_U64, "memory_bytes", limits.memory_bytes),
    FIELD(sandbox_info, ROW_U32, "cpu_millis", limits.cpu_millis),
    FIELD(sandbox_info, ROW_U32, "pids", limits.pids),
    SANDBOX(ROW_U64, quota_bytes),
    SANDBOX(ROW_U32, turns),
    SANDBOX(ROW_U32, snapshots_max),
    SANDBOX(ROW_TEXT, base),
    SANDBOX(ROW_U64, expires_ms),
    SANDBOX(ROW_ACTION, expire_action),
    SANDBOX(ROW_U64, idle_timeout_ms),
    SANDBOX(ROW_ACTION, idle_action),
    SANDBOX(ROW_U64, last_active_ms),
    SANDBOX(ROW_TEXT, machine),
    SANDBOX(ROW_TEXT, limits_group),
    SANDBOX(ROW_U32, uid_slot),
    SANDBOX(ROW_U32, generation),
    SANDBOX(ROW_TEXT, request_key),
    SANDBOX(ROW_TEXT, request_digest),
    FIELD(sandbox_info, ROW_U32, "files", limits.files),
    SANDBOX(ROW_TEXT, codebase),
    SANDBOX(ROW_TEXT, codebase_path),
    SANDBOX(ROW_U32, codebase_version),
    SANDBOX(ROW_U32, codebase_base),
    SANDBOX(ROW_TEXT, archive),
};

static const struct row_field label_fields[] = {
    FIELD(label, ROW_TEXT, "key", key),
    FIELD(label, ROW_TEXT, "value", value),
};

static const struct row_field mount_fields[] = {
    FIELD(sandbox_mount, ROW_TEXT, "path", path),
    FIELD(sandbox_mount, ROW_TEXT, "depot", shared_volume),
    FIELD(sandbox_mount, ROW_BOOL, "read_only", is_read_only),
};

static const struct row_field volume_fields[] = {
    FIELD(volume_info, ROW_TEXT, "id", id),
    FIELD(volume_info, ROW_TEXT, "owner", owner),
    FIELD(volume_info, ROW_TEXT, "name", name),
    FIELD(volume_info, ROW_TEXT, "token", token),
};

static const struct row_field codebase_fields[] = {
    FIELD(codebase_info, ROW_TEXT, "id", id),     FIELD(codebase_info, ROW_TEXT, "owner", owner),
    FIELD(codebase_info, ROW_TEXT, "name", name), FIELD(codebase_info, ROW_TEXT, "source", source),
    FIELD(codebase_info, ROW_U32, "head", head),
};

static const struct row_field version_fields[] = {
    FIELD(codebase_version, ROW_U32, "version", version),
    FIELD(codebase_version, ROW_U64, "created_ms", created_ms),
    FIELD(codebase_version, ROW_TEXT, "sandbox", sandbox),
    FIELD(codebase_version, ROW_TEXT, "message", message),
    FIELD(codebase_version, ROW_U64, "files", files),
};

static const struct row_field applied_fields[] = {
    FIELD(codebase_applied, ROW_TEXT, "codebase", codebase),
    FIELD(codebase_applied, ROW_TEXT, "directory", directory),
    FIELD(codebase_applied, ROW_U32, "version", version),
    FIELD(codebase_applied, ROW_U32, "wanted", wanted),
};

static const struct row_field archive_fields[] = {
    FIELD(archive_record, ROW_TEXT, "mark", mark),
    FIELD(archive_record, ROW_TEXT, "sandbox", sandbox),
    FIELD(archive_record, ROW_TEXT, "owner", owner),
    FIELD(archive_record, ROW_U32, "stage", stage),
};

static const struct row_field template_fields[] = {
    FIELD(template_record, ROW_TEXT, "store_name", store_name),
    FIELD(template_record, ROW_TEXT, "owner", owner),
    FIELD(template_record, ROW_TEXT, "name", name),
};

static const struct row_field share_fields[] = {
    FIELD(share, ROW_TEXT, "owner", owner),
};

static const struct row_field ceiling_fields[] = {
    FIELD(ceiling_row, ROW_TEXT, "owner", owner),
    FIELD(ceiling_row, ROW_TEXT, "name", name),
    FIELD(ceiling_row, ROW_TEXT, "value", value),
};

static const struct row_field session_fields[] = {
    FIELD(session_row, ROW_TEXT, "id", id),
    FIELD(session_row, ROW_TEXT, "owner", owner),
    FIELD(session_row, ROW_TEXT, "role", role),
    FIELD(session_row, ROW_TEXT, "token", token),
    FIELD(session_row, ROW_TEXT, "main_mark", main_mark),
    FIELD(session_row, ROW_TEXT, "scope", scope),
    FIELD(session_row, ROW_TEXT, "cookie_hash", cookie_hash),
    FIELD(session_row, ROW_TEXT, "key_hash", key_hash),
    FIELD(session_row, ROW_TEXT, "address", address),
    FIELD(session_row, ROW_TEXT, "agent", agent),
    FIELD(session_row, ROW_U64, "created_ms", created_ms),
    FIELD(session_row, ROW_U64, "expires_ms", expires_ms),
    FIELD(session_row, ROW_TEXT, "sandbox", sandbox),
    FIELD(session_row, ROW_U32, "port", port),
    FIELD(session_row, ROW_TEXT, "parent", parent),
};

static const struct row_field secret_fields[] = {
    FIELD(secret_row, ROW_TEXT, "id", id),
    FIELD(secret_row, ROW_TEXT, "owner", owner),
    FIELD(secret_row, ROW_TEXT, "name", name),
    FIELD(secret_row, ROW_TEXT, "kind", kind),
    FIELD(secret_row, ROW_TEXT, "use", use),
    FIELD(secret_row, ROW_TEXT, "sealed", sealed),
    FIELD(secret_row, ROW_U64, "created_ms", created_ms),
    FIELD(secret_row, ROW_U64, "changed_ms", changed_ms),
};

static const struct row_field login_fields[] = {
    FIELD(login_row, ROW_TEXT, "owner", owner),
    FIELD(login_row, ROW_TEXT, "registry", registry),
    FIELD(login_row, ROW_TEXT, "username", username),
    FIELD(login_row, ROW_TEXT, "sealed", sealed),
    FIELD(login_row, ROW_U64, "changed_ms", changed_ms),
};

static const struct row_field snapshot_fields[] = {
    SNAPSHOT(ROW_TEXT, name),   SNAPSHOT(ROW_KIND, kind),      SNAPSHOT(ROW_U32, turn),
    SNAPSHOT(ROW_TEXT, parent), SNAPSHOT(ROW_U64, created_ms), SNAPSHOT(ROW_U64, space_used),
    SNAPSHOT(ROW_TEXT, note),
};

const struct row_layout row_sandbox = { "sandboxes", sandbox_fields, ARRAY_SIZE(sandbox_fields) };
const struct row_layout row_volume = { "volumes", volume_fields, ARRAY_SIZE(volume_fields) };
const struct row_layout row_codebase = { "codebases", codebase_fields,
                                         ARRAY_SIZE(codebase_fields) };
const struct row_layout row_version = { "codebase_versions", version_fields,
                                        ARRAY_SIZE(version_fields) };
const struct row_layout row_applied = { "codebase_applied", applied_fields,
                                        ARRAY_SIZE(applied_fields) };
const struct row_layout row_archive = { "archives", archive_fields, ARRAY_SIZE(archive_fields) };
const struct row_layout row_template = { "templates", template_fields,
                                         ARRAY_SIZE(template_fields) };
const struct row_layout row_share = { "shares", share_fields, ARRAY_SIZE(share_fields) };
const struct row_layout row_ceiling = { "ceilings", ceiling_fields, ARRAY_SIZE(ceiling_fields) };
const struct row_layout row_session = { "sessions", session_fields, ARRAY_SIZE(session_fields) };
const struct row_layout row_secret = { "secrets", secret_fields, ARRAY_SIZE(secret_fields) };
const struct row_layout row_login = { "image_logins", login_fields, ARRAY_SIZE(login_fields) };
const struct row_layout row_label = { "labels", label_fields, ARRAY_SIZE(label_fields) };
const struct row_layout row_mount = { "mounts", mount_fields, ARRAY_SIZE(mount_fields) };
const struct row_layout row_snapshot = { "snapshots", snapshot_fields,
                                         ARRAY_SIZE(snapshot_fields) };

int row_sql_columns(const struct row_layout *layout, struct buf *sql)
{
    int r = 0;

    for (size_t i = 0; r >= 0 && i < layout->count; i++)
        r = buf_printf(sql, "%s%s", i ? ", " : "", layout->fields[i].column);
    return r;
}

int row_sql_values(const struct row_layout *layout, int first, struct buf *sql)
{
    int r = 0;

    for (size_t i = 0; r >= 0 && i < layout->count; i++)
        r = buf_printf(sql, "%s?%d", i ? ", " : "", first + (int)i);
    return r;
}

int row_sql_updates(const struct row_layout *layout, struct buf *sql)
{
    int r = 0;

    for (size_t i = 1; r >= 0 && i < layout->count; i++) {
        const char *column = layout->fields[i].column;

        r = buf_printf(sql, "%s%s = excluded.%s", i > 1 ? ", " : "", column, column);
    }
    return r;
}

static int bind_text(sqlite3_stmt *statement, int index, const char *text)
{
    return sqlite3_bind_text(statement, index, text, -1, SQLITE_STATIC);
}

static int bind_field(sqlite3_stmt *statement, int index, const struct row_field *field,
                      const void *value)
{
    switch (field->type) {
    case ROW_TEXT_OR_NULL:
        if (*(const char *)value == '\0')
            return sqlite3_bind_null(statement, index);
        return bind_text(statement, index, value);
    case ROW_TEXT:
        return bind_text(statement, index, value);
    case ROW_U32:
        return sqlite3_bind_int64(statement, index, *(const uint32_t *)value);
    case ROW_U64:
        return sqlite3_bind_int64(statement, index, (sqlite3_int64) * (const uint64_t *)value);
    case ROW_BOOL:
        return sqlite3_bind_int64(statement, index, *(const bool *)value);
    case ROW_STATE:
        return bind_text(statement, index, sandbox_state_name(*(const enum sandbox_state *)value));
    case ROW_ACTION:
        return bind_text(statement, index,
                         sandbox_action_name(*(const enum sandbox_action *)value));
    case ROW_KIND:
        return bind_text(statement, index, snapshot_kind_name(*(const enum snapshot_kind *)value));
    }
    return SQLITE_MISUSE;
}

int row_bind(sqlite3_stmt *statement, int first, const struct row_layout *layout, const void *from)
{
    int rc = SQLITE_OK;

    for (size_t i = 0; rc == SQLITE_OK && i < layout->count; i++) {
        const struct row_field *field = &layout->fields[i];

        rc = bind_field(statement, first + (int)i, field, (const char *)from + field->offset);
    }
    return rc;
}

static bool read_text(sqlite3_stmt *statement, int column, char *into, size_t size)
{
    const unsigned char *text = sqlite3_column_text(statement, column);
    size_t len = (size_t)sqlite3_column_bytes(statement, column);

    if (!text || len >= size || memchr(text, '\0', len))
        return false;
    memcpy(into, text, len + 1);
    return true;
}

static bool read_u32(sqlite3_stmt *statement, int column, uint32_t *into)
{
    sqlite3_int64 value = sqlite3_column_int64(statement, column);

    if (value < 0 || value > UINT32_MAX)
        return false;
    *into = (uint32_t)value;
    return true;
}

static bool read_bool(sqlite3_stmt *statement, int column, bool *into)
{
    sqlite3_int64 value = sqlite3_column_int64(statement, column);

    if (value != 0 && value != 1)
        return false;
    *into = value == 1;
    return true;
}

static bool read_field(sqlite3_stmt *statement, int column, const struct row_field *field,
                       void *into)
{
    char word[32];

    switch (field->type) {
    case ROW_TEXT_OR_NULL:
        if (sqlite3_column_type(statement, column) == SQLITE_NULL) {
            *(char *)into = '\0';
            return true;
        }
        return read_text(statement, column, into, field->size);
    case ROW_TEXT:
        return read_text(statement, column, into, field->size);
    case ROW_U32:
        return read_u32(statement, column, into);
    case ROW_U64:
        *(uint64_t *)into = (uint64_t)sqlite3_column_int64(statement, column);
        return true;
    case ROW_BOOL:
        return read_bool(statement, column, into);
    case ROW_STATE:
        return read_text(statement, column, word, sizeof(word)) && sandbox_state_parse(word, into);
    case ROW_ACTION:
        return read_text(statement, column, word, sizeof(word)) && sandbox_action_parse(word, into);
    case ROW_KIND:
        return read_text(statement, column, word, sizeof(word)) && snapshot_kind_parse(word, into);
    }
    return false;
}

const char *row_read(sqlite3_stmt *statement, const struct row_layout *layout, void *into)
{
    for (size_t i = 0; i < layout->count; i++) {
        const struct row_field *field = &layout->fields[i];

        if (!read_field(statement, (int)i, field, (char *)into + field->offset))
            return field->column;
    }
    return NULL;
}
