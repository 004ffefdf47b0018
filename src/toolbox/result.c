// SPDX-License-Identifier: Apache-2.0
/* Makes the result of a job from the output of its tool. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "host/observe/event.h"
#include "host/sandbox/sandbox.h"
#include "toolbox/archive.h"
#include "toolbox/cut.h"
#include "toolbox/tool_internal.h"

enum {
    MARKER_BYTES = 160,       /* approximate size of the marker of a cut */
    MARKER_BUDGET_MIN = 1024, /* smaller budgets do not include the marker */
    SNAPSHOT_TRIES = 1000,
};

/* --- changes --------------------------------------------------------------------------------- */

void tool_job_add_change(struct tool_job *job, char kind, const char *path)
{
    struct tool_result *result = &job->result;

    if (!job->changes) {
        job->changes = xcalloc(TOOL_CHANGES_MAX, sizeof(*job->changes));
        job->paths.max = TOOL_CHANGES_BYTES;
    }
    if (result->changed_count == TOOL_CHANGES_MAX ||
        buf_add(&job->paths, path, strlen(path) + 1) < 0)
        result->changed_is_cut = true;
    else
        job->changes[result->changed_count++].kind = kind;
}

/* Sets the pointers to the paths, whose buffer does not move from now on. */
static void result_set_changes(struct tool_job *job)
{
    const char *path = job->paths.data;

    for (size_t i = 0; i < job->result.changed_count; i++) {
        job->changes[i].path = path;
        path += strlen(path) + 1;
    }
    job->result.changed = job->changes;
}

static int result_add_entry(const struct diff_entry *entry, void *context)
{
    struct tool_job *job = context;

    if (entry->kind == DIFF_RENAMED) {
        tool_job_add_change(job, DIFF_DELETED, entry->old_path);
        tool_job_add_change(job, DIFF_ADDED, entry->path);
    } else {
        tool_job_add_change(job, (char)entry->kind, entry->path);
    }
    return job->result.changed_is_cut ? -ECANCELED : 0;
}

static void result_find_changes(struct tool_job *job)
{
    struct err ignored;

    if (!job->has_mark)
        return;
    job->has_mark = false;
    if (sandbox_diff_mark(job->sandbox, &job->mark, result_add_entry, job, &ignored) < 0)
        job->result.changed_is_cut = true;
    sandbox_unmark(job->sandbox, &job->mark);
}

/* --- snapshot -------------------------------------------------------------------------------- */

/* Makes a name of "tool-", the valid characters of the call's id, and a number. */
static void snapshot_make_name(const struct tool_job *job, uint64_t number, char *into, size_t size)
{
    enum { ID_PART = 100 };
    char part[ID_PART + 2] = "";
    size_t used = 0;

    for (const char *c = job->call_id; *c && used < ID_PART; c++)
        part[used++] = isalnum((unsigned char)*c) || strchr("-_.", *c) ? *c : '_';
    part[used] = '\0';
    (void)snprintf(into, size, "tool-%s%s%" PRIu64, part, used > 0 ? "-" : "", number);
}

static void result_take_snapshot(struct tool_job *job)
{
    uint64_t number = clock_wall_ms();
    struct snapshot_info info;
    struct err err = { 0 };
    int r = -EEXIST;

    if (!job->wants_snapshot || job->tool->is_read_only || job->tool->work == TOOL_BY_HOST ||
        job->result.is_error)
        return;
    for (int i = 0; i < SNAPSHOT_TRIES && r < 0; i++) {
        snapshot_make_name(job, number++, job->snapshot_id, sizeof(job->snapshot_id));
        r = sandbox_snapshot(job->sandbox, job->snapshot_id, SNAPSHOT_TOOL, &info, &err);
        if (r < 0 && err.cause != CAUSE_SNAPSHOT_EXISTS)
            break;
    }
    if (r == 0) {
        job->result.snapshot_id = job->snapshot_id;
        return;
    }
    memcpy(job->snapshot_error, err.msg, sizeof(job->snapshot_error));
    job->result.snapshot_error = job->snapshot_error;
}

/* --- text ------------------------------------------------------------------------------------ */

static size_t result_text_budget(const struct tool_job *job)
{
    return job->budget > MARKER_BUDGET_MIN ? job->budget - MARKER_BYTES : job->budget;
}

