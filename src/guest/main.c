// SPDX-License-Identifier: Apache-2.0
/* holt-init: process 1 of every sandbox.
 *
 * It starts with a connection to the daemon on descriptor 3 and boots the namespaces that it was
 * created in. The daemon then passes it a root. From then on it owns the processes of the sandbox:
 * it starts and reaps them and buffers their output until the daemon has acknowledged it. Without
 * a root it exits with its connection; with one it keeps running without the daemon and waits for
 * it to reconnect. It has no signal handlers and no threads. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "guest/cell/cell.h"
#include "guest/cell/inner.h"
#include "guest/files/file.h"
#include "guest/guest.h"
#include "guest/net/connection.h"
#include "guest/process/process.h"
#include "guest/root.h"
#include "guest/shell/shell.h"
#include "guest/zygote.h"
#include "wire/message.h"

enum {
    CONTROL_FD = 3,
    PROGRAM_FD = 4, /* holt-init itself */
    EVENTS_PER_TURN = 64,
    LAST_RECEIVES_MAX = 256, /* receive calls */
};

static void close_all(const int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        (void)close(fds[i]);
}

/* Only internal errors carry an errno; without one the request itself was invalid. */
static void reply_error(struct guest *guest, const struct err *err)
{
    const struct message_failed failed = {
        .errnum = err->kind == ERR_INTERNAL ? (uint32_t)err->errnum : 0, .text = err->msg
    };

    (void)message_put_failed(&guest->link.out, 0, &failed);
}

static bool handle_boot(struct guest *guest, const struct frame *frame)
{
    struct message_boot message;
    struct err err = { 0 };

    if (guest->is_booted || !message_get_boot(frame, &message))
        return false;
    if (boot(&message, &guest->base, &err) < 0) {
        reply_error(guest, &err);
        return true;
    }
    /* Fails where another program filters this one in the same way: then nothing limits them. */
    if (netlink_guard_open(&guest->netlink) == 0)
        watch_set(guest->epoll_fd, &guest->netlink.watch, EPOLLIN);
    watch_set(guest->epoll_fd, &guest->base.resources.watch, EPOLLIN);
    guest->is_booted = true;
    guest->filter.max = message.filter_len;
    if (buf_add(&guest->filter, message.filter, message.filter_len) < 0)
        return false;
    guest->rules = (struct spawn_rules){
        .filter = message.filter_len > 0 ? guest->filter.data : NULL,
        .filter_len = message.filter_len,
        .capabilities = message.capabilities,
    };
    return message_put_numbers(&guest->link.out, FRAME_READY, 0, WIRE_VERSION, 0) == 0;
}

static bool handle_root(struct guest *guest, const struct frame *frame, const int *fds)
{
    struct message_root message;
    struct err err = { 0 };

    if (!message_get_root(frame, &message))
        return false;
    cell_leave(guest);
    if (root_enter(&message, fds, &guest->base.identity, &err) < 0) {
        reply_error(guest, &err);
        return true;
    }
    guest->is_rooted = true;
    guest->rules.allows_setuid = message.allows_setuid;
    return message_put_numbers(&guest->link.out, FRAME_ROOTED, 0, 0, 0) == 0;
}

/* From here on this process may outlive the daemon, so it closes the daemon's log: the reader of
 * that pipe waits until every writer has closed it. The listener is non-blocking because a stale
 * event of an earlier listener may still be queued. */
static bool handle_listen(struct guest *guest, int fd)
{
    watch_set(guest->epoll_fd, &guest->listener, 0);
    guest->listener.fd = fd_close(guest->listener.fd);
    guest->listener.fd = fcntl(fd, F_DUPFD_CLOEXEC, CONTROL_FD);
    if (guest->listener.fd < 0 || fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0 ||
        dup2(guest->base.null_fd, STDERR_FILENO) < 0)
        return false;
    watch_set(guest->epoll_fd, &guest->listener, EPOLLIN);
    return true;
}

static bool handle_agent(struct guest *guest, int fd)
{
    int copy_fd = fcntl(fd, F_DUPFD_CLOEXEC, CONTROL_FD);

    if (copy_fd >= 0)
        trust_set_agent(&guest->base.identity.trust, copy_fd);
    return true;
}

static bool handle_hello(struct guest *guest, const struct frame *frame)
{
    uint64_t version, none;
    bool is_later;

    if (!message_get_numbers(frame, &version, &none) || version != WIRE_VERSION)
        return false;
    if (guest->is_inner &&
        message_put_numbers(&guest->link.out, FRAME_HELLO, 0, WIRE_VERSION, 0) < 0)
        return false;
    if (!process_announce(guest) || !cell_announce(guest, &is_later))
        return false;
    if (is_later)
        return true;
    guest->link.is_greeted = true;
    return message_put_numbers(&guest->link.out, FRAME_READY, 0, WIRE_VERSION,
                               guest->last_process) == 0;
}

static bool handle_size(struct guest *guest, const struct frame *frame, const int *fds)
{
    struct message_size message;

    if (!message_get_size(frame, &message))
        return false;
    resources_set(&guest->base.resources, &message, fds);
    return true;
}

