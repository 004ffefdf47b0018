// SPDX-License-Identifier: Apache-2.0
#include "tools/search/grep_report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text/utf8.h"
#include "base/xalloc.h"
#include "tools/search/regex.h"
#include "tools/search/search_path.h"
#include "tools/tool.h"
#include "wire/file.h"

enum { PATTERN_SHOWN = 100 };

void grep_report_done(struct grep_report *report)
{
    buf_done(&report->body);
    free(report->prefix);
    free(report->unreadable_files.first);
    free(report->unreadable_dirs.first);
    free(report->failure);
}

static void unreadable_add(struct grep_unreadable *unreadable, const char *path, int error)
{
    if (error == ENOENT || error == ELOOP)
        return; /* removed or replaced meanwhile */
    if (unreadable->count++ == 0)
        unreadable->first = xasprintf("%s: %s", path, strerrordesc_np(error));
}

void grep_report_unreadable(struct grep_report *report, const char *path, int error)
{
    cleanup_free char *whole = xasprintf("%s%s", report->prefix, path);

    unreadable_add(&report->unreadable_dirs, whole, error);
}

/* Adds the matches of a file, as many as fit. */
static void report_add_matches(struct grep_report *report, const struct grep_found *found)
{
    const struct grep_search *search = report->search;
    size_t count = found->kept, room = search->max_matches - (size_t)report->shown;
    const char *between = search->context > 0 && report->shown > 0 ? "--\n" : "";

    if (count > room)
        count = room;
    while (count > 0 &&
           report->body.len + strlen(between) + found->ends[count - 1] > search->max_bytes)
        count--;
    if (count > 0 && buf_add_str(&report->body, between) == 0 &&
        buf_add(&report->body, found->text.data, found->ends[count - 1]) == 0)
        report->shown += count;
    report->is_cut = count < found->matches;
}

/* Adds the path of a file, with the count in the mode count. */
static void report_add_name(struct grep_report *report, const struct grep_found *found,
                            const char *path)
{
    const struct grep_search *search = report->search;
    size_t before = report->body.len;
    int r = 0;

    report->is_cut = report->shown == search->max_matches;
    if (report->is_cut)
        return;
    r = search_path_add(&report->body, path);
    if (r == 0)
        r = search->mode == GREP_COUNT ? buf_printf(&report->body, ":%" PRIu64 "\n", found->matches)
                                       : buf_add_str(&report->body, "\n");
    if (r < 0) {
        report->is_cut = true;
        report->body.len = before;
        return;
    }
    report->shown++;
}

bool grep_report_add(struct grep_report *report, const struct grep_found *found,
                     grep_path_fn *path_fn, void *context)
{
    cleanup_free char *path = NULL;

    report->searched += found->status == GREP_READ;
    report->binary_files += found->status == GREP_BINARY;
    if (found->status == GREP_UNREADABLE || found->status == GREP_TOO_HARD ||
        (found->matches > 0 && report->search->mode != GREP_CONTENT))
        path = path_fn(context);
    if (found->status == GREP_UNREADABLE)
        unreadable_add(&report->unreadable_files, path, found->error);
    if (found->status == GREP_TOO_HARD) {
        report->failure = xasprintf("The pattern takes too many steps on line %" PRIu64
                                    " of %s. Simplify it, for example "
                                    "with fewer nested * and +, or skip the file with exclude.",
                                    found->line, path);
        return false;
    }
    if (found->matches == 0)
        return true;
    report->files++;
    report->matches += found->matches;
    if (report->search->mode == GREP_CONTENT)
        report_add_matches(report, found);
    else
        report_add_name(report, found, path);
    return !report->is_cut;
}

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* Reports that there are no matches, with possible reasons. */
static void report_write_none(const struct grep_report *report, const struct tool_values *values,
                              const struct regex *regex, struct buf *out)
{
    const struct tool_text *pattern = &values->at[GREP_PATTERN].text;
    const struct tool_text *include = &values->at[GREP_INCLUDE].text;
    uint64_t looked_at = report->searched + report->binary_files;

    (void)buf_add_str(out, "No matches for '");
    (void)utf8_add(out, pattern->data, utf8_cut(pattern->data, pattern->len, PATTERN_SHOWN));
    (void)buf_printf(out, "%s in %s (%" PRIu64 " file%s searched).",
                     pattern->len <= PATTERN_SHOWN ? "'" : "...'",
                     *report->prefix ? report->prefix : FILE_WORKSPACE, report->searched,
                     plural(report->searched));
    if (looked_at == 0 && include->len > 0)
        (void)buf_printf(out, " No file matches include '%s'.", include->data);
    if (regex_has_newline(regex))
        (void)buf_add_str(out, " Files are searched line by line, so a pattern with \\n matches "
                               "nothing.");
    if (report->binary_files > 0)
        (void)buf_printf(out, " %" PRIu64 " binary file%s skipped.", report->binary_files,
                         report->binary_files == 1 ? " was" : "s were");
    if (report->hidden_count > 0)
        (void)buf_printf(out, " %zu hidden director%s not searched; set hidden to search them.",
                         report->hidden_count, report->hidden_count == 1 ? "y was" : "ies were");
}

static void report_write_header(const struct grep_report *report, struct buf *out)
{
    const struct grep_search *search = report->search;
    const char *at_least = report->is_cut && !report->is_one_file ? "at least " : "";

    if (search->mode == GREP_FILES)
        (void)buf_printf(out, "Found matches in %s%" PRIu64 " file%s", at_least, report->files,
                         plural(report->files));
    else
        (void)buf_printf(out, "Found %s%" PRIu64 " match%s in %" PRIu64 " file%s", at_least,
                         report->matches, report->matches == 1 ? "" : "es", report->files,
                         plural(report->files));
    if (report->is_cut)
        (void)buf_printf(
            out, "; showing %" PRIu64 ". %s, or narrow the search with path or include",
            report->shown,
            report->shown == search->max_matches ? "Increase max_results" : "Increase max_bytes");
    (void)buf_add_str(out, "\n");
}

static void report_write_unreadable(const struct grep_report *report, struct buf *out)
{
    const struct grep_unreadable *files = &report->unreadable_files,
                                 *dirs = &report->unreadable_dirs;
    uint64_t count = files->count + dirs->count;

    if (count > 0)
        (void)buf_printf(out, "%s%" PRIu64 " %s could not be read (%s).\n",
                         report->files == 0 ? " " : "", count,
                         count == 1 ? "file or directory" : "files or directories",
                         files->first ? files->first : dirs->first);
}

void grep_report_write(const struct grep_report *report, const struct tool_values *values,
                       const struct regex *regex, struct tool_reply *reply)
{
    struct buf *out = &reply->content;

    if (report->failure) {
        tool_reply_set_error(reply, "%s", report->failure);
        return;
    }
    if (report->is_one_file && report->binary_files > 0) {
        tool_reply_set_error(reply, "%s is a binary file; grep searches text.", report->prefix);
        return;
    }
    if (report->is_one_file && report->unreadable_files.first) {
        tool_reply_set_error(reply, "%s.", report->unreadable_files.first);
        return;
    }
    if (report->files == 0) {
        report_write_none(report, values, regex, out);
    } else {
        report_write_header(report, out);
        (void)buf_add(out, report->body.data, report->body.len);
    }
    if (report->is_cut)
        reply->outcome.flags |= TOOL_IS_CUT;
    else
        report_write_unreadable(report, out);
}
