// SPDX-License-Identifier: Apache-2.0
/* Tools that the host executes itself: snapshots, diff, fork, and reading truncated results. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text/parse.h"
#include "base/text/utf8.h"
#include "base/xalloc.h"
#include "host/core/reactor.h"
#include "host/sandbox/sandbox.h"
#include "toolbox/tool_internal.h"

enum { SNAPSHOT_NAME };
enum { ROLLBACK_SNAPSHOT };
enum { DIFF_FROM, DIFF_TO, DIFF_PATCH };
enum { FORK_COUNT, FORK_FROM };
enum { OUTPUT_HANDLE, OUTPUT_OFFSET, OUTPUT_LIMIT };

enum { DIFF_BYTES = 16 * 1024 * 1024 };

/* Returns NULL for an absent parameter, whose value is "". */
static const char *optional_text_at(const struct tool_job *job, size_t index)
{
    const char *text = tool_text_at(job, index);

    return *text ? text : NULL;
}

static int run_snapshot(struct tool_job *job, struct err *err)
{
    const char *name = optional_text_at(job, SNAPSHOT_NAME);
    struct snapshot_info info;
    int r = name ? sandbox_snapshot(job->sandbox, name, SNAPSHOT_NAMED, &info, err)
                 : sandbox_turn(job->sandbox, &info, err);

    if (r < 0)
        return tool_job_fail(job, r, err);
    (void)buf_printf(&job->text, "snapshot %s was taken. rollback snapshot=%s restores it.",
                     info.name, info.name);
    return 0;
}

static int run_rollback(struct tool_job *job, struct err *err)
{
    const char *name = tool_text_at(job, ROLLBACK_SNAPSHOT);
    int r = sandbox_rollback(job->sandbox, name, false, err);

    if (r < 0)
        return tool_job_fail(job, r, err);
    (void)buf_printf(&job->text,
                     "all files were restored to snapshot %.255s, and all processes have ended.",
                     name);
    return 0;
}

static int run_list_snapshots(struct tool_job *job, struct err *err)
{
    cleanup_free struct snapshot_info *list = NULL;
    cleanup_with(sandbox_info_done) struct sandbox_info info = { 0 };
    size_t count = 0;
    int r = sandbox_list_snapshots(job->sandbox, &list, &count, err);

    if (r < 0)
        return tool_job_fail(job, r, err);
    sandbox_get_info(job->sandbox, false, &info);
    for (size_t i = 0; i < count; i++) {
        char when[TIME_TEXT_SIZE];

        format_time_ms(list[i].created_ms, when);
        (void)buf_printf(
            &job->text, "%s  %s  %s%s\n", list[i].name, snapshot_kind_name(list[i].kind), when,
            strcmp(list[i].name, info.base) == 0 ? "  (base of the current files)" : "");
    }
    if (count == 0)
        (void)buf_add_str(&job->text, "(no snapshots)");
    return 0;
}

/* --- diff ------------------------------------------------------------------------------------ */

static int diff_add_entry(const struct diff_entry *entry, void *context)
{
    struct tool_job *job = context;
    int r;

    if (job->text.len > DIFF_BYTES)
        return -EFBIG;
    if (job->deadline_ms > 0 && clock_ms() > job->deadline_ms)
        return -ETIMEDOUT;
    if (entry->old_path)
        r = buf_printf(&job->text, "%c %s -> %s\n", (char)entry->kind, entry->old_path,
                       entry->path);
    else
        r = buf_printf(&job->text, "%c %s\n", (char)entry->kind, entry->path);
    if (r == 0 && entry->patch)
        r = buf_add(&job->text, entry->patch, entry->patch_len);
    return r;
}

