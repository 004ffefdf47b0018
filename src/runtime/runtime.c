// SPDX-License-Identifier: Apache-2.0
#include "runtime/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/xalloc.h"
#include "kernel/caps.h"
#include "kernel/cgroup/cgroup.h"
#include "kernel/seccomp.h"
#include "runtime/program.h"
#include "runtime/zygote.h"
#include "wire/message.h"

/* Since Linux 6.11; older headers lack it. */
#ifndef PIDFD_GET_USER_NAMESPACE
#define PIDFD_GET_USER_NAMESPACE _IO(0xFF, 9)
#endif

static const struct runtime_ops *const backends[] = { &runtime_native, &runtime_bwrap,
                                                      &runtime_gvisor };

enum { PROC_PATH_BYTES = 48, SEND_TIMEOUT_S = 10 };

struct runtime {
    struct cgroup_root *cgroups;
    struct zygotes *zygotes;
    int init_fd; /* a sealed, execute-only memfd: see program_load */
    struct seccomp_program filter;
};

int runtime_open(struct cgroup_root *cgroups, const char *init_path, struct runtime **ret,
                 struct err *err)
{
    cleanup_close int init_fd = -EBADF;
    struct runtime *runtime;
    int r = program_load("holt-init", init_path, &init_fd, err);

    if (r < 0)
        return r;
    runtime = xcalloc(1, sizeof(*runtime));
    runtime->cgroups = cgroups;
    runtime->init_fd = TAKE_FD(init_fd);
    seccomp_build(&runtime->filter);
    r = zygotes_open(cgroups, runtime->init_fd, &runtime->zygotes, err);
    if (r < 0) {
        runtime_close(runtime);
        return r;
    }
    *ret = runtime;
    return 0;
}

void runtime_close(struct runtime *runtime)
{
    if (!runtime)
        return;
    zygotes_close(runtime->zygotes);
    (void)fd_close(runtime->init_fd);
    free(runtime);
}

const struct runtime_ops *runtime_at(size_t index)
{
    return index < ARRAY_SIZE(backends) ? backends[index] : NULL;
}

int runtime_init_fd(const struct runtime *runtime)
{
    return runtime->init_fd;
}

int runtime_find(const char *name, const struct runtime_ops **ret, struct err *err)
{
    char known[64] = "";

    for (size_t i = 0; i < ARRAY_SIZE(backends); i++) {
        size_t used = strlen(known);

        if (strcmp(backends[i]->name, name) == 0) {
            *ret = backends[i];
            return 0;
        }
        (void)snprintf(known + used, sizeof(known) - used, "%s%s", used ? ", " : "",
                       backends[i]->name);
    }
    return err_set(err, ERR_INVALID, "no runtime '%.40s' (known: %s)", name, known);
}

/* Maps 0..65535 inside to the guest's 65,536 ids outside. */
static int guest_write_maps(pid_t pid, uid_t first)
{
    static const char *const files[] = { "uid_map", "gid_map" };
    char path[PROC_PATH_BYTES], text[64];
    int r = 0;

    (void)snprintf(text, sizeof(text), "0 %u %d", first, RUNTIME_IDS_PER_SANDBOX);
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(files); i++) {
        (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, files[i]);
        r = file_write_at(AT_FDCWD, path, text);
    }
    return r;
}

static bool pidfd_has_ended(int pidfd)
{
    struct pollfd wait = { .fd = pidfd, .events = POLLIN };

    return poll(&wait, 1, 0) != 0;
}

int runtime_guest_open_userns(const struct runtime_guest *guest, struct err *err)
{
    int fd = ioctl(guest->pidfd, PIDFD_GET_USER_NAMESPACE, 0);

    return fd < 0 ? err_sys(err, -errno, "open the user namespace of '%s'", guest->id) : fd;
}

