// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text/control.h"
#include "cli/core/report.h"
#include "cli/diff/diff.h"
#include "holt.h"

char diff_letter(const struct holt_change *change)
{
    static const char *const kinds[] = { "added", "modified", "deleted", "renamed" };

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (strcmp(kinds[i], change->kind) == 0)
            return "AMDR"[i];
    return 0;
}

static bool needs_quotes(const char *path)
{
    for (; *path; path++)
        if (text_control(path) > 0 || strchr("\"\\", *path))
            return true;
    return false;
}

/* Adds a byte that may be a part of a control character. */
static void escaped_add(struct buf *out, unsigned char byte, bool is_control)
{
    static const char plain[] = "\a\b\t\n\v\f\r\"\\", letters[] = "abtnvfr\"\\";
    const char *at = strchr(plain, byte);

    if (at)
        (void)buf_printf(out, "\\%c", letters[at - plain]);
    else if (is_control)
        (void)buf_printf(out, "\\%03o", byte);
    else
        (void)buf_add(out, &byte, 1);
}

void diff_path_add(struct buf *out, const char *prefix, const char *path)
{
    const char *quote = needs_quotes(path) ? "\"" : "";
    size_t control = 0; /* bytes of a control character that are left */

    (void)buf_printf(out, "%s%s", quote, prefix);
    for (; *path; path++) {
        control = control > 0 ? control : text_control(path);
        escaped_add(out, (unsigned char)*path, control > 0);
        control -= control > 0;
    }
    (void)buf_add_str(out, quote);
}

static void print_path(FILE *out, const char *prefix, const char *path)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(DIFF_NAME_MAX);

    diff_path_add(&text, prefix, path);
    (void)fprintf(out, "%s", text.data ? text.data : "");
}

void diff_print_name(const struct holt_change *change)
{
    char letter = diff_letter(change);

    (void)printf("%c ", letter);
    if (letter == 'R') {
        print_path(stdout, "", change->old_path);
        (void)printf(" -> ");
    }
    print_path(stdout, "", change->path);
    (void)printf("\n");
}

/* Prints "a/etc/passwd": paths in a patch are not absolute. */
static void print_side(FILE *out, const char *prefix, const char *path)
{
    print_path(out, prefix, *path ? path + 1 : path);
}

static void print_header(const struct holt_change *change, FILE *out)
{
    char letter = diff_letter(change);
    const char *old_path = letter == 'R' ? change->old_path : change->path;

    (void)fprintf(out, "diff --git ");
    print_side(out, "a/", old_path);
    (void)fprintf(out, " ");
    print_side(out, "b/", change->path);
    (void)fprintf(out, "\n");
    if (letter == 'A')
        (void)fprintf(out, "new file mode 100644\n");
    if (letter == 'D')
        (void)fprintf(out, "deleted file mode 100644\n");
    if (letter != 'R')
        return;
    (void)fprintf(out, "similarity index 100%%\nrename from ");
    print_side(out, "", old_path);
    (void)fprintf(out, "\nrename to ");
    print_side(out, "", change->path);
    (void)fprintf(out, "\n");
}

static bool has_header(const struct holt_change *change)
{
    static const char start[] = "diff --git ";

    return change->patch_len >= strlen(start) && memcmp(change->patch, start, strlen(start)) == 0;
}

/* Returns whether the header is the whole patch: of an empty file, or of a renamed file. */
static bool is_header_only(const struct holt_change *change)
{
    bool is_empty = change->size_bytes == 0 && change->old_size_bytes == 0;
    char letter = diff_letter(change);

    if (strcmp(change->type, "file") != 0)
        return false;
    return letter == 'R' || (is_empty && letter != 'M');
}

void diff_print_patch(const struct holt_change *change, FILE *out)
{
    bool continues = diff_letter(change) == 0;

    if (continues || change->patch_len > 0) {
        if (!continues && !has_header(change))
            print_header(change, out);
        (void)fwrite(change->patch, 1, change->patch_len, out);
    } else if (is_header_only(change)) {
        print_header(change, out);
    } else {
        (void)report("left out of the patch: %.400s, which is %s%s", change->path,
                     change->is_binary ? "not text" : "a ", change->is_binary ? "" : change->type);
    }
}
