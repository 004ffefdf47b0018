// SPDX-License-Identifier: Apache-2.0
#include "tools/edit/edit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/uio.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "tools/edit/replace.h"
#include "tools/path.h"
#include "tools/search/finder.h"
#include "tools/text.h"

enum {
    LINES_NAMED_MAX = 10, /* line numbers in a reply */
    FINDER_MAX = 256,     /* bytes of a string that a finder searches */
    LOCK_TRIES = 10 * 1000,
    LOCK_PAUSE_MS = 1,
    READ_MORE = 64 * 1024, /* bytes to read at a time of a file that has grown */
    CRLF_MAX = 2 * TOOL_PARAMS_MAX,
    WHICH_MAX = 64,
    TRIES = 100, /* for a file that others change meanwhile */
};

/* The state of an edit of one file. */
struct editing {
    const char *path; /* as the model gave it */
    char full[PATH_MAX];
    struct write_target target;
    struct buf content;
    struct buf next;               /* the new content */
    struct buf old_crlf, new_crlf; /* strings of the current edit with CRLF */
    struct iovec parts[PARTS_MAX]; /* of the new content, for writing */
    size_t part_count;
    uint64_t replaced;
    struct buf lines; /* numbers of the replaced lines, for the reply */
    struct tool_reply *reply;
};

static void editing_done(struct editing *editing)
{
    target_done(&editing->target);
    buf_done(&editing->content);
    buf_done(&editing->next);
    buf_done(&editing->old_crlf);
    buf_done(&editing->new_crlf);
    buf_done(&editing->lines);
}

/* --- the file --------------------------------------------------------------------------------- */

/* Serializes edits of the same file. Other programs may hold the lock for their own purposes, so
 * the wait is limited. */
static void file_lock(int fd)
{
    for (int i = 0; i < LOCK_TRIES && flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK; i++)
        clock_sleep_ms(LOCK_PAUSE_MS);
}

static int file_read(int fd, size_t size, struct buf *out)
{
    ssize_t n = 1;

    /* One byte more, so that a short read shows the end without a second call. */
    while (n > 0) {
        size_t room = size >= out->len ? size - out->len + 1 : READ_MORE;
        int r = buf_reserve(out, room);

        if (r < 0)
            return r;
        n = read(fd, out->data + out->len, room);
        if (n < 0 && errno != EINTR)
            return -errno;
        out->len += n > 0 ? (size_t)n : 0;
        if (n > 0 && (size_t)n < room && out->len == size)
            break;
        n = n < 0 ? 1 : n;
    }
    return 0;
}

/* Reads the content; the file is locked until *ret_fd is closed. Returns -EAGAIN when the file was
 * replaced meanwhile, or another -errno with the error of the reply set. */
static int editing_load(struct editing *editing, int *ret_fd)
{
    cleanup_close int fd = -EBADF;
    struct stat st;
    int r;

    fd = path_open_file(editing->path, editing->full, &st, editing->reply);
    if (fd < 0)
        return fd == -EAGAIN ? -EIO : fd;
    if (st.st_size > EDIT_BYTES_MAX) {
        tool_reply_set_error(editing->reply,
                             "'%s' has %" PRIu64
                             " bytes; the limit for edits is %d. Use bash with sed "
                             "instead.",
                             editing->path, (uint64_t)st.st_size, EDIT_BYTES_MAX);
        return -EFBIG;
    }
    file_lock(fd);
    r = target_find(editing->full, &editing->target);
    if (r < 0)
        return path_refuse(editing->reply, "edit", editing->path, editing->full, r);
    if (editing->target.is_new || editing->target.old.st_ino != st.st_ino ||
        editing->target.old.st_dev != st.st_dev) {
        target_done(&editing->target);
        return -EAGAIN;
    }
    buf_clear(&editing->content);
    r = file_read(fd, (size_t)editing->target.old.st_size, &editing->content);
    if (r < 0)
        return path_refuse(editing->reply, "edit", editing->path, editing->full,
                           r == -ENOBUFS ? -EFBIG : r);
    if (text_is_binary(editing->content.data, editing->content.len)) {
        tool_reply_set_error(editing->reply,
                             "'%s' is a binary file; only text can be edited. Use bash instead.",
                             editing->path);
        return -EINVAL;
    }
    *ret_fd = TAKE_FD(fd);
    return 0;
}

