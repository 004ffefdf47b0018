// SPDX-License-Identifier: Apache-2.0
/* Patches in the format that diff -u, patch(1) and git apply share. Patches of added and deleted
 * files are written here; only two texts need diff(1). */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "store/diff/diff_internal.h"

static const char NO_NEWLINE[] = "\\ No newline at end of file\n";

enum {
    /* Each byte of a path may become four, plus quotes, prefix and tab. */
    LABEL_MAX = 4 * (DIFF_PATH_MAX + 256) + 16,
    READ_BYTES = 64 << 10,
};

/* Returns 1 if the whole file was read and is text, 0 if not, or -errno. */
static int text_read(const struct diff_change *change, enum diff_side side, struct buf *text)
{
    struct stat st;
    cleanup_close int fd = diff_content_open(change, side, &st);
    ssize_t n;
    int r;

    if (fd < 0)
        return diff_is_gone(fd) || fd == -EAGAIN ? 0 : fd;
    if (st.st_size > DIFF_TEXT_MAX)
        return 0;
    for (;;) {
        r = buf_reserve(text, READ_BYTES);
        if (r < 0)
            return r;
        n = read(fd, text->data + text->len, READ_BYTES);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        text->len += (size_t)n;
        /* st_size is not reliable while the file is being written. */
        if (text->len > DIFF_TEXT_MAX)
            return 0;
    }
    return n < 0 ? -errno : !memchr(text->data, '\0', text->len);
}

static bool is_plain(const char *path)
{
    for (const char *c = path; *c; c++) {
        if (*c < ' ' || *c > '~' || *c == '"' || *c == '\\')
            return false;
    }
    return true;
}

static int quoted_char_add(struct buf *label, char c)
{
    static const char known[] = "\a\b\t\n\v\f\r\"\\", letters[] = "abtnvfr\"\\";
    const char *at = strchr(known, c);

    if (at)
        return buf_printf(label, "\\%c", letters[at - known]);
    if (c >= ' ' && c <= '~')
        return buf_add(label, &c, 1);
    return buf_printf(label, "\\%03o", (unsigned)(unsigned char)c);
}

/* Writes a name like git: unusual ones in quotes, one with a space followed by a tab so that what
 * follows is not taken for a date. */
static int label_add(struct buf *header, const char *prefix, const char *path)
{
    int r = is_plain(path) ? 0 : buf_add(header, "\"", 1);

    if (r == 0)
        r = buf_add_str(header, prefix);
    if (r == 0 && is_plain(path)) {
        r = buf_add_str(header, path);
        return r == 0 && strchr(path, ' ') ? buf_add(header, "\t", 1) : r;
    }
    for (const char *c = path; r == 0 && *c; c++)
        r = quoted_char_add(header, *c);
    return r < 0 ? r : buf_add(header, "\"", 1);
}

/* A view without the file has /dev/null. */
static int header_add(struct buf *patch, const char *path, bool has_old, bool has_new)
{
    int r = buf_add_str(patch, "--- ");

    if (r == 0)
        r = has_old ? label_add(patch, "a", path) : buf_add_str(patch, "/dev/null");
    if (r == 0)
        r = buf_add_str(patch, "\n+++ ");
    if (r == 0)
        r = has_new ? label_add(patch, "b", path) : buf_add_str(patch, "/dev/null");
    return r < 0 ? r : buf_add_str(patch, "\n");
}

static uint64_t count_lines(const struct buf *text)
{
    uint64_t count = text->len > 0 && text->data[text->len - 1] != '\n';

    for (size_t i = 0; i < text->len; i++)
        count += text->data[i] == '\n';
    return count;
}

static int lines_add(struct buf *patch, char sign, const struct buf *text)
{
    const char *line = text->data, *end = text->data + text->len;
    int r = 0;

    while (r == 0 && line < end) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        const char *next = newline ? newline + 1 : end;

        r = buf_add(patch, &sign, 1);
        if (r == 0)
            r = buf_add(patch, line, (size_t)(next - line));
        if (r == 0 && !newline)
            r = buf_printf(patch, "\n%s", NO_NEWLINE);
        line = next;
    }
    return r;
}

