// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "cli/diff/diff.h"

enum { PATH_BYTES_MAX = 1024 * 1024, PATCH_BYTES_MAX = 1024 * 1024 };

static char letter_of(const char *kind)
{
    static const char *const kinds[] = { "added", "modified", "deleted", "renamed" };

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (strcmp(kinds[i], kind) == 0)
            return "AMDR"[i];
    return 0;
}

/* The exact bytes, which are apart where they are no text. */
static int path_read(const json_t *message, const char *field, const char *raw_field,
                     struct buf *ret, struct err *err)
{
    int r = json_get_bytes(message, raw_field, ret, err);

    if (r == 0 && ret->len == 0 && buf_add_str(ret, call_text(message, field)) < 0)
        return err_set(err, ERR_EXHAUSTED, "a path is too long");
    return r;
}

int diff_change_read(const json_t *message, struct diff_change *ret, struct err *err)
{
    int r;

    ret->path.max = ret->old_path.max = PATH_BYTES_MAX;
    ret->patch.max = PATCH_BYTES_MAX;
    ret->letter = letter_of(call_text(message, "kind"));
    ret->type = call_text(message, "type");
    r = path_read(message, "path", "rawPath", &ret->path, err);
    if (r == 0)
        r = path_read(message, "oldPath", "rawOldPath", &ret->old_path, err);
    if (r == 0)
        r = json_get_bool(message, "binary", &ret->is_binary, err);
    if (r == 0)
        r = json_get_u64(message, "size", &ret->size, err);
    if (r == 0)
        r = json_get_u64(message, "oldSize", &ret->old_size, err);
    if (r == 0)
        r = json_get_u64(message, "addedLines", &ret->added, err);
    if (r == 0)
        r = json_get_u64(message, "deletedLines", &ret->deleted, err);
    return r < 0 ? r : json_get_bytes(message, "patch", &ret->patch, err);
}

void diff_change_done(struct diff_change *change)
{
    buf_done(&change->path);
    buf_done(&change->old_path);
    buf_done(&change->patch);
}

static bool needs_quotes(const struct buf *path)
{
    for (size_t i = 0; i < path->len; i++)
        if ((unsigned char)path->data[i] < ' ' || strchr("\"\\\x7f", path->data[i]))
            return true;
    return false;
}

static void escaped_add(struct buf *out, unsigned char byte)
{
    static const char plain[] = "\a\b\t\n\v\f\r\"\\", letters[] = "abtnvfr\"\\";
    const char *at = byte ? strchr(plain, byte) : NULL;

    if (at)
        (void)buf_printf(out, "\\%c", letters[at - plain]);
    else if (byte < ' ' || byte == 0x7f)
        (void)buf_printf(out, "\\%03o", byte);
    else
        (void)buf_add(out, &byte, 1);
}

void diff_path_add(struct buf *out, const char *prefix, const struct buf *path)
{
    const char *quote = needs_quotes(path) ? "\"" : "";

    (void)buf_printf(out, "%s%s", quote, prefix);
    for (size_t i = 0; i < path->len; i++)
        escaped_add(out, (unsigned char)path->data[i]);
    (void)buf_add_str(out, quote);
}

static void print_path(const char *prefix, const struct buf *path)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(DIFF_NAME_MAX);

    diff_path_add(&text, prefix, path);
    (void)printf("%s", text.data ? text.data : "");
}

void diff_print_name(const struct diff_change *change)
{
    (void)printf("%c ", change->letter);
    if (change->letter == 'R') {
        print_path("", &change->old_path);
        (void)printf(" -> ");
    }
    print_path("", &change->path);
    (void)printf("\n");
}

/* "a/etc/passwd": paths in a patch are not absolute. */
static void print_side(const char *prefix, const struct buf *path)
{
    const struct buf relative = {
        .data = path->data + (path->len > 0),
        .len = path->len - (path->len > 0),
    };

    print_path(prefix, &relative);
}

static bool begins(const struct buf *text, const char *start)
{
    return text->len >= strlen(start) && memcmp(text->data, start, strlen(start)) == 0;
}

static void print_header(const struct diff_change *change)
{
    const struct buf *old = change->letter == 'R' ? &change->old_path : &change->path;

    (void)printf("diff --git ");
    print_side("a/", old);
    (void)printf(" ");
    print_side("b/", &change->path);
    (void)printf("\n");
    if (change->letter == 'A')
        (void)printf("new file mode 100644\n");
    if (change->letter == 'D')
        (void)printf("deleted file mode 100644\n");
    if (change->letter != 'R')
        return;
    (void)printf("similarity index 100%%\nrename from ");
    print_side("", old);
    (void)printf("\nrename to ");
    print_side("", &change->path);
    (void)printf("\n");
}

/* Whether a header alone says all: an empty file that came or went, or a file that moved. */
static bool is_header_only(const struct diff_change *change)
{
    bool is_empty = change->size == 0 && change->old_size == 0;

    if (strcmp(change->type, "file") != 0)
        return false;
    return change->letter == 'R' || (is_empty && change->letter != 'M');
}

void diff_print_patch(const struct diff_change *change)
{
    if (change->letter == 0) {
        (void)fwrite(change->patch.data, 1, change->patch.len, stdout);
    } else if (change->patch.len > 0) {
        if (!begins(&change->patch, "diff --git "))
            print_header(change);
        (void)fwrite(change->patch.data, 1, change->patch.len, stdout);
    } else if (is_header_only(change)) {
        print_header(change);
    } else {
        (void)report("left out of the patch: %.400s, which is %s%s", change->path.data,
                     change->is_binary ? "not text" : "a ", change->is_binary ? "" : change->type);
    }
}
