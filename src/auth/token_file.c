// SPDX-License-Identifier: Apache-2.0
#include "auth/token_file.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth/token_store.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/json.h"
#include "base/text/hex.h"
#include "base/text/parse.h"
#include "base/xalloc.h"

#define NAME "tokens.json"

enum { FILE_BYTES_MAX = 1024 * 1024 };

static int row_read(const json_t *object, struct token_row *ret, struct err *err)
{
    const char *id = "", *label = "", *hash = "";
    int r = json_get_text(object, "id", &id, err);

    if (r == 0)
        r = json_get_text(object, "label", &label, err);
    if (r == 0)
        r = json_get_text(object, "hash", &hash, err);
    if (r == 0)
        r = json_get_bool(object, "readOnly", &ret->info.is_read_only, err);
    if (r == 0)
        r = json_get_u64(object, "createdMs", &ret->info.created_ms, err);
    if (r == 0)
        r = json_get_u64(object, "expiresMs", &ret->info.expires_ms, err);
    if (r < 0)
        return r;
    if (!is_handle(id, TOKEN_ID_LEN) || strlen(label) > TOKEN_LABEL_MAX ||
        !hex_decode(hash, ret->hash, sizeof(ret->hash)))
        return err_set(err, ERR_INVALID, "an id, a label or a hash is not as it should be");
    (void)snprintf(ret->info.id, sizeof(ret->info.id), "%s", id);
    (void)snprintf(ret->info.label, sizeof(ret->info.label), "%s", label);
    return 0;
}

static int rows_read(const struct buf *content, struct token_row **ret, size_t *ret_count,
                     struct err *err)
{
    cleanup_free struct token_row *rows = xcalloc(TOKENS_MAX, sizeof(*rows));
    cleanup_json json_t *file = NULL;
    const json_t *list = NULL;
    size_t count = 0;
    int r = json_parse_object(content->data, content->len, &file, err);

    if (r == 0)
        r = json_get_array(file, "tokens", &list, err);
    if (r == 0 && json_array_size(list) > TOKENS_MAX)
        r = err_set(err, ERR_INVALID, "more than %d tokens", TOKENS_MAX);
    for (; r == 0 && count < json_array_size(list); count++)
        r = row_read(json_array_get(list, count), &rows[count], err);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(rows);
    *ret_count = count;
    return 0;
}

int token_file_read(int dir_fd, struct token_row **ret, size_t *ret_count, struct err *err)
{
    cleanup_with(buf_done) struct buf content = BUF_INIT(FILE_BYTES_MAX);
    int r = file_read_at(dir_fd, NAME, &content);

    if (r == -ENOENT) {
        *ret = xcalloc(TOKENS_MAX, sizeof(**ret));
        *ret_count = 0;
        return 0;
    }
    if (r < 0)
        return err_sys(err, r, "read " NAME " in the state directory");
    r = rows_read(&content, ret, ret_count, err);
    return r < 0 ? err_wrap(err, NAME " in the state directory") : 0;
}

static json_t *row_json(const struct token_row *row)
{
    char hash[2 * TOKEN_HASH_BYTES + 1];

    hex_encode(row->hash, sizeof(row->hash), hash);
    return json_pack("{s:s, s:s, s:b, s:s, s:I, s:I}", "id", row->info.id, "label", row->info.label,
                     "readOnly", row->info.is_read_only, "hash", hash, "createdMs",
                     (json_int_t)row->info.created_ms, "expiresMs",
                     (json_int_t)row->info.expires_ms);
}

int token_file_write(int dir_fd, const struct token_row *rows, size_t count, struct err *err)
{
    cleanup_with(buf_done) struct buf content = BUF_INIT(FILE_BYTES_MAX);
    cleanup_json json_t *file = json_pack("{s:[]}", "tokens");
    int r = 0;

    for (size_t i = 0; i < count && r == 0; i++)
        r = json_array_append_new(json_object_get(file, "tokens"), row_json(&rows[i]));
    r = r < 0 ? -ENOMEM : json_write(file, &content);
    if (r == 0)
        r = file_replace_at(dir_fd, NAME, content.data, content.len);
    return r < 0 ? err_sys(err, r, "write " NAME " in the state directory") : 0;
}
