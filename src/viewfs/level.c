// SPDX-License-Identifier: Apache-2.0
/* What the rules say about nodes and names. The caller has fs->names. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kernel/path.h"
#include "viewfs/viewfs_internal.h"

static const struct view_decision free_decision = { .level = VIEW_WRITE, .rule = -1 };

/* Two threads may do this for one node; both write the same. */
static void node_update(struct viewfs *fs, struct node *node)
{
    const bool is_directory = S_ISDIR(node->kind);
    char path[NODE_PATH_SIZE];
    struct view_decision decision;
    bool is_free_below = false;

    if (__atomic_load_n(&node->stamp, __ATOMIC_ACQUIRE) == fs->stamp)
        return;
    if (!node_path(&fs->tree, node, NULL, path))
        return; /* it was removed: its level stays what it was */
    decision = view_decide_entry(fs->rules, path, is_directory);
    if (is_directory)
        is_free_below = !view_may_forbid_below(fs->rules, path);
    lock_scope(&fs->tree.lock);
    node->decision = decision;
    node->is_free_below = is_free_below;
    __atomic_store_n(&node->stamp, fs->stamp, __ATOMIC_RELEASE);
}

struct view_decision node_decide(struct viewfs *fs, struct node *node)
{
    node_update(fs, node);
    return node->decision;
}

bool node_is_free_below(struct viewfs *fs, struct node *node)
{
    node_update(fs, node);
    return node->is_free_below;
}

struct view_decision name_decide(struct viewfs *fs, struct node *parent, const char *name,
                                 bool is_directory)
{
    char path[NODE_PATH_SIZE];

    if (node_is_free_below(fs, parent))
        return free_decision;
    if (!node_path(&fs->tree, parent, name, path))
        return (struct view_decision){ .level = VIEW_NONE, .rule = -1 };
    return view_decide_entry(fs->rules, path, is_directory);
}

static const char *operation_name(uint32_t opcode)
{
    static const char *const names[] = {
        [FUSE_LOOKUP] = "lookup",     [FUSE_GETATTR] = "stat",
        [FUSE_SETATTR] = "change",    [FUSE_READLINK] = "readlink",
        [FUSE_SYMLINK] = "symlink",   [FUSE_MKNOD] = "mknod",
        [FUSE_MKDIR] = "mkdir",       [FUSE_UNLINK] = "unlink",
        [FUSE_RMDIR] = "rmdir",       [FUSE_RENAME] = "rename",
        [FUSE_RENAME2] = "rename",    [FUSE_LINK] = "link",
        [FUSE_OPEN] = "open",         [FUSE_OPENDIR] = "list",
        [FUSE_CREATE] = "create",     [FUSE_TMPFILE] = "create",
        [FUSE_SETXATTR] = "setxattr", [FUSE_REMOVEXATTR] = "removexattr",
        [FUSE_GETXATTR] = "getxattr",
    };

    return opcode < sizeof(names) / sizeof(*names) && names[opcode] ? names[opcode] : "use";
}

static int call_refuse(const struct call *call, const struct node *node, const char *name,
                       struct view_decision decision, int r)
{
    struct denial denial = { .operation = operation_name(call->in->opcode),
                             .rule = decision.rule,
                             .level = (int)decision.level,
                             .pid = call->in->pid };
    char path[NODE_PATH_SIZE];

    if (node_path(&call->fs->tree, node, name, path))
        (void)snprintf(denial.path, sizeof(denial.path), "%.*s", DENIAL_PATH_SIZE - 1, path);
    denial_note(&call->fs->denials, &denial);
    return r;
}

int call_need(const struct call *call, enum view_level level)
{
    const struct view_decision decision = node_decide(call->fs, call->node);

    if (decision.level >= level)
        return 0;
    return call_refuse(call, call->node, NULL, decision,
                       decision.level == VIEW_NONE ? -ENOENT : -EACCES);
}

int call_need_name(const struct call *call, struct node *parent, const char *name,
                   enum view_level level)
{
    const struct view_decision decision = name_decide(call->fs, parent, name, false);

    return decision.level >= level ? 0 : call_refuse(call, parent, name, decision, -EACCES);
}

/* --- what is inside of a directory ------------------------------------------------------------ */

enum { BELOW_DEPTH_MAX = 256 };

/* A walk through a directory under its path and the one that it is about to have. */
struct below {
    const struct call *call;
    char from[NODE_PATH_SIZE], to[NODE_PATH_SIZE];
};

static bool path_push(char path[NODE_PATH_SIZE], const char *name)
{
    const size_t len = strlen(path), more = strlen(name);

    if (len + more + 2 > NODE_PATH_SIZE)
        return false;
    path[len] = '/';
    memcpy(path + len + 1, name, more + 1);
    return true;
}

static bool path_can_be_written(const struct below *below, const char *path)
{
    return view_decide(below->call->fs->rules, path).level == VIEW_WRITE;
}

static int below_walk(struct below *below, int parent_fd, const char *name, unsigned depth);

static int below_check(struct below *below, int dir_fd, const struct dirent *entry, unsigned depth)
{
    const size_t from_len = strlen(below->from), to_len = strlen(below->to);
    int r = -EACCES;

    if (path_push(below->from, entry->d_name) && path_push(below->to, entry->d_name) &&
        path_can_be_written(below, below->from) && path_can_be_written(below, below->to))
        r = entry->d_type == DT_DIR ? below_walk(below, dir_fd, entry->d_name, depth + 1) : 0;
    below->from[from_len] = below->to[to_len] = '\0';
    return r;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tree, which is bounded */
static int below_walk(struct below *below, int parent_fd, const char *name, unsigned depth)
{
    int fd = depth > BELOW_DEPTH_MAX ? -EACCES
                                     : open_no_links(parent_fd, name, O_RDONLY | O_DIRECTORY, 0);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    int r = 0;

    if (!dir)
        return fd < 0 ? fd : -errno;
    while (r == 0 && (entry = readdir(dir)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            r = below_check(below, fd, entry, depth);
    (void)closedir(dir);
    return r;
}

int call_need_below(const struct call *call, struct node *node, struct node *to_parent,
                    const char *to_name)
{
    struct below below = { .call = call };
    struct viewfs *fs = call->fs;
    int fd, r;

    if (!node_path(&fs->tree, node, NULL, below.from) ||
        !node_path(&fs->tree, to_parent, to_name, below.to))
        return -ENAMETOOLONG;
    if (node_is_free_below(fs, node) && !view_may_forbid_below(fs->rules, below.to))
        return 0;
    fd = node_hold(&fs->tree, node);
    if (fd < 0)
        return fd;
    r = below_walk(&below, fd, ".", 0);
    node_release(&fs->tree, node);
    if (r == -EACCES)
        (void)call_refuse(call, node, NULL, (struct view_decision){ VIEW_WRITE, -1 }, r);
    return r;
}
