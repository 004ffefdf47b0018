// SPDX-License-Identifier: Apache-2.0
/* The tool glob: files whose path matches a pattern. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "tools/path.h"
#include "tools/search/glob_set.h"
#include "tools/search/search_dir.h"
#include "tools/search/search_path.h"
#include "tools/search/search_walk.h"
#include "tools/tool.h"
#include "wire/file.h"

enum { NOTES_BYTES = 1024 * 1024 }; /* reserved for the notes after the paths */

/* A file with its modification time. */
struct timed {
    struct timespec at;
    char *path;
};

struct glob {
    struct glob_set *set;
    enum glob_sort sort;
    size_t max;
    char *prefix;
    struct buf *out;     /* content of the reply */
    struct timed *timed; /* when sorted by time: a heap of the newest, with the oldest on top */
    uint64_t found;
    size_t shown;
    uint64_t unreadable_count;
    char *first_unreadable;
};

static bool glob_wants(void *context, void *data, const struct search_entry *entry)
{
    struct glob *glob = context;

    return entry->is_dir || glob_set_accepts(glob->set, data, entry->name, entry->len);
}

static bool glob_enter(void *context, void *parent, const struct search_entry *entry,
                       void **ret_data)
{
    struct glob *glob = context;

    *ret_data = entry ? glob_set_enter(glob->set, parent, entry->name, entry->len, entry->is_link)
                      : glob_set_start(glob->set);
    return *ret_data != NULL;
}

static void glob_leave(void *context, void *data)
{
    (void)context;
    free(data);
}

/* Returns whether one comes after the other in the result. */
static bool timed_is_after(const struct timed *one, const struct timed *other)
{
    if (one->at.tv_sec != other->at.tv_sec)
        return one->at.tv_sec < other->at.tv_sec;
    if (one->at.tv_nsec != other->at.tv_nsec)
        return one->at.tv_nsec < other->at.tv_nsec;
    return strcmp(one->path, other->path) > 0;
}

static void timed_swap(struct timed *one, struct timed *other)
{
    struct timed third = *one;

    *one = *other;
    *other = third;
}

static void heap_sift_up(struct timed *heap, size_t at)
{
    for (; at > 0 && timed_is_after(&heap[at], &heap[(at - 1) / 2]); at = (at - 1) / 2)
        timed_swap(&heap[at], &heap[(at - 1) / 2]);
}

static void heap_sift_down(struct timed *heap, size_t count)
{
    for (size_t at = 0;;) {
        size_t least = at;

        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < count; child++)
            if (timed_is_after(&heap[child], &heap[least]))
                least = child;
        if (least == at)
            return;
        timed_swap(&heap[at], &heap[least]);
        at = least;
    }
}

static void glob_add_timed(struct glob *glob, int dir_fd, const char *path,
                           const struct search_entry *entry)
{
    struct timed new = { .at = { 0 } };
    struct stat st;

    if (fstatat(dir_fd, entry->name, &st, 0) == 0)
        new.at = st.st_mtim;
    new.path = xstrdup(path);
    if (glob->shown < glob->max) {
        glob->timed[glob->shown] = new;
        heap_sift_up(glob->timed, glob->shown++);
        return;
    }
    if (timed_is_after(&glob->timed[0], &new)) {
        timed_swap(&glob->timed[0], &new);
        heap_sift_down(glob->timed, glob->shown);
    }
    free(new.path);
}

static int glob_put_path(struct glob *glob, const char *path)
{
    size_t before = glob->out->len;
    int r = before < TOOL_CONTENT_MAX - NOTES_BYTES ? search_path_add(glob->out, glob->prefix)
                                                    : -ENOBUFS;

    if (r == 0)
        r = search_path_add(glob->out, path);
    if (r == 0)
        r = buf_add_str(glob->out, "\n");
    if (r < 0)
        glob->out->len = before;
    return r;
}

static int glob_add_file(void *context, struct search_dir *dir, const char *path,
                         const struct search_entry *entry)
{
    struct glob *glob = context;

    glob->found++;
    if (glob->sort == GLOB_BY_TIME)
        glob_add_timed(glob, dir->fd, path, entry);
    else if (glob->shown < glob->max && glob_put_path(glob, path) == 0)
        glob->shown++;
    return 0;
}

