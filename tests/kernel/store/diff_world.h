/* Fixture of the diff tests: real overlays whose states are compared. */
#pragma once

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/files/tree.h"
#include "base/xalloc.h"
#include "kernel/harness.h"
#include "store/diff/diff.h"
#include "store/volume/volume.h"

enum { REPORT_MAX = 64 << 20, LAYERS_MAX = 4 };

static char world_dir[64];

static void world_end(void)
{
    (void)!chdir("/");
    (void)umount2(world_dir, MNT_DETACH);
    (void)rmdir(world_dir);
}

/* Everything is below a tmpfs in a private mount namespace; it is the working directory. */
static inline void world_begin(void)
{
    must_be_root();
    (void)umask(022);
    (void)snprintf(world_dir, sizeof(world_dir), "/tmp/holt-diff-XXXXXX");
    CHECK(mkdtemp(world_dir));
    CHECK(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    CHECK(mount("tmpfs", world_dir, "tmpfs", 0, "mode=755") == 0 && chdir(world_dir) == 0);
    CHECK(atexit(world_end) == 0);
}

static inline void make_dir(const char *path)
{
    CHECK(mkdir(path, 0755) == 0, "(%s: %s)", path, strerror(errno));
}

static inline void put_bytes(const char *path, const void *data, size_t len)
{
    cleanup_close int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0644);

    CHECK(fd >= 0, "(%s: %s)", path, strerror(errno));
    CHECK(write(fd, data, len) == (ssize_t)len);
}

static inline void put_file(const char *path, const char *text)
{
    put_bytes(path, text, strlen(text));
}

/* Runs a command in a directory without output. Returns its exit status. */
__attribute__((sentinel)) static inline int run_in(const char *dir, const char *command, ...)
{
    const char *words[16] = { command };
    size_t count = 1;
    va_list args;
    int status;
    pid_t pid;

    va_start(args, command);
    while (count < ARRAY_SIZE(words) && (words[count] = va_arg(args, const char *)))
        count++;
    va_end(args);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        if (chdir(dir) == 0)
            (void)execvp(command, (char *const *)(uintptr_t)words);
        _exit(127);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Mounts upper, created with its work directory if missing, over lowers ("a:b", topmost first) at
 * "merged". */
static inline void overlay_mount(const char *upper, const char *lowers)
{
    char options[512], work[64];

    (void)snprintf(work, sizeof(work), "%s.work", upper);
    CHECK(mkdir(upper, 0755) == 0 || errno == EEXIST);
    CHECK(mkdir(work, 0755) == 0 || errno == EEXIST);
    CHECK(mkdir("merged", 0755) == 0 || errno == EEXIST);
    (void)snprintf(options, sizeof(options), "lowerdir=%s,upperdir=%s,workdir=%s", lowers, upper,
                   work);
    CHECK(mount("overlay", "merged", "overlay", 0, options) == 0, "(%s: %s)", options,
          strerror(errno));
}

static inline void overlay_umount(void)
{
    CHECK(umount2("merged", 0) == 0, "(%s)", strerror(errno));
}

/* Opens a view of trees: target and layers in turn, "/", "upper:lower", "/usr", ..., NULL. */
__attribute__((sentinel)) static inline struct volume_view view_open(const char *target, ...)
{
    struct volume_view view = { .tree_count = 0 };
    char layers[PATH_MAX];
    va_list args;

    va_start(args, target);
    for (; target; target = va_arg(args, const char *)) {
        char *rest = layers, *layer;
        size_t count = 0;

        (void)snprintf(layers, sizeof(layers), "%s", va_arg(args, const char *));
        while ((layer = strsep(&rest, ":"))) {
            int fd = open(layer, O_PATH | O_DIRECTORY | O_CLOEXEC);

            CHECK(fd >= 0, "(%s: %s)", layer, strerror(errno));
            view.trees[view.tree_count].fds[count++] = fd;
        }
        view.trees[view.tree_count].target = target;
        view.trees[view.tree_count++].count = count;
    }
    va_end(args);
    return view;
}

static inline void view_close(struct volume_view *view)
{
    for (size_t i = 0; i < view->tree_count; i++) {
        for (size_t k = 0; k < view->trees[i].count; k++)
            (void)close(view->trees[i].fds[k]);
    }
    view->tree_count = 0;
}

/* One line per entry: "A /path", "R /new < /old"; then the text difference, if requested. */
static inline int entry_print(const struct diff_entry *entry, void *context)
{
    struct buf *report = context;

    CHECK(buf_printf(report, "%c %s", entry->kind, entry->path) == 0);
    if (entry->old_path)
        CHECK(buf_printf(report, " < %s", entry->old_path) == 0);
    CHECK((entry->kind == DIFF_RENAMED) == (entry->old_path != NULL));
    if (entry->added_lines || entry->deleted_lines)
        CHECK(buf_printf(report, " +%llu -%llu", (unsigned long long)entry->added_lines,
                         (unsigned long long)entry->deleted_lines) == 0);
    if (entry->is_binary)
        CHECK(buf_add_str(report, " binary") == 0);
    return buf_add_str(report, "\n");
}

static inline int patch_print(const struct diff_entry *entry, void *context)
{
    return entry->patch ? buf_add(context, entry->patch, entry->patch_len) : 0;
}

/* Reports the differences between two roots of layers, "upper:lower", as text that the next call
 * overwrites. */
static inline const char *diff_layers(const char *old_layers, const char *new_layers,
                                      struct diff_options options, diff_fn each)
{
    static struct buf report = BUF_INIT(REPORT_MAX);
    cleanup_with(view_close) struct volume_view old = view_open("/", old_layers, NULL);
    cleanup_with(view_close) struct volume_view new = view_open("/", new_layers, NULL);
    struct err err = { 0 };

    buf_clear(&report);
    CHECK(buf_reserve(&report, 1) == 0);
    CHECK(diff_run(&old, &new, &options, each, &report, &err) == 0, "(%s)", err.msg);
    return report.data;
}

static inline const char *diff_names(const char *old_layers, const char *new_layers)
{
    return diff_layers(old_layers, new_layers, (struct diff_options){ 0 }, entry_print);
}

static inline const char *diff_lines(const char *old_layers, const char *new_layers)
{
    return diff_layers(old_layers, new_layers, (struct diff_options){ .wants_lines = true },
                       entry_print);
}

static inline const char *diff_patch(const char *old_layers, const char *new_layers)
{
    return diff_layers(old_layers, new_layers, (struct diff_options){ .wants_patch = true },
                       patch_print);
}

/* Each test starts in an empty directory. */
static inline void stage_begin(void)
{
    make_dir("stage");
    CHECK(chdir("stage") == 0);
}

static inline void stage_end(void)
{
    CHECK(chdir("..") == 0 && tree_remove_at(AT_FDCWD, "stage") == 0);
}

#define RUN_STAGED(test)                                                                           \
    do {                                                                                           \
        stage_begin();                                                                             \
        RUN_CLEAN(test);                                                                           \
        stage_end();                                                                               \
    } while (0)
