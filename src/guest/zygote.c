// SPDX-License-Identifier: Apache-2.0
#include "guest/zygote.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <linux/securebits.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "guest/zygote_root.h"
#include "kernel/clone.h"
#include "kernel/fds.h"
#include "wire/zygote.h"

/* Points args into the packet. Returns false if the packet is malformed. */
static bool parse_args(char *packet, size_t len, char **args)
{
    const struct zygote_request *request = (const struct zygote_request *)(void *)packet;
    char *next = packet + sizeof(*request), *end = packet + len;

    if (len <= sizeof(*request) || end[-1] != '\0' || request->arg_count >= ZYGOTE_ARGS_MAX)
        return false;
    for (uint32_t i = 0; i < request->arg_count; i++) {
        if (next >= end)
            return false;
        args[i] = next;
        next += strlen(next) + 1;
    }
    args[request->arg_count] = NULL;
    return true;
}

/* Forks this small process into the new namespaces. Returns 0 in the child. */
static int fork_init(const struct zygote_request *request, const int fds[2], int *ret_pidfd)
{
    struct clone_args args = {
        .flags = request->namespaces | CLONE_PARENT | CLONE_PIDFD | CLONE_INTO_CGROUP,
        .pidfd = (uint64_t)(uintptr_t)ret_pidfd,
        .cgroup = (uint64_t)fds[0],
    };
    long pid = syscall(SYS_clone3, &args, sizeof(args));

    return pid < 0 ? -errno : (int)pid;
}

static int run_program(const struct zygote_request *request, char *const *args, const int fds[2],
                       int program_fd, int *ret_pidfd)
{
    static char *const no_environment[] = { NULL };
    const int child_fds[] = { fds[1], program_fd };
    const struct clone_exec spec = {
        .namespaces = request->namespaces,
        .cgroup_fd = fds[0],
        .program_fd = program_fd,
        .args = args,
        .env = no_environment,
        .fds = child_fds,
        .fd_count = ARRAY_SIZE(child_fds),
        .is_sibling = true,
    };
    pid_t pid;
    int r = clone_exec(&spec, &pid, ret_pidfd);

    return r < 0 ? r : (int)pid;
}

/* The kernel charges the resources of a user namespace (inotify instances, queued signals, message
 * queues, ...) to the user that created it. If that were root, one sandbox could exhaust the quota
 * of root and of all other sandboxes. So the creator is the uid of the sandbox's own root. */
static int set_namespace_owner(uid_t uid)
{
    return syscall(SYS_setresuid, -1, uid, -1) < 0 ? -errno : 0;
}

static int start_with_owner(const struct zygote_request *request, char *const *args,
                            const int fds[2], int program_fd, int *ret_pidfd)
{
    int result = set_namespace_owner(request->owner);

    if (result < 0)
        return result;
    result = request->arg_count == 0 ? fork_init(request, fds, ret_pidfd)
                                     : run_program(request, args, fds, program_fd, ret_pidfd);
    if (result != 0 && set_namespace_owner(0) < 0)
        _exit(1);
    return result;
}

static int zygote_start(char *packet, size_t len, const int fds[2], int program_fd, int *ret_pidfd)
{
    const struct zygote_request *request = (const struct zygote_request *)(void *)packet;
    char *args[ZYGOTE_ARGS_MAX] = { NULL };

    if (len < sizeof(*request))
        return -EPROTO;
    if (request->arg_count > 0 && !parse_args(packet, len, args))
        return -EPROTO;
    return start_with_owner(request, args, fds, program_fd, ret_pidfd);
}

/* In the child: keeps only the stream open, at the number of the control socket. */
static bool become_init(int control_fd, int stream_fd)
{
    (void)setsid();
    return dup3(stream_fd, control_fd, 0) >= 0 &&
           syscall(SYS_close_range, control_fd + 1, ~0U, 0) == 0;
}

/* Children must not reach the daemon's stdin and stdout. They may write to its log (stderr). */
static int drop_stdio(void)
{
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC), r = 0;

    if (fd < 0 || dup2(fd, STDIN_FILENO) < 0 || dup2(fd, STDOUT_FILENO) < 0)
        r = -errno;
    cleanup_close_fd(&fd);
    return r;
}

/* The daemon may be protected from the OOM killer; a sandbox must not be. */
static void drop_oom_protection(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    if (fd >= 0)
        (void)!write(fd, "0", 1);
    cleanup_close_fd(&fd);
}

static int zygote_prepare(void)
{
    struct err err = { 0 };
    int r = drop_stdio();

    drop_oom_protection();

    /* Capabilities must survive the change of uid. */
    if (r == 0 && prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0) < 0)
        r = -errno;
    return r == 0 ? zygote_root_enter(&err) : r;
}

bool zygote_serve(int control_fd, int program_fd)
{
    _Alignas(struct zygote_request) char packet[ZYGOTE_PACKET_MAX];
    int ready = zygote_prepare();

    (void)prctl(PR_SET_NAME, "holt-seat", 0, 0, 0);
    for (;;) {
        cleanup_close int pidfd = -EBADF;
        int fds[FDS_MAX] = { -1, -1 }, result = ready;
        size_t fd_count;
        ssize_t n = fds_receive(control_fd, packet, sizeof(packet), 0, fds, &fd_count);

        if (n <= 0)
            return false;
        if (ready == 0 && fd_count == 2)
            result = zygote_start(packet, (size_t)n, fds, program_fd, &pidfd);
        if (ready == 0 && result == 0)
            return become_init(control_fd, fds[1]);
        cleanup_close_fd(&fds[0]);
        cleanup_close_fd(&fds[1]);
        if (fds_send(control_fd, &result, sizeof(result), 0, &pidfd, result > 0 ? 1 : 0) < 0)
            return false;
    }
}