/* Ignores a frame about a process that no longer exists: the daemon sent it before it knew. */
static bool handle_for_process(struct guest *guest, const struct frame *frame)
{
    struct process *process = process_find(guest, frame->process);

    return (!process && cell_handle(guest, frame)) || !process ||
           process_handle(guest, process, frame);
}

/* Returns false for a frame that holtd never sends; the caller drops the connection. */
static bool handle_frame(struct guest *guest, const struct frame *frame, const int *fds)
{
    if (frame->type == FRAME_BOOT)
        return handle_boot(guest, frame);
    if (!guest->is_booted)
        return false;
    if (frame->type == FRAME_ROOT)
        return handle_root(guest, frame, fds);
    if (frame->type == FRAME_LISTEN)
        return frame->fds == 1 && handle_listen(guest, fds[0]);
    if (frame->type == FRAME_AGENT)
        return frame->fds == 1 && handle_agent(guest, fds[0]);
    if (frame->type == FRAME_HELLO)
        return handle_hello(guest, frame);
    if (frame->type == FRAME_RESIZE && frame->process == 0)
        return handle_size(guest, frame, fds);
    if (frame->type == FRAME_SPAWN) {
        process_spawn(guest, frame, fds);
        resources_renew(&guest->base.resources);
        return true;
    }
    if (frame->type == FRAME_CELL_ENTER)
        return guest->is_inner && inner_enter(guest, frame);
    if (frame->type == FRAME_CELL)
        return cell_open(guest, frame, fds);
    if (frame->type == FRAME_CELL_SPAWN) {
        cell_spawn(guest, frame, fds);
        return true;
    }
    if (frame->type == FRAME_FILES) {
        file_start(guest, frame, fds);
        return true;
    }
    if (frame_is_of_connection(frame->type))
        return connection_handle(guest, frame);
    if (frame->type >= FRAME_READY)
        return false;
    return handle_for_process(guest, frame);
}

static void drop_connection(struct guest *guest)
{
    watch_set(guest->epoll_fd, &guest->link.watch, 0);
    link_drop(&guest->link);
    connection_end_all(guest);
    cell_disconnect(guest);
    if (guest->listener.fd < 0)
        _exit(0);
}

/* Receives and handles frames. Returns whether any arrived. */
static bool link_dispatch(struct guest *guest)
{
    int r = link_receive(&guest->link);

    if (r == 0)
        return false;
    while (r > 0) {
        int fds[FRAME_FDS_MAX];
        struct frame frame;
        bool is_ok;

        r = link_next(&guest->link, &frame, fds);
        if (r == 0)
            return true;
        if (r < 0)
            break;
        is_ok = handle_frame(guest, &frame, fds);
        /* Spawn and file frames own their descriptors; for all others they are closed here. */
        if (frame.type != FRAME_SPAWN && frame.type != FRAME_CELL_SPAWN &&
            frame.type != FRAME_FILES)
            close_all(fds, frame.fds);
        if (!is_ok)
            break;
        link_consume(&guest->link, &frame);
    }
    drop_connection(guest);
    return false;
}

/* Handles what the daemon sent before it stopped reading, acknowledgements above all, then drops
 * the connection. The bound is for a daemon that is alive and keeps sending; the data of a dead
 * one fits into its socket buffer. */
static void link_hang_up(struct guest *guest)
{
    for (int i = 0; i < LAST_RECEIVES_MAX && guest->link.watch.fd >= 0 && link_dispatch(guest); i++)
        continue;
    if (guest->link.watch.fd >= 0)
        drop_connection(guest);
}

/* The newest connection wins: the daemon of the old one is dead even if its socket still looks
 * open. */
static void accept_daemon(struct guest *guest)
{
    int fd = accept4(guest->listener.fd, NULL, NULL, SOCK_CLOEXEC);

    if (fd < 0)
        return;
    link_hang_up(guest);
    link_init(&guest->link, fd);
}

static void drain_signals(struct guest *guest)
{
    struct signalfd_siginfo info[8];

    while (read(guest->signals.fd, info, sizeof(info)) > 0)
        continue;
    process_reap(guest);
}

static void event_dispatch(struct guest *guest, struct watch *watch, uint32_t events)
{
    switch (watch->kind) {
    case WATCH_LINK:
        if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
            (void)link_dispatch(guest);
        break;
    case WATCH_LISTEN:
        accept_daemon(guest);
        break;
    case WATCH_SIGNAL:
        drain_signals(guest);
        break;
    case WATCH_OUTPUT:
        if (watch->fd >= 0)
            process_output_ready(guest, watch->owner, watch->index);
        break;
    case WATCH_INPUT:
        process_input_ready(guest, watch->owner);
        break;
    case WATCH_CONNECTION:
        connection_ready(guest, watch->owner);
        break;
    case WATCH_SHELL:
        if (watch->fd >= 0)
            shell_status_ready(guest, watch->owner);
        break;
    case WATCH_NETLINK:
        netlink_guard_ready(&guest->netlink, &guest->base.resources);
        break;
    case WATCH_CELL:
        cell_ready(guest);
        break;
    case WATCH_RESOURCES:
        resources_ready(&guest->base.resources);
        break;
    }
}

