// SPDX-License-Identifier: Apache-2.0
/* usage: hoard inotify|signals|queues|timers|terminals [LIMIT]
 * Takes one kind of kernel object until there are no more (or LIMIT), prints how many it got, and
 * holds them until its standard input ends. */
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int take_inotify(long n)
{
    (void)n;
    return inotify_init1(0);
}

static int take_signal(long n)
{
    (void)n;
    return sigqueue(getpid(), SIGRTMIN + 1, (union sigval){ 0 });
}

static int take_queue(long n)
{
    struct mq_attr attributes = { .mq_maxmsg = 10, .mq_msgsize = 8192 };
    char name[48];
    int fd;

    (void)snprintf(name, sizeof(name), "holt-%d-%ld", (int)getpid(), n);
    fd = (int)syscall(SYS_mq_open, name, O_CREAT | O_RDWR, 0600, &attributes);
    (void)syscall(SYS_mq_unlink, name);
    return fd;
}

static int take_timer(long n)
{
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
    int timer;

    (void)n;
    return (int)syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &timer);
}

static int take_terminal(long n)
{
    (void)n;
    return open("/dev/ptmx", O_RDWR | O_NOCTTY);
}

static const struct {
    const char *name;
    int (*take)(long n);
} kinds[] = {
    { "inotify", take_inotify }, { "signals", take_signal },     { "queues", take_queue },
    { "timers", take_timer },    { "terminals", take_terminal },
};

int main(int argc, char **argv)
{
    long n = 0, limit = argc > 2 ? strtol(argv[2], NULL, 10) : 1000000;
    struct rlimit files;
    sigset_t all;
    char byte;

    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
    (void)getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (argc > 1 && strcmp(kinds[i].name, argv[1]) == 0)
            while (n < limit && kinds[i].take(n) >= 0)
                n++;
    (void)printf("%ld\n", n);
    (void)fflush(stdout);
    while (read(0, &byte, 1) > 0)
        continue;
    return 0;
}
