// SPDX-License-Identifier: Apache-2.0
#include "cli/agent/review.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text/control.h"
#include "base/xalloc.h"
#include "cli/agent/repo.h"
#include "cli/core/report.h"
#include "cli/diff/diff.h"
#include "holt.h"

/* Returns the path below the directory, with its slash; "" for the directory, NULL for another. */
static const char *path_below(const struct repo *repo, const char *path)
{
    size_t len = strlen(repo->inside);

    if (strncmp(path, repo->inside, len) != 0 || (path[len] != '\0' && path[len] != '/'))
        return NULL;
    return path + len;
}

/* Writes a line without the prefix of the directory, which the daemon puts into the headers of a
 * patch: "--- a/workspace/repo/file". */
static void header_write(const struct review *review, const char *line, size_t len, FILE *out)
{
    cleanup_free char *text = xasprintf("%.*s", (int)len, line);
    const char *at = strstr(text, review->repo->inside);
    size_t before = at ? (size_t)(at - text) : 0, skip = strlen(review->repo->inside);

    if (at && before > 0 && (at[-1] == 'a' || at[-1] == 'b') && at[skip] == '/')
        (void)fprintf(out, "%.*s%s", (int)before, text, at + skip);
    else
        (void)fwrite(line, 1, len, out);
}

/* Writes the lines up to the first hunk as headers, and the rest as it is. */
static void patch_write(const struct review *review, const char *text, size_t len, bool is_start,
                        FILE *out)
{
    while (is_start && len > 0 && strncmp(text, "@@", len < 2 ? len : 2) != 0) {
        const char *end = memchr(text, '\n', len);
        size_t line = end ? (size_t)(end - text) + 1 : len;

        header_write(review, text, line, out);
        text += line;
        len -= line;
    }
    (void)fwrite(text, 1, len, out);
}

/* Writes a text to a terminal: what would control it becomes "?". */
static void safe_write(const char *text, size_t len, FILE *out)
{
    for (size_t i = 0; i < len;) {
        size_t control = text[i] == '\n' || text[i] == '\t' ? 0 : text_control(text + i);

        if (text[i] == '\0')
            control = 1;
        (void)fputc(control > 0 ? '?' : text[i], out);
        i += control > 0 ? control : 1;
    }
}

/* Makes the patch of a change, with paths relative to the directory, and writes it. */
static void change_write(struct review *review, const struct holt_change *change)
{
    struct holt_change copy = *change;
    cleanup_free char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    const bool is_start = diff_letter(change) != 0;

    if (!out)
        return;
    if (is_start) {
        const char *old_path = path_below(review->repo, change->old_path);

        copy.path = path_below(review->repo, change->path);
        copy.old_path = old_path ? old_path : "";
    }
    diff_print_patch(&copy, out);
    (void)fclose(out);
    if (!text)
        return;
    if (!review->is_safe) {
        patch_write(review, text, len, is_start, review->patch);
        return;
    }
    out = review->patch;
    if (is_start) {
        cleanup_free char *plain = NULL;
        size_t plain_len = 0;
        FILE *headers = open_memstream(&plain, &plain_len);

        if (!headers)
            return;
        patch_write(review, text, len, true, headers);
        (void)fclose(headers);
        safe_write(plain, plain_len, out);
    } else {
        safe_write(text, len, out);
    }
}

static int change_take(void *context, const struct holt_change *change)
{
    struct review *review = context;
    const char *path = path_below(review->repo, change->path);
    const char *old_path = path_below(review->repo, change->old_path);
    const char letter = diff_letter(change);
    bool is_hook;

    if (letter == 0) {
        if (review->patch && review->continues)
            change_write(review, change);
        return 0;
    }
    review->continues = path && *path && !repo_path_is_git(path, &is_hook);
    if (!path)
        return 0;
    if (review->patch && review->continues)
        change_write(review, change);
    if (!review->patch)
        repo_changes_add(review->changes, path + (*path == '/'),
                         letter == 'R' && old_path && *old_path ? old_path + 1 : "", change->type,
                         letter == 'D');
    return 0;
}

int review_run(struct review *review)
{
    struct holt_diff_options options = HOLT_INIT(holt_diff_options);
    struct holt_error error;

    options.from = review->from;
    options.to = review->to;
    options.path = review->repo->inside;
    options.has_patch = review->patch != NULL;
    options.on_change = change_take;
    options.context = review;
    if (holt_diff(review->holt, review->sandbox, &options, HOLT_NO_DEADLINE, &error) < 0)
        return report_holt_error(&error);
    return STATUS_OK;
}

void review_summary(const struct repo_changes *changes)
{
    for (size_t i = 0; i < changes->count; i++) {
        const struct repo_change *change = &changes->items[i];

        if (change->refusal)
            report_note("left out: '%s': %s", change->path, change->refusal);
        else if (change->type == ENTRY_LINK)
            report_note("link    '%s' -> '%s'", change->path, change->target);
        else
            report_note("%s '%s'%s", change->type == ENTRY_NONE ? "remove " : "write  ",
                        change->path, change->type == ENTRY_DIRECTORY ? " (directory)" : "");
    }
    if (changes->in_git > 0)
        report_note("left out: %u changed file%s in .git, which git may execute or obey%s",
                    changes->in_git, changes->in_git == 1 ? "" : "s",
                    changes->hooks > 0 ? "; HOOKS OR SETTINGS ARE AMONG THEM" : "");
}