/* Returns the pid of holt-init, which the program of some runtimes has started. */
static pid_t guest_init_pid(const struct runtime_guest *guest)
{
    char path[PROC_PATH_BYTES];
    long long pid;

    if (guest->ops->builds_root)
        return guest->pid;
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", guest->pid, guest->pid);
    return file_read_number_at(AT_FDCWD, path, &pid) == 0 ? (pid_t)pid : guest->pid;
}

static int guest_open(const struct runtime_guest *guest, const char *name, int flags)
{
    char path[PROC_PATH_BYTES];
    cleanup_close int fd = -EBADF;

    (void)snprintf(path, sizeof(path), "/proc/%d/%s", guest_init_pid(guest), name);
    fd = open(path, flags | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    /* The pid was still the guest's own if it has not ended by now. */
    return pidfd_has_ended(guest->pidfd) ? -ESRCH : TAKE_FD(fd);
}

int runtime_guest_open_root(const struct runtime_guest *guest)
{
    return guest_open(guest, "root", O_PATH | O_DIRECTORY);
}

int runtime_guest_open_mounts(const struct runtime_guest *guest)
{
    return guest_open(guest, "ns/mnt", O_RDONLY);
}

static int guest_send_boot(const struct runtime *runtime, const struct runtime_guest *guest,
                           struct err *err)
{
    const struct message_boot boot = {
        .builds_root = guest->ops->builds_root,
        .filter = (const char *)runtime->filter.code,
        .filter_len = runtime->filter.len * sizeof(runtime->filter.code[0]),
        .capabilities = caps_docker_default(),
    };
    cleanup_with(buf_done) struct buf out = BUF_INIT(FRAME_FROM_DAEMON_MAX);
    int r = buf_add_str(&out, guest->ops->go);

    if (r == 0)
        r = message_put_boot(&out, &boot);
    if (r == 0)
        r = write_all(guest->stream_fd, out.data, out.len);
    return r < 0 ? err_sys(err, r, "send the boot message to '%s'", guest->id) : 0;
}

/* A guest that does not read must not block a thread forever. */
static void limit_sending(int stream_fd)
{
    const struct timeval timeout = { .tv_sec = SEND_TIMEOUT_S };

    (void)setsockopt(stream_fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
}

static int guest_start_init(struct runtime *runtime, struct runtime_guest *guest, struct err *err)
{
    cleanup_close int cgroup_fd = -EBADF, theirs = -EBADF;
    int sockets[2];
    int r = cgroup_open_child(runtime->cgroups, guest->id, "init", 0, &cgroup_fd, err);

    if (r < 0)
        return r;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) < 0)
        return err_sys(err, -errno, "create a socket pair for holt-init");
    guest->stream_fd = sockets[0];
    theirs = sockets[1];
    limit_sending(guest->stream_fd);
    return zygote_start_process(guest->zygote,
                                &(struct zygote_start){ .namespaces = guest->ops->namespaces,
                                                        .owner = guest->first_uid,
                                                        .args = guest->ops->args,
                                                        .cgroup_fd = cgroup_fd,
                                                        .stream_fd = theirs },
                                &guest->pid, &guest->pidfd, err);
}

/* The zygote of the other guest may be gone, so the process is moved to its limits: slow, but a
 * second machine starts once. */
static int guest_join_limits(struct runtime *runtime, const struct runtime_guest *guest,
                             struct err *err)
{
    if (!guest->shares_limits || !cgroup_root_limits_zygotes(runtime->cgroups))
        return 0;
    return cgroup_zygote_attach(runtime->cgroups, guest->limits_group, guest->pid, err);
}

/* Creates the cgroups, starts the process and maps its user ids; the process waits meanwhile. */
static int guest_set_up(struct runtime *runtime, struct runtime_guest *guest, struct err *err)
{
    int r = zygote_take(runtime->zygotes, &guest->zygote, err);

    if (r < 0)
        return r;
    if (!guest->shares_limits)
        (void)snprintf(guest->limits_group, sizeof(guest->limits_group), "%s",
                       cgroup_root_limits_zygotes(runtime->cgroups) ? zygote_name(guest->zygote)
                                                                    : guest->id);
    r = cgroup_create(runtime->cgroups, guest->id, guest->first_uid, err);
    if (r == 0)
        r = guest_start_init(runtime, guest, err);
    if (r == 0)
        r = guest_join_limits(runtime, guest, err);
    if (r < 0)
        return r;
    r = guest_write_maps(guest->pid, guest->first_uid);
    if (r < 0)
        return err_sys(err, r, "map the user ids of '%s'", guest->id);
    return guest_send_boot(runtime, guest, err);
}

