// SPDX-License-Identifier: Apache-2.0
#include "guest/cell/cell.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "guest/cell/launch.h"
#include "guest/cell/relay.h"
#include "guest/guest.h"
#include "guest/process/process.h"
#include "wire/message.h"

enum {
    IN_BUSY = 256 * 1024,       /* above this, frames wait in the socket */
    OUT_MAX = 32 * 1024 * 1024, /* input of many processes at once; the cell ends above this */
};

static bool cell_is_open(const struct cell *cell)
{
    return cell && cell->link.watch.fd >= 0;
}

/* Every process of the cell has ended with it. */
static void cell_end(struct guest *guest)
{
    struct cell *cell = guest->cell;

    if (cell->pid > 0)
        (void)kill(cell->pid, SIGKILL);
    watch_set(guest->epoll_fd, &cell->link.watch, 0);
    link_drop(&cell->link);
    cell->control_fd = fd_close(cell->control_fd);
    cell->is_ready = cell->is_stale = cell->is_entered = false;
    for (struct relay *relay = cell->relays; relay; relay = relay->next) {
        relay->is_lost = relay->is_lost || !relay->is_over;
        relay_end(relay);
    }
    if (cell->is_announcing) {
        cell->is_announcing = false;
        guest->link.is_greeted = message_put_numbers(&guest->link.out, FRAME_READY, 0, WIRE_VERSION,
                                                     guest->last_process) == 0;
    }
}

void cell_leave(struct guest *guest)
{
    if (cell_is_open(guest->cell) && guest->cell->is_entered)
        cell_end(guest);
}

/* Gives the container the root that the sandbox has now, unless it has it. */
static bool cell_enter(struct guest *guest)
{
    struct cell *cell = guest->cell;
    char hostname[HOST_NAME_MAX + 1] = "";

    if (cell->is_entered)
        return true;
    (void)gethostname(hostname, sizeof(hostname) - 1);
    cell->is_entered = cell_attach_root(cell->control_fd) == 0 &&
                       message_put_enter(&cell->link.out, hostname) == 0;
    if (!cell->is_entered)
        cell_end(guest);
    return cell->is_entered;
}

bool cell_open(struct guest *guest, const struct frame *frame, const int *fds)
{
    struct message_cell message;
    struct cell *cell = guest->cell;
    struct launched launched;

    if (frame->fds != CELL_FDS || !message_get_cell(frame, &message))
        return false;
    if (!guest->is_rooted || cell_is_open(cell))
        return true;
    if (!cell)
        cell = guest->cell = xcalloc(1, sizeof(*cell));
    cell->link.watch.fd = -EBADF;
    cell->control_fd = -EBADF;
    if (cell_launch(guest, message.platform, fds, &launched) < 0) {
        cell->pid = 0;
        return true; /* the spawn that follows fails */
    }
    cell->pid = launched.pid;
    cell->control_fd = launched.control_fd;
    link_init(&cell->link, launched.stream_fd);
    cell->link.out.max = OUT_MAX;
    cell->link.watch.kind = WATCH_CELL;
    watch_set(guest->epoll_fd, &cell->link.watch, EPOLLIN);
    return true;
}

static void cell_refuse(struct guest *guest, uint32_t id, int r, const char *text)
{
    const struct message_failed failed = { .step = FAILED_SETUP,
                                           .errnum = (uint32_t)-r,
                                           .text = text };

    (void)message_put_failed(&guest->link.out, id, &failed);
}

/* The inner holt-init gets the message as it is, but no descriptor. */
static int cell_forward_spawn(struct cell *cell, const struct frame *frame)
{
    size_t start = frame_begin(&cell->link.out, FRAME_SPAWN, frame->process, 0);

    return frame_end(&cell->link.out, start,
                     buf_add(&cell->link.out, frame->payload, frame->size) == 0);
}

void cell_spawn(struct guest *guest, const struct frame *frame, const int *fds)
{
    static struct message_spawn message; /* static: 32 KiB, and there is one thread */
    cleanup_close int cgroup_fd = frame->fds > 0 ? fds[0] : -EBADF;
    struct cell *cell = guest->cell;
    struct relay *relay;
    bool is_valid = message_get_spawn(frame, &message);

    if (guest->last_process < frame->process)
        guest->last_process = frame->process;
    if (!is_valid || cgroup_fd < 0) {
        cell_refuse(guest, frame->process, -EPROTO, strerror(EPROTO));
    } else if (!cell_is_open(cell) || !cell_enter(guest)) {
        cell_refuse(guest, frame->process, -EIO, "the gVisor container could not be started");
    } else if (process_find(guest, frame->process) || relay_find(cell, frame->process)) {
        cell_refuse(guest, frame->process, -EEXIST, strerror(EEXIST));
    } else if (cell_forward_spawn(cell, frame) < 0) {
        cell_refuse(guest, frame->process, -EAGAIN, strerror(EAGAIN));
    } else {
        relay = relay_add(cell, frame->process, TAKE_FD(cgroup_fd));
        relay->has_terminal = message.has_terminal;
        relay->is_shell = message.shell != SHELL_NONE;
    }
    message_spawn_done(&message);
}

/* Appends a frame without change. */
static int frame_copy(struct buf *out, const struct frame *frame)
{
    size_t start = frame_begin(out, frame->type, frame->process, 0);

    return frame_end(out, start, buf_add(out, frame->payload, frame->size) == 0);
}

