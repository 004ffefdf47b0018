// SPDX-License-Identifier: Apache-2.0
/* What listens inside the sandboxes of port_test: `server ADDRESS PORT`. The first byte of a
 * connection says what it is to do:
 *
 *   e  send everything back, and end when the client has ended
 *   s  read to the end, then tell how many bytes there were (8 bytes) and what they summed up to
 *   h  say "hello" and end that direction, then read to the end and note the count in /tmp/heard
 *   r  say "x", then break the connection
 *   d  send as many bytes as the next 8 bytes say, in blocks of 64 KiB that begin with their offset
 *   q  read nothing more, for ever
 *   G  be a poor HTTP server */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static char data[64 * 1024];

static int put(int fd, const void *from, size_t len)
{
    const char *next = from;

    while (len > 0) {
        ssize_t n = write(fd, next, len);

        if (n <= 0)
            return -1;
        next += n;
        len -= (size_t)n;
    }
    return 0;
}

static uint64_t drain(int fd, uint64_t *ret_sum)
{
    uint64_t count = 0;
    ssize_t n;

    *ret_sum = 0;
    while ((n = read(fd, data, sizeof(data))) > 0) {
        for (ssize_t i = 0; i < n; i++)
            *ret_sum = *ret_sum * 31 + (unsigned char)data[i];
        count += (uint64_t)n;
    }
    return count;
}

static void echo(int fd)
{
    ssize_t n;

    while ((n = read(fd, data, sizeof(data))) > 0)
        if (put(fd, data, (size_t)n) < 0)
            return;
}

static void sink(int fd)
{
    uint64_t answer[2];

    answer[0] = drain(fd, &answer[1]);
    (void)put(fd, answer, sizeof(answer));
}

static void half(int fd)
{
    uint64_t count, sum;
    FILE *file;

    (void)put(fd, "hello", 5);
    (void)shutdown(fd, SHUT_WR);
    count = drain(fd, &sum);
    file = fopen("/tmp/heard", "w");
    if (file)
        (void)fprintf(file, "%llu\n", (unsigned long long)count);
    if (file)
        (void)fclose(file);
}

static void reset(int fd)
{
    const struct linger at_once = { .l_onoff = 1 };

    (void)put(fd, "x", 1);
    (void)usleep(20000);
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

static void download(int fd)
{
    uint64_t size = 0, done = 0;

    if (read(fd, &size, sizeof(size)) != sizeof(size))
        return;
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (char)(i * 31 / 7);
    while (done < size) {
        size_t len = size - done < sizeof(data) ? (size_t)(size - done) : sizeof(data);

        memcpy(data, &done, sizeof(done));
        if (put(fd, data, len) < 0)
            return;
        done += len;
    }
}

static void http(int fd)
{
    ssize_t n = read(fd, data, sizeof(data) - 1);

    data[n > 0 ? n : 0] = '\0';
    if (strstr(data, "\r\nHost: localhost:") == NULL)
        (void)put(fd, "HTTP/1.1 400 Bad\r\n\r\n", 20);
    else if (strncmp(data, "ET /ok ", 7) == 0)
        (void)put(fd, "HTTP/1.1 204 No\r\n\r\n", 19);
    else if (strncmp(data, "ET /moved ", 10) == 0)
        (void)put(fd, "HTTP/1.0 302 There\r\n\r\n", 22);
    else if (strncmp(data, "ET /junk ", 9) == 0)
        (void)put(fd, "220 smtp\r\n", 10);
    else if (strncmp(data, "ET /slow ", 9) == 0)
        (void)pause();
    else
        (void)put(fd, "HTTP/1.1 500 Bad\r\n\r\n", 20);
}

static void serve(int fd)
{
    char what = 0;

    if (read(fd, &what, 1) != 1)
        return;
    switch (what) {
    case 'e':
        echo(fd);
        break;
    case 's':
        sink(fd);
        break;
    case 'h':
        half(fd);
        break;
    case 'r':
        reset(fd);
        break;
    case 'd':
        download(fd);
        break;
    case 'q':
        (void)pause();
        break;
    case 'G':
        http(fd);
        break;
    default:
        break;
    }
}

static int open_listener(const char *address, uint16_t port)
{
    struct sockaddr_in ipv4 = { .sin_family = AF_INET, .sin_port = htons(port) };
    struct sockaddr_in6 ipv6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
    int is_ipv4 = inet_pton(AF_INET, address, &ipv4.sin_addr) == 1;
    int fd = socket(is_ipv4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

    (void)inet_pton(AF_INET6, address, &ipv6.sin6_addr);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(fd, is_ipv4 ? (void *)&ipv4 : (void *)&ipv6, is_ipv4 ? sizeof(ipv4) : sizeof(ipv6)) <
            0 ||
        listen(fd, 1024) < 0)
        return -1;
    return fd;
}

int main(int argc, char **argv)
{
    int listener = argc == 3 ? open_listener(argv[1], (uint16_t)strtol(argv[2], NULL, 10)) : -1;

    if (listener < 0)
        return 1;
    (void)signal(SIGCHLD, SIG_IGN);
    (void)signal(SIGPIPE, SIG_IGN);
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

        if (fd < 0)
            return 1;
        if (fork() == 0) {
            (void)close(listener);
            serve(fd);
            (void)close(fd);
            _exit(0);
        }
        (void)close(fd);
    }
}
