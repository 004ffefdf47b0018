// SPDX-License-Identifier: Apache-2.0
/* All processes of a sandbox together: freezing, killing, finding, and their memory. */
#include <sys/ptrace.h>
#include <sys/stat.h>

#include "kernel/kernel/cgroup_world.h"

#define FORKS_WILDLY                                                                               \
    "f() { while :; do /bin/true & /bin/true & (/bin/true; /bin/true) & wait; done; }; "           \
    "f & f & f"

/* A process that had already exited when all were frozen takes a moment to disappear. */
enum { SETTLE_MS = 20 };

static uint64_t cpu_us(struct cgroup_root *root, const char *child)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(4096);
    cleanup_close int fd = -EBADF;
    unsigned long long usage = 0;
    struct err err = { 0 };

    CHECK_OK(cgroup_open_child(root, "one", child, 0, &fd, &err), &err);
    CHECK(file_read_at(fd, "cpu.stat", &text) == 0);
    CHECK(sscanf(text.data, "usage_usec %llu", &usage) == 1);
    return usage;
}

static bool is_frozen(struct cgroup_root *root, const char *child)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(4096);
    cleanup_close int fd = -EBADF;
    struct err err = { 0 };

    CHECK_OK(cgroup_open_child(root, "one", child, 0, &fd, &err), &err);
    CHECK(file_read_at(fd, "cgroup.events", &text) == 0);
    return strstr(text.data, "frozen 1");
}

/* A sandbox whose "init" is busy and whose p1 forks continuously; p2 is empty. */
static struct cgroup_root *open_busy(pid_t *ret_init, pid_t *ret_pid)
{
    struct cgroup_root *root = open_root();
    cleanup_close int fd = -EBADF;
    struct err err = { 0 };

    CHECK_OK(cgroup_create(root, "one", 0, &err), &err);
    CHECK_OK(cgroup_open_child(root, "one", "p2", 0, &fd, &err), &err);
    *ret_init = start_in(root, "one", "init", "while :; do :; done");
    *ret_pid = start_in(root, "one", "p1", FORKS_WILDLY);
    EVENTUALLY(cpu_us(root, "p1") > 20000);
    return root;
}

static void close_busy(struct cgroup_root *root, pid_t init)
{
    CHECK(cgroup_kill(root, "one", NULL) == 0);
    CHECK(WTERMSIG(status_of(init)) == SIGKILL);
    CHECK(cgroup_wait_empty(root, "one", NULL) == 0 && cgroup_remove(root, "one", NULL) == 0);
    cgroup_root_close(root);
    CHECK(label_groups() == 0);
}

static void what_is_frozen_stands_still(void)
{
    pid_t init, pid;
    struct cgroup_root *root = open_busy(&init, &pid);

    for (int i = 0; i < 20; i++) {
        uint64_t frozen_at, init_at;

        CHECK(cgroup_freeze(root, "one", true) == 0);
        CHECK(is_frozen(root, "p1") && is_frozen(root, "p2") && !is_frozen(root, "init"));
        pause_ms(SETTLE_MS);
        frozen_at = cpu_us(root, "p1");
        init_at = cpu_us(root, "init");
        pause_ms(20);
        CHECK(cpu_us(root, "p1") == frozen_at, "(it ran)");
        EVENTUALLY(cpu_us(root, "init") > init_at);
        CHECK(cgroup_freeze(root, "one", true) == 0, "(frozen twice)");
        CHECK(cgroup_signal(root, "one", "p1", SIGCONT) == 0);
        CHECK(is_frozen(root, "p1"), "(a signal has thawed it)");
        CHECK(cgroup_freeze(root, "one", false) == 0);
        EVENTUALLY(cpu_us(root, "p1") > frozen_at);
    }
    CHECK(cgroup_kill(root, "one", "p1") == 0 && WTERMSIG(status_of(pid)) == SIGKILL);
    close_busy(root, init);
}

