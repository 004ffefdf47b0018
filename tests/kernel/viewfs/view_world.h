/* Fixture: a codebase under rules, as a sandbox sees it: an overlay on a tmpfs, holt-view over it,
 * and processes in a user namespace of their own. */
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "host/view/mask.h"
#include "host/view/view.h"
#include "kernel/harness.h"
#include "kernel/mount.h"
#include "store/volume/volume.h"
#include "view/rules.h"

enum { FIRST_UID = 1000000, UIDS = 65536, PLAIN_USER = 1000 };

/* What enforces the rules. The tests that loop over the engines hold for each. */
struct view_engine {
    const char *name;
    int (*show)(const char *rules);
    bool is_kernel; /* for rules that let nothing be written; differs as docs/permissions.md says */
};

static struct {
    const struct view_engine *engine; /* NULL: the first one */
    char dir[64];
    int dir_fd, lower_fd;
    int seen_fd; /* the root of the mount of holt-view, as the host sees it */
    struct views *views;
    struct view *view;
    uint64_t generation;
    _Atomic unsigned denied, deaths;
} world;

static inline const struct view_engine *world_engine(void);

static inline void world_denied(void *context, const char *id, const json_t *denials,
                                uint64_t count)
{
    (void)context, (void)id, (void)denials;
    world.denied += (unsigned)count;
}

static inline void world_died(void *context, const char *id, const char *reason)
{
    (void)context, (void)id, (void)reason;
    world.deaths++;
}

/* Puts holt-view next to this program. */
static inline void world_link_program(void)
{
    char self[PATH_MAX], path[PATH_MAX + 16], folder[PATH_MAX], target[PATH_MAX + 16];
    const char *build = getenv("HOLT_BUILD_DIR");
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

    CHECK(len > 0);
    self[len] = '\0';
    *strrchr(self, '/') = '\0';
    CHECK(realpath(build ? build : "build", folder));
    (void)snprintf(target, sizeof(target), "%s/holt-view", folder);
    (void)snprintf(path, sizeof(path), "%s/holt-view", self);
    CHECK(symlink(target, path) == 0 || errno == EEXIST);
}