/* --- one edit --------------------------------------------------------------------------------- */

/* Returns whether any line ends with CRLF, and in *ret_all whether all do. */
static bool has_crlf(const struct buf *content, bool *ret_all)
{
    const char *start = content->data, *end = start + content->len;
    bool has = false, has_other = false;

    if (!memchr(start, '\r', content->len))
        return false;
    for (const char *at = start; at < end && (at = memchr(at, '\n', (size_t)(end - at))); at++) {
        bool is_crlf = at > start && at[-1] == '\r';

        has |= is_crlf;
        has_other |= !is_crlf;
        if (has && has_other)
            break;
    }
    *ret_all = has && !has_other;
    return has;
}

/* Copies the text with CRLF for each LF that has no CR. */
static int to_crlf(const struct tool_text *text, struct buf *ret)
{
    int r = buf_reserve(ret, text->len);

    for (size_t i = 0; r == 0 && i < text->len; i++) {
        if (text->data[i] == '\n' && (i == 0 || text->data[i - 1] != '\r'))
            r = buf_add(ret, "\r", 1);
        if (r == 0)
            r = buf_add(ret, &text->data[i], 1);
    }
    return r;
}

/* The occurrences of a string in the content. */
struct hits {
    const struct tool_text *text;
    struct finder finder; /* for a short text; with a long one it may be slow */
    const char *first;
    uint64_t count;
};

static void hits_done(struct hits *hits)
{
    finder_done(&hits->finder);
}

static const char *hits_find(const struct hits *hits, const struct buf *content, const char *from)
{
    const char *end = content->data + content->len;

    return hits->finder.text
               ? finder_find(&hits->finder, from, end)
               : memmem(from, (size_t)(end - from), hits->text->data, hits->text->len);
}

/* Counts the occurrences and lists their line numbers. */
static void hits_count(struct hits *hits, const struct buf *content, struct buf *ret_lines)
{
    const char *counted = content->data, *at = content->data;
    uint64_t line = 1;

    if (hits->text->len <= FINDER_MAX)
        finder_init(&hits->finder, hits->text->data, hits->text->len, false);
    buf_clear(ret_lines);
    while ((at = hits_find(hits, content, at))) {
        if (hits->count == 0)
            hits->first = at;
        if (hits->count < LINES_NAMED_MAX) {
            line += newline_count(counted, at);
            counted = at;
            (void)buf_printf(ret_lines, "%s%" PRIu64, hits->count ? ", " : "", line);
        } else if (hits->count == LINES_NAMED_MAX) {
            (void)buf_add_str(ret_lines, ", ...");
        }
        hits->count++;
        at += hits->text->len;
    }
}

/* Makes the parts of a content with a single replacement without copying it. */
static void editing_splice(struct editing *editing, const struct hits *hits,
                           const struct tool_text *new_text)
{
    const char *end = editing->content.data + editing->content.len;
    const char *rest = hits->first + hits->text->len;

    editing->parts[0] =
        (struct iovec){ editing->content.data, (size_t)(hits->first - editing->content.data) };
    editing->parts[1] = (struct iovec){ (void *)(uintptr_t)new_text->data, new_text->len };
    editing->parts[2] = (struct iovec){ (void *)(uintptr_t)rest, (size_t)(end - rest) };
    editing->part_count = 3;
}

