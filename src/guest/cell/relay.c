// SPDX-License-Identifier: Apache-2.0
#include "guest/cell/relay.h"

#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "guest/cell/cell.h"
#include "wire/message.h"

struct relay *relay_find(const struct cell *cell, uint32_t id)
{
    struct relay *relay = cell->relays;

    while (relay && relay->id != id)
        relay = relay->next;
    return relay;
}

/* Waits for a signal that ends it. */
static _Noreturn void stand_in_main(void)
{
    static const uint64_t no_signals;

    (void)prctl(PR_SET_NAME, "holt-stand-in", 0, 0, 0);
    (void)syscall(SYS_close_range, 0, ~0U, 0);
    (void)setsid();
    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &no_signals, NULL, sizeof(no_signals));
    for (;;)
        (void)pause();
}

void relay_stand_in(struct relay *relay)
{
    struct clone_args args = { .flags = CLONE_INTO_CGROUP,
                               .exit_signal = SIGCHLD,
                               .cgroup = (uint64_t)relay->cgroup_fd };
    long pid = syscall(SYS_clone3, &args, sizeof(args));

    if (pid == 0)
        stand_in_main();
    relay->stand_in = pid > 0 ? (pid_t)pid : 0;
}

struct relay *relay_add(struct cell *cell, uint32_t id, int cgroup_fd)
{
    struct relay *relay = xcalloc(1, sizeof(*relay));

    relay->id = id;
    relay->cgroup_fd = cgroup_fd;
    relay->next = cell->relays;
    cell->relays = relay;
    relay_stand_in(relay);
    return relay;
}

void relay_end(struct relay *relay)
{
    relay->is_over = true;
    if (relay->stand_in > 0)
        (void)kill(relay->stand_in, SIGKILL);
    relay->stand_in = 0;
    relay->cgroup_fd = fd_close(relay->cgroup_fd);
}

void relay_free(struct cell *cell, struct relay *relay)
{
    struct relay **slot = &cell->relays;

    while (*slot != relay)
        slot = &(*slot)->next;
    *slot = relay->next;
    relay_end(relay);
    free(relay);
}

void relay_note_request(struct relay *relay, const struct frame *frame)
{
    uint64_t stream, offset;

    if (frame->type == FRAME_ACK && message_get_numbers(frame, &stream, &offset) &&
        stream < STREAM_COUNT)
        relay->acked[stream] = offset;
}

bool relay_note_reply(struct relay *relay, const struct frame *frame)
{
    uint64_t pid, none;

    switch ((int)frame->type) {
    case FRAME_STARTED:
        if (!message_get_numbers(frame, &pid, &none))
            return false;
        relay->is_started = true;
        relay->pid = (uint32_t)pid;
        return true;
    case FRAME_EXITED:
        relay_end(relay);
        return true;
    case FRAME_FAILED:
    case FRAME_OUTPUT:
    case FRAME_INPUT_ACK:
    case FRAME_STATE:
    case FRAME_SHELL_DONE:
        return true;
    default:
        return false;
    }
}

int relay_put_state(const struct relay *relay, struct buf *out)
{
    struct message_state state = { .pid = relay->pid,
                                   .has_terminal = relay->has_terminal,
                                   .is_exited = true,
                                   .is_shell = relay->is_shell };

    for (int i = 0; i < STREAM_COUNT; i++)
        state.acked[i] = state.produced[i] = relay->acked[i];
    return message_put_state(out, relay->id, &state);
}

int relay_put_loss(const struct relay *relay, struct buf *out)
{
    const struct message_failed failed = { .step = FAILED_SETUP,
                                           .errnum = EIO,
                                           .text = "the gVisor container ended" };
    const struct message_exited exited = { .status = SIGKILL };

    return relay->is_started ? message_put_exited(out, relay->id, &exited)
                             : message_put_failed(out, relay->id, &failed);
}