/* Appends the truncated text to *ret; the handle ("": none) refers to the full text. */
static void result_cut_text(struct tool_job *job, const char *text, size_t len, struct buf *ret)
{
    struct tool_cut cut = tool_cut(text, len, result_text_budget(job));

    job->result.is_truncated = true;
    job->result.total = len;
    job->result.shown = cut.head + (len - cut.tail);
    job->result.handle = job->handle[0] ? job->handle : NULL;
    (void)tool_cut_add(ret, text, len, &cut, job->result.handle);
}

static void result_store_output(struct tool_job *job, struct bounded_dir_file *file)
{
    struct bounded_dir *bounded_dir = &tool_archive_of(job->sandbox)->outputs;

    (void)snprintf(job->handle, sizeof(job->handle), "o%" PRIu64,
                   bounded_dir_next_number(bounded_dir));
    if (bounded_dir_put(bounded_dir, file, job->handle) < 0)
        job->handle[0] = '\0';
}

/* Makes the text of the result from the spill file. */
static void result_take_spill(struct tool_job *job)
{
    struct stat info;
    void *text;

    if (fstat(job->spill.fd, &info) < 0 || info.st_size == 0)
        return;
    text = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, job->spill.fd, 0);
    if (text == MAP_FAILED)
        return;
    result_store_output(job, &job->spill);
    buf_clear(&job->text);
    if ((uint64_t)info.st_size > job->budget)
        result_cut_text(job, text, (size_t)info.st_size, &job->text);
    else
        (void)buf_add(&job->text, text, (size_t)info.st_size);
    (void)munmap(text, (size_t)info.st_size);
}

static void result_truncate(struct tool_job *job)
{
    struct bounded_dir *bounded_dir = &tool_archive_of(job->sandbox)->outputs;
    struct bounded_dir_file file = BOUNDED_DIR_FILE_INIT;
    struct buf cut = BUF_INIT(job->budget + (size_t)2 * MARKER_BYTES);

    if (bounded_dir_create(bounded_dir, &file) == 0) {
        if (write_all(file.fd, job->text.data, job->text.len) == 0)
            result_store_output(job, &file);
        else
            bounded_dir_drop(bounded_dir, &file);
    }
    result_cut_text(job, job->text.data, job->text.len, &cut);
    buf_done(&job->text);
    job->text = cut;
}

void tool_job_set_images(struct tool_job *job, struct buf *images)
{
    buf_done(&job->images);
    job->images = *images;
    *images = (struct buf)BUF_INIT(0);
}

/* Ends the line at *at and moves *at behind it; returns NULL if there is none. */
static char *line_take(char **at, const char *end)
{
    char *line = *at, *newline = line < end ? memchr(line, '\n', (size_t)(end - line)) : NULL;

    if (!newline)
        return NULL;
    *newline = '\0';
    *at = newline + 1;
    return line;
}

/* Makes the blocks: the text, then the images. */
static void result_set_blocks(struct tool_job *job)
{
    char *at = job->images.data, *end = at ? at + job->images.len : NULL, *mime, *data;

    if (job->blocks)
        return;
    job->blocks = xcalloc(TOOL_IMAGES_MAX + 1, sizeof(*job->blocks));
    job->blocks[0] = (struct tool_block){ .text = job->text.data ? job->text.data : "",
                                          .len = job->text.len,
                                          .mime = job->mime };
    job->block_count = 1;
    while (at && job->block_count <= TOOL_IMAGES_MAX && (mime = line_take(&at, end)) &&
           (data = line_take(&at, end)))
        job->blocks[job->block_count++] =
            (struct tool_block){ .text = data, .len = strlen(data), .mime = mime };
    job->result.blocks = job->blocks;
    job->result.block_count = job->block_count;
}

void tool_result_restore(struct tool_job *job)
{
    result_set_changes(job);
    result_set_blocks(job);
    job->result.tier = tool_tier(job->tool) + (job->is_stronger ? 1 : 0);
}

/* Reports only calls that may have changed something: reads are too frequent for the audit log. */
static void result_send_event(const struct tool_job *job)
{
    if (job->tool->is_read_only)
        return;
    sandbox_event(job->sandbox, EVENT_TOOL_EXECUTED,
                  json_pack("{s:s, s:b, s:I}", "tool", job->tool->name, "failed",
                            job->result.is_error, "durationMs",
                            (json_int_t)job->result.duration_ms));
}

void tool_result_finish(struct tool_job *job)
{
    result_find_changes(job);
    result_take_snapshot(job);
    if (job->spill.fd >= 0)
        result_take_spill(job);
    else if (!job->mime && job->text.len > job->budget)
        result_truncate(job);
    job->result.duration_ms = clock_ms() - job->began_ms;
    tool_result_restore(job);
    result_send_event(job);
}