/* Writes the range of a whole file of that many lines in the header of a hunk. */
static int range_add(struct buf *patch, char sign, uint64_t lines)
{
    if (lines == 1)
        return buf_printf(patch, "%c1 ", sign);
    return buf_printf(patch, "%c%d,%llu ", sign, lines > 0, (unsigned long long)lines);
}

/* Writes the patch of an added or deleted file. */
static int whole_compare(const struct buf *content, enum diff_side side, const char *path,
                         struct diff_text *text)
{
    uint64_t lines = count_lines(content);
    int r;

    *(side == DIFF_NEW ? &text->added_lines : &text->deleted_lines) = lines;
    if (lines == 0)
        return 0;
    r = header_add(&text->patch, path, side == DIFF_OLD, side == DIFF_NEW);
    if (r == 0)
        r = buf_add_str(&text->patch, "@@ ");
    if (r == 0)
        r = range_add(&text->patch, '-', side == DIFF_OLD ? lines : 0);
    if (r == 0)
        r = range_add(&text->patch, '+', side == DIFF_NEW ? lines : 0);
    if (r == 0)
        r = buf_add_str(&text->patch, "@@\n");
    return r < 0 ? r : lines_add(&text->patch, side == DIFF_NEW ? '+' : '-', content);
}

static void hunks_count(const struct buf *hunks, struct diff_text *text)
{
    const char *line = hunks->data;

    while (line && *line) {
        text->added_lines += *line == '+';
        text->deleted_lines += *line == '-';
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
}

static int both_compare(const struct buf contents[static DIFF_SIDES], const char *path,
                        struct diff_text *text)
{
    const struct buf *old = &contents[DIFF_OLD], *new = &contents[DIFF_NEW];
    cleanup_with(buf_done) struct buf hunks = BUF_INIT(DIFF_PATCH_MAX - 2 * LABEL_MAX);
    int r;

    if (old->len == new->len && memcmp(old->data, new->data, old->len) == 0)
        return 0;
    r = diff_command_run(old, new, &text->cpu_left_ms, &hunks);
    if (r < 0)
        return r;
    text->is_binary = r == 0;
    if (text->is_binary)
        return 0;
    hunks_count(&hunks, text);
    r = header_add(&text->patch, path, true, true);
    return r < 0 ? r : buf_add(&text->patch, hunks.data, hunks.len);
}

static void contents_done(struct buf (*contents)[DIFF_SIDES])
{
    for (int side = 0; side < DIFF_SIDES; side++)
        buf_done(&(*contents)[side]);
}

static int contents_compare(const struct diff_change *change, const char *path,
                            struct diff_text *text)
{
    cleanup_with(contents_done) struct buf contents[DIFF_SIDES] = {
        BUF_INIT(DIFF_TEXT_MAX + 2 * READ_BYTES), BUF_INIT(DIFF_TEXT_MAX + 2 * READ_BYTES)
    };
    bool has[DIFF_SIDES];
    int r;

    for (int side = 0; side < DIFF_SIDES; side++) {
        has[side] = S_ISREG(change->modes[side]);
        r = has[side] ? text_read(change, side, &contents[side]) : 1;
        if (r < 0)
            return r;
        text->is_binary |= r == 0;
    }
    if (text->is_binary || change->renamed_from)
        return 0;
    if (has[DIFF_OLD] && has[DIFF_NEW])
        return both_compare(contents, path, text);
    if (has[DIFF_OLD])
        return whole_compare(&contents[DIFF_OLD], DIFF_OLD, path, text);
    return has[DIFF_NEW] ? whole_compare(&contents[DIFF_NEW], DIFF_NEW, path, text) : 0;
}

int diff_text_compare(const struct diff_change *change, const char *path, struct diff_text *text,
                      struct err *err)
{
    int r;

    text->is_binary = false;
    text->added_lines = text->deleted_lines = 0;
    buf_clear(&text->patch);
    r = contents_compare(change, path, text);
    if (r == -ENOENT) /* a removed file is not an error, so only the program can be missing */
        return err_set(err, ERR_UNSUPPORTED, "/usr/bin/diff not found (package diffutils)");
    return r < 0 ? diff_error(err, r, change->dir, change->name) : 0;
}

void diff_text_done(struct diff_text *text)
{
    buf_done(&text->patch);
}
