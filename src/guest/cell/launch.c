// SPDX-License-Identifier: Apache-2.0
/* Two processes start runsc. The first has a mount namespace of its own, in which a small tmpfs is
 * the root: with a /proc that hides nothing, and runsc's files. It exists as long as runsc does.
 * The second has a user namespace of its own, too, because the first lacks capabilities that runsc
 * needs, and a pid namespace, so that everything ends with runsc.
 *
 * The root of the container is one more tmpfs, /root, which is empty except for the directory
 * "tree". There the first process attaches the sandbox's tree when it is asked to, and the kernel
 * propagates that to runsc's file server, which has the tmpfs as a slave mount. So a container can
 * start before anybody knows the tree that it will be for. The inner holt-init then makes the
 * tree its root directory. */
#include "guest/cell/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "guest/cell/bundle.h"
#include "guest/guest.h"
#include "kernel/fds.h"
#include "kernel/mount.h"

#define SAFE (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

enum { STREAM_FD = 3, RUNSC_FD = 4, ATTACH_TIMEOUT_S = 10 };

/* What the first process works with. */
struct launch {
    const struct guest *guest;
    const char *platform;
    int runsc_fd, init_fd;
    int stream_fd;  /* of the inner holt-init */
    int control_fd; /* trees come from here */
};

static int tmpfs_new(const char *bytes)
{
    const struct mount_option options[] = { { "size", bytes }, { "mode", "755" } };

    return mount_new("tmpfs", options, ARRAY_SIZE(options), SAFE);
}

static int attach_at(int root_fd, const char *name, int mount_fd)
{
    cleanup_close int at = openat(root_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

    if (mount_fd < 0)
        return mount_fd;
    return at < 0 ? -errno : mount_attach(mount_fd, at);
}

/* runsc makes mount points for what its kernel provides. They must not get into the sandbox's
 * files, nor must runsc see what is there. */
static int tree_cover(int tree_fd)
{
    static const char *const names[] = { "proc", "sys", "dev" };
    int r = 0;

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(names); i++) {
        cleanup_close int fd = tmpfs_new("64k");

        r = attach_at(tree_fd, names[i], fd);
    }
    return r;
}

static int init_copy(int init_fd, int holder_fd)
{
    cleanup_close int fd =
        openat(holder_fd, "init/holt-init", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0555);
    struct stat info;

    if (fd < 0 || fstat(init_fd, &info) < 0)
        return -errno;
    for (off_t done = 0; done < info.st_size;) {
        ssize_t n = sendfile(fd, init_fd, &done, (size_t)(info.st_size - done));

        if (n <= 0)
            return n < 0 ? -errno : -EIO;
    }
    return 0;
}

/* Makes the root of the container. */
static int root_make(int holder_fd)
{
    cleanup_close int root_fd = tmpfs_new("64k");
    int r = attach_at(holder_fd, "root", root_fd);

    if (r == 0)
        r = mkdirat(root_fd, "tree", 0755) < 0 ? -errno : 0;
    return r == 0 ? mount_set_shared(root_fd) : r;
}

static int holder_fill(struct launch *launch, int holder_fd)
{
    char text[BUNDLE_TEXT_MAX];
    int r = root_make(holder_fd);

    if (r == 0)
        r = init_copy(launch->init_fd, holder_fd);
    if (r == 0)
        r = bundle_write(launch->guest->rules.capabilities, text, sizeof(text));
    return r == 0 ? file_create_at(holder_fd, "bundle/config.json", 0400, text) : r;
}

/* Makes the tmpfs the root of this mount namespace. The clone of /proc leaves out what holt-init
 * has laid over parts of it: the kernel refuses another /proc to who cannot see all of one. */
