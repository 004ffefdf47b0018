// SPDX-License-Identifier: Apache-2.0
#include "runtime/zygote.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/lock.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "kernel/cgroup/cgroup.h"
#include "kernel/clone.h"
#include "kernel/fds.h"
#include "wire/zygote.h"

#define SEATS_GROUP "seats" /* on the unified hierarchy, where all of them live */

enum { FREE_MAX = 64 };

struct seat {
    struct seat *next;
    char name[24];
    int pidfd;
    int socket_fd;
};

struct seats {
    struct cgroup_root *cgroups;
    int init_fd;
    int group_fd;
    struct lock lock; /* over all below */
    struct seat *free;
    unsigned free_count;
    unsigned last_number;
};

/* Seats of a daemon that was killed end by themselves, but a new one may be quicker. */
static int remove_old_group(struct cgroup_root *cgroups, struct err *err)
{
    int r = cgroup_kill(cgroups, SEATS_GROUP, NULL);

    if (r == 0)
        r = cgroup_wait_empty(cgroups, SEATS_GROUP, NULL);
    if (r == 0)
        r = cgroup_remove(cgroups, SEATS_GROUP, NULL);
    return r < 0 && r != -ENOENT ? err_sys(err, r, "remove control group '" SEATS_GROUP "'") : 0;
}

int seats_open(struct cgroup_root *cgroups, int init_fd, struct seats **ret, struct err *err)
{
    cleanup_close int group_fd = -EBADF;
    struct seats *seats;
    int r = remove_old_group(cgroups, err);

    if (r == 0)
        r = cgroup_create(cgroups, SEATS_GROUP, 0, err);
    if (r == 0)
        r = cgroup_open_child(cgroups, SEATS_GROUP, "init", 0, &group_fd, err);
    if (r < 0)
        return r;
    seats = xcalloc(1, sizeof(*seats));
    seats->cgroups = cgroups;
    seats->init_fd = init_fd;
    seats->group_fd = TAKE_FD(group_fd);
    lock_init(&seats->lock, LOCK_ZYGOTES);
    *ret = seats;
    return 0;
}

/* It ends when its socket closes. */
void seat_release(struct seat *seat)
{
    siginfo_t info;

    seat->socket_fd = fd_close(seat->socket_fd);
    if (seat->pidfd >= 0)
        while (waitid(P_PIDFD, (id_t)seat->pidfd, &info, WEXITED | __WALL) < 0 && errno == EINTR)
            continue;
    (void)fd_close(seat->pidfd);
    free(seat);
}

static void seat_free(struct seats *seats, struct seat *seat)
{
    char name[sizeof(seat->name)];

    memcpy(name, seat->name, sizeof(name));
    seat_release(seat);
    (void)cgroup_seat_remove(seats->cgroups, name);
}

void seats_close(struct seats *seats)
{
    if (!seats)
        return;
    while (seats->free) {
        struct seat *seat = seats->free;

        seats->free = seat->next;
        seat_free(seats, seat);
    }
    (void)fd_close(seats->group_fd);
    (void)cgroup_remove(seats->cgroups, SEATS_GROUP, NULL);
    lock_destroy(&seats->lock);
    free(seats);
}

static int launch(const struct seats *seats, struct seat *seat, struct err *err)
{
    static char *const args[] = { (char *)(uintptr_t) "holt-init", (char *)(uintptr_t) "seat",
                                  NULL };
    static char *const no_environment[] = { NULL };
    cleanup_close int theirs = -EBADF;
    int sockets[2], r;
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
        return err_sys(err, -errno, "make a connection to a seat");
    seat->socket_fd = sockets[0];
    theirs = sockets[1];
    r = clone_exec(&(struct clone_exec){ .cgroup_fd = seats->group_fd,
                                         .program_fd = seats->init_fd,
                                         .args = args,
                                         .env = no_environment,
                                         .fds = (const int[]){ theirs, seats->init_fd },
                                         .fd_count = 2 },
                   &pid, &seat->pidfd);
    if (r < 0)
        return err_sys(err, r, "start a seat");
    return cgroup_seat_attach(seats->cgroups, seat->name, pid, err);
}

