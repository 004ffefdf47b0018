/* Fixture of the cgroup tests: groups under labels that are unique to this test. */
#pragma once

#include <fcntl.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/files/tree.h"
#include "base/io.h"
#include "kernel/cgroup/cgroup.h"
#include "kernel/cgroup/cgroup_internal.h"
#include "kernel/clone.h"
#include "kernel/harness.h"

static char label[32];
static char other_label[32]; /* label of groups that do not belong to `label` */
static char dir[64];         /* for files */

#define CHECK_OK(call, err) CHECK((call) >= 0, "(%s)", (err)->msg)

static inline struct cgroup_root *open_root(void)
{
    struct cgroup_root *root;
    struct err err = { 0 };

    CHECK_OK(cgroup_root_open(label, &root, &err), &err);
    return root;
}

static inline size_t label_groups(void)
{
    return groups_with(label);
}

/* Starts a process in a child group of `name` that ignores all signals it can. */
static inline pid_t start_in(struct cgroup_root *root, const char *name, const char *child,
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

static inline int status_of(pid_t pid)
{
    int status = 0;

    CHECK(waitpid(pid, &status, __WALL) == pid);
    return status;
}

/* After a failed check. Innermost first, without access to the FUSE mount that never replies. */
static inline void sweep(void)
{
    const char *const labels[] = { label, other_label };
    char home[96], silence[96];

    (void)snprintf(home, sizeof(home), "%s/home", dir);
    (void)snprintf(silence, sizeof(silence), "%s/silence", dir);
    for (size_t i = 0; i < ARRAY_SIZE(labels); i++) {
        struct cgroup_root *root;
        struct err err;

        if (cgroup_root_open_at(labels[i], i == 0 ? home : NULL, &root, &err) < 0)
            continue;
        (void)cgroup_root_sweep(root, NULL, NULL, &err);
        cgroup_root_close(root);
    }
    (void)umount2(silence, MNT_DETACH);
    (void)tree_remove_at(AT_FDCWD, dir);
}

/* Called first by every main. */
static inline void begin(void)
{
    must_be_root();
    CHECK(atexit(sweep) == 0);
    (void)snprintf(label, sizeof(label), "holt-cgroup-test-%d", (int)getpid());
    (void)snprintf(other_label, sizeof(other_label), "holt-other-test-%d", (int)getpid());
    /* Not /tmp, which is a tmpfs on many machines. */
    (void)snprintf(dir, sizeof(dir), "/var/tmp/holt-cgroup-test-XXXXXX");
    CHECK(mkdtemp(dir));
}
