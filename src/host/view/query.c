// SPDX-License-Identifier: Apache-2.0
#include "host/view/query.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/xalloc.h"
#include "host/codebase/codebase.h"
#include "host/core/host_internal.h"
#include "host/sandbox/sandbox_internal.h"
#include "kernel/path.h"
#include "store/codebase/codebase.h"

/* --- one path --------------------------------------------------------------------------------- */

/* Writes a rule that makes this path writable whatever the present rules are, if one can. */
static void would_take_write(const struct permissions *permissions, struct permission_answer *ret)
{
    struct view_rule rule = { .pattern = ret->path, .type = VIEW_FILE, .level = VIEW_WRITE };
    char text[VIEW_RULE_TEXT_SIZE];

    if (ret->decision.level == VIEW_WRITE || strlen(ret->path) > VIEW_PATTERN_MAX)
        return;
    if (ret->decision.rule >= 0)
        rule.priority = view_rules_at(permissions->rules, (size_t)ret->decision.rule)->priority + 1;
    if (rule.priority > VIEW_PRIORITY_MAX)
        return;
    view_rule_format(&rule, text);
    (void)snprintf(ret->would_take, sizeof(ret->would_take), "%s", text);
}

static void answer_fill(const struct permissions *permissions, struct permission_answer *ret)
{
    ret->decision = (struct view_decision){ .level = VIEW_WRITE, .rule = -1 };
    ret->is_traversable = false;
    ret->rule[0] = ret->would_take[0] = '\0';
    if (!permissions->rules)
        return;
    ret->decision = view_decide(permissions->rules, ret->path);
    if (ret->decision.level == VIEW_NONE)
        ret->is_traversable =
            view_decide_entry(permissions->rules, ret->path, true).level != VIEW_NONE;
    if (ret->decision.rule >= 0)
        view_rule_format(view_rules_at(permissions->rules, (size_t)ret->decision.rule), ret->rule);
    would_take_write(permissions, ret);
}

static int answer_make(struct sandbox *sandbox, const struct permissions *permissions,
                       const char *path, struct permission_answer *ret, struct err *err)
{
    int r = permission_path(&sandbox->info, path, ret->path, sizeof(ret->path), err);

    if (r == 0)
        answer_fill(permissions, ret);
    return r;
}

int permission_why(struct sandbox *sandbox, const char *path, struct permission_answer *ret,
                   struct err *err)
{
    cleanup_with(permissions_done) struct permissions permissions = { .rules = NULL };
    int r = sandbox_permissions(sandbox, &permissions, err);

    return r < 0 ? r : answer_make(sandbox, &permissions, path, ret, err);
}

bool permission_reason(struct sandbox *sandbox, const char *path, char ret[PERMISSION_REASON_SIZE])
{
    cleanup_free struct permission_answer *answer = xcalloc(1, sizeof(*answer));
    struct err ignored;

    if (*path != '/' && strcmp(sandbox->info.codebase_path, CODEBASE_MOUNT_POINT) != 0)
        return false;
    if (permission_why(sandbox, path, answer, &ignored) < 0 || !answer->rule[0] ||
        answer->decision.level == VIEW_NONE || answer->decision.level == VIEW_WRITE)
        return false;
    (void)snprintf(ret, PERMISSION_REASON_SIZE, "%s by rule '%s'",
                   answer->decision.level == VIEW_READ ? "read-only" : "without contents",
                   answer->rule);
    return true;
}

/* --- one operation ---------------------------------------------------------------------------- */

/* What an operation needs of its paths. A name that is made is refused with EACCES at any level:
 * that something is hidden there is no secret then. */
static const struct {
    const char *name;
    enum view_level level;
    bool makes_name;
    bool makes_second;
} needs[] = {
    { "stat", VIEW_VIEW, false, false },    { "list", VIEW_VIEW, false, false },
    { "read", VIEW_READ, false, false },    { "exec", VIEW_READ, false, false },
    { "write", VIEW_WRITE, false, false },  { "create", VIEW_WRITE, true, false },
    { "delete", VIEW_WRITE, false, false }, { "rename", VIEW_WRITE, false, true },
    { "link", VIEW_WRITE, false, true },    { "chmod", VIEW_WRITE, false, false },
    { "chown", VIEW_WRITE, false, false },
};

static int errno_of(const struct permission_answer *answer, enum view_level level, bool makes_name)
{
    enum view_level shown = answer->decision.level;

    if (shown == VIEW_NONE && answer->is_traversable && !makes_name)
        shown = VIEW_VIEW;
    if (shown >= level)
        return 0;
    return shown == VIEW_NONE && !makes_name ? ENOENT : EACCES;
}

int permission_test(struct sandbox *sandbox, const struct permission_operation *operation,
                    struct permission_answer *ret, int *ret_errno, struct err *err)
{
    cleanup_with(permissions_done) struct permissions permissions = { .rules = NULL };
    size_t at = 0;
    int r;

    while (at < ARRAY_SIZE(needs) && strcmp(needs[at].name, operation->name) != 0)
        at++;
    if (at == ARRAY_SIZE(needs))
        return err_set(err, ERR_INVALID, "operation '%.40s' is unknown", operation->name);
    if (needs[at].makes_second != (*operation->to != '\0'))
        return err_set(err, ERR_INVALID, "operation '%s' takes %s", operation->name,
                       needs[at].makes_second ? "two paths" : "one path");
    r = sandbox_permissions(sandbox, &permissions, err);
    if (r == 0)
        r = answer_make(sandbox, &permissions, operation->path, ret, err);
    if (r < 0)
        return r;
    *ret_errno = errno_of(ret, needs[at].level, needs[at].makes_name);
    if (*ret_errno != 0 || !needs[at].makes_second)
        return 0;
    r = answer_make(sandbox, &permissions, operation->to, ret, err);
    if (r == 0)
        *ret_errno = errno_of(ret, VIEW_WRITE, true);
    return r;
}

