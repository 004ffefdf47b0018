// SPDX-License-Identifier: Apache-2.0
/* Control groups of this machine, v2 or hybrid, under a label that is only ours. */
#include <fcntl.h>
#include <ftw.h>
#include <stdint.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "kernel/cgroup.h"
#include "kernel/clone.h"
#include "kernel/harness.h"

static char label[32];

#define CHECK_OK(call, err) CHECK((call) >= 0, "(%s)", (err)->msg)

static struct cgroup_root *open_root(void)
{
    struct cgroup_root *root;
    struct err err = { 0 };

    CHECK_OK(cgroup_root_open(label, &root, &err), &err);
    return root;
}

static size_t groups_found;

static int count_group(const char *path, const struct stat *info, int type, struct FTW *where)
{
    (void)info, (void)where;
    if (type == FTW_D && strstr(path, label))
        groups_found++;
    return 0;
}

/* How many directories under /sys/fs/cgroup carry the label. */
static size_t label_groups(void)
{
    groups_found = 0;
    (void)nftw("/sys/fs/cgroup", count_group, 16, FTW_PHYS);
    return groups_found;
}

/* A process that was born in a child group of `name`; ignores all it can. */
static pid_t start_in(struct cgroup_root *root, const char *name, const char *child,
                      const char *script)
{
    cleanup_close int program_fd = open("/bin/sh", O_PATH | O_CLOEXEC), pidfd = -EBADF,
                      group_fd = -EBADF;
    char *const args[] = { (char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c",
                           (char *)(uintptr_t)script, NULL };
    char *const env[] = { (char *)(uintptr_t) "PATH=/usr/bin:/bin", NULL };
    struct err err = { 0 };
    pid_t pid;

    CHECK_OK(cgroup_open_child(root, name, child, 0, &group_fd, &err), &err);
    CHECK(clone_exec(
              &(struct clone_exec){
                  .cgroup_fd = group_fd, .program_fd = program_fd, .args = args, .env = env },
              &pid, &pidfd) == 0);
    return pid;
}

static int status_of(pid_t pid)
{
    int status = 0;

    CHECK(waitpid(pid, &status, __WALL) == pid);
    return status;
}

static void a_root_comes_and_goes(void)
{
    struct cgroup_root *root = open_root();

    CHECK(label_groups() > 0 && strlen(cgroup_root_kind(root)) > 0);
    cgroup_root_close(root);
    CHECK(label_groups() == 0, "(%zu groups)", label_groups());
}

static void a_group_is_removed_with_its_children(void)
{
    struct cgroup_root *root = open_root();
    cleanup_close int fd = -EBADF;
    struct err err = { 0 };

    CHECK_OK(cgroup_create(root, "one", 0, &err), &err);
    CHECK_OK(cgroup_open_child(root, "one", "p1", 0, &fd, &err), &err);
    CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC);
    CHECK(cgroup_create(root, "one", 0, &err) < 0, "(made twice)");
    CHECK(cgroup_remove(root, "one", "p1") == 0);
    CHECK(cgroup_remove(root, "one", NULL) == 0);
    CHECK(cgroup_remove(root, "one", NULL) == 0, "(what is gone is removed)");
    cgroup_root_close(root);
    CHECK(label_groups() == 0);
}

static void a_kill_takes_the_whole_tree(void)
{
    struct cgroup_root *root = open_root();
    struct err err = { 0 };
    pid_t pid;

    CHECK_OK(cgroup_create(root, "one", 0, &err), &err);
    pid = start_in(root, "one", "p1",
                   "trap '' TERM HUP INT; setsid sleep 1000 & (setsid sleep 1000 &); sleep 1000 & "
                   "kill -STOP $!; while :; do sleep 1000; done");
    pause_ms(100);
    CHECK(cgroup_kill(root, "one", "p1") == 0);
    CHECK(WTERMSIG(status_of(pid)) == SIGKILL);
    CHECK(cgroup_wait_empty(root, "one", "p1") == 0);
    CHECK(cgroup_remove(root, "one", NULL) == 0);
    cgroup_root_close(root);
}

