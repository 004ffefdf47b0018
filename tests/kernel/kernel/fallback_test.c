// SPDX-License-Identifier: Apache-2.0
/* What holt-init does where the kernel is gVisor: a filter answers as that does. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kernel/harness.h"
#include "kernel/pty.h"
#include "kernel/vclone.h"

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

/* Answers ENOSYS to clone3, and ENOTTY to the ioctl that opens the other end of a terminal. */
static void become_gvisor(void)
{
    static struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TIOCGPTPEER, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOTTY),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = { .len = ARRAY_SIZE(code), .filter = code };

    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0);
}

struct shared {
    volatile int value;
    const char *program;
};

static void child_main(void *argument)
{
    static const char *const environment[] = { NULL };
    struct shared *shared = argument;
    const char *const args[] = { shared->program, NULL };

    shared->value = 7;
    (void)syscall(SYS_execve, shared->program, args, environment);
    shared->value = -errno;
}

static int status_of(const char *program, int *ret_value)
{
    struct shared shared = { .program = program };
    struct clone_args args = { .exit_signal = SIGCHLD };
    pid_t pid = vclone_bounded(&args, child_main, &shared);
    int status = -1;

    CHECK(pid > 0, "%s", strerror(-pid));
    CHECK(waitpid(pid, &status, 0) == pid);
    *ret_value = shared.value;
    return status;
}

static void a_program_is_executed_without_clone3(void)
{
    int value, status;

    become_gvisor();
    status = status_of("/bin/true", &value);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0 && value == 7);
}

static void a_failure_to_execute_is_known_without_clone3(void)
{
    int value;

    become_gvisor();
    (void)status_of("/no/such/program", &value);
    CHECK(value == -ENOENT);
}

static void a_child_is_not_started_outside_of_its_cgroup(void)
{
    struct shared shared = { .program = "/bin/true" };
    struct clone_args args = { .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD };

    become_gvisor();
    CHECK(vclone_bounded(&args, child_main, &shared) == -ENOSYS);
    CHECK(shared.value == 0);
}

static void a_terminal_is_opened_by_its_name(void)
{
    cleanup_close int devpts_fd = open("/dev/pts", O_PATH | O_DIRECTORY | O_CLOEXEC);
    cleanup_close int master_fd = -EBADF, slave_fd = -EBADF;
    char text[8] = "";

    become_gvisor();
    CHECK(pty_open(devpts_fd, &master_fd, &slave_fd) == 0);
    CHECK(isatty(slave_fd));
    CHECK(write(slave_fd, "text", 4) == 4);
    CHECK(read(master_fd, text, sizeof(text) - 1) == 4 && strcmp(text, "text") == 0);
}

int main(void)
{
    RUN(a_program_is_executed_without_clone3);
    RUN(a_failure_to_execute_is_known_without_clone3);
    RUN(a_child_is_not_started_outside_of_its_cgroup);
    RUN(a_terminal_is_opened_by_its_name);
    return 0;
}