static void what_is_traced_can_be_frozen(void)
{
    struct cgroup_root *root = open_root();
    struct err err = { 0 };
    pid_t pid;

    CHECK_OK(cgroup_create(root, "one", 0, &err), &err);
    pid = start_in(root, "one", "p1", "exec sleep 1000");
    CHECK(ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0);
    CHECK(ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) == 0);
    CHECK(WIFSTOPPED(status_of(pid)));
    CHECK(cgroup_freeze(root, "one", true) == 0);
    CHECK(cgroup_freeze(root, "one", false) == 0);
    CHECK(cgroup_kill_processes(root, "one") == 0);
    CHECK(WIFSIGNALED(status_of(pid)));
    CHECK(cgroup_remove(root, "one", NULL) == 0);
    cgroup_root_close(root);
}

/* A FUSE server that never replies: its callers wait in a state that only SIGKILL ends. */
static int mount_silence(const char *path)
{
    char options[64];
    int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    (void)snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
    CHECK(mkdir(path, 0700) == 0 && mount("silence", path, "fuse", 0, options) == 0, "(%s)",
          strerror(errno));
    return fd;
}

/* Returns whether the process waits for the silent filesystem. It also waits without being
 * interruptible while its program is read from a disk, but not for long. */
static bool waits_for_fuse(pid_t pid)
{
    cleanup_with(buf_done) struct buf where = BUF_INIT(4096);
    char path[32];

    (void)snprintf(path, sizeof(path), "/proc/%d/wchan", (int)pid);
    CHECK(file_read_at(AT_FDCWD, path, &where) == 0);
    return where.data && strstr(where.data, "fuse") != NULL;
}

static void what_cannot_be_frozen_keeps_nothing_frozen(void)
{
    struct cgroup_root *root = open_root();
    char path[96], script[160];
    struct err err = { 0 };
    pid_t stuck, other;
    int fuse_fd;

    (void)snprintf(path, sizeof(path), "%s/silence", dir);
    fuse_fd = mount_silence(path);
    if (fuse_fd < 0) {
        cgroup_root_close(root);
        SKIP("no /dev/fuse here");
    }
    (void)snprintf(script, sizeof(script), "exec cat %s/file", path);
    CHECK_OK(cgroup_create(root, "one", 0, &err), &err);
    stuck = start_in(root, "one", "p1", script);
    other = start_in(root, "one", "p2", "exec sleep 1000");
    EVENTUALLY(waits_for_fuse(stuck));
    CHECK(cgroup_freeze(root, "one", true) == -ETIMEDOUT);
    CHECK(!is_frozen(root, "p2"), "(left behind, frozen)");
    CHECK(waitpid(other, NULL, WNOHANG | __WALL) == 0);
    CHECK(cgroup_kill_processes(root, "one") == 0);
    CHECK(WIFSIGNALED(status_of(stuck)) && WIFSIGNALED(status_of(other)));
    CHECK(cgroup_remove(root, "one", NULL) == 0);
    CHECK(umount2(path, MNT_DETACH) == 0 && close(fuse_fd) == 0 && rmdir(path) == 0);
    cgroup_root_close(root);
}

static size_t groups_in(struct cgroup_root *root, const char *name)
{
    struct stat info;

    /* A directory has a link for itself, one from its parent, and one for each subdirectory. */
    CHECK(fstatat(root->unified_fd, name, &info, 0) == 0);
    return info.st_nlink - 2;
}

static void check_processes_end(bool is_stopped)
{
    pid_t init, pid, found;
    struct cgroup_root *root = open_busy(&init, &pid);
    int pidfd;

    if (is_stopped)
        CHECK(cgroup_freeze(root, "one", true) == 0);
    CHECK(cgroup_kill_processes(root, "one") == 0);
    CHECK(WTERMSIG(status_of(pid)) == SIGKILL);
    CHECK(groups_in(root, "one") == 1, "(%zu)", groups_in(root, "one"));
    CHECK(cgroup_find_init(root, "one", &found, &pidfd) == 0 && found == init);
    CHECK(close(pidfd) == 0);
    CHECK(cgroup_kill_processes(root, "one") == 0, "(nobody is left)");
    close_busy(root, init);
}