static int editing_replace(struct editing *editing, const struct hits *hits,
                           const struct tool_text *new_text)
{
    const char *end = editing->content.data + editing->content.len, *at = editing->content.data;
    struct buf done;
    int r;

    buf_clear(&editing->next);
    r = buf_reserve(&editing->next, editing->content.len);
    for (uint64_t i = 0; r == 0 && i < hits->count; i++) {
        const char *hit = i == 0 ? hits->first : hits_find(hits, &editing->content, at);

        r = buf_add(&editing->next, at, (size_t)(hit - at));
        if (r == 0)
            r = buf_add(&editing->next, new_text->data, new_text->len);
        at = hit + hits->text->len;
    }
    if (r == 0)
        r = buf_add(&editing->next, at, (size_t)(end - at));
    done = editing->content;
    editing->content = editing->next;
    editing->next = done;
    editing->parts[0] = (struct iovec){ editing->content.data, editing->content.len };
    editing->part_count = 1;
    return r;
}

static int editing_refuse(const struct editing *editing, const char *which, const char *why)
{
    tool_reply_set_error(editing->reply, "%s%s Nothing was changed.", which, why);
    return -EINVAL;
}

static uint64_t editing_new_length(const struct editing *editing, const struct hits *hits,
                                   const struct tool_text *new_text)
{
    uint64_t left = editing->content.len - hits->count * hits->text->len;

    return left + hits->count * new_text->len;
}

static int editing_replace_all(struct editing *editing, const struct tool_edit *edit,
                               const char *which, bool is_last)
{
    cleanup_with(hits_done) struct hits hits = { .text = &edit->old_text };

    hits_count(&hits, &editing->content, &editing->lines);
    if (hits.count == 0) {
        const struct tool_text content = { editing->content.data, editing->content.len };

        edit_explain_miss(editing->path, which, &content, &edit->old_text, editing->reply);
        if (editing->replaced > 0)
            (void)buf_add_str(&editing->reply->content,
                              "(shown with the preceding edits applied)\n");
        return -ENOENT;
    }
    if (hits.count > 1 && !edit->all) {
        tool_reply_set_error(
            editing->reply,
            "%sold_string occurs %" PRIu64 " times in '%s' (lines %s). Include more "
            "surrounding lines to make it unique, or set replace_all. Nothing was changed.",
            which, hits.count, editing->path, editing->lines.data);
        return -EEXIST;
    }
    if (editing_new_length(editing, &hits, &edit->new_text) > EDIT_BYTES_MAX)
        return editing_refuse(editing, which, "The file would be larger than 64 MiB.");
    editing->replaced += hits.count;
    if (is_last && hits.count == 1)
        editing_splice(editing, &hits, &edit->new_text);
    else if (editing_replace(editing, &hits, &edit->new_text) < 0)
        return editing_refuse(editing, which, "The sandbox is out of memory.");
    return 0;
}

/* read_file does not show the difference between LF and CRLF. So in a file with CRLF, LF in
 * old_string matches CRLF, and new_string gets CRLF. */
static int editing_run_one(struct editing *editing, const struct tool_edit *edit, const char *which,
                           bool is_last)
{
    struct buf *old_crlf = &editing->old_crlf, *new_crlf = &editing->new_crlf;
    struct tool_edit effective = *edit;
    bool is_all = false, has_lf = memchr(edit->old_text.data, '\n', edit->old_text.len);
    bool has_new_lf = memchr(edit->new_text.data, '\n', edit->new_text.len);

    if (edit->old_text.len == 0)
        return editing_refuse(editing, which,
                              "old_string is empty. Use write_file to write a whole file.");
    if (edit->old_text.len == edit->new_text.len &&
        memcmp(edit->old_text.data, edit->new_text.data, edit->old_text.len) == 0)
        return editing_refuse(editing, which, "old_string and new_string are the same.");
    if ((has_lf || has_new_lf) && has_crlf(&editing->content, &is_all)) {
        bool is_exact = memmem(editing->content.data, editing->content.len, edit->old_text.data,
                               edit->old_text.len);

        buf_clear(old_crlf);
        buf_clear(new_crlf);
        if (to_crlf(&edit->old_text, old_crlf) < 0 || to_crlf(&edit->new_text, new_crlf) < 0)
            return editing_refuse(editing, which, "The sandbox is out of memory.");
        if (!is_exact)
            effective.old_text = (struct tool_text){ old_crlf->data, old_crlf->len };
        if (new_crlf->len > 0 && (is_all || !is_exact))
            effective.new_text = (struct tool_text){ new_crlf->data, new_crlf->len };
    }
    return editing_replace_all(editing, &effective, which, is_last);
}

