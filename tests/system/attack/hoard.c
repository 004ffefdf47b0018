// SPDX-License-Identifier: Apache-2.0
/* usage: hoard KIND [LIMIT], with a KIND of the table below
 * Takes one kind of kernel object until there are no more (or LIMIT), prints how many it got, and
 * holds them until its standard input ends. */
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
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

static int take_pipe(long n)
{
    static const char data[1 << 16];
    int fds[2], r = pipe2(fds, O_NONBLOCK);

    (void)n;
    return r < 0 || write(fds[1], data, sizeof(data)) <= 0 ? -1 : 0;
}

/* A descriptor that is only in the queue of a socket. */
static int take_flight(long n)
{
    static int fds[2] = { -1, -1 };
    char control[CMSG_SPACE(sizeof(int))] = { 0 }, byte = 0;
    struct iovec data = { &byte, 1 };
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)
    };
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);

    if (n % 100 == 0 && socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, fds) < 0)
        return -1;
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &fds[1], sizeof(int));
    if (sendmsg(fds[0], &message, 0) > 0)
        return 0;
    return errno == EAGAIN && socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, fds) == 0 ? 0 : -1;
}

static int take_segment(long n)
{
    int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);

    if (id >= 0 && n < 5)
        (void)shmctl(id, IPC_RMID, NULL); /* so that the host keeps none */
    return id;
}

static int take_semaphore(long n)
{
    int id = semget(IPC_PRIVATE, 1, IPC_CREAT | 0600);

    if (id >= 0 && n < 5)
        (void)semctl(id, 0, IPC_RMID);
    return id;
}

static int take_message_queue(long n)
{
    int id = msgget(IPC_PRIVATE, IPC_CREAT | 0600);

    if (id >= 0 && n < 5)
        (void)msgctl(id, IPC_RMID, NULL);
    return id;
}

static int take_watch(long n)
{
    static int epoll_fd = -1, pipe_fds[2];
    struct epoll_event event = { .events = EPOLLIN };

    if (epoll_fd < 0 && ((epoll_fd = epoll_create1(0)) < 0 || pipe(pipe_fds) < 0))
        return -1;
    (void)n;
    return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, dup(pipe_fds[0]), &event);
}

static const struct {
    const char *name;
    int (*take)(long n);
} kinds[] = {
    { "pipes", take_pipe },
    { "flight", take_flight },
    { "segments", take_segment },
    { "semaphores", take_semaphore },
    { "messages", take_message_queue },
    { "watches", take_watch },
    { "inotify", take_inotify },
    { "signals", take_signal },
    { "queues", take_queue },
    { "timers", take_timer },
    { "terminals", take_terminal },
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
