// SPDX-License-Identifier: Apache-2.0
#include "auth/token_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text/hex.h"
#include "base/text/parse.h"

#define DIRECTORY "tokens"
#define OLD_FILE "tokens.json"
#define NEW ".new" /* of a file that is being written */

enum { FILE_BYTES_MAX = 16 * 1024, OLD_FILE_BYTES_MAX = 1024 * 1024 };

static int scope_read(const json_t *object, struct token_info *ret, struct err *err)
{
    json_t *scope = json_object_get(object, "scope"), *value;
    const char *key;

    json_object_foreach(scope, key, value) {
        const char *text = json_string_value(value);
        struct label *label = &ret->scope[ret->scope_count];

        if (ret->scope_count == CALLER_SCOPE_MAX || !text || strlen(key) > LABEL_KEY_MAX ||
            strlen(text) > LABEL_VALUE_MAX)
            return err_set(err, ERR_INVALID, "the scope is not valid");
        (void)snprintf(label->key, sizeof(label->key), "%s", key);
        (void)snprintf(label->value, sizeof(label->value), "%s", text);
        ret->scope_count++;
    }
    return 0;
}

/* A token without an owner is of the time before owners: it is root's. */
static int access_read(const json_t *object, struct token_info *ret, struct err *err)
{
    const char *owner = OWNER_ROOT, *role = NULL;
    bool is_read_only = false;
    int r = json_get_text(object, "owner", &owner, err);

    if (r == 0)
        r = json_get_text(object, "role", &role, err);
    if (r == 0)
        r = json_get_bool(object, "readOnly", &is_read_only, err);
    if (r == 0)
        r = scope_read(object, ret, err);
    if (r < 0)
        return r;
    ret->role = is_read_only ? ROLE_READ : ROLE_ADMIN;
    if ((role && !role_parse(role, &ret->role)) || !is_handle(owner, OWNER_NAME_MAX))
        return err_set(err, ERR_INVALID, "the role or the owner is not valid");
    (void)snprintf(ret->owner, sizeof(ret->owner), "%s", owner);
    return 0;
}

static int row_read(const json_t *object, struct token_row *ret, struct err *err)
{
    const char *id = "", *label = "", *hash = "";
    int r = json_get_text(object, "id", &id, err);

    *ret = (struct token_row){ .info.role = ROLE_NONE };
    if (r == 0)
        r = json_get_text(object, "label", &label, err);
    if (r == 0)
        r = json_get_text(object, "hash", &hash, err);
    if (r == 0)
        r = json_get_u64(object, "createdMs", &ret->info.created_ms, err);
    if (r == 0)
        r = json_get_u64(object, "expiresMs", &ret->info.expires_ms, err);
    if (r == 0)
        r = access_read(object, &ret->info, err);
    if (r < 0)
        return r;
    if (!is_handle(id, TOKEN_ID_LEN) || strlen(label) > TOKEN_LABEL_MAX ||
        !hex_decode(hash, ret->hash, sizeof(ret->hash)))
        return err_set(err, ERR_INVALID, "an id, a label or a hash is not as it should be");
    (void)snprintf(ret->info.id, sizeof(ret->info.id), "%s", id);
    (void)snprintf(ret->info.label, sizeof(ret->info.label), "%s", label);
    return 0;
}