/* --- all edits -------------------------------------------------------------------------------- */

static int editing_run_all(struct editing *editing, const struct tool_edit *edits, size_t count)
{
    char which[WHICH_MAX] = "";
    int r = 0;

    if (!editing->content.data && buf_add(&editing->content, "", 0) < 0)
        return editing_refuse(editing, "", "The sandbox is out of memory.");
    for (size_t i = 0; r == 0 && i < count; i++) {
        if (count > 1)
            (void)snprintf(which, sizeof(which), "Edit %zu of %zu: ", i + 1, count);
        r = editing_run_one(editing, &edits[i], which, i + 1 == count);
    }
    return r;
}

static void editing_report(const struct editing *editing, size_t count)
{
    struct buf *out = &editing->reply->content;

    (void)buf_printf(out, "Replaced %s in '%s'", text_count(editing->replaced, "occurrence"),
                     editing->path);
    if (count == 1)
        (void)buf_printf(out, " (line%s %s)", editing->replaced == 1 ? "" : "s",
                         editing->lines.data);
    else
        (void)buf_printf(out, " with %zu edits", count);
    (void)buf_add_str(out, ".");
    target_report(&editing->target, editing->reply);
}

/* Reads the file, makes all edits and writes it. Returns -EAGAIN when the file was replaced or
 * written meanwhile, or another -errno with the error of the reply set. */
static int editing_try(struct editing *editing, const struct tool_edit *edits, size_t count)
{
    cleanup_close int fd = -EBADF;
    int r = editing_load(editing, &fd);

    editing->replaced = 0;
    if (r == 0)
        r = editing_run_all(editing, edits, count);
    if (r < 0)
        return r;
    r = target_write(&editing->target, editing->parts, editing->part_count, true);
    if (r == -ESTALE) {
        target_done(&editing->target);
        return -EAGAIN;
    }
    return r < 0 ? path_refuse(editing->reply, "write", editing->path, editing->full, r) : 0;
}

/* Makes all edits in a file, in order, or none, and reports the outcome in the reply. */
static void edit_run(const struct tool_text *path, const struct tool_edit *edits, size_t count,
                     struct tool_reply *reply)
{
    cleanup_with(editing_done) struct editing editing = {
        .path = path->data,
        .target.dir_fd = -EBADF,
        .content.max = EDIT_BYTES_MAX + 1, /* see file_read */
        .next.max = EDIT_BYTES_MAX + 1,
        .old_crlf.max = CRLF_MAX,
        .new_crlf.max = CRLF_MAX,
        .lines.max = 1024,
        .reply = reply,
    };
    int r = -EAGAIN;

    if (!path_full(path, editing.full, reply))
        return;
    for (int i = 0; i < TRIES && r == -EAGAIN; i++)
        r = editing_try(&editing, edits, count);
    if (r == -EAGAIN)
        tool_reply_set_error(
            reply, "'%s' is constantly changed by other processes. Nothing was changed; try again.",
            editing.path);
    else if (r == 0)
        editing_report(&editing, count);
}

void tool_edit_file(const struct tool_values *values, struct tool_reply *reply)
{
    const struct tool_edit edit = {
        .old_text = values->at[EDIT_OLD].text,
        .new_text = values->at[EDIT_NEW].text,
        .all = values->at[EDIT_ALL].number,
    };

    edit_run(&values->at[EDIT_PATH].text, &edit, 1, reply);
}

void tool_multi_edit(const struct tool_values *values, struct tool_reply *reply)
{
    const struct tool_value *edits = &values->at[MULTI_EDIT_EDITS];

    if (edits->count == 0)
        tool_reply_set_error(reply, "edits is empty. Give at least one edit.");
    else
        edit_run(&values->at[MULTI_EDIT_PATH].text, edits->edits, edits->count, reply);
}