static int holder_enter(struct launch *launch)
{
    static const char *const names[] = { "proc", "dev", "tmp", "root", "init", "bundle", "state" };
    cleanup_close int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    cleanup_close int proc_fd = mount_clone(AT_FDCWD, "/proc", false);
    cleanup_close int dev_fd = mount_clone(AT_FDCWD, "/dev", true);
    cleanup_close int holder_fd = tmpfs_new("8m");
    int r = holder_fd < 0 ? holder_fd : mount_attach(holder_fd, root_fd);

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(names); i++)
        r = mkdirat(holder_fd, names[i], 0755) < 0 ? -errno : 0;
    if (r == 0)
        r = attach_at(holder_fd, "proc", proc_fd);
    if (r == 0)
        r = attach_at(holder_fd, "dev", dev_fd);
    if (r == 0)
        r = holder_fill(launch, holder_fd);
    return r == 0 ? mount_pivot(holder_fd) : r;
}

/* The descriptor becomes the standard input of the inner holt-init by way of runsc's. */
static int stdio_set(const struct launch *launch)
{
    cleanup_close int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (null_fd < 0 || dup2(launch->stream_fd, STDIN_FILENO) < 0 ||
        dup2(null_fd, STDOUT_FILENO) < 0 || dup2(null_fd, STDERR_FILENO) < 0 ||
        dup3(launch->runsc_fd, RUNSC_FD, O_CLOEXEC) < 0 ||
        syscall(SYS_close_range, RUNSC_FD + 1, ~0U, 0) < 0)
        return -errno;
    return close(STREAM_FD) < 0 ? -errno : 0;
}

/* In the user namespace of runsc, once its ids are mapped. */
static int runsc_exec(const struct launch *launch)
{
    static const uint64_t no_signals;
    static const char *const environment[] = { "PATH=/", NULL };
    char platform[64];
    const char *const args[] = { "runsc",
                                 "--root=/state",
                                 platform,
                                 "--network=host",
                                 "--ignore-cgroups",
                                 "--file-access=shared",
                                 "run",
                                 "--bundle=/bundle",
                                 "cell",
                                 NULL };
    cleanup_close int proc_fd = -EBADF, at = -EBADF;
    int r;

    (void)snprintf(platform, sizeof(platform), "--platform=%.40s", launch->platform);
    if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0 ||
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        return -errno;
    proc_fd = mount_new("proc", NULL, 0, SAFE | MOUNT_ATTR_NOEXEC);
    at = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    r = proc_fd < 0 ? proc_fd : mount_attach(proc_fd, at);
    if (r == 0)
        r = stdio_set(launch);
    if (r < 0)
        return r;
    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &no_signals, NULL, sizeof(no_signals));
    (void)syscall(SYS_execveat, RUNSC_FD, "", args, environment, AT_EMPTY_PATH);
    return -errno;
}

static int maps_write(pid_t pid)
{
    static const char *const files[] = { "uid_map", "gid_map" };
    char path[48];
    int r = 0;

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(files); i++) {
        (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, files[i]);
        r = file_write_at(AT_FDCWD, path, "0 0 65536");
    }
    return r;
}