int token_dir_open(int state_fd, struct err *err)
{
    int fd = -EBADF;

    if ((mkdirat(state_fd, DIRECTORY, 0700) == 0 && fsync(state_fd) == 0) || errno == EEXIST)
        fd = openat(state_fd, DIRECTORY, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? err_sys(err, -errno, "open " DIRECTORY " in the state directory") : fd;
}

static int file_read(int dir_fd, const char *name, struct token_row *ret, struct err *err)
{
    cleanup_with(buf_done) struct buf content = BUF_INIT(FILE_BYTES_MAX);
    cleanup_json json_t *object = NULL;
    int r = file_read_at(dir_fd, name, &content);

    if (r < 0)
        return err_sys(err, r, "read token %.16s in the state directory", name);
    r = json_parse_object(content.data, content.len, &object, err);
    if (r == 0)
        r = row_read(object, ret, err);
    return r < 0 ? err_wrap(err, "token %.16s in the state directory", name) : 0;
}

static bool is_id(const char *name)
{
    return strlen(name) == TOKEN_ID_LEN && strspn(name, "0123456789abcdef") == TOKEN_ID_LEN;
}

/* Returns whether a crash has left the file: a token that was never acknowledged. */
static bool is_left_over(const char *name)
{
    return strlen(name) == TOKEN_ID_LEN + strlen(NEW) &&
           strspn(name, "0123456789abcdef") == TOKEN_ID_LEN &&
           strcmp(name + TOKEN_ID_LEN, NEW) == 0;
}

int token_files_read(int dir_fd, token_row_fn *each, void *context, struct err *err)
{
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cleanup_with(closedir_slot) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    if (!dir)
        return err_sys(err, -errno, "list the tokens");
    while ((entry = readdir(dir))) {
        struct token_row row;
        struct err damage = { 0 };

        if (is_left_over(entry->d_name)) {
            (void)unlinkat(dir_fd, entry->d_name, 0);
            continue;
        }
        if (!is_id(entry->d_name))
            continue;
        /* A damaged token opens nothing; the others stay valid. */
        if (file_read(dir_fd, entry->d_name, &row, &damage) < 0)
            log_warn("ignored: %s", damage.msg);
        else if (strcmp(row.info.id, entry->d_name) != 0)
            log_warn("ignored: token %.16s in the state directory is a copy of %s", entry->d_name,
                     row.info.id);
        else
            each(context, &row);
    }
    return 0;
}

static int rows_migrate(int dir_fd, const struct buf *content, struct err *err)
{
    cleanup_json json_t *file = NULL;
    const json_t *list = NULL;
    int r = json_parse_object(content->data, content->len, &file, err);

    if (r == 0)
        r = json_get_array(file, "tokens", &list, err);
    for (size_t i = 0; r == 0 && i < json_array_size(list); i++) {
        struct token_row row;

        r = row_read(json_array_get(list, i), &row, err);
        if (r == 0)
            r = token_file_write(dir_fd, &row, err);
    }
    return r;
}

int token_file_migrate(int state_fd, int dir_fd, struct err *err)
{
    cleanup_with(buf_done) struct buf content = BUF_INIT(OLD_FILE_BYTES_MAX);
    int r = file_read_at(state_fd, OLD_FILE, &content);

    if (r == -ENOENT)
        return 0;
    if (r < 0)
        return err_sys(err, r, "read " OLD_FILE " in the state directory");
    r = rows_migrate(dir_fd, &content, err);
    if (r < 0)
        return err_wrap(err, OLD_FILE " in the state directory");
    if (unlinkat(state_fd, OLD_FILE, 0) < 0 || fsync(state_fd) < 0)
        return err_sys(err, -errno, "remove " OLD_FILE " in the state directory");
    return 0;
}

static json_t *row_json(const struct token_row *row)
{
    const struct token_info *info = &row->info;
    char hash[2 * TOKEN_HASH_BYTES + 1];
    json_t *scope = json_object();

    hex_encode(row->hash, sizeof(row->hash), hash);
    for (size_t i = 0; i < info->scope_count; i++)
        (void)json_object_set_new(scope, info->scope[i].key, json_string(info->scope[i].value));
    return json_pack("{s:s, s:s, s:s, s:s, s:o, s:s, s:I, s:I}", "id", info->id, "label",
                     info->label, "owner", info->owner, "role", role_name(info->role), "scope",
                     scope, "hash", hash, "createdMs", (json_int_t)info->created_ms, "expiresMs",
                     (json_int_t)info->expires_ms);
}

int token_file_write(int dir_fd, const struct token_row *row, struct err *err)
{
    cleanup_with(buf_done) struct buf content = BUF_INIT(FILE_BYTES_MAX);
    cleanup_json json_t *object = row_json(row);
    int r = object ? json_write(object, &content) : -ENOMEM;

    if (r == 0)
        r = file_replace_at(dir_fd, row->info.id, content.data, content.len);
    return r < 0 ? err_sys(err, r, "write token %s in the state directory", row->info.id) : 0;
}

int token_file_remove(int dir_fd, const char *id, struct err *err)
{
    if ((unlinkat(dir_fd, id, 0) < 0 && errno != ENOENT) || fsync(dir_fd) < 0)
        return err_sys(err, -errno, "remove token %s in the state directory", id);
    return 0;
}
