/* A host, a sandbox with a server inside, and clients: what the tests of ports share. */
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/io.h"
#include "host/core/reactor.h"
#include "host/machine/machine_internal.h"
#include "host/port/port.h"
#include "host/sandbox/sandbox_internal.h"
#include "kernel/host/host_world.h"

enum { SERVER_PORT = 7000, IPV6_PORT = 7001, NOBODY_PORT = 7002, LATER_PORT = 7003 };

static struct err err;

/* Before the template that is to have it is imported. */
static inline void world_add_server(void)
{
    char command[512];
    int status;
    pid_t pid;

    (void)snprintf(command, sizeof(command),
                   "mkdir -p %s/root/bin && musl-gcc -D_GNU_SOURCE -O2 -static -o "
                   "%s/root/bin/server %.*s/port_server.c",
                   world.dir, world.dir, (int)(strrchr(__FILE__, '/') - __FILE__), __FILE__);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        (void)execl("/bin/sh", "sh", "-c", command, NULL);
        _exit(127);
    }
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static inline struct port_patience patience(uint64_t ms)
{
    return (struct port_patience){ .deadline_ms = clock_ms() + ms, .cancel_fd = -1 };
}

static inline int probe(struct sandbox *sandbox, uint16_t port, const char *path)
{
    const struct port_patience wait = patience(PATIENCE_MS);

    return sandbox_probe(sandbox, port, path, &wait, &err);
}

static inline void serve_on(struct sandbox *sandbox, const char *address, uint16_t port)
{
    char command[160];

    (void)snprintf(command, sizeof(command),
                   "/bin/server %s %u >/dev/null 2>&1 </dev/null & echo $! >/tmp/server-%u",
                   address, port, port);
    CHECK(world_sh(sandbox, command, NULL) == 0);
    EVENTUALLY(probe(sandbox, port, NULL) == 0);
}

static inline struct port_forward *forward(struct sandbox *sandbox, uint16_t port)
{
    struct port_forward *made = NULL;

    CHECK_OK(sandbox_forward(sandbox, port, NULL, &made, &err), &err);
    return made;
}

/* --- clients --------------------------------------------------------------------------------- */

/* Returns whether a process listens there. */
static inline bool connects(uint16_t port, int *ret_fd)
{
    const struct sockaddr_in address = { .sin_family = AF_INET,
                                         .sin_port = htons(port),
                                         .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK(fd >= 0);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0) {
        *ret_fd = fd;
        return true;
    }
    (void)close(fd);
    return false;
}

static inline int client_of(const struct port_forward *forwarded)
{
    int fd = -1;

    CHECK(connects(port_forward_port(forwarded), &fd), "(%s)", strerror(errno));
    return fd;
}

static inline void put(int fd, const void *data, size_t len)
{
    size_t done = 0;

    while (done < len) {
        ssize_t n = send(fd, (const char *)data + done, len - done, MSG_NOSIGNAL);

        CHECK(n > 0, "(%s)", strerror(errno));
        done += (size_t)n;
    }
}

/* Exactly these bytes. */
static inline void want(int fd, void *data, size_t len)
{
    ssize_t n = read_full(fd, data, len);

    CHECK(n == (ssize_t)len, "(%zd of %zu: %s)", n, len, n < 0 ? strerror((int)-n) : "end");
}

static inline void want_text(int fd, const char *wanted)
{
    char text[64] = "";

    want(fd, text, strlen(wanted));
    CHECK_TEXT(text, wanted);
}

/* An orderly end, and nothing before it. */
static inline void want_end(int fd)
{
    char byte;
    ssize_t n = recv(fd, &byte, 1, 0);

    CHECK(n == 0, "(%zd: %s)", n, n < 0 ? strerror(errno) : "a byte");
    (void)close(fd);
}

static inline void want_reset(int fd)
{
    char byte;
    ssize_t n = recv(fd, &byte, 1, 0);

    CHECK(n < 0 && errno == ECONNRESET, "(%zd: %s)", n, n < 0 ? strerror(errno) : "no error");
    (void)close(fd);
}

static inline void check_echo(const struct port_forward *forwarded)
{
    int fd = client_of(forwarded);

    put(fd, "e", 1);
    put(fd, "ping", 4);
    want_text(fd, "ping");
    (void)shutdown(fd, SHUT_WR);
    want_end(fd);
}

/* The number behind this word in a file like /proc/PID/status. */
static inline long number_in(const char *path, const char *word)
{
    char line[256];
    long number = -1;
    FILE *file = fopen(path, "re");

    CHECK(file, "(%s: %s)", path, strerror(errno));
    while (fgets(line, sizeof(line), file))
        if (strncmp(line, word, strlen(word)) == 0)
            number = strtol(line + strlen(word), NULL, 10);
    (void)fclose(file);
    return number;
}

static inline long rss_kib_of(long pid)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%ld/status", pid);
    return number_in(path, "VmRSS:");
}

static inline long init_pid_of(const struct sandbox *sandbox)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", sandbox->machine->guest.pidfd);
    return number_in(path, "Pid:");
}