static _Noreturn void runsc_main(const struct launch *launch, int go_fd)
{
    char go;

    /* Only then may the first process write the maps. */
    (void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    if (write(go_fd, "r", 1) != 1 || read(go_fd, &go, 1) != 1)
        _exit(1);
    (void)runsc_exec(launch);
    _exit(127);
}

/* Attaches a tree that was sent, and answers with the result. */
static void tree_receive(int control_fd)
{
    cleanup_close int at = open("/root/tree", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    cleanup_close int tree_fd = -EBADF;
    int fds[FDS_MAX], result;
    size_t count = 0;
    char byte;
    ssize_t n = fds_receive(control_fd, &byte, 1, 0, fds, &count);

    if (count > 0)
        tree_fd = fds[0];
    result = n != 1 || count != 1 ? -EPROTO : at < 0 ? -EIO : mount_attach(tree_fd, at);
    if (result == 0)
        result = tree_cover(tree_fd);
    (void)!write(control_fd, &result, sizeof(result));
}

/* Serves trees until runsc ends. */
static void runsc_wait(int pidfd, int control_fd)
{
    struct pollfd polled[] = { { .fd = pidfd, .events = POLLIN },
                               { .fd = control_fd, .events = POLLIN } };

    while (polled[0].revents == 0) {
        if (poll(polled, ARRAY_SIZE(polled), -1) < 0 && errno != EINTR)
            return;
        if (polled[1].revents & POLLIN)
            tree_receive(control_fd);
        else if (polled[1].revents)
            polled[1].fd = -1;
    }
}

/* The first process. Its end is the end of runsc. */
static int launch_run(struct launch *launch)
{
    int go[2], pidfd = -EBADF, r = holder_enter(launch);
    struct clone_args args = { .flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC |
                                        CLONE_PIDFD,
                               .pidfd = (uint64_t)(uintptr_t)&pidfd,
                               .exit_signal = SIGCHLD };
    char ready;
    long pid;

    if (r < 0)
        return r;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, go) < 0)
        return -errno;
    pid = syscall(SYS_clone3, &args, sizeof(args));
    if (pid == 0)
        runsc_main(launch, go[1]);
    if (pid < 0)
        return -errno;
    (void)close(launch->stream_fd);
    if (read(go[0], &ready, 1) != 1)
        r = -EPIPE;
    if (r == 0)
        r = maps_write((pid_t)pid);
    if (r == 0 && write(go[0], "g", 1) != 1)
        r = -EPIPE;
    if (r < 0)
        (void)kill((pid_t)pid, SIGKILL);
    runsc_wait(pidfd, launch->control_fd);
    (void)waitpid((pid_t)pid, NULL, __WALL);
    return r;
}

static _Noreturn void launch_main(struct launch *launch)
{
    (void)prctl(PR_SET_NAME, "holt-cell", 0, 0, 0);
    /* The listener, terminals and output of other processes are none of runsc's business. */
    if (dup2(launch->stream_fd, STREAM_FD) < 0)
        _exit(1);
    launch->stream_fd = STREAM_FD;
    _exit(launch_run(launch) < 0 ? 1 : 0);
}

static int pair_make(int *ret_ours, int *ret_theirs)
{
    int sockets[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) < 0)
        return -errno;
    *ret_ours = sockets[0];
    *ret_theirs = sockets[1];
    return 0;
}

int cell_launch(const struct guest *guest, const char *platform, const int *fds,
                struct launched *ret)
{
    struct launch launch = {
        .guest = guest, .platform = platform, .runsc_fd = fds[1], .init_fd = fds[2]
    };
    struct clone_args args = { .flags = CLONE_NEWNS | CLONE_INTO_CGROUP,
                               .exit_signal = SIGCHLD,
                               .cgroup = (uint64_t)fds[0] };
    cleanup_close int stream_fd = -EBADF, stream_theirs = -EBADF;
    cleanup_close int control_fd = -EBADF, control_theirs = -EBADF;
    int r = pair_make(&stream_fd, &stream_theirs);
    long pid;

    if (r == 0)
        r = pair_make(&control_fd, &control_theirs);
    if (r < 0)
        return r;
    launch.stream_fd = stream_theirs;
    launch.control_fd = control_theirs;
    pid = syscall(SYS_clone3, &args, sizeof(args));
    if (pid == 0)
        launch_main(&launch);
    if (pid < 0)
        return -errno;
    *ret = (struct launched){ (pid_t)pid, TAKE_FD(stream_fd), TAKE_FD(control_fd) };
    return 0;
}

int cell_attach_root(int control_fd)
{
    cleanup_close int tree_fd = mount_clone(AT_FDCWD, "/", true);
    const struct timeval timeout = { .tv_sec = ATTACH_TIMEOUT_S };
    ssize_t n;
    int result = 0;

    if (tree_fd < 0)
        return tree_fd;
    (void)setsockopt(control_fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    n = fds_send(control_fd, "t", 1, 0, &tree_fd, 1);
    if (n != 1)
        return n < 0 ? (int)n : -EIO;
    n = recv(control_fd, &result, sizeof(result), MSG_WAITALL);
    if (n < 0)
        return -errno;
    return n == sizeof(result) ? result : -EIO;
}
