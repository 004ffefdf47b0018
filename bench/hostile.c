// SPDX-License-Identifier: Apache-2.0
/* Uses up one thing as fast as it can, from several processes, until it is killed. Runs inside a
 * sandbox beside which others are measured (bench/fairness).
 *
 * usage: hostile WHAT
 *
 * What is refused does not stop it: refusals are part of the load. */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    PROCESSES = 8,
    SOCKETS = 900, /* below the soft limit of descriptors */
    FILES = 2000,
    TREE_FILES = 20000,
    BLOCK = 64 * 1024,
};

static char block[BLOCK];

static void file_write(const char *path, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    if (fd < 0)
        return;
    if (write(fd, block, len) < 0)
        usleep(1000);
    (void)close(fd);
}

/* Sockets of three kinds, with something in the queue of each. */
static void sockets_hold(void)
{
    static const int domains[] = { AF_INET, AF_INET6, AF_UNIX };
    int fds[SOCKETS];

    for (int i = 0; i < SOCKETS; i++) {
        struct sockaddr_in6 address = { .sin6_family = AF_INET6,
                                        .sin6_addr = IN6ADDR_LOOPBACK_INIT };

        fds[i] = socket(domains[i % 3], SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (domains[i % 3] == AF_INET6 && bind(fds[i], (void *)&address, sizeof(address)) == 0) {
            socklen_t len = sizeof(address);

            (void)getsockname(fds[i], (void *)&address, &len);
            for (int n = 0; n < 16; n++)
                (void)sendto(fds[i], block, 1024, 0, (void *)&address, len);
        }
    }
    for (int i = 0; i < SOCKETS; i++)
        (void)close(fds[i]);
}

static void files_make(void)
{
    char path[64];

    for (int i = 0; i < FILES; i++) {
        (void)snprintf(path, sizeof(path), "f-%d-%d", (int)getpid(), i);
        file_write(path, 100);
    }
    for (int i = 0; i < FILES; i++) {
        (void)snprintf(path, sizeof(path), "f-%d-%d", (int)getpid(), i);
        (void)unlink(path);
    }
}

static void forks_make(void)
{
    for (int i = 0; i < 32; i++) {
        pid_t pid = fork();

        if (pid == 0)
            _exit(0);
        if (pid < 0)
            break;
    }
    while (waitpid(-1, NULL, 0) > 0)
        continue;
}

static void output_write(void)
{
    memset(block, 'x', sizeof(block));
    if (write(STDOUT_FILENO, block, sizeof(block)) < 0)
        usleep(1000);
}

static void renames_make(void)
{
    char one[64], other[64];

    (void)snprintf(one, sizeof(one), "r-%d-a", (int)getpid());
    (void)snprintf(other, sizeof(other), "r-%d-b", (int)getpid());
    file_write(one, 10);
    for (int i = 0; i < 1000; i++) {
        (void)rename(one, other);
        (void)rename(other, one);
    }
}

static void fsyncs_make(void)
{
    char path[64];
    int fd;

    (void)snprintf(path, sizeof(path), "s-%d", (int)getpid());
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        return;
    if (pwrite(fd, block, sizeof(block), (off_t)(rand() % 64) * BLOCK) > 0)
        (void)fsync(fd);
    (void)close(fd);
}

static void connections_make(void)
{
    static int listener = -1;
    static struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t len = sizeof(address);

    if (listener < 0) {
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (bind(listener, (void *)&address, len) < 0 || listen(listener, 512) < 0)
            err(1, "listen");
        (void)getsockname(listener, (void *)&address, &len);
    }
    for (int i = 0; i < 100; i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), peer;

        if (connect(fd, (void *)&address, sizeof(address)) == 0) {
            peer = accept(listener, NULL, NULL);
            (void)close(peer);
        }
        (void)close(fd);
    }
}

static void aio_make(void)
{
    aio_context_t contexts[64] = { 0 };

    for (int i = 0; i < 64; i++)
        (void)syscall(SYS_io_setup, 1024, &contexts[i]);
    for (int i = 0; i < 64; i++)
        (void)syscall(SYS_io_destroy, contexts[i]);
}

static void filters_make(void)
{
    struct sock_filter code[512];
    struct sock_fprog program = { .len = 512, .filter = code };
    int fds[256];

    for (int i = 0; i < 512; i++)
        code[i] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0xffff);
    for (int i = 0; i < 256; i++) {
        fds[i] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        (void)setsockopt(fds[i], SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
    }
    for (int i = 0; i < 256; i++)
        (void)close(fds[i]);
}

/* Once: a tree that somebody has to delete. */
static void tree_make(void)
{
    char path[96];

    for (int i = 0; i < TREE_FILES / PROCESSES; i++) {
        if (i % 100 == 0) {
            (void)snprintf(path, sizeof(path), "t-%d-%d", (int)getpid(), i / 100);
            (void)mkdir(path, 0755);
        }
        (void)snprintf(path, sizeof(path), "t-%d-%d/%d", (int)getpid(), i / 100, i);
        file_write(path, 10);
    }
    _exit(0);
}

static const struct {
    const char *name;
    void (*once)(void);
} attacks[] = {
    { "sockets", sockets_hold },
    { "files", files_make },
    { "forks", forks_make },
    { "output", output_write },
    { "renames", renames_make },
    { "fsync", fsyncs_make },
    { "connections", connections_make },
    { "aio", aio_make },
    { "filters", filters_make },
    { "tree", tree_make },
};

int main(int argc, char **argv)
{
    void (*once)(void) = NULL;

    for (size_t i = 0; argc == 2 && i < sizeof(attacks) / sizeof(attacks[0]); i++)
        if (strcmp(attacks[i].name, argv[1]) == 0)
            once = attacks[i].once;
    if (!once)
        errx(2, "usage: hostile sockets|files|forks|output|renames|fsync|connections|aio|filters|"
                "tree");
    for (int i = 0; i < PROCESSES; i++)
        if (fork() == 0)
            for (;;)
                once();
    while (wait(NULL) > 0 || errno == EINTR)
        continue;
    return 0;
}
