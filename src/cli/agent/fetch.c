// SPDX-License-Identifier: Apache-2.0
/* Collects the changes of an agent, with the contents of files, before anything is written to the
 * directory of the user. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/files/tree.h"
#include "base/io.h"
#include "base/xalloc.h"
#include "cli/agent/repo.h"
#include "cli/core/report.h"
#include "client/message/tree.h"
#include "holt.h"

enum { CHANGES_STEP = 256, MODE_BITS = 0777 };

/* Returns the change, or one that nobody needs if the path is in .git. */
static struct repo_change *change_add(struct repo_changes *changes, const char *path,
                                      enum entry_type type)
{
    static struct repo_change ignored;
    bool is_hook;

    if (repo_path_is_git(path, &is_hook)) {
        changes->in_git++;
        changes->hooks += is_hook;
        return &ignored;
    }
    if (changes->count % CHANGES_STEP == 0)
        changes->items =
            xreallocarray(changes->items, changes->count + CHANGES_STEP, sizeof(*changes->items));
    changes->items[changes->count] = (struct repo_change){ .path = xstrdup(path), .type = type };
    return &changes->items[changes->count++];
}

void repo_changes_add(struct repo_changes *changes, const char *path, const char *old_path,
                      const char *type, bool is_deleted)
{
    enum entry_type now = is_deleted ? ENTRY_NONE : entry_type_find(type);

    if (*path == '\0') {
        changes->is_replaced = changes->is_replaced || is_deleted || now != ENTRY_DIRECTORY;
        return;
    }
    if (*old_path)
        (void)change_add(changes, old_path, ENTRY_NONE);
    (void)change_add(changes, path, now);
}

/* Returns whether a link at this path leads out of the directory, as far as its text tells. */
static bool link_leaves(const char *path, const char *target)
{
    long depth = 0;

    if (*target == '/')
        return true;
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/'))
        depth++;
    while (*target) {
        size_t len = strcspn(target, "/");

        if (len == 2 && strncmp(target, "..", 2) == 0)
            depth--;
        else if (len > 0 && !(len == 1 && *target == '.'))
            depth++;
        if (depth < 0)
            return true;
        target += len + (target[len] == '/');
    }
    return false;
}

/* Takes over what the sandbox says of the file. */
static void change_set(struct repo_change *change, const struct file_entry *entry)
{
    bool ignored;

    if (entry->type != change->type)
        change->refusal = "it is no longer what it was";
    change->mode = entry->mode & MODE_BITS;
    if (entry->type != ENTRY_LINK)
        return;
    free(change->target);
    change->target = xstrdup(entry->target);
    if (link_leaves(change->path, entry->target))
        change->refusal = "it is a link that leads out of the directory";
    else if (repo_path_is_git(entry->target, &ignored))
        change->refusal = "it is a link into .git";
}

static int staged_open(const struct repo_changes *changes, unsigned number, int flags)
{
    char name[16];

    (void)snprintf(name, sizeof(name), "%u", number);
    return openat(changes->staging_fd, name, flags | O_NOFOLLOW | O_CLOEXEC, 0600);
}

/* Writes the contents to the staged file. Returns 0, -errno, or -EPIPE with error set. */
static int pull_take(struct tree_pull *pull, struct repo_change *change, int fd,
                     struct holt_error *error)
{
    struct tree_piece piece;
    bool has_entry = false;
    int r, written = 0;

    while ((r = tree_pull_next(pull, &piece, error)) > 0 && written == 0) {
        if (piece.kind == TREE_TROUBLE)
            change->refusal = "it cannot be read in the sandbox";
        if (piece.kind == TREE_ENTRY && !has_entry)
            change_set(change, &piece.entry);
        has_entry = has_entry || piece.kind == TREE_ENTRY;
        if (piece.kind == TREE_DATA && !change->refusal)
            written = write_all(fd, piece.data, piece.len);
    }
    if (!has_entry && !change->refusal)
        change->refusal = "it cannot be read in the sandbox";
    return r < 0 ? -EPIPE : written;
}

static int change_fetch(struct repo_changes *changes, struct repo_change *change,
                        const struct tree_place *from, struct holt *holt, struct holt_error *error)
{
    cleanup_close int fd = -EBADF;
    struct tree_pull *pull = NULL;
    struct file_entry there;
    int r;

    if (change->type == ENTRY_DIRECTORY) {
        if (tree_stat(holt, from, &there, error) < 0)
            return -EPIPE;
        there.target = "";
        change_set(change, &there);
        return 0;
    }
    fd = staged_open(changes, change->staged, O_WRONLY | O_CREAT | O_EXCL);
    if (fd < 0)
        return -errno;
    if (tree_pull_open(holt, from, &pull, error) < 0)
        return -EPIPE;
    r = pull_take(pull, change, fd, error);
    tree_pull_close(pull);
    return r;
}