/* Alternates the order, because the first of the two may fill the output buffer. */
static void pump_all(struct guest *guest)
{
    static bool connections_first;

    connections_first = !connections_first;
    if (connections_first)
        connection_pump(guest);
    process_pump(guest);
    if (!connections_first)
        connection_pump(guest);
}

static void end_turn(struct guest *guest)
{
    bool is_more;

    while (guest->forgotten) {
        struct process *process = guest->forgotten;

        guest->forgotten = process->next;
        shell_free(NULL, process->shell);
        free(process);
    }
    connection_free_old(guest);
    if (guest->link.watch.fd < 0)
        return;
    /* Repeats until nothing is left to send or the socket is full: no further event may come. */
    do {
        if (guest->cell)
            cell_pump(guest);
        if (guest->link.is_greeted)
            pump_all(guest);
        is_more = guest->link.out.len > 0;
        if (link_flush(&guest->link) < 0) {
            link_hang_up(guest);
            return;
        }
    } while (is_more && guest->link.out.len == 0);
    watch_set(guest->epoll_fd, &guest->link.watch,
              guest->link.out.len > 0 ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

/* Waits like epoll_wait, but at most until the next shell timer. */
static int wait_events(struct guest *guest, struct epoll_event *events)
{
    long wait_us = shell_wait_us(guest);
    struct timespec timeout = { .tv_sec = wait_us / 1000000, .tv_nsec = wait_us % 1000000 * 1000 };
    int count;

    if (wait_us < 0)
        return epoll_wait(guest->epoll_fd, events, EVENTS_PER_TURN, -1);
    count =
        (int)syscall(SYS_epoll_pwait2, guest->epoll_fd, events, EVENTS_PER_TURN, &timeout, NULL, 0);
    if (count < 0 && errno == ENOSYS) /* gVisor */
        count = epoll_wait(guest->epoll_fd, events, EVENTS_PER_TURN, (int)(wait_us / 1000) + 1);
    return count;
}

/* Ignored signals are inherited across exec, so the daemon's must not reach the processes. */
static void reset_signals(void)
{
    static const struct {
        uintptr_t handler, flags, restorer;
        uint64_t mask;
    } standard; /* the kernel's struct: libc refuses the signals that it reserves */

    for (int i = 1; i < NSIG; i++)
        (void)syscall(SYS_rt_sigaction, i, &standard, NULL, sizeof(standard.mask));
}

static int open_signals(void)
{
    sigset_t all;

    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
    (void)sigemptyset(&all);
    (void)sigaddset(&all, SIGCHLD);
    return signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* `holt-init enter PROGRAM ARGS...`: started outside the sandbox, becomes root of a user namespace
 * and executes a program there. One byte on descriptor 3 says that the id maps are written. */
static int enter_and_exec(char *const *program)
{
    char go;

    if (read(CONTROL_FD, &go, 1) != 1)
        return 1;
    if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
        return 1;
    (void)execv(program[0], program);
    return 127;
}

int main(int argc, char **argv)
{
    static struct guest guest; /* static: too large for a small stack */
    struct epoll_event events[EVENTS_PER_TURN];

    if (argc >= 2 && strcmp(argv[1], "inner") == 0 &&
        inner_boot(&guest, CONTROL_FD, argc == 3 && strcmp(argv[2], "parked") == 0) < 0)
        return 1;
    /* Not started by the daemon: a process of the sandbox can execute /proc/self/exe. */
    if (fcntl(CONTROL_FD, F_GETFD) < 0)
        return 1;
    reset_signals();
    if (argc > 2 && strcmp(argv[1], "enter") == 0)
        return enter_and_exec(argv + 2);
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    if (argc == 2 && strcmp(argv[1], "seat") == 0 && !zygote_serve(CONTROL_FD, PROGRAM_FD))
        return 0;
    /* Closes holt-init itself and any descriptor that a runtime left open. */
    if (!guest.is_inner)
        (void)syscall(SYS_close_range, CONTROL_FD + 1, INT_MAX, 0);
    (void)prctl(PR_SET_NAME, "holt-init", 0, 0, 0);
    guest.listener = (struct watch){ .kind = WATCH_LISTEN, .fd = -EBADF };
    guest.signals = (struct watch){ .kind = WATCH_SIGNAL, .fd = open_signals() };
    guest.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (guest.signals.fd < 0 || guest.epoll_fd < 0 || fcntl(CONTROL_FD, F_SETFD, FD_CLOEXEC) < 0)
        return 1;
    watch_set(guest.epoll_fd, &guest.signals, EPOLLIN);
    link_init(&guest.link, CONTROL_FD);
    guest.link.is_greeted = true;
    if (guest.is_inner)
        (void)message_put_numbers(&guest.link.out, FRAME_READY, 0, WIRE_VERSION, 0);
    for (;;) {
        int count;

        end_turn(&guest);
        count = wait_events(&guest, events);
        for (int i = 0; i < count; i++)
            event_dispatch(&guest, events[i].data.ptr, events[i].events);
        shell_tick(&guest);
    }
}
