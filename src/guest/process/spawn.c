// SPDX-License-Identifier: Apache-2.0
#include "guest/process/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kernel/caps.h"
#include "kernel/vclone.h"

enum { HIGH_FD = 256, SIDE_MAX = 8 }; /* above every number that a spawn uses */

struct child {
    const struct spawn *spawn;
    int result;
    enum failed_step step;
};

/* Closed rather than marked close-on-exec: chdir comes next, and /proc/self/fd/N must not lead to
 * a directory that holt-init has open (CVE-2024-21626). */
static int close_others(const struct spawn *spawn)
{
    unsigned first = (unsigned)spawn->side_first, count = (unsigned)spawn->side_count;

    if (count > 0 && syscall(SYS_close_range, 3, first - 1, 0) < 0)
        return -errno;
    return syscall(SYS_close_range, count > 0 ? first + count : 3, INT_MAX, 0) < 0 ? -errno : 0;
}

/* Duplicated to high numbers first, because sources and targets may overlap. */
static int dup_side_fds(const struct spawn *spawn)
{
    int high[SIDE_MAX];

    for (int i = 0; i < spawn->side_count && i < SIDE_MAX; i++) {
        high[i] = fcntl(spawn->side_fds[i], F_DUPFD_CLOEXEC, HIGH_FD);
        if (high[i] < 0)
            return -errno;
    }
    for (int i = 0; i < spawn->side_count && i < SIDE_MAX; i++)
        if (dup2(high[i], spawn->side_first + i) < 0)
            return -errno;
    return 0;
}

/* Installs 0, 1, 2 and the side descriptors of a shell, and closes all others. */
static int dup_fds(const struct spawn *spawn)
{
    int high[3], r;

    for (int i = 0; i < 3; i++) {
        high[i] = fcntl(spawn->fds[i], F_DUPFD_CLOEXEC, HIGH_FD);
        if (high[i] < 0)
            return -errno;
    }
    for (int i = 0; i < 3; i++)
        if (dup2(high[i], i) < 0)
            return -errno;
    r = dup_side_fds(spawn);
    return r < 0 ? r : close_others(spawn);
}

static int enter_directory(const char *path)
{
    char now[PATH_MAX];

    if (chdir(path) < 0 || syscall(SYS_getcwd, now, sizeof(now)) < 0)
        return -errno;
    /* getcwd starts with "(unreachable)" for a directory outside this root. */
    return now[0] == '/' ? 0 : -EACCES;
}

/* A daemon that was started with less cannot give more. */
static int set_limits(const struct message_spawn *message)
{
    for (size_t i = 0; i < message->rlimit_count; i++) {
        const struct message_rlimit *limit = &message->rlimits[i];
        struct rlimit value, most;

        if (getrlimit((int)limit->resource, &most) < 0)
            return -errno;
        value.rlim_max = limit->hard < most.rlim_max ? limit->hard : most.rlim_max;
        value.rlim_cur = limit->soft < value.rlim_max ? limit->soft : value.rlim_max;
        if (setrlimit((int)limit->resource, &value) < 0)
            return -errno;
    }
    return 0;
}

static int join_session(const struct spawn *spawn)
{
    static const uint64_t no_signals;

    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &no_signals, NULL, sizeof(no_signals));
    if (setsid() < 0)
        return -errno;
    if (spawn->terminal_fd >= 0 && ioctl(spawn->terminal_fd, TIOCSCTTY, 0) < 0)
        return -errno;
    /* The cgroup that this process started in becomes the root of its cgroup namespace. */
    if (spawn->cgroup_fd >= 0 && unshare(CLONE_NEWCGROUP) < 0)
        return -errno;
    (void)umask(022);
    return 0;
}