static int staging_make(struct repo_changes *changes)
{
    const char *tmp = getenv("TMPDIR");

    if (snprintf(changes->staging, sizeof(changes->staging), "%s/holt-agent.XXXXXX",
                 tmp && strlen(tmp) < 40 ? tmp : "/tmp") < 0 ||
        !mkdtemp(changes->staging)) {
        changes->staging[0] = '\0';
        return -errno;
    }
    changes->staging_fd = open(changes->staging, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return changes->staging_fd < 0 ? -errno : 0;
}

static bool is_taken(enum entry_type type)
{
    return type == ENTRY_FILE || type == ENTRY_LINK || type == ENTRY_DIRECTORY;
}

/* The daemon reports a new or removed directory only by its contents. Adds the directories above a
 * changed path that were not copied, or that the sandbox no longer has. Returns 0 or -EPIPE with
 * error set. */
static int parents_add(struct repo_changes *changes, size_t index, const struct repo *repo,
                       const struct tree_place *any, struct holt *holt, struct holt_error *error)
{
    cleanup_free char *path = xstrdup(changes->items[index].path);
    bool is_gone = false;

    for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        cleanup_free char *inside = NULL;
        struct tree_place place = *any;
        struct file_entry there = { .type = ENTRY_NONE };
        const struct repo_file *before;

        *slash = '\0';
        inside = xasprintf("%s/%s", repo->inside, path);
        before = repo_find(repo, path);
        place.path = inside;
        if (!is_gone && tree_stat(holt, &place, &there, error) < 0 &&
            strcmp(error->cause, "FileNotFound") != 0)
            return -EPIPE;
        is_gone = is_gone || there.type != ENTRY_DIRECTORY;
        if (there.type == ENTRY_DIRECTORY && (!before || before->type != ENTRY_DIRECTORY))
            change_add(changes, path, ENTRY_DIRECTORY)->mode = there.mode & MODE_BITS;
        else if (there.type == ENTRY_NONE && before)
            (void)change_add(changes, path, ENTRY_NONE);
        *slash = '/';
    }
    return 0;
}

/* Adds each such directory once for a run of changed files in it. */
static int directories_add(struct repo_changes *changes, const struct repo *repo, struct holt *holt,
                           const char *sandbox, struct holt_error *error)
{
    const struct tree_place any = { .sandbox = sandbox };
    const size_t count = changes->count;
    cleanup_free char *last = xstrdup("");
    int r = 0;

    for (size_t i = 0; r == 0 && i < count; i++) {
        const char *path = changes->items[i].path, *slash = strrchr(path, '/');
        size_t len = slash ? (size_t)(slash - path) : 0;

        if (strlen(last) == len && strncmp(last, path, len) == 0)
            continue;
        free(last);
        last = xasprintf("%.*s", (int)len, path);
        r = parents_add(changes, i, repo, &any, holt, error);
    }
    return r;
}

static int change_compare(const void *one, const void *other)
{
    return strcmp(((const struct repo_change *)one)->path,
                  ((const struct repo_change *)other)->path);
}

static void changes_swap(struct repo_change *one, struct repo_change *other)
{
    const struct repo_change kept = *one;

    *one = *other;
    *other = kept;
}

/* Sorts by path, and keeps one change for each, before the others: a deletion and what takes its
 * place are one, and a directory may have been added twice. */
static void changes_sort(struct repo_changes *changes)
{
    size_t kept = 0;

    if (changes->count > 0)
        qsort(changes->items, changes->count, sizeof(*changes->items), change_compare);
    for (size_t i = 0; i < changes->count; i++) {
        struct repo_change *change = &changes->items[i];
        struct repo_change *last = kept > 0 ? &changes->items[kept - 1] : NULL;

        if (!last || strcmp(last->path, change->path) != 0)
            changes_swap(&changes->items[kept++], change);
        else if (last->type == ENTRY_NONE)
            changes_swap(last, change);
    }
    changes->dropped = changes->count - kept;
    changes->count = kept;
}

int repo_changes_fetch(struct repo_changes *changes, const struct repo *repo, struct holt *holt,
                       const char *sandbox)
{
    struct holt_error error;
    int r = staging_make(changes);

    for (size_t i = 0; r == 0 && i < changes->count; i++) {
        struct repo_change *change = &changes->items[i];
        cleanup_free char *path = xasprintf("%s/%s", repo->inside, change->path);
        const struct tree_place from = { .sandbox = sandbox, .path = path };

        change->staged = (unsigned)i;
        if (change->type == ENTRY_NONE)
            continue;
        if (!entry_path_is_below(change->path))
            change->refusal = "its path is not valid";
        else if (!is_taken(change->type))
            change->refusal = "it is not a file, directory or symbolic link";
        else
            r = change_fetch(changes, change, &from, holt, &error);
    }
    if (r == 0)
        r = directories_add(changes, repo, holt, sandbox, &error);
    changes_sort(changes);
    if (r == -EPIPE)
        return report_holt_error(&error);
    return r < 0 ? report("keep the changes in '%s': %s", changes->staging, strerror(-r))
                 : STATUS_OK;
}

void repo_changes_done(struct repo_changes *changes)
{
    for (size_t i = 0; i < changes->count + changes->dropped; i++) {
        free(changes->items[i].path);
        free(changes->items[i].target);
    }
    free(changes->items);
    changes->staging_fd = fd_close(changes->staging_fd);
    if (changes->staging[0])
        (void)tree_remove_at(AT_FDCWD, changes->staging);
}
