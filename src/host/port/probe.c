// SPDX-License-Identifier: Apache-2.0
/* Connections from the daemon itself to a port. The caller gets one end of a socket pair; the
 * ports' thread serves the other like any client. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "host/machine/machine_internal.h"
#include "host/port/port_internal.h"

enum {
    PATH_BYTES_MAX = 1024,
    REQUEST_BYTES_MAX = PATH_BYTES_MAX + 256,
    STATUS_LINE_MAX = 256, /* a longer status line is cut */
};

static int set_late_error(uint16_t port, struct err *err)
{
    return err_set(err, ERR_BUSY, "port %u did not answer in time", port);
}

/* Waits until fd is readable. */
static int wait_readable(int fd, uint16_t port, const struct port_patience *patience,
                         struct err *err)
{
    for (;;) {
        struct pollfd fds[2] = {
            { .fd = fd, .events = POLLIN },
            { .fd = patience->cancel_fd, .events = POLLIN | POLLRDHUP },
        };
        uint64_t now = clock_ms();
        uint64_t left = patience->deadline_ms > now ? patience->deadline_ms - now : 0;
        int n = poll(fds, 2, left > INT_MAX ? INT_MAX : (int)left);

        if (n < 0 && errno != EINTR)
            return err_sys(err, -errno, "wait for port %u", port);
        if (n > 0 && fds[1].revents) {
            (void)err_set(err, ERR_BUSY, "the wait for port %u was cancelled", port);
            return -ECANCELED;
        }
        if (n > 0)
            return 0;
        if (n == 0 && left <= INT_MAX)
            return set_late_error(port, err);
    }
}

/* The thread sends the result of connecting first. */
static int await_outcome(int fd, uint16_t port, const struct port_patience *patience,
                         struct err *err)
{
    int outcome = 0;
    int r = wait_readable(fd, port, patience, err);

    if (r < 0)
        return r;
    if (recv(fd, &outcome, sizeof(outcome), MSG_WAITALL) != sizeof(outcome))
        return err_set(err, ERR_INTERNAL, "the sandbox ended while connecting to port %u", port);
    if (outcome != 0)
        return err_set(err, ERR_BUSY, "port %u: %s", port, strerror(outcome));
    return 0;
}

/* Gives one end of a socket pair to the thread as a connection, and the other to the caller. */
static int connection_open(struct machine *machine, uint16_t port, int *ret_fd, struct err *err)
{
    struct port_connection *connection;
    int fds[2], r;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        return err_sys(err, -errno, "create a socket pair");
    connection = port_connection_new(fds[0], port, NULL);
    connection->wants_outcome = true;
    *ret_fd = fds[1];
    r = port_connection_add(machine, connection);
    if (r == 0)
        return 0;
    port_connection_free(connection);
    if (r == -EAGAIN)
        return err_set(err, ERR_BUSY, "connection limit of machine '%s' reached (%d)", machine->id,
                       FRAME_CONNECTIONS_MAX);
    return err_set(err, ERR_INTERNAL, "sandbox '%s' has ended", machine->id);
}

int port_dial(struct machine *machine, uint16_t port, const struct port_patience *patience,
              int *ret_fd, struct err *err)
{
    cleanup_close int fd = -EBADF;
    int r = connection_open(machine, port, &fd, err);

    if (r == 0)
        r = await_outcome(fd, port, patience, err);
    if (r < 0)
        return r;
    *ret_fd = TAKE_FD(fd);
    return 0;
}

/* Checks that the path may be in a request line. */
static bool is_path(const char *path)
{
    if (*path != '/' || strlen(path) > PATH_BYTES_MAX)
        return false;
    for (; *path; path++)
        if (!isgraph((unsigned char)*path))
            return false;
    return true;
}

/* Returns the status of "HTTP/1.1 204 ...", or -1. */
static int parse_status(const char *line)
{
    const char *space = strchr(line, ' ');

    if (strncmp(line, "HTTP/", 5) != 0 || !space || !isdigit((unsigned char)space[1]) ||
        !isdigit((unsigned char)space[2]) || !isdigit((unsigned char)space[3]) ||
        isdigit((unsigned char)space[4]))
        return -1;
    return (space[1] - '0') * 100 + (space[2] - '0') * 10 + (space[3] - '0');
}

/* Reads the first line of the reply, or as much of it as there is. */
static int read_status_line(int fd, uint16_t port, const struct port_patience *patience,
                            char line[STATUS_LINE_MAX], struct err *err)
{
    size_t len = 0;

    for (;;) {
        ssize_t n;
        int r = wait_readable(fd, port, patience, err);

        if (r < 0)
            return r;
        n = recv(fd, line + len, STATUS_LINE_MAX - 1 - len, 0);
        len += n > 0 ? (size_t)n : 0;
        line[len] = '\0';
        if (n <= 0 || len == STATUS_LINE_MAX - 1 || strchr(line, '\n'))
            return 0;
    }
}

static int http_get(int fd, uint16_t port, const char *path, const struct port_patience *patience,
                    struct err *err)
{
    char request[REQUEST_BYTES_MAX], line[STATUS_LINE_MAX];
    int len = snprintf(request, sizeof(request),
                       "GET %s HTTP/1.1\r\nHost: localhost:%u\r\nUser-Agent: holt\r\n"
                       "Accept: */*\r\nConnection: close\r\n\r\n",
                       path, port);
    int status, r;

    /* A new socket has room for the whole request. */
    if (send(fd, request, (size_t)len, MSG_NOSIGNAL) != len)
        return err_set(err, ERR_BUSY, "port %u accepts no request", port);
    r = read_status_line(fd, port, patience, line, err);
    if (r < 0)
        return r;
    status = parse_status(line);
    if (status < 0)
        return err_set(err, ERR_BUSY, "port %u sends no HTTP response", port);
    if (status < 200 || status > 399)
        return err_set(err, ERR_BUSY, "port %u answers with status %d", port, status);
    return 0;
}

int port_probe(struct machine *machine, uint16_t port, const char *http_path,
               const struct port_patience *patience, struct err *err)
{
    cleanup_close int fd = -EBADF;
    int r;

    if (http_path && !is_path(http_path))
        return err_set(err, ERR_INVALID, "invalid HTTP path '%.100s'", http_path);
    r = port_dial(machine, port, patience, &fd, err);
    if (r < 0 || !http_path)
        return r;
    return http_get(fd, port, http_path, patience, err);
}
