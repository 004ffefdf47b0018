// SPDX-License-Identifier: Apache-2.0
#include "runtime/zygote.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/lock.h"
#include "base/xalloc.h"
#include "kernel/cgroup/cgroup.h"
#include "kernel/clone.h"
#include "kernel/fds.h"
#include "wire/zygote.h"

#define ZYGOTES_GROUP "seats" /* on the unified hierarchy, where all of them live */

enum { FREE_MAX = 64 };

struct zygote {
    struct zygote *next;
    char name[24];
    pid_t pid; /* a child that nothing else waits for, so no other process can get this number */
    int socket_fd;
};

struct zygotes {
    struct cgroup_root *cgroups;
    int init_fd;
    int group_fd;
    struct lock lock; /* protects all fields below */
    struct zygote *free;
    unsigned free_count;
    unsigned last_number;
};

/* Zygotes of a killed daemon end by themselves, but a new daemon may start before that. */
static int remove_old_group(struct cgroup_root *cgroups, struct err *err)
{
    int r = cgroup_kill(cgroups, ZYGOTES_GROUP, NULL);

    if (r == 0)
        r = cgroup_wait_empty(cgroups, ZYGOTES_GROUP, NULL);
    if (r == 0)
        r = cgroup_remove(cgroups, ZYGOTES_GROUP, NULL);
    return r < 0 && r != -ENOENT ? err_sys(err, r, "remove control group '" ZYGOTES_GROUP "'") : 0;
}

int zygotes_open(struct cgroup_root *cgroups, int init_fd, struct zygotes **ret, struct err *err)
{
    cleanup_close int group_fd = -EBADF;
    struct zygotes *zygotes;
    int r = remove_old_group(cgroups, err);

    if (r == 0)
        r = cgroup_create(cgroups, ZYGOTES_GROUP, 0, err);
    if (r == 0)
        r = cgroup_open_child(cgroups, ZYGOTES_GROUP, "init", 0, &group_fd, err);
    if (r < 0)
        return r;
    zygotes = xcalloc(1, sizeof(*zygotes));
    zygotes->cgroups = cgroups;
    zygotes->init_fd = init_fd;
    zygotes->group_fd = TAKE_FD(group_fd);
    lock_init(&zygotes->lock, LOCK_ZYGOTES);
    *ret = zygotes;
    return 0;
}

/* The zygote ends when its socket closes. */
void zygote_release(struct zygote *zygote)
{
    siginfo_t info;

    zygote->socket_fd = fd_close(zygote->socket_fd);
    if (zygote->pid > 0)
        while (waitid(P_PID, (id_t)zygote->pid, &info, WEXITED | __WALL) < 0 && errno == EINTR)
            continue;
    free(zygote);
}

static void zygote_free(struct zygotes *zygotes, struct zygote *zygote)
{
    char name[sizeof(zygote->name)];

    memcpy(name, zygote->name, sizeof(name));
    zygote_release(zygote);
    (void)cgroup_zygote_remove(zygotes->cgroups, name);
}

void zygotes_close(struct zygotes *zygotes)
{
    if (!zygotes)
        return;
    while (zygotes->free) {
        struct zygote *zygote = zygotes->free;

        zygotes->free = zygote->next;
        zygote_free(zygotes, zygote);
    }
    (void)fd_close(zygotes->group_fd);
    (void)cgroup_remove(zygotes->cgroups, ZYGOTES_GROUP, NULL);
    lock_destroy(&zygotes->lock);
    free(zygotes);
}

/* The limit is that of all sandboxes together: a new one has no other. */
static int start_error(struct err *err, int r, const char *what)
{
    if (r == -EAGAIN)
        return err_refuse(err, CAUSE_CAPACITY_EXCEEDED, "out of processes: cannot %s", what);
    if (r == -ENOMEM)
        return err_refuse(err, CAUSE_CAPACITY_EXCEEDED, "out of memory: cannot %s", what);
    return err_sys(err, r, "%s", what);
}

static int zygote_launch(const struct zygotes *zygotes, struct zygote *zygote, struct err *err)
{
    static char *const args[] = { (char *)(uintptr_t) "holt-init", (char *)(uintptr_t) "seat",
                                  NULL };
    static char *const no_environment[] = { NULL };
    cleanup_close int theirs = -EBADF, pidfd = -EBADF;
    int sockets[2], r;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
        return err_sys(err, -errno, "create a socket pair for a zygote");
    zygote->socket_fd = sockets[0];
    theirs = sockets[1];
    r = clone_exec(&(struct clone_exec){ .cgroup_fd = zygotes->group_fd,
                                         .program_fd = zygotes->init_fd,
                                         .args = args,
                                         .env = no_environment,
                                         .fds = (const int[]){ theirs, zygotes->init_fd },
                                         .fd_count = 2 },
                   &zygote->pid, &pidfd);
    if (r < 0)
        return start_error(err, r, "start a zygote");
    return cgroup_zygote_attach(zygotes->cgroups, zygote->name, zygote->pid, err);
}

