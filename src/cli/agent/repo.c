// SPDX-License-Identifier: Apache-2.0
#include "cli/agent/repo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/files/tree_source.h"
#include "base/xalloc.h"
#include "cli/core/progress.h"
#include "cli/core/report.h"
#include "cli/options/source_size.h"
#include "client/message/tree.h"
#include "holt.h"

enum { FILES_STEP = 1024 };

int repo_open(struct repo *repo, const char *text)
{
    repo->text = text;
    repo->fd = open(text, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return repo->fd < 0 ? report("open '%s': %s", text, strerror(errno)) : STATUS_OK;
}

struct copy {
    struct repo *repo;
    struct tree_push *push;
    struct progress progress;
    struct holt_error error;
    bool is_left_out; /* the data belongs to a skipped file */
};

static void file_remember(struct repo *repo, const struct file_entry *entry)
{
    struct repo_file *file;

    if (repo->count % FILES_STEP == 0)
        repo->files = xreallocarray(repo->files, repo->count + FILES_STEP, sizeof(*repo->files));
    file = &repo->files[repo->count++];
    *file = (struct repo_file){
        .path = xstrdup(entry->path),
        .type = entry->type,
        .mode = entry->mode,
        .size = entry->size,
        .mtime_s = entry->mtime_s,
        .mtime_ns = entry->mtime_ns,
        .target = entry->type == ENTRY_LINK ? xstrdup(entry->target) : NULL,
    };
}

static int copy_entry(void *context, const struct file_entry *entry)
{
    struct copy *copy = context;

    copy->is_left_out =
        entry->type != ENTRY_FILE && entry->type != ENTRY_DIRECTORY && entry->type != ENTRY_LINK;
    if (copy->is_left_out) {
        progress_end(&copy->progress);
        report_note("'%s' stays here: it is not a file, directory or symbolic link", entry->path);
        return 0;
    }
    file_remember(copy->repo, entry);
    return tree_push_entry(copy->push, entry, &copy->error) < 0 ? -EPIPE : 0;
}

static int copy_data(void *context, const void *data, size_t len)
{
    struct copy *copy = context;

    if (copy->is_left_out)
        return 0;
    progress_add(&copy->progress, len);
    return tree_push_data(copy->push, data, len, &copy->error) < 0 ? -EPIPE : 0;
}

static int copy_trouble(void *context, const char *path, int errnum)
{
    struct copy *copy = context;

    progress_end(&copy->progress);
    report_note("'%s' stays here: %s", path, strerror(errnum));
    return 0;
}

static int file_compare(const void *one, const void *other)
{
    return strcmp(((const struct repo_file *)one)->path, ((const struct repo_file *)other)->path);
}

int repo_push(struct repo *repo, struct holt *holt, const char *sandbox)
{
    static const struct tree_source_ops ops = { copy_entry, copy_data, copy_trouble, NULL };
    static const struct tree_source options = { .wants_data = true, .skips_top = true };
    const struct tree_place into = { .sandbox = sandbox, .path = repo->inside };
    struct copy copy = { .repo = repo };
    int r;

    progress_begin(&copy.progress, repo->text, 0);
    source_size_set(&copy.progress, repo->text);
    if (tree_push_open(holt, &into, &copy.push, &copy.error) < 0)
        return report_holt_error(&copy.error);
    r = tree_source_run(repo->fd, ".", &options, &ops, &copy);
    if (r == 0 && tree_push_finish(copy.push, &copy.error) < 0)
        r = -EPIPE;
    tree_push_close(copy.push);
    progress_end(&copy.progress);
    if (r == -EPIPE)
        return report_holt_error(&copy.error);
    if (r < 0)
        return report("read '%s': %s", repo->text, strerror(-r));
    if (repo->count > 0)
        qsort(repo->files, repo->count, sizeof(*repo->files), file_compare);
    return STATUS_OK;
}

void repo_done(struct repo *repo)
{
    for (size_t i = 0; i < repo->count; i++) {
        free(repo->files[i].path);
        free(repo->files[i].target);
    }
    free(repo->files);
    repo->fd = fd_close(repo->fd);
}

static int path_compare(const void *path, const void *file)
{
    return strcmp(path, ((const struct repo_file *)file)->path);
}

const struct repo_file *repo_find(const struct repo *repo, const char *path)
{
    return repo->count == 0
               ? NULL
               : bsearch(path, repo->files, repo->count, sizeof(*repo->files), path_compare);
}

static bool component_is(const char *path, size_t len, const char *name)
{
    return len == strlen(name) && strncasecmp(path, name, len) == 0;
}

bool repo_path_is_git(const char *path, bool *ret_is_hook)
{
    bool is_git = false;

    *ret_is_hook = false;
    while (*path) {
        size_t len = strcspn(path, "/");

        if (is_git &&
            (component_is(path, len, "hooks") || component_is(path, len, "config") ||
             component_is(path, len, "config.worktree") || component_is(path, len, "attributes")))
            *ret_is_hook = true;
        is_git = is_git || component_is(path, len, ".git");
        path += len + (path[len] == '/');
    }
    return is_git;
}
