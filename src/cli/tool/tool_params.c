// SPDX-License-Identifier: Apache-2.0
#include "cli/tool/tool_params.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/json.h"
#include "base/xalloc.h"

enum { VALUE_MAX = 32 * 1024 * 1024, READ_AT_ONCE = 64 * 1024 };

static int read_stdin(struct buf *content)
{
    ssize_t n;

    do {
        int r = buf_reserve(content, READ_AT_ONCE);

        if (r < 0)
            return r;
        n = read_full(STDIN_FILENO, content->data + content->len, READ_AT_ONCE);
        if (n > 0)
            content->len += (size_t)n;
    } while (n == READ_AT_ONCE);
    return n < 0 ? (int)n : 0;
}

static int read_whole(const char *path, struct buf *content, struct err *err)
{
    bool is_stdin = strcmp(path, "-") == 0;
    int r = is_stdin ? read_stdin(content) : file_read_at(AT_FDCWD, path, content);

    if (r == -ENOBUFS)
        return err_set(err, ERR_INVALID, "'%.200s' is larger than %d bytes", path, VALUE_MAX);
    if (r < 0)
        return err_set(err, ERR_INVALID, "cannot read '%.200s': %s", is_stdin ? "stdin" : path,
                       strerror(-r));
    return 0;
}

int tool_params_load(const char *value, json_t **ret, struct err *err)
{
    cleanup_with(buf_done) struct buf content = BUF_INIT(VALUE_MAX);
    bool is_text = value[strspn(value, " \t\n\r")] == '{';
    int r = is_text ? 0 : read_whole(value, &content, err);

    if (r < 0)
        return r;
    if (is_text)
        return json_parse_with_nul(value, strlen(value), ret, err);
    return json_parse_with_nul(content.data ? content.data : "", content.len, ret, err);
}

static int text_value(const char *text, json_t **ret, struct err *err)
{
    cleanup_with(buf_done) struct buf content = BUF_INIT(VALUE_MAX);
    int r;

    if (*text != '@') {
        *ret = json_string(text);
        return *ret ? 0 : err_set(err, ERR_INVALID, "'%.100s' is not UTF-8", text);
    }
    r = read_whole(text + 1, &content, err);
    if (r < 0)
        return r;
    *ret = json_stringn(content.data ? content.data : "", content.len);
    return *ret ? 0 : err_set(err, ERR_INVALID, "the content of '%.200s' is not UTF-8", text + 1);
}

static int json_value(const char *text, json_t **ret, struct err *err)
{
    json_error_t why;

    *ret = json_loads(text, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
    return *ret ? 0 : err_set(err, ERR_INVALID, "'%.100s' is not valid JSON: %s", text, why.text);
}

/* The second value of a key makes a list of both. Takes the value. */
static int put(json_t *params, const char *key, json_t *value)
{
    json_t *before = json_object_get(params, key);
    int r;

    if (!before)
        return json_object_set_new(params, key, value);
    if (json_is_array(before))
        return json_array_append_new(before, value);
    r = json_object_set_new(params, key, json_pack("[O, O]", before, value));
    json_decref(value);
    return r;
}

int tool_params_add(json_t *params, const char *word, struct err *err)
{
    const char *equals = strchr(word, '=');
    bool is_json = equals && equals > word && equals[-1] == ':';
    cleanup_free char *key = NULL;
    json_t *value = NULL;
    int r;

    if (!equals || equals - is_json == word)
        return err_set(err, ERR_INVALID, "'%.100s' is not KEY=VALUE", word);
    key = xasprintf("%.*s", (int)(equals - is_json - word), word);
    r = is_json ? json_value(equals + 1, &value, err) : text_value(equals + 1, &value, err);
    if (r < 0)
        return r;
    return put(params, key, value) < 0 ? err_set(err, ERR_INVALID, "a KEY is not UTF-8") : 0;
}