/* --- the tree --------------------------------------------------------------------------------- */

void permission_tree_done(struct permission_tree *tree)
{
    for (size_t i = 0; i < tree->count; i++)
        free(tree->entries[i].path);
    free(TAKE_PTR(tree->entries));
    tree->count = 0;
}

struct tree_walk {
    struct permission_tree *tree;
    const struct view_rules *rules;
    char path[PERMISSION_PATH_SIZE];
};

/* Appends the entry at the walk's path; false at the limit. */
static bool tree_add(struct tree_walk *walk, bool is_directory)
{
    struct permission_tree *tree = walk->tree;
    struct permission_entry *entry;

    tree->bytes += strlen(walk->path) + sizeof(*entry);
    if (tree->count == PERMISSION_TREE_MAX || tree->bytes > PERMISSION_TREE_BYTES_MAX) {
        tree->is_truncated = true;
        return false;
    }
    if (tree->count % 256 == 0)
        tree->entries = xreallocarray(tree->entries, tree->count + 256, sizeof(*tree->entries));
    entry = &tree->entries[tree->count++];
    entry->path = xstrdup(walk->path);
    entry->is_directory = is_directory;
    entry->decision = walk->rules ? view_decide_entry(walk->rules, walk->path, is_directory)
                                  : (struct view_decision){ VIEW_WRITE, -1 };
    return true;
}

/* Directories have names of any number; those behind the limit would not be shown anyway. */
static int names_read(int fd, char ***ret, size_t *ret_count)
{
    cleanup_with(closedir_slot) DIR *dir = fdopendir(fd);
    struct dirent *entry;

    if (!dir) {
        int r = -errno;

        (void)close(fd);
        return r;
    }
    while ((entry = readdir(dir)) && *ret_count < 2 * (size_t)PERMISSION_TREE_MAX) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (*ret_count % 64 == 0)
            *ret = xreallocarray(*ret, *ret_count + 64, sizeof(**ret));
        (*ret)[*ret_count] = xasprintf("%c%s", entry->d_type == DT_DIR ? 'd' : 'f', entry->d_name);
        (*ret_count)++;
    }
    return 0;
}

static int name_compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a + 1, *(char *const *)b + 1);
}

static int tree_walk(struct tree_walk *walk, int dir_fd, const char *name, unsigned depth);

static int tree_walk_name(struct tree_walk *walk, int fd, const char *name, unsigned depth)
{
    const bool is_directory = *name++ == 'd';
    const size_t len = strlen(walk->path);
    const size_t at = len == 1 ? 0 : len; /* "/" has its slash already */
    int r = 0;

    if (at + strlen(name) + 2 > sizeof(walk->path))
        return 0;
    (void)snprintf(walk->path + at, sizeof(walk->path) - at, "/%s", name);
    if (tree_add(walk, is_directory) && is_directory && depth > 1)
        r = tree_walk(walk, fd, name, depth - 1);
    walk->path[len] = '\0';
    return r;
}

static int tree_walk(struct tree_walk *walk, int dir_fd, const char *name, unsigned depth)
{
    int fd = open_no_links(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    cleanup_close int kept = fd < 0 ? -EBADF : fcntl(fd, F_DUPFD_CLOEXEC, 3);
    char **names = NULL;
    size_t count = 0;
    int r = fd < 0 ? fd : names_read(fd, &names, &count);

    if (count > 0)
        qsort(names, count, sizeof(*names), name_compare);
    for (size_t i = 0; i < count; i++) {
        if (r == 0 && !walk->tree->is_truncated)
            r = tree_walk_name(walk, kept, names[i], depth);
        free(names[i]);
    }
    free(names);
    return r;
}

int permission_tree(struct sandbox *sandbox, const char *path, unsigned depth,
                    struct permission_tree *ret, struct err *err)
{
    enum { DEPTH_MAX = 64 };
    cleanup_with(permissions_done) struct permissions permissions = { .rules = NULL };
    cleanup_close int top_fd = -EBADF;
    struct tree_walk walk = { .tree = ret };
    int r = sandbox_permissions(sandbox, &permissions, err);

    *ret = (struct permission_tree){ .entries = NULL };
    if (r == 0)
        r = permission_path(&sandbox->info, path && *path ? path : ".", walk.path,
                            sizeof(walk.path), err);
    if (r < 0)
        return r;
    walk.rules = permissions.rules;
    top_fd = codebase_open_version(sandbox->host->store, sandbox->info.codebase,
                                   sandbox->info.codebase_base);
    if (top_fd < 0)
        return err_sys(err, top_fd, "open the codebase of sandbox '%s'", sandbox->info.id);
    r = tree_walk(&walk, top_fd, walk.path[1] ? walk.path + 1 : ".",
                  depth > 0 && depth < DEPTH_MAX ? depth : DEPTH_MAX);
    if (r == -ENOENT || r == -ENOTDIR || r == -ELOOP)
        r = err_set(err, ERR_NOT_FOUND, "the codebase has no directory '%.100s'", path);
    else if (r < 0)
        r = err_sys(err, r, "list the codebase of sandbox '%s'", sandbox->info.id);
    if (r < 0)
        permission_tree_done(ret);
    return r;
}