static void glob_add_unreadable(void *context, const char *path, int error)
{
    struct glob *glob = context;

    if (glob->unreadable_count++ == 0)
        glob->first_unreadable = xasprintf("%s%s: %s", glob->prefix, path, strerrordesc_np(error));
}

static int compare_timed(const void *one, const void *other)
{
    return timed_is_after(one, other) ? 1 : -1;
}

static void glob_write_timed(struct glob *glob)
{
    size_t count = glob->shown;

    qsort(glob->timed, count, sizeof(*glob->timed), compare_timed);
    glob->shown = 0;
    for (size_t i = 0; i < count; i++) {
        if (glob_put_path(glob, glob->timed[i].path) == 0)
            glob->shown++;
        free(glob->timed[i].path);
    }
}

static void glob_write_result(struct glob *glob, const struct tool_values *values,
                              struct tool_reply *reply)
{
    struct buf *out = &reply->content;

    if (glob->found == 0) {
        const char *pattern = values->at[GLOB_PATTERN].text.data;

        (void)buf_printf(out, "No files match '%s' in %s.", pattern,
                         *glob->prefix ? glob->prefix : FILE_WORKSPACE);
        if (!strstr(pattern, "**"))
            (void)buf_printf(
                out, " * matches in one directory only; **/%s also searches subdirectories.",
                *pattern == '/' ? pattern + 1 : pattern);
    }
    if (glob->shown < glob->found) {
        reply->outcome.flags |= TOOL_IS_CUT;
        (void)buf_printf(out,
                         "(%zu of %" PRIu64 " files; increase max_results or narrow the pattern to "
                         "see the others)\n",
                         glob->shown, glob->found);
    }
    if (glob->unreadable_count > 0)
        (void)buf_printf(out, "%s%" PRIu64 " director%s could not be read (%s).",
                         glob->found == 0 ? " " : "", glob->unreadable_count,
                         glob->unreadable_count == 1 ? "y" : "ies", glob->first_unreadable);
}

static void glob_run(struct glob *glob, const struct tool_values *values, const char *start,
                     struct tool_reply *reply)
{
    struct search_walk walk = { .hidden = true, /* the pattern decides */
                                .gitignore = values->at[GLOB_GITIGNORE].number != 0,
                                .with_links = true,
                                .start = start,
                                .context = glob,
                                .wants = glob_wants,
                                .enter = glob_enter,
                                .leave = glob_leave,
                                .file = glob_add_file,
                                .unreadable = glob_add_unreadable };

    walk.fd = open(start, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
    if (walk.fd < 0) {
        (void)path_refuse(reply, "search", *glob->prefix ? glob->prefix : FILE_WORKSPACE, start,
                          -errno);
        return;
    }
    search_walk(&walk);
    if (glob->sort == GLOB_BY_TIME)
        glob_write_timed(glob);
    glob_write_result(glob, values, reply);
}

void tool_glob(const struct tool_values *values, struct tool_reply *reply)
{
    const struct tool_text *pattern = &values->at[GLOB_PATTERN].text;
    struct glob glob = { .sort = (enum glob_sort)values->at[GLOB_SORT].number,
                         .max = (size_t)values->at[GLOB_MAX].number,
                         .out = &reply->content };
    cleanup_free char *start = NULL;
    char full[PATH_MAX];
    const char *base, *why;

    if (!path_full(&values->at[GLOB_PATH].text, full, reply))
        return;

    glob.set = glob_set_new(pattern->data, pattern->len, values->at[GLOB_HIDDEN].number != 0, &why);
    if (!glob.set) {
        tool_reply_set_error(reply, "%s", why);
        return;
    }
    base = glob_set_base(glob.set);
    start = *base == '/' ? xstrdup(base) : xasprintf("%s/%s", full, base);
    glob.prefix = search_path_prefix(full, base);
    glob.timed = xcalloc(glob.sort == GLOB_BY_TIME ? glob.max : 1, sizeof(*glob.timed));
    glob_run(&glob, values, start, reply);
    free(glob.timed);
    free(glob.prefix);
    free(glob.first_unreadable);
    glob_set_free(glob.set);
}