static void a_signal_reaches_each_of_a_child_group(void)
{
    struct cgroup_root *root = open_root();
    struct err err = { 0 };
    pid_t one, two, other;

    CHECK_OK(cgroup_create(root, "one", 0, &err), &err);
    one = start_in(root, "one", "p1", "exec sleep 1000");
    two = start_in(root, "one", "p1", "exec sleep 1000");
    other = start_in(root, "one", "p2", "exec sleep 1000");
    CHECK(cgroup_signal(root, "one", "p1", SIGUSR1) == 0);
    CHECK(WTERMSIG(status_of(one)) == SIGUSR1 && WTERMSIG(status_of(two)) == SIGUSR1);
    CHECK(waitpid(other, NULL, WNOHANG | __WALL) == 0, "(hit a process of another group)");
    CHECK(cgroup_kill(root, "one", NULL) == 0);
    CHECK(WTERMSIG(status_of(other)) == SIGKILL);
    CHECK(cgroup_wait_empty(root, "one", NULL) == 0 && cgroup_remove(root, "one", NULL) == 0);
    cgroup_root_close(root);
}

static void what_an_earlier_life_left_is_swept(void)
{
    struct cgroup_root *root = open_root();
    struct err err = { 0 };
    pid_t pid;

    CHECK_OK(cgroup_create(root, "one", 0, &err), &err);
    CHECK_OK(cgroup_create(root, "two", 0, &err), &err);
    CHECK_OK(cgroup_seat_create(root, "seat-1", &err), &err);
    pid = start_in(root, "one", "p1", "sleep 1000 & exec sleep 1000");
    cgroup_root_close(root); /* not empty, so it stays */
    CHECK(label_groups() > 0);

    root = open_root();
    CHECK(cgroup_root_sweep(root, NULL, NULL, &err) >= 2, "(%s)", err.msg);
    CHECK(WTERMSIG(status_of(pid)) == SIGKILL);
    CHECK(cgroup_root_sweep(root, NULL, NULL, &err) == 0);
    cgroup_root_close(root);
    CHECK(label_groups() == 0, "(%zu groups)", label_groups());
}

static void waiting_for_what_is_not_there_ends_at_once(void)
{
    struct cgroup_root *root = open_root();

    CHECK(cgroup_wait_empty(root, "nothing", NULL) == 0);
    CHECK(cgroup_kill(root, "nothing", NULL) == -ENOENT);
    CHECK(cgroup_oom_kills(root, "nothing") == 0 && cgroup_memory_peak(root, "nothing") == 0);
    cgroup_root_close(root);
}

static void limits_are_taken_and_refused(void)
{
    struct cgroup_root *root = open_root();
    const char *name = cgroup_root_limits_seats(root) ? "seat-1" : "one";
    struct err err = { 0 };

    CHECK_OK(cgroup_create(root, "one", 0, &err), &err);
    CHECK_OK(cgroup_seat_create(root, "seat-1", &err), &err);
    CHECK_OK(cgroup_set_limits(
                 root, name,
                 &(struct cgroup_limits){ .memory_bytes = 64 << 20, .cpu_millis = 500, .pids = 16 },
                 &err),
             &err);
    cgroup_seat_reset(root, "seat-1");
    CHECK_OK(
        cgroup_set_limits(root, name, &(struct cgroup_limits){ .memory_bytes = 1 << 30 }, &err),
        &err);
    CHECK(cgroup_set_limits(root, "nothing", &(struct cgroup_limits){ .pids = 1 }, &err) < 0);
    CHECK(strlen(err.msg) > 0);
    CHECK(cgroup_seat_remove(root, "seat-1") == 0 && cgroup_remove(root, "one", NULL) == 0);
    cgroup_root_close(root);
    CHECK(label_groups() == 0);
}

/* After a broken claim. */
static void sweep(void)
{
    struct cgroup_root *root;
    struct err err;

    if (cgroup_root_open(label, &root, &err) < 0)
        return;
    (void)cgroup_root_sweep(root, NULL, NULL, &err);
    cgroup_root_close(root);
}

int main(void)
{
    must_be_root();
    CHECK(atexit(sweep) == 0);
    (void)snprintf(label, sizeof(label), "holt-cgroup-test-%d", (int)getpid());
    RUN_CLEAN(a_root_comes_and_goes);
    RUN_CLEAN(a_group_is_removed_with_its_children);
    RUN_CLEAN(a_kill_takes_the_whole_tree);
    RUN_CLEAN(a_signal_reaches_each_of_a_child_group);
    RUN_CLEAN(what_an_earlier_life_left_is_swept);
    RUN_CLEAN(waiting_for_what_is_not_there_ends_at_once);
    RUN_CLEAN(limits_are_taken_and_refused);
    return 0;
}
