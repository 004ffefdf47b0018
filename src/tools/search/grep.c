// SPDX-License-Identifier: Apache-2.0
/* The tool grep: selects the files, and searches them with several threads. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "tools/path.h"
#include "tools/search/grep_file.h"
#include "tools/search/grep_report.h"
#include "tools/search/name_filter.h"
#include "tools/search/ordered.h"
#include "tools/search/regex.h"
#include "tools/search/search_dir.h"
#include "tools/search/search_path.h"
#include "tools/search/search_walk.h"
#include "tools/tool.h"

enum { NAME_BYTES = 256 };

struct grep {
    struct grep_search search;
    struct name_filter include, exclude;
    struct ordered *ordered;
    struct grep_report report;
};

/* A file to search, and its result. */
struct grep_job {
    struct search_dir *dir;
    char name[NAME_BYTES];
    const char *prefix;
    struct grep_found found;
};

static char *job_path(void *context)
{
    const struct grep_job *job = context;
    cleanup_free char *path = search_dir_path(job->dir, job->name);

    return xasprintf("%s%s", job->prefix, path);
}

static void *grep_thread_new(void *context)
{
    const struct grep *grep = context;

    return grep_reader_new(&grep->search);
}

static void grep_thread_free(void *thread)
{
    grep_reader_free(thread);
}