static int run_diff(struct tool_job *job, struct err *err)
{
    const struct sandbox_diff what = {
        .from = optional_text_at(job, DIFF_FROM),
        .to = optional_text_at(job, DIFF_TO),
        .options.wants_patch = tool_number_at(job, DIFF_PATCH),
    };
    cleanup_with(buf_done) struct buf bytes = BUF_INIT(TOOL_TEXT_MAX);
    struct utf8_cleaner cleaner = { .len = 0 };
    int r = sandbox_diff(job->sandbox, &what, diff_add_entry, job, err);

    if (r == -ETIMEDOUT) {
        tool_job_set_error(job, "diff exceeded its time limit.");
        job->result.timed_out = true;
        return 0;
    }
    if (r < 0 && r != -EFBIG)
        return tool_job_fail(job, r, err);
    if (r == -EFBIG)
        (void)buf_printf(&job->text, "[truncated: only the first %d MiB are shown]\n",
                         DIFF_BYTES >> 20);
    if (job->text.len == 0)
        (void)buf_add_str(&job->text, "(no differences)");
    /* Names and contents may be invalid UTF-8. */
    bytes = job->text;
    job->text = (struct buf)BUF_INIT(TOOL_TEXT_MAX);
    (void)utf8_clean(&cleaner, bytes.data, bytes.len, &job->text);
    return 0;
}

/* --- fork, read_output ----------------------------------------------------------------------- */

static int run_fork(struct tool_job *job, struct err *err)
{
    size_t count = (size_t)tool_number_at(job, FORK_COUNT);
    cleanup_free struct sandbox **forks = xcalloc(count, sizeof(struct sandbox *));
    /* The labels stay, so the forks stay in the scope of the caller. */
    const struct fork_spec spec = { .caller = &caller_root,
                                    .from = optional_text_at(job, FORK_FROM),
                                    .count = count };
    int r = sandbox_fork(job->sandbox, &spec, forks, err);

    if (r < 0)
        return tool_job_fail(job, r, err);
    for (size_t i = 0; i < count; i++) {
        struct sandbox_info info;

        sandbox_get_info(forks[i], false, &info);
        (void)buf_printf(&job->text, "%s\n", info.id);
        sandbox_info_done(&info);
        sandbox_unref(forks[i]);
    }
    return 0;
}

static int run_read_output(struct tool_job *job, struct err *err)
{
    struct tool_part part = {
        .handle = tool_text_at(job, OUTPUT_HANDLE),
        .offset = (uint64_t)tool_number_at(job, OUTPUT_OFFSET),
        .limit = (uint64_t)tool_number_at(job, OUTPUT_LIMIT),
    };
    struct tool_output output = { .text = NULL };
    uint64_t end;
    int r;

    if (part.limit == 0 || part.limit > job->budget)
        part.limit = job->budget;
    job->budget = UINT64_MAX; /* the part fits */
    r = tool_read_output(job->sandbox, &part, &output, err);
    if (r < 0)
        return tool_job_fail(job, r, err);
    (void)buf_add(&job->text, output.text, output.len);
    free(output.text);
    end = output.offset + output.len;
    if (end < output.total)
        (void)buf_printf(&job->text,
                         "\n[%zu bytes at offset %" PRIu64 " of %" PRIu64
                         "; continue with offset=%" PRIu64 "]",
                         output.len, output.offset, output.total, end);
    else
        (void)buf_printf(&job->text, "\n[end of %" PRIu64 " bytes]", output.total);
    return 0;
}

static int host_tool_next(struct tool_job *job, int watch_fd, struct tool_progress *ret,
                          struct err *err)
{
    static const struct {
        const char *name;
        int (*run)(struct tool_job *job, struct err *err);
    } runs[] = {
        { "snapshot", run_snapshot },
        { "rollback", run_rollback },
        { "list_snapshots", run_list_snapshots },
        { "diff", run_diff },
        { "fork", run_fork },
        { "read_output", run_read_output },
        { "expose_port", tool_expose_port },
        { "network_status", tool_network_status },
    };

    (void)watch_fd, (void)ret;
    for (size_t i = 0; i < ARRAY_SIZE(runs); i++)
        if (strcmp(runs[i].name, job->tool->name) == 0)
            return runs[i].run(job, err);
    return err_set(err, ERR_UNSUPPORTED, "tool '%s' is not implemented", job->tool->name);
}

const struct tool_kind tool_by_host = { .next = host_tool_next };