static struct runtime_guest guest_new(struct runtime *runtime, const struct runtime_ops *ops,
                                      const char *id, uid_t first_uid)
{
    struct runtime_guest guest = {
        .ops = ops,
        .runtime = runtime,
        .first_uid = first_uid,
        .pidfd = -EBADF,
        .stream_fd = -EBADF,
    };

    (void)snprintf(guest.id, sizeof(guest.id), "%s", id);
    return guest;
}

int runtime_start(struct runtime *runtime, const struct runtime_ops *ops, const char *id,
                  uid_t first_uid, struct runtime_guest *ret, struct err *err)
{
    int r;

    *ret = guest_new(runtime, ops, id, first_uid);
    r = guest_set_up(runtime, ret, err);
    if (r < 0)
        (void)runtime_guest_done(ret);
    return r;
}

int runtime_start_beside(struct runtime *runtime, const struct runtime_ops *ops, const char *id,
                         const struct runtime_guest *first, struct runtime_guest *ret,
                         struct err *err)
{
    int r;

    *ret = guest_new(runtime, ops, id, first->first_uid);
    memcpy(ret->limits_group, first->limits_group, sizeof(ret->limits_group));
    ret->shares_limits = true;
    r = guest_set_up(runtime, ret, err);
    if (r < 0)
        (void)runtime_guest_done(ret);
    return r;
}

/* Every process in the cgroup "init" is in the user namespace that the zygote made, whatever the
 * runtime. The owner of that namespace proves it: no other guest has this uid. */
static int guest_adopt_init(struct runtime_guest *guest, struct err *err)
{
    cleanup_close int userns_fd = -EBADF;
    uid_t owner = 0;
    int r = cgroup_find_init(guest->runtime->cgroups, guest->id, &guest->pid, &guest->pidfd);

    if (r == -ESRCH)
        return err_set(err, ERR_NOT_FOUND, "no process of '%s' runs any more", guest->id);
    if (r < 0)
        return err_sys(err, r, "find holt-init of '%s'", guest->id);
    userns_fd = runtime_guest_open_userns(guest, err);
    if (pidfd_has_ended(guest->pidfd))
        return err_set(err, ERR_NOT_FOUND, "no process of '%s' runs any more", guest->id);
    if (userns_fd < 0)
        return userns_fd;
    if (ioctl(userns_fd, NS_GET_OWNER_UID, &owner) < 0)
        return err_sys(err, -errno, "get the owner of the user namespace of '%s'", guest->id);
    if (owner != guest->first_uid)
        return err_set(err, ERR_INVALID, "the user namespace of '%s' belongs to uid %u, not %u",
                       guest->id, owner, guest->first_uid);
    return 0;
}

int runtime_adopt(struct runtime *runtime, const struct runtime_ops *ops,
                  const struct runtime_adoption *adoption, struct runtime_guest *ret,
                  struct err *err)
{
    struct runtime_guest guest = guest_new(runtime, ops, adoption->id, adoption->first_uid);
    int r = guest_adopt_init(&guest, err);

    if (r < 0) {
        (void)fd_close(guest.pidfd);
        return r;
    }
    (void)snprintf(guest.limits_group, sizeof(guest.limits_group), "%s", adoption->limits_group);
    guest.shares_limits = adoption->shares_limits;
    guest.stream_fd = adoption->stream_fd;
    limit_sending(guest.stream_fd);
    *ret = guest;
    return 0;
}