bool cell_handle(struct guest *guest, const struct frame *frame)
{
    struct relay *relay = guest->cell ? relay_find(guest->cell, frame->process) : NULL;

    if (!relay)
        return false;
    relay_note_request(relay, frame);
    if (cell_is_open(guest->cell) && frame_copy(&guest->cell->link.out, frame) < 0)
        cell_end(guest);
    if (frame->type == FRAME_FORGET)
        relay_free(guest->cell, relay);
    return true;
}

/* Handles a frame about the inner holt-init itself. Returns false if it is not one that it sends.
 */
static bool cell_handle_own(struct guest *guest, const struct frame *frame)
{
    struct cell *cell = guest->cell;

    if (frame->type == FRAME_HELLO) {
        cell->is_stale = false;
        return true;
    }
    if (frame->type != FRAME_READY)
        return false;
    cell->is_ready = true;
    if (cell->is_announcing && !cell->is_stale) {
        cell->is_announcing = false;
        guest->link.is_greeted = true;
        return message_put_numbers(&guest->link.out, FRAME_READY, 0, WIRE_VERSION,
                                   guest->last_process) == 0;
    }
    return true;
}

/* A container that was taken over can send anything, but only about its own processes. */
static bool cell_handle_frame(struct guest *guest, const struct frame *frame)
{
    struct relay *relay;

    if (frame->fds != 0 || frame->size > FRAME_FROM_GUEST_MAX)
        return false;
    if (frame->process == 0)
        return cell_handle_own(guest, frame);
    relay = relay_find(guest->cell, frame->process);
    if (!relay)
        return true; /* the daemon has just forgotten it */
    if (!relay_note_reply(relay, frame))
        return false;
    if (!guest->cell->is_stale && frame_copy(&guest->link.out, frame) < 0)
        return false;
    if (frame->type == FRAME_FAILED)
        relay_free(guest->cell, relay);
    return true;
}

void cell_ready(struct guest *guest)
{
    struct cell *cell = guest->cell;

    if (cell_is_open(cell) && cell->link.in.len < IN_BUSY && link_receive(&cell->link) < 0) {
        cell_pump(guest); /* what it sent before its end */
        if (cell_is_open(cell))
            cell_end(guest);
    }
}

static bool cell_take_frame(struct guest *guest)
{
    struct link *link = &guest->cell->link;
    int fds[FRAME_FDS_MAX];
    struct frame frame;
    int r = link_next(link, &frame, fds);

    if (r > 0 && cell_handle_frame(guest, &frame)) {
        link_consume(link, &frame);
        return true;
    }
    if (r != 0)
        cell_end(guest);
    return false;
}

void cell_pump(struct guest *guest)
{
    struct cell *cell = guest->cell;

    if (!cell || guest->link.watch.fd < 0)
        return;
    while (cell_is_open(cell) && guest->link.out.len < LINK_OUT_BUSY && cell_take_frame(guest))
        continue;
    if (cell_is_open(cell) && link_flush(&cell->link) < 0)
        cell_end(guest);
    if (cell_is_open(cell))
        watch_set(guest->epoll_fd, &cell->link.watch,
                  (cell->link.in.len < IN_BUSY ? EPOLLIN : 0) |
                      (cell->link.out.len > 0 ? EPOLLOUT : 0) | EPOLLRDHUP);
    for (struct relay *relay = cell->relays, *next; relay; relay = next) {
        next = relay->next;
        if (guest->link.is_greeted && relay->is_lost && !relay->is_end_sent)
            relay->is_end_sent = relay_put_loss(relay, &guest->link.out) == 0;
        if (relay->is_end_sent && !relay->is_started)
            relay_free(cell, relay);
    }
}

static void stand_in_died(struct guest *guest, struct relay *relay, int status)
{
    struct cell *cell = guest->cell;
    int number = WIFSIGNALED(status) ? WTERMSIG(status) : SIGKILL;

    relay->stand_in = 0;
    if (relay->is_over || !cell_is_open(cell))
        return;
    if (!cell->is_ready || message_put_numbers(&cell->link.out, FRAME_SIGNAL, relay->id,
                                               (uint64_t)(number | SIGNAL_TREE), 0) < 0)
        cell_end(guest);
    else if (number != SIGKILL)
        relay_stand_in(relay);
}

bool cell_reap(struct guest *guest, pid_t pid, int status)
{
    struct cell *cell = guest->cell;

    if (!cell)
        return false;
    if (pid == cell->pid) {
        cell->pid = 0;
        cell_ready(guest);
        if (cell_is_open(cell))
            cell_end(guest);
        return true;
    }
    for (struct relay *relay = cell->relays; relay; relay = relay->next) {
        if (relay->stand_in == pid) {
            stand_in_died(guest, relay, status);
            return true;
        }
    }
    return false;
}

void cell_disconnect(struct guest *guest)
{
    struct cell *cell = guest->cell;

    if (!cell)
        return;
    cell->is_stale = true;
    cell->is_announcing = false;
    watch_set(guest->epoll_fd, &cell->link.watch, 0);
}

bool cell_announce(struct guest *guest, bool *ret_later)
{
    struct cell *cell = guest->cell;
    bool is_ok = true;

    *ret_later = false;
    if (!cell)
        return true;
    for (struct relay *relay = cell->relays; relay; relay = relay->next) {
        if (!relay->is_lost)
            continue;
        relay->is_end_sent = false;
        is_ok = is_ok && relay_put_state(relay, &guest->link.out) == 0;
    }
    if (!cell_is_open(cell))
        return is_ok;
    cell->is_announcing = *ret_later = true;
    if (message_put_numbers(&cell->link.out, FRAME_HELLO, 0, WIRE_VERSION, 0) < 0)
        cell_end(guest);
    return is_ok;
}