static inline void world_mkdir(const char *name, int *ret_fd)
{
    CHECK(mkdirat(world.dir_fd, name, 0755) == 0, "(%s)", strerror(errno));
    *ret_fd = openat(world.dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(*ret_fd >= 0 && fchown(*ret_fd, FIRST_UID, FIRST_UID) == 0);
    CHECK(fchmod(*ret_fd, 0777) == 0);
}

/* Gives what is made in the lower layer to the plain user of the sandbox, or to one of the host. */
static inline void lower_give(const char *path)
{
    const uid_t owner = world_engine()->is_kernel ? PLAIN_USER : FIRST_UID + PLAIN_USER;

    CHECK(fchownat(world.lower_fd, path, owner, owner, AT_SYMLINK_NOFOLLOW) == 0);
}

/* Everybody may do everything, or what a mask allows. */
static inline mode_t lower_mode(void)
{
    return world_engine()->is_kernel ? 0755 : 0777;
}

static inline void lower_file(const char *path, const char *text)
{
    cleanup_close int fd = openat(world.lower_fd, path, O_CREAT | O_WRONLY | O_CLOEXEC, 0777);

    CHECK(fd >= 0, "(%s: %s)", path, strerror(errno));
    CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    CHECK(fchmod(fd, lower_mode()) == 0);
    lower_give(path);
}

static inline void lower_directory(const char *path)
{
    CHECK(mkdirat(world.lower_fd, path, 0777) == 0, "(%s: %s)", path, strerror(errno));
    CHECK(fchmodat(world.lower_fd, path, lower_mode(), 0) == 0);
    lower_give(path);
}

static inline void lower_link(const char *target, const char *path)
{
    CHECK(symlinkat(target, world.lower_fd, path) == 0);
    lower_give(path);
}

static inline void lower_node(const char *path, mode_t type)
{
    CHECK(mknodat(world.lower_fd, path, type | 0777, 0) == 0, "(%s: %s)", path, strerror(errno));
    lower_give(path);
}

/* Makes an empty lower layer; the tests fill it. */
static inline void world_begin(void)
{
    const struct view_events events = { .denied = world_denied, .died = world_died };
    struct err err = { 0 };

    world_link_program();
    (void)umask(0);
    CHECK(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    (void)snprintf(world.dir, sizeof(world.dir), "/tmp/holt-view-XXXXXX");
    CHECK(mkdtemp(world.dir));
    CHECK(mount("tmpfs", world.dir, "tmpfs", 0, "mode=0755") == 0);
    world.dir_fd = open(world.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    world_mkdir("lower", &world.lower_fd);
    world.seen_fd = -1;
    CHECK(views_start(world.dir_fd, &events, &world.views, &err) == 0, "(%s)", err.msg);
}

static inline int world_overlay(void)
{
    int upper_fd, work_fd, fd;

    world_mkdir("upper", &upper_fd);
    world_mkdir("work", &work_fd);
    fd = mount_overlay(&(struct overlay){
        .lower_fds = &world.lower_fd, .lower_count = 1, .upper_fd = upper_fd, .work_fd = work_fd });
    CHECK(fd >= 0, "(%s)", strerror(-fd));
    (void)close(upper_fd);
    (void)close(work_fd);
    return fd;
}

/* Makes a detached mount of the lower layer under rules. */
static inline int fuse_show(const char *rules)
{
    cleanup_close int overlay_fd = world_overlay();
    struct err err = { 0 };
    int mount_fd = -EBADF;

    CHECK(view_start(world.views,
                     &(struct view_start){ .id = "test",
                                           .mount_fd = overlay_fd,
                                           .rules = rules,
                                           .generation = ++world.generation },
                     &mount_fd, &world.view, &err) == 0,
          "(%s)", err.msg);
    return mount_fd;
}

/* Makes a detached mount of a mask of the lower layer, as store/volume/mount.c does. */
static inline int kernel_show(const char *text)
{
    cleanup_view_rules struct view_rules *rules = NULL;
    cleanup_close int mask_fd = -EBADF, upper_fd = -EBADF, work_fd = -EBADF;
    static const struct mount_option options[] = { { "index", "off" },
                                                   { "redirect_dir", "nofollow" },
                                                   { "metacopy", "off" } };
    char refusal[MASK_REFUSAL_SIZE] = "";
    struct err err = { 0 };
    int fd;

    world_mkdir("mask", &mask_fd);
    world_mkdir("upper", &upper_fd);
    world_mkdir("work", &work_fd);
    CHECK(fchown(upper_fd, 0, 0) == 0 && fchmod(upper_fd, 0755) == 0);
    CHECK(view_rules_parse(text, 1, &rules, &err) == 0, "(%s)", err.msg);
    fd = mask_fill(world.lower_fd, rules, mask_fd, refusal);
    CHECK(fd == 0, "(%d: %s)", fd, refusal);
    fd = mount_overlay(&(struct overlay){ .lower_fds = (const int[]){ mask_fd, world.lower_fd },
                                          .lower_count = 2,
                                          .upper_fd = upper_fd,
                                          .work_fd = work_fd,
                                          .options = options,
                                          .option_count = ARRAY_SIZE(options) });
    CHECK(fd >= 0, "(%s)", strerror(-fd));
    return fd;
}

static const struct view_engine view_engines[] = { { "fuse", fuse_show, false },
                                                   { "kernel", kernel_show, true } };

static inline const struct view_engine *world_engine(void)
{
    return world.engine ? world.engine : &view_engines[0];
}

/* Shows the lower layer under rules, at DIR/seen. */
static inline void world_show(const char *rules)
{
    cleanup_close int mount_fd = -EBADF, target_fd = -EBADF;

    world_mkdir("seen", &target_fd);
    mount_fd = world_engine()->show(rules);
    CHECK(mount_attach(mount_fd, target_fd) == 0);
    world.seen_fd = openat(world.dir_fd, "seen", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(world.seen_fd >= 0, "(%s)", strerror(errno));
}

static inline size_t world_set_rules(const char *rules)
{
    struct err err = { 0 };
    size_t open = 0;

    CHECK(view_set_rules(world.view, rules, ++world.generation, &open, &err) == 0, "(%s)", err.msg);
    return open;
}

static inline void world_end(void)
{
    if (world.seen_fd >= 0)
        (void)close(world.seen_fd);
    if (world.view)
        view_stop(world.view);
    views_stop(world.views);
    (void)close(world.lower_fd);
    (void)close(world.dir_fd);
    (void)umount2(world.dir, MNT_DETACH);
    (void)rmdir(world.dir);
    memset(&world, 0, sizeof(world));
}

static inline void write_map(pid_t pid, const char *name)
{
    char path[64], map[64];
    int fd;

    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    (void)snprintf(map, sizeof(map), "0 %d %d\n", FIRST_UID, UIDS);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    CHECK(fd >= 0 && write(fd, map, strlen(map)) == (ssize_t)strlen(map));
    (void)close(fd);
}

/* Starts a process in a user namespace as one of its users, in the directory that is seen. */
static inline pid_t sandbox_start(uid_t uid, void (*run)(void *argument), void *argument)
{
    int ready[2], go[2];
    char byte = 'x';
    pid_t pid;

    CHECK(pipe2(ready, O_CLOEXEC) == 0 && pipe2(go, O_CLOEXEC) == 0);
    (void)fflush(stdout);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        CHECK(unshare(CLONE_NEWUSER) == 0 && write(ready[1], &byte, 1) == 1);
        CHECK(read(go[0], &byte, 1) == 1);
        CHECK(fchdir(world.seen_fd) == 0);
        CHECK(setresgid(uid, uid, uid) == 0 && setresuid(uid, uid, uid) == 0);
        run(argument);
        (void)fflush(stdout);
        _exit(0);
    }
    CHECK(read(ready[0], &byte, 1) == 1);
    write_map(pid, "uid_map");
    write_map(pid, "gid_map");
    CHECK(write(go[1], &byte, 1) == 1);
    for (int i = 0; i < 2; i++)
        (void)close(ready[i]), (void)close(go[i]);
    return pid;
}

static inline void sandbox_run(uid_t uid, void (*run)(void *argument), void *argument)
{
    int status = -1;
    pid_t pid = sandbox_start(uid, run, argument);

    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(status == 0, "(a process of the sandbox ended with status %d)", status);
}