unsigned runtime_guest_own_processes(const struct runtime_guest *guest)
{
    bool has_zygote = guest->zygote && !guest->shares_limits &&
                      cgroup_root_limits_zygotes(guest->runtime->cgroups);

    return guest->ops->own_processes + (has_zygote ? 1 : 0);
}

int runtime_guest_kill(const struct runtime_guest *guest)
{
    int r = cgroup_kill(guest->runtime->cgroups, guest->id, NULL);

    if (r < 0 && guest->pidfd >= 0)
        (void)pidfd_send_signal(guest->pidfd, SIGKILL, NULL, 0);
    return r == -ENOENT ? 0 : r;
}

/* Reaps a child; for another daemon's child it only waits for the end. */
static void pidfd_wait_end(int pidfd)
{
    struct pollfd wait = { .fd = pidfd, .events = POLLIN };
    siginfo_t info;
    int r;

    do {
        r = waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED | __WALL);
    } while (r < 0 && errno == EINTR);
    while (r < 0 && poll(&wait, 1, -1) < 0 && errno == EINTR)
        continue;
}

static int remove_group(struct cgroup_root *cgroups, const char *id)
{
    int r = cgroup_wait_empty(cgroups, id, NULL);

    return r == 0 ? cgroup_remove(cgroups, id, NULL) : r;
}

/* Where limits are set on zygotes, an unused zygote of an earlier daemon consists of its cgroups
 * only. */
static int remove_limits(struct cgroup_root *cgroups, const char *limits_group)
{
    return *limits_group ? cgroup_zygote_remove(cgroups, limits_group) : 0;
}

bool runtime_guest_has_ended(const struct runtime_guest *guest)
{
    siginfo_t info = { 0 };

    if (guest->pidfd >= 0) {
        int r = waitid(P_PIDFD, (id_t)guest->pidfd, &info, WEXITED | WNOHANG | __WALL);

        /* Reaped by an earlier call, or the child of an earlier daemon process. */
        if (r < 0 ? !pidfd_has_ended(guest->pidfd) : info.si_pid == 0)
            return false;
    }
    return cgroup_is_empty(guest->runtime->cgroups, guest->id) > 0;
}

int runtime_guest_try_remove(const struct runtime_guest *guest)
{
    return cgroup_try_remove(guest->runtime->cgroups, guest->id, NULL);
}

bool runtime_guest_is_heavy(const struct runtime_guest *guest)
{
    return !guest->zygote ||
           cgroup_zygote_is_heavy(guest->runtime->cgroups, zygote_name(guest->zygote));
}

int runtime_guest_recycle(struct runtime_guest *guest)
{
    int r = 0;

    if (guest->zygote)
        zygote_return(guest->runtime->zygotes, TAKE_PTR(guest->zygote));
    else if (!guest->shares_limits)
        r = remove_limits(guest->runtime->cgroups, guest->limits_group);
    guest->limits_group[0] = '\0';
    guest->pidfd = fd_close(guest->pidfd);
    guest->stream_fd = fd_close(guest->stream_fd);
    return r;
}

int runtime_guest_done(struct runtime_guest *guest)
{
    int r, limits_r;

    (void)runtime_guest_kill(guest);
    if (guest->pidfd >= 0)
        pidfd_wait_end(guest->pidfd);
    r = remove_group(guest->runtime->cgroups, guest->id);
    limits_r = runtime_guest_recycle(guest);
    return r < 0 ? r : limits_r;
}

int runtime_bury(struct runtime *runtime, const char *id, const char *limits_group)
{
    int limits_r, r = cgroup_kill(runtime->cgroups, id, NULL);

    if (r == 0 || r == -ENOENT)
        r = remove_group(runtime->cgroups, id);
    limits_r = remove_limits(runtime->cgroups, limits_group);
    return r < 0 ? r : limits_r;
}

void runtime_guest_release(struct runtime_guest *guest)
{
    if (guest->zygote)
        zygote_release(TAKE_PTR(guest->zygote));
    guest->pidfd = fd_close(guest->pidfd);
    guest->stream_fd = fd_close(guest->stream_fd);
}
