// SPDX-License-Identifier: Apache-2.0
/* usage: filtered COMMAND...
 * Runs a command below a seccomp filter that notifies, as a container can: no process below it can
 * have another one. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog program = { .len = 1, .filter = &allow };
    int status = 0;
    pid_t pid;

    /* The listener stays open, in this process alone. */
    if (argc < 2 || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
                            &program) < 0) {
        perror("seccomp");
        return 2;
    }
    pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
        (void)execvp(argv[1], argv + 1);
        _exit(127);
    }
    (void)waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
