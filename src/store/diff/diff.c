// SPDX-License-Identifier: Apache-2.0
#include "store/diff/diff.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "store/diff/diff_internal.h"

/* Buffers and options from which entries are built. */
struct report {
    const struct diff_options *options;
    diff_fn each;
    void *context;
    struct buf path;
    struct buf old_path;
    struct diff_text text;
};

static void report_done(struct report *report)
{
    buf_done(&report->path);
    buf_done(&report->old_path);
    diff_text_done(&report->text);
}

static void list_done(struct diff_list *list)
{
    diff_arena_done(&list->arena);
}

static char type_letter(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFDIR:
        return 'd';
    case S_IFLNK:
        return 'l';
    case S_IFIFO:
        return 'p';
    case S_IFSOCK:
        return 's';
    case S_IFCHR:
        return 'c';
    case S_IFBLK:
        return 'b';
    default:
        return 'f';
    }
}

static enum diff_kind kind_of(const struct diff_change *change)
{
    if (change->renamed_from)
        return DIFF_RENAMED;
    if (change->is_named[DIFF_OLD])
        return change->is_named[DIFF_NEW] ? DIFF_MODIFIED : DIFF_DELETED;
    return DIFF_ADDED;
}

static void entry_add_text(const struct report *report, struct diff_entry *entry)
{
    const struct diff_text *text = &report->text;

    entry->is_binary = text->is_binary;
    if (report->options->wants_lines) {
        entry->added_lines = text->added_lines;
        entry->deleted_lines = text->deleted_lines;
    }
    if (report->options->wants_patch && text->patch.len > 0) {
        entry->patch = text->patch.data;
        entry->patch_len = text->patch.len;
    }
}

static bool has_contents(const struct diff_change *change)
{
    return S_ISREG(change->modes[DIFF_OLD]) || S_ISREG(change->modes[DIFF_NEW]);
}

/* Returns whether a path is the wanted one or below it. */
static bool is_below(const char *path, const char *wanted)
{
    size_t len = strlen(wanted);

    while (len > 0 && wanted[len - 1] == '/')
        len--;
    return strncmp(path, wanted, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

static bool is_wanted(const struct report *report, const struct diff_entry *entry)
{
    const char *wanted = report->options->path;

    return !wanted || is_below(entry->path, wanted) ||
           (entry->old_path && is_below(entry->old_path, wanted));
}

static int change_report(struct report *report, const struct diff_change *change, struct err *err)
{
    const struct diff_change *from = change->renamed_from;
    enum diff_kind kind = kind_of(change);
    enum diff_side side = kind == DIFF_DELETED ? DIFF_OLD : DIFF_NEW;
    struct diff_entry entry = {
        .kind = kind,
        .type = type_letter(change->modes[side]),
        .size = side == DIFF_NEW ? change->sizes[DIFF_NEW] : 0,
        .old_size = from ? from->sizes[DIFF_OLD] : change->sizes[DIFF_OLD],
    };
    int r = diff_path(change->dir, change->name, &report->path);

    if (r == 0 && from)
        r = diff_path(from->dir, from->name, &report->old_path);
    if (r < 0)
        return diff_error(err, r, change->dir, change->name);
    entry.path = report->path.data;
    entry.old_path = from ? report->old_path.data : NULL;
    if (!is_wanted(report, &entry))
        return 0;
    if ((report->options->wants_lines || report->options->wants_patch) && has_contents(change)) {
        r = diff_text_compare(change, entry.path, &report->text, err);
        if (r < 0)
            return r;
        entry_add_text(report, &entry);
    }
    return report->each(&entry, report->context);
}

static int list_report(const struct diff_list *list, struct report *report, struct err *err)
{
    int r = 0;

    for (const struct diff_change *change = list->first.next; r == 0 && change;
         change = change->next) {
        if (change->is_named[DIFF_OLD] || change->is_named[DIFF_NEW])
            r = change_report(report, change, err);
    }
    return r;
}

int diff_run(const struct volume_view *old, const struct volume_view *new,
             const struct diff_options *options, diff_fn each, void *context, struct err *err)
{
    cleanup_with(list_done) struct diff_list list = { .arena.left_bytes = DIFF_LIST_MAX,
                                                      .taken_ms = options->taken_ms,
                                                      .is_of_volumes = options->is_of_volumes };
    cleanup_with(report_done) struct report report = {
        .options = options,
        .each = each,
        .context = context,
        .path = BUF_INIT(DIFF_PATH_MAX + NAME_MAX + 2),
        .old_path = BUF_INIT(DIFF_PATH_MAX + NAME_MAX + 2),
        .text = DIFF_TEXT_INIT,
    };
    int r = diff_trees_init(&list, old, new, err);

    if (r == 0)
        r = diff_walk(&list, err);
    if (r < 0)
        return r;
    r = diff_find_renames(&list);
    if (r < 0)
        return err_sys(err, r, "find renamed files");
    return list_report(&list, &report, err);
}