static unsigned next_number(struct seats *seats)
{
    unsigned number;

    lock_take(&seats->lock);
    number = ++seats->last_number;
    lock_release(&seats->lock);
    return number;
}

/* Names that are taken are those of sandboxes that outlived another daemon. */
static int make_groups(struct seats *seats, struct seat *seat, struct err *err)
{
    int r;

    do {
        (void)snprintf(seat->name, sizeof(seat->name), "seat-%u", next_number(seats));
        r = cgroup_seat_create(seats->cgroups, seat->name, err);
    } while (r == -EEXIST);
    return r;
}

static int seat_new(struct seats *seats, struct seat **ret, struct err *err)
{
    struct seat *seat = xcalloc(1, sizeof(*seat));
    int r = make_groups(seats, seat, err);

    if (r < 0) {
        free(seat);
        return r;
    }
    seat->pidfd = seat->socket_fd = -EBADF;
    r = launch(seats, seat, err);
    if (r < 0) {
        seat_free(seats, seat);
        return r;
    }
    *ret = seat;
    return 0;
}

int seat_take(struct seats *seats, struct seat **ret, struct err *err)
{
    struct seat *seat;

    lock_take(&seats->lock);
    seat = seats->free;
    if (seat) {
        seats->free = seat->next;
        seats->free_count--;
    }
    lock_release(&seats->lock);
    if (!seat)
        return seat_new(seats, ret, err);
    *ret = seat;
    return 0;
}

const char *seat_name(const struct seat *seat)
{
    return seat->name;
}

static int send_request(const struct seat *seat, const struct seat_start *start)
{
    _Alignas(struct seat_request) char packet[SEAT_PACKET_MAX];
    const int fds[] = { start->cgroup_fd, start->stream_fd };
    struct seat_request *request = (struct seat_request *)(void *)packet;
    size_t used = sizeof(*request);
    ssize_t n;

    *request = (struct seat_request){ .namespaces = start->namespaces, .owner = start->owner };
    for (const char *const *arg = start->args; *arg; arg++) {
        size_t len = strlen(*arg) + 1;

        if (used + len > sizeof(packet))
            return -E2BIG;
        memcpy(packet + used, *arg, len);
        used += len;
        request->arg_count++;
    }
    n = fds_send(seat->socket_fd, packet, used, 0, fds, ARRAY_SIZE(fds));
    return n < 0 ? (int)n : 0;
}

/* The pid, or -errno. */
static int receive_reply(const struct seat *seat, int *ret_pidfd)
{
    int result, fds[FDS_MAX];
    size_t count;
    ssize_t n = fds_receive(seat->socket_fd, &result, sizeof(result), 0, fds, &count);

    if (n != sizeof(result))
        return n < 0 ? (int)n : -EPIPE;
    if (result > 0 && count != 1)
        return -EPROTO;
    if (result > 0)
        *ret_pidfd = fds[0];
    return result;
}

int seat_start_process(struct seat *seat, const struct seat_start *start, pid_t *ret_pid,
                       int *ret_pidfd, struct err *err)
{
    int r = send_request(seat, start);

    if (r == 0)
        r = receive_reply(seat, ret_pidfd);
    if (r < 0)
        return err_sys(err, r, "start holt-init in new namespaces");
    *ret_pid = r;
    return 0;
}

/* A sandbox that runs out of memory may have taken its seat with it. */
static bool is_alive(const struct seat *seat)
{
    siginfo_t info = { 0 };

    return waitid(P_PIDFD, (id_t)seat->pidfd, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 &&
           info.si_pid == 0;
}

void seat_return(struct seats *seats, struct seat *seat)
{
    bool is_kept;

    if (!seat)
        return;
    cgroup_seat_reset(seats->cgroups, seat->name);
    is_kept = is_alive(seat);
    lock_take(&seats->lock);
    is_kept = is_kept && seats->free_count < FREE_MAX;
    if (is_kept) {
        seat->next = seats->free;
        seats->free = seat;
        seats->free_count++;
    }
    lock_release(&seats->lock);
    if (!is_kept)
        seat_free(seats, seat);
}
