// SPDX-License-Identifier: Apache-2.0
#include "cli/run/signals.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/cleanup.h"

/* A blocked signal is queued even if it is ignored; under nohup, or in the background of a script,
 * it must stay ignored. */
static bool is_ignored(int number)
{
    struct sigaction action;

    return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

int run_signals_open(bool has_tty)
{
    static const int forwarded[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 };
    sigset_t taken, blocked;

    (void)sigemptyset(&taken);
    for (size_t i = 0; i < ARRAY_SIZE(forwarded); i++)
        if (!is_ignored(forwarded[i]))
            (void)sigaddset(&taken, forwarded[i]);
    if (has_tty)
        (void)sigaddset(&taken, SIGWINCH);
    blocked = taken;
    /* A write to a closed pipe then fails with EPIPE, and the terminal can still be restored. */
    (void)sigaddset(&blocked, SIGPIPE);
    if (sigprocmask(SIG_BLOCK, &blocked, NULL) < 0)
        return -errno;
    int fd = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);

    return fd < 0 ? -errno : fd;
}

int run_signals_next(int fd, struct run_signal *ret)
{
    struct signalfd_siginfo info;

    if (read(fd, &info, sizeof(info)) != sizeof(info))
        return 0;
    *ret = (struct run_signal){
        .number = (int)info.ssi_signo,
        .is_from_kernel = info.ssi_code == SI_KERNEL,
    };
    return 1;
}