static void processes_end_but_init_does_not(void)
{
    check_processes_end(false);
}

static void frozen_processes_end_too(void)
{
    check_processes_end(true);
}

static void an_init_is_found_while_it_runs(void)
{
    struct cgroup_root *root = open_root();
    struct err err = { 0 };
    pid_t pid, found = -1;
    int pidfd = -1;

    CHECK(cgroup_find_init(root, "one", &found, &pidfd) == -ESRCH);
    CHECK_OK(cgroup_create(root, "one", 0, &err), &err);
    CHECK(cgroup_find_init(root, "one", &found, &pidfd) == -ESRCH);
    pid = start_in(root, "one", "init", "exec sleep 1000");
    CHECK(cgroup_find_init(root, "one", &found, &pidfd) == 0 && found == pid);
    CHECK(close(pidfd) == 0);
    CHECK(kill(pid, SIGKILL) == 0);
    EVENTUALLY(cgroup_find_init(root, "one", &found, &pidfd) == -ESRCH || close(pidfd) < 0);
    CHECK(WIFSIGNALED(status_of(pid)));
    CHECK(cgroup_remove(root, "one", NULL) == 0);
    cgroup_root_close(root);
}

static long long memory_used(struct cgroup_root *root, const char *name)
{
    bool v2 = root->has_v2[CGROUP_MEMORY];
    char path[CGROUP_PATH_BYTES];
    long long usage;

    cgroup_path(path, name, NULL, v2 ? "memory.current" : "memory.usage_in_bytes");
    CHECK(file_read_number_at(v2 ? root->unified_fd : root->v1_fd[CGROUP_MEMORY], path, &usage) ==
          0);
    return usage;
}

static void page_cache_is_given_back(void)
{
    enum { MIB = 1 << 20 };
    struct cgroup_root *root = open_root();
    const char *name = cgroup_root_limits_zygotes(root) ? "seat-1" : "one";
    struct err err = { 0 };
    char script[256];
    pid_t pid;

    CHECK_OK(cgroup_create(root, "one", 0, &err), &err);
    CHECK_OK(cgroup_zygote_create(root, "seat-1", &err), &err);
    (void)snprintf(
        script, sizeof(script),
        "kill -STOP $$; dd if=/dev/zero of=%s/file bs=1M count=64 conv=fsync 2>/dev/null; "
        ">%s/written; exec sleep 1000",
        dir, dir);
    pid = start_in(root, "one", "p1", script);
    CHECK_OK(cgroup_zygote_attach(root, "seat-1", pid, &err), &err);
    (void)snprintf(script, sizeof(script), "%s/written", dir);
    do
        CHECK(kill(pid, SIGCONT) == 0);
    while (access(script, F_OK) < 0 && (pause_ms(POLL_MS), true));
    CHECK(memory_used(root, name) > 60 * MIB, "(%lld)", memory_used(root, name));
    cgroup_reclaim(root, name);
    CHECK(memory_used(root, name) < 16 * MIB, "(%lld)", memory_used(root, name));
    CHECK(waitpid(pid, NULL, WNOHANG | __WALL) == 0);
    CHECK(cgroup_kill_processes(root, "one") == 0 && WIFSIGNALED(status_of(pid)));
    CHECK(cgroup_zygote_remove(root, "seat-1") == 0 && cgroup_remove(root, "one", NULL) == 0);
    cgroup_root_close(root);
    CHECK(label_groups() == 0);
}

static void all(void)
{
    begin();
    RUN_CLEAN(what_is_frozen_stands_still);
    RUN_CLEAN(what_is_traced_can_be_frozen);
    RUN_CLEAN(what_cannot_be_frozen_keeps_nothing_frozen);
    RUN_CLEAN(processes_end_but_init_does_not);
    RUN_CLEAN(frozen_processes_end_too);
    RUN_CLEAN(an_init_is_found_while_it_runs);
    RUN_CLEAN(page_cache_is_given_back);
}

int main(void)
{
    RUN(all);
    return 0;
}