static size_t grep_job_work(void *context, void *thread, void *arg)
{
    struct grep_job *job = arg;
    /* The type may have changed meanwhile, and open must not block. */
    cleanup_close int fd =
        openat(job->dir->fd, job->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

    (void)context;
    if (fd < 0) {
        job->found.status = GREP_UNREADABLE;
        job->found.error = errno;
    }
    search_dir_park(job->dir);
    if (fd >= 0)
        grep_file(thread, fd, job_path, job, &job->found);
    return job->found.text.cap;
}

static void grep_job_drop(void *context, void *arg)
{
    struct grep_job *job = arg;

    (void)context;
    grep_found_done(&job->found);
    search_dir_unref(job->dir);
    job->dir = NULL;
}

static bool grep_job_deliver(void *context, void *arg)
{
    struct grep *grep = context;
    struct grep_job *job = arg;
    bool wants_more = grep_report_add(&grep->report, &job->found, job_path, job);

    grep_job_drop(context, arg);
    return wants_more;
}

static bool grep_wants(void *context, void *data, const struct search_entry *entry)
{
    struct grep *grep = context;

    (void)data;
    if (name_filter_has_name(&grep->exclude, entry->name, entry->len))
        return false;
    return entry->is_dir || !grep->include.set || grep->include.is_for_paths ||
           name_filter_has_name(&grep->include, entry->name, entry->len);
}

static int grep_submit_file(void *context, struct search_dir *dir, const char *path,
                            const struct search_entry *entry)
{
    struct grep *grep = context;
    struct grep_job *job;

    if (grep->include.is_for_paths && !name_filter_has_path(&grep->include, path))
        return 0;
    if (name_filter_has_path(&grep->exclude, path) || entry->len >= NAME_BYTES)
        return 0;
    job = ordered_next(grep->ordered);
    if (!job)
        return -ECANCELED;
    job->dir = search_dir_share(dir);
    memcpy(job->name, entry->name, entry->len + 1);
    job->prefix = grep->report.prefix;
    ordered_submit(grep->ordered);
    return 0;
}

static void grep_add_unreadable(void *context, const char *path, int error)
{
    struct grep *grep = context;

    grep_report_unreadable(&grep->report, path, error);
}

static void grep_tree(struct grep *grep, const struct tool_values *values, const char *path, int fd)
{
    static const struct ordered_ops ops = { .job_size = sizeof(struct grep_job),
                                            .thread_new = grep_thread_new,
                                            .thread_free = grep_thread_free,
                                            .work = grep_job_work,
                                            .deliver = grep_job_deliver,
                                            .drop = grep_job_drop };
    struct search_walk walk = { .hidden = values->at[GREP_HIDDEN].number != 0,
                                .gitignore = values->at[GREP_GITIGNORE].number != 0,
                                .start = path,
                                .fd = fd,
                                .context = grep,
                                .wants = grep_wants,
                                .file = grep_submit_file,
                                .unreadable = grep_add_unreadable };

    grep->report.prefix = search_path_prefix(walk.start, "");
    grep->ordered = ordered_new(&ops, grep);
    search_walk(&walk);
    ordered_finish(grep->ordered);
    grep->report.hidden_count = walk.hidden_count;
}

static char *only_path(void *context)
{
    const struct grep *grep = context;

    return xstrdup(grep->report.prefix);
}

/* Searches a single file. */
static void grep_single_file(struct grep *grep, const char *path, int fd)
{
    struct grep_reader *reader = grep_reader_new(&grep->search);
    struct grep_found found = { 0 };
    size_t len;

    grep->report.is_one_file = true;
    grep->report.prefix = search_path_prefix(path, "");
    len = strlen(grep->report.prefix);
    if (len > 1)
        grep->report.prefix[len - 1] = '\0';
    grep_file(reader, fd, only_path, grep, &found);
    (void)grep_report_add(&grep->report, &found, only_path, grep);
    grep_found_done(&found);
    grep_reader_free(reader);
}

static void grep_run(struct grep *grep, const struct tool_values *values, struct tool_reply *reply)
{
    const struct tool_text *path = &values->at[GREP_PATH].text;
    cleanup_close int fd = -EBADF;
    char full[PATH_MAX];
    struct stat st;

    if (!path_full(path, full, reply))
        return;
    if (stat(full, &st) < 0) {
        (void)path_refuse(reply, "search", path->data, full, -errno);
        return;
    }
    if (S_ISDIR(st.st_mode)) {
        fd = open(full, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
            (void)path_refuse(reply, "search", path->data, full, -errno);
        else
            grep_tree(grep, values, full, TAKE_FD(fd));
    } else {
        fd = path_open_file(path->data, full, &st, reply);
        if (fd >= 0)
            grep_single_file(grep, full, fd);
    }
    if (!(reply->outcome.flags & TOOL_IS_ERROR))
        grep_report_write(&grep->report, values, grep->search.regex, reply);
}

/* Sets the parameters; returns false and sets the error of the reply if a filter is invalid. */
static bool grep_prepare(struct grep *grep, const struct tool_values *values,
                         struct tool_reply *reply)
{
    const char *why = NULL;

    if (!name_filter_init(&grep->include, &values->at[GREP_INCLUDE].text, &why)) {
        tool_reply_set_error(reply, "include: %s", why);
        return false;
    }
    if (!name_filter_init(&grep->exclude, &values->at[GREP_EXCLUDE].text, &why)) {
        tool_reply_set_error(reply, "exclude: %s", why);
        return false;
    }
    grep->search.mode = (enum grep_mode)values->at[GREP_MODE].number;
    grep->search.context = (size_t)values->at[GREP_CONTEXT].number;
    grep->search.max_matches = (size_t)values->at[GREP_MAX].number;
    grep->search.max_bytes = (size_t)values->at[GREP_MAX_BYTES].number;
    grep->report.search = &grep->search;
    grep->report.body.max = grep->search.max_bytes;
    return true;
}

void tool_grep(const struct tool_values *values, struct tool_reply *reply)
{
    cleanup_with(buf_done) struct buf why = BUF_INIT(TOOL_CONTENT_MAX);
    struct tool_text pattern = values->at[GREP_PATTERN].text;
    struct regex_options options = { .is_text = values->at[GREP_LITERAL].number != 0,
                                     .ignore_case = values->at[GREP_IGNORE_CASE].number != 0 };
    struct grep grep = { 0 };
    struct regex *regex;

    while (pattern.len > 0 && pattern.data[pattern.len - 1] == '\n')
        pattern.len--;
    if (pattern.len == 0) {
        tool_reply_set_error(reply, "The pattern is empty.");
        return;
    }
    if (memchr(pattern.data, '\n', pattern.len)) {
        tool_reply_set_error(reply,
                             "The pattern has more than one line, but files are searched line by "
                             "line. Search for one of its lines, with context_lines to see the "
                             "others.");
        return;
    }
    regex = regex_new(pattern.data, pattern.len, &options, &why);
    if (!regex) {
        tool_reply_set_error(reply, "%s", why.len > 0 ? why.data : "The pattern is too long.");
        return;
    }
    grep.search.regex = regex;
    if (grep_prepare(&grep, values, reply))
        grep_run(&grep, values, reply);
    name_filter_done(&grep.include);
    name_filter_done(&grep.exclude);
    grep_report_done(&grep.report);
    regex_free(regex);
}