/* Raw system calls: libc's setuid would signal the threads of holt-init's address space. */
static int become_user(const struct spawn *spawn)
{
    const struct message_spawn *message = spawn->message;
    uint64_t keep = message->uid == 0 ? spawn->rules->capabilities : 0;

    if (syscall(SYS_setgroups, message->group_count, message->groups) < 0 ||
        syscall(SYS_setresgid, message->gid, message->gid, message->gid) < 0 ||
        syscall(SYS_setresuid, message->uid, message->uid, message->uid) < 0)
        return -errno;
    return caps_set(keep, keep, 0);
}

/* Comes before the user changes: without no_new_privs only CAP_SYS_ADMIN may install a filter. The
 * filter allows all later steps (user, capabilities, directory, exec). A setuid program then gains
 * the capabilities that the bounding set leaves to root in this user namespace, which every
 * process of user 0 has anyway, and it stays behind the same filter. */
static int apply_filter(const struct spawn_rules *rules)
{
    struct sock_fprog program = {
        .len = (unsigned short)(rules->filter_len / sizeof(struct sock_filter)),
        /* The kernel's struct lacks const. */
        .filter = (struct sock_filter *)(uintptr_t)rules->filter,
    };

    if (!rules->allows_setuid && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -errno;
    if (!rules->filter)
        return 0;
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0 ? -errno : 0;
}

static const char *search_path(const char *const *env)
{
    for (; *env; env++)
        if (strncmp(*env, "PATH=", 5) == 0)
            return *env + 5;
    return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
}

static int exec_file(const char *path, const struct message_spawn *message)
{
    (void)syscall(SYS_execve, path, message->args, message->env);
    return -errno;
}

/* Like execvpe but without allocation: a file that may not be executed is reported in preference
 * to a missing one. */
static int exec_program(const struct message_spawn *message)
{
    const char *name = message->args[0], *dir, *end;
    int result = -ENOENT;

    if (*name == '\0' || strchr(name, '/'))
        return exec_file(name, message);
    for (dir = search_path(message->env); *dir; dir = *end ? end + 1 : end) {
        char path[PATH_MAX];
        size_t len;
        int r;

        end = strchrnul(dir, ':');
        len = (size_t)(end - dir);
        if (len == 0 || len + 1 + strlen(name) >= sizeof(path))
            continue;
        memcpy(path, dir, len);
        path[len] = '/';
        memcpy(path + len + 1, name, strlen(name) + 1);
        r = exec_file(path, message);
        if (r != -ENOENT && r != -ENOTDIR)
            result = r;
    }
    return result;
}

static void child_main(void *argument)
{
    struct child *child = argument;
    const struct spawn *spawn = child->spawn;

    child->step = FAILED_SETUP;
    child->result = join_session(spawn);
    if (child->result == 0)
        child->result = dup_fds(spawn);
    if (child->result == 0)
        child->result = set_limits(spawn->message);
    if (child->result == 0)
        child->result = apply_filter(spawn->rules);
    if (child->result == 0)
        child->result = become_user(spawn);
    if (child->result < 0)
        return;

    child->step = FAILED_CWD;
    child->result = enter_directory(spawn->message->cwd);
    if (child->result < 0)
        return;

    child->step = FAILED_EXEC;
    child->result = exec_program(spawn->message);
}

pid_t spawn_start(const struct spawn *spawn, enum failed_step *ret_step)
{
    struct child child = { .spawn = spawn };
    struct clone_args args = {
        .flags = spawn->cgroup_fd >= 0 ? CLONE_INTO_CGROUP : 0,
        .exit_signal = SIGCHLD,
        .cgroup = spawn->cgroup_fd >= 0 ? (uint64_t)spawn->cgroup_fd : 0,
    };
    /* Processes of the sandbox can stop the child as soon as it exists. */
    pid_t pid = vclone_bounded(&args, child_main, &child);

    *ret_step = FAILED_SETUP;
    if (pid < 0)
        return pid;
    if (child.result < 0) {
        *ret_step = child.step;
        (void)waitpid(pid, NULL, __WALL);
        return child.result;
    }
    return pid;
}