static unsigned zygote_next_number(struct zygotes *zygotes)
{
    unsigned number;

    lock_take(&zygotes->lock);
    number = ++zygotes->last_number;
    lock_release(&zygotes->lock);
    return number;
}

/* Skips names that are taken by sandboxes of an earlier daemon process. */
static int zygote_make_groups(struct zygotes *zygotes, struct zygote *zygote, struct err *err)
{
    int r;

    do {
        (void)snprintf(zygote->name, sizeof(zygote->name), "seat-%u", zygote_next_number(zygotes));
        r = cgroup_zygote_create(zygotes->cgroups, zygote->name, err);
    } while (r == -EEXIST);
    return r;
}

static int zygote_new(struct zygotes *zygotes, struct zygote **ret, struct err *err)
{
    struct zygote *zygote = xcalloc(1, sizeof(*zygote));
    int r = zygote_make_groups(zygotes, zygote, err);

    if (r < 0) {
        free(zygote);
        return r;
    }
    zygote->socket_fd = -EBADF;
    r = zygote_launch(zygotes, zygote, err);
    if (r < 0) {
        zygote_free(zygotes, zygote);
        return r;
    }
    *ret = zygote;
    return 0;
}

int zygote_take(struct zygotes *zygotes, struct zygote **ret, struct err *err)
{
    struct zygote *zygote;

    lock_take(&zygotes->lock);
    zygote = zygotes->free;
    if (zygote) {
        zygotes->free = zygote->next;
        zygotes->free_count--;
    }
    lock_release(&zygotes->lock);
    if (!zygote)
        return zygote_new(zygotes, ret, err);
    *ret = zygote;
    return 0;
}

const char *zygote_name(const struct zygote *zygote)
{
    return zygote->name;
}

static int zygote_send_request(const struct zygote *zygote, const struct zygote_start *start)
{
    _Alignas(struct zygote_request) char packet[ZYGOTE_PACKET_MAX];
    const int fds[] = { start->cgroup_fd, start->stream_fd };
    struct zygote_request *request = (struct zygote_request *)(void *)packet;
    size_t used = sizeof(*request);
    ssize_t n;

    *request = (struct zygote_request){ .namespaces = start->namespaces, .owner = start->owner };
    for (const char *const *arg = start->args; *arg; arg++) {
        size_t len = strlen(*arg) + 1;

        if (used + len > sizeof(packet))
            return -E2BIG;
        memcpy(packet + used, *arg, len);
        used += len;
        request->arg_count++;
    }
    n = fds_send(zygote->socket_fd, packet, used, 0, fds, ARRAY_SIZE(fds));
    return n < 0 ? (int)n : 0;
}

/* Returns the pid, or -errno. */
static int zygote_receive_reply(const struct zygote *zygote, int *ret_pidfd)
{
    int result, fds[FDS_MAX];
    size_t count;
    ssize_t n = fds_receive(zygote->socket_fd, &result, sizeof(result), 0, fds, &count);

    if (n != sizeof(result))
        return n < 0 ? (int)n : -EPIPE;
    if (result > 0 && count != 1)
        return -EPROTO;
    if (result > 0)
        *ret_pidfd = fds[0];
    return result;
}

int zygote_start_process(struct zygote *zygote, const struct zygote_start *start, pid_t *ret_pid,
                         int *ret_pidfd, struct err *err)
{
    int r = zygote_send_request(zygote, start);

    if (r == 0)
        r = zygote_receive_reply(zygote, ret_pidfd);
    if (r < 0)
        return start_error(err, r, "start holt-init in new namespaces");
    *ret_pid = r;
    return 0;
}

/* The OOM killer may have ended a zygote together with its sandbox. */
static bool zygote_is_alive(const struct zygote *zygote)
{
    siginfo_t info = { 0 };

    return waitid(P_PID, (id_t)zygote->pid, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 &&
           info.si_pid == 0;
}

void zygote_return(struct zygotes *zygotes, struct zygote *zygote)
{
    bool is_kept;

    if (!zygote)
        return;
    cgroup_zygote_reset(zygotes->cgroups, zygote->name);
    is_kept = zygote_is_alive(zygote);
    lock_take(&zygotes->lock);
    is_kept = is_kept && zygotes->free_count < FREE_MAX;
    if (is_kept) {
        zygote->next = zygotes->free;
        zygotes->free = zygote;
        zygotes->free_count++;
    }
    lock_release(&zygotes->lock);
    if (!is_kept)
        zygote_free(zygotes, zygote);
}
