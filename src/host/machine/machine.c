// SPDX-License-Identifier: Apache-2.0
#include "host/machine/machine.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/random.h"
#include "base/xalloc.h"
#include "host/core/host_internal.h"
#include "host/core/uids.h"
#include "host/machine/beside.h"
#include "host/machine/guest_socket.h"
#include "host/machine/machine_internal.h"
#include "host/machine/pool.h"
#include "host/net/net.h"
#include "host/process/processes.h"
#include "host/process/table.h"
#include "host/sandbox/expiry.h"
#include "host/secret/grant.h"
#include "host/view/view.h"
#include "store/volume/volume.h"
#include "wire/message.h"

enum {
    ANSWER_TIMEOUT_MS = 30000,
    REMOVE_TRIES = 60, /* of the reaper, in some seconds */
};

static struct machine *machine_of(struct channel *channel)
{
    return (struct machine *)(void *)((char *)channel - offsetof(struct machine, channel));
}

static void machine_set_state(struct machine *machine, enum machine_state state)
{
    machine->state = state;
    cond_broadcast(&machine->changed);
}

/* Handles the guest's report that it could not boot or switch to its root. The caller holds the
 * lock. */
static bool machine_on_failed(struct machine *machine, const struct frame *frame)
{
    struct message_failed failed;

    if (!message_get_failed(frame, &failed))
        return false;
    (void)err_set(&machine->failure, ERR_INTERNAL, "sandbox set-up: %.200s", failed.text);
    machine_set_state(machine, MACHINE_FAILED);
    process_end_all(machine);
    return true;
}

/* Handles the guest's reply to machine_enter; after a refusal it still has its old root. The caller
 * holds the lock. */
static bool machine_on_root_answer(struct machine *machine, const struct frame *frame)
{
    struct message_failed failed;

    if (frame->type == FRAME_FAILED) {
        if (!message_get_failed(frame, &failed))
            return false;
        /* No errno means that the request was invalid. */
        (void)err_set(&machine->failure, failed.errnum ? ERR_INTERNAL : ERR_INVALID, "%.200s",
                      failed.text);
    }
    machine->root_answer = frame->type == FRAME_ROOTED ? ROOT_TAKEN : ROOT_REFUSED;
    cond_broadcast(&machine->changed);
    return true;
}

/* The caller holds the lock. */
static bool machine_on_ready(struct machine *machine, const struct frame *frame)
{
    uint64_t version, last_process;

    if (!message_get_numbers(frame, &version, &last_process) || version != WIRE_VERSION ||
        last_process > UINT32_MAX)
        return false;
    if (machine->state == MACHINE_BOOTING) {
        if (machine->process_table)
            process_table_skip(machine->process_table, (uint32_t)last_process);
        machine_set_state(machine, MACHINE_BLANK);
    }
    return true;
}

/* The caller holds the lock. */
static bool machine_on_frame(struct machine *machine, const struct frame *frame)
{
    switch ((int)frame->type) {
    case FRAME_READY:
        return machine_on_ready(machine, frame);
    case FRAME_ROOTED:
        if (machine->root_answer == ROOT_AWAITED)
            return machine_on_root_answer(machine, frame);
        if (machine->state == MACHINE_BLANK)
            machine_set_state(machine, MACHINE_WARM);
        return true;
    case FRAME_FAILED:
        if (machine->root_answer == ROOT_AWAITED && machine->state != MACHINE_BOOTING)
            return machine_on_root_answer(machine, frame);
        return machine_on_failed(machine, frame);
    default:
        return false;
    }
}

static bool machine_dispatch_frame(struct channel *channel, const struct frame *frame)
{
    struct machine *machine = machine_of(channel);
    bool is_ok;

    if (frame_is_of_connection(frame->type))
        return port_frame(machine, frame);
    if (frame->process != 0)
        return process_frame(machine, frame);
    lock_take(&machine->lock);
    is_ok = machine_on_frame(machine, frame);
    lock_release(&machine->lock);
    return is_ok;
}

static void machine_on_gone(struct channel *channel)
{
    struct machine *machine = machine_of(channel);
    struct host *host = machine->host;
    bool was_warm;

    lock_take(&machine->lock);
    was_warm = machine->state == MACHINE_WARM;
    machine->is_gone = true;
    if (machine->state != MACHINE_ENDED && machine->state != MACHINE_FAILED) {
        (void)err_set(&machine->failure, ERR_INTERNAL, "holt-init ended unexpectedly");
        machine_set_state(machine, MACHINE_FAILED);
    }
    process_end_all(machine);
    cond_broadcast(&machine->changed);
    lock_release(&machine->lock);
    port_cut(machine);
    if (was_warm)
        pool_note_death(host->pool);
    expiry_wake(host->expiry);
    machine_unref(machine);
}

static const struct channel_events machine_events = { .frame = machine_dispatch_frame,
                                                      .gone = machine_on_gone };

static void machine_make_id(char *id, size_t size)
{
    (void)snprintf(id, size, "sb-%012" PRIx64, random_u64() >> 16);
}

static struct machine *machine_new(struct host *host)
{
    struct machine *machine = xcalloc(1, sizeof(*machine));

    machine->host = host;
    atomic_init(&machine->refs, 1);
    machine->channel.source.fd = -EBADF;
    machine->meter = (struct cgroup_meter)CGROUP_METER_INIT;
    file_pool_init(&machine->files, machine, false);
    file_pool_init(&machine->tools, machine, true);
    lock_init(&machine->lock, LOCK_MACHINE);
    cond_init(&machine->changed);
    return machine;
}

static void machine_free(struct machine *machine)
{
    channel_done(&machine->channel);
    view_stop(machine->view);
    process_table_unref(machine->process_table);
    port_table_done(&machine->ports);
    file_pool_done(&machine->files);
    file_pool_done(&machine->tools);
    cgroup_meter_close(&machine->meter);
    secret_env_free(machine->env);
    machine_unref(machine->beside);
    cond_destroy(&machine->changed);
    lock_destroy(&machine->lock);
    free(machine);
}

static int machine_watch(struct machine *machine, struct err *err)
{
    int r;

    (void)machine_ref(machine); /* the channel's reference */
    r = channel_start(&machine->channel, machine->host->reactor, TAKE_FD(machine->guest.stream_fd),
                      &machine_events);
    if (r >= 0)
        return 0;
    (void)err_sys(err, r, "start the channel of machine '%s'", machine->id);
    machine_on_gone(&machine->channel);
    /* The channel has given its reference back; the analyzer does not count references. */
    machine_destroy(machine); // NOLINT(clang-analyzer-unix.Malloc)
    machine_unref(machine);
    return r;
}

static int machine_start(struct machine *machine, const struct runtime_ops *ops,
                         struct machine **ret, struct err *err)
{
    struct host *host = machine->host;
    int r;

    if (machine->beside) {
        machine_beside_id(machine->beside->id, machine->id);
        r = runtime_start_beside(host->runtime, ops, machine->id, &machine->beside->guest,
                                 &machine->guest, err);
    } else {
        machine_make_id(machine->id, sizeof(machine->id));
        r = runtime_start(host->runtime, ops, machine->id, host_first_uid(machine->uid_slot),
                          &machine->guest, err);
    }
    if (r < 0) {
        host_return_uids(host, machine);
        machine_free(machine);
        return r;
    }
    r = machine_watch(machine, err);
    if (r < 0)
        return r;
    machine_send_size(machine, NULL);
    *ret = machine;
    return 0;
}

int machine_start_blank(struct host *host, const struct runtime_ops *ops, struct machine **ret,
                        struct err *err)
{
    struct machine *machine = machine_new(host);
    int r = host_take_uids(host, machine);

    if (r < 0) {
        machine_free(machine);
        return err_refuse(err, CAUSE_CAPACITY_EXCEEDED, "all ranges of user ids are in use (%d)",
                          HOST_UID_RANGES);
    }
    return machine_start(machine, ops, ret, err);
}

int machine_start_shared(struct host *host, const struct runtime_ops *ops, uid_t first_uid,
                         struct machine **ret, struct err *err)
{
    struct machine *machine = machine_new(host);

    host_share_uids(host, machine, first_uid);
    return machine_start(machine, ops, ret, err);
}

/* The uids are those of the first machine. */
static void machine_set_beside(struct machine *machine, struct machine *first)
{
    machine->beside = machine_ref(first);
    host_share_uids(machine->host, machine, first->guest.first_uid);
}

int machine_start_beside(struct machine *first, const struct runtime_ops *ops, struct machine **ret,
                         struct err *err)
{
    struct machine *machine = machine_new(first->host);

    machine_set_beside(machine, first);
    return machine_start(machine, ops, ret, err);
}

/* Makes the guest of an adopted machine report its processes, and waits until it has. */
static int machine_exchange_hello(struct machine *machine, struct err *err)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(64);
    int r = message_put_numbers(&out, FRAME_HELLO, 0, WIRE_VERSION, 0);

    if (r == 0)
        r = channel_send(&machine->channel, &out, NULL, 0);
    if (r < 0)
        return err_sys(err, r, "send hello to machine '%s'", machine->id);
    r = machine_wait(machine, MACHINE_BLANK, err);
    if (r < 0)
        return r;
    process_adopt_groups(machine);
    machine_activate(machine);
    return 0;
}

static int machine_connect(struct machine *machine, const struct machine_adoption *adoption,
                           struct err *err)
{
    struct host *host = machine->host;
    struct runtime_adoption known = {
        .id = adoption->id,
        .limits_group = adoption->limits_group,
        .shares_limits = adoption->beside != NULL,
        .first_uid = host_first_uid(machine->uid_slot),
        .stream_fd = guest_socket_connect(host->guests_fd, adoption->id),
    };
    int r;

    if (known.stream_fd < 0)
        return err_sys(err, known.stream_fd, "connect to machine '%s'", adoption->id);
    r = runtime_adopt(host->runtime, adoption->ops, &known, &machine->guest, err);
    if (r < 0)
        (void)fd_close(known.stream_fd);
    return r;
}

int machine_adopt(struct host *host, const struct machine_adoption *adoption, struct machine **ret,
                  struct err *err)
{
    struct machine *machine = machine_new(host);
    int r;

    (void)snprintf(machine->id, sizeof(machine->id), "%s", adoption->id);
    machine->process_table = process_table_ref(adoption->process_table);
    machine->limit_files = adoption->files;
    if (adoption->beside)
        machine_set_beside(machine, adoption->beside);
    else
        host_claim_uids(host, machine, adoption->uid_slot);
    r = machine_connect(machine, adoption, err);
    if (r < 0) {
        host_return_uids(host, machine);
        machine_free(machine);
        return r;
    }
    r = machine_watch(machine, err);
    if (r < 0)
        return r;
    r = machine_exchange_hello(machine, err);
    if (r < 0) {
        machine_destroy(
            machine); // NOLINT(clang-analyzer-unix.Malloc): references, see machine_watch
        machine_unref(machine);
        return r;
    }
    *ret = machine;
    return 0;
}

void machine_activate(struct machine *machine)
{
    lock_take(&machine->lock);
    if (machine->state < MACHINE_ACTIVE)
        machine_set_state(machine, MACHINE_ACTIVE);
    lock_release(&machine->lock);
}

/* Waits until the machine is in this state or beyond. The caller holds the lock. */
static int machine_wait_locked(struct machine *machine, enum machine_state state, struct err *err)
{
    uint64_t deadline_ms = clock_after_ms(ANSWER_TIMEOUT_MS);

    while (machine->state < state &&
           cond_wait_until(&machine->changed, &machine->lock, deadline_ms))
        ;
    return machine->state < state
               ? err_set(err, ERR_INTERNAL, "holt-init did not answer within %d s",
                         ANSWER_TIMEOUT_MS / 1000)
               : 0;
}

int machine_wait(struct machine *machine, enum machine_state state, struct err *err)
{
    lock_scope(&machine->lock);
    int r = machine_wait_locked(machine, state, err);

    if (r == 0 && machine->state != state) {
        *err = machine->failure;
        r = -EIO;
    }
    return r;
}

int machine_wait_booted(struct machine *machine, struct err *err)
{
    lock_scope(&machine->lock);
    int r = machine_wait_locked(machine, MACHINE_BLANK, err);

    if (r == 0 && machine->state > MACHINE_ACTIVE) {
        *err = machine->failure;
        r = -EIO;
    }
    return r;
}

void machine_destroy(struct machine *machine)
{
    bool is_first;

    lock_take(&machine->lock);
    is_first = machine->state != MACHINE_ENDED;
    machine_set_state(machine, MACHINE_ENDED);
    lock_release(&machine->lock);
    if (!is_first)
        return;
    machine->needs_kill = runtime_guest_kill(&machine->guest) < 0;
    net_stop(machine->host->net, machine);
    if (machine_leave_table(machine))
        host_dismiss(machine->host, &machine->charge);
    else
        (void)machine_ref(machine);
    host_reap_later(machine->host, machine);
}

bool machine_exhaust(struct machine *machine, const struct err *reason)
{
    lock_scope(&machine->lock);

    if (machine->state >= MACHINE_FAILED)
        return false;
    (void)runtime_guest_kill(&machine->guest);
    machine->failure = *reason;
    machine->is_exhausted = true;
    machine_set_state(machine, MACHINE_FAILED);
    process_end_all(machine);
    return true;
}

static bool machine_is_gone(struct machine *machine)
{
    lock_scope(&machine->lock);

    return machine->is_gone;
}

bool machine_try_reap(struct machine *machine)
{
    if (machine->needs_kill)
        machine->needs_kill = runtime_guest_kill(&machine->guest) < 0;
    if (!runtime_guest_has_ended(&machine->guest) || !machine_is_gone(machine))
        return false;
    /* What cannot be removed for long is left to the next start of the daemon. */
    if (runtime_guest_try_remove(&machine->guest) < 0 && ++machine->remove_tries < REMOVE_TRIES)
        return false;
    machine->guest.pidfd = fd_close(machine->guest.pidfd); /* files may take long */
    guest_socket_remove(machine->host->guests_fd, machine->id);
    file_pool_close(&machine->files);
    file_pool_close(&machine->tools);
    process_drop_all(machine);
    if (!runtime_guest_is_heavy(&machine->guest))
        (void)runtime_guest_recycle(&machine->guest);
    lock_scope(&machine->lock);
    machine->is_reaped = true;
    cond_broadcast(&machine->changed);
    return true;
}

int machine_clean_some(struct machine *machine)
{
    if (volume_destroy_some(&machine->old_volume) == -EAGAIN ||
        volume_destroy_some(&machine->volume) == -EAGAIN)
        return -EAGAIN;
    (void)runtime_guest_recycle(&machine->guest);
    host_return_uids(machine->host, machine);
    host_note_reaped(machine->host);
    machine_unref(machine);
    return 0;
}

void machine_abandon(struct machine *machine)
{
    lock_scope(&machine->lock);

    machine->is_abandoned = true;
    cond_broadcast(&machine->changed);
}

bool machine_wait_reaped(struct machine *machine)
{
    lock_scope(&machine->lock);

    while (!machine->is_reaped && !machine->is_abandoned)
        cond_wait(&machine->changed, &machine->lock);
    return machine->is_reaped;
}

void machine_release(struct machine *machine)
{
    lock_take(&machine->lock);
    machine->is_released = true;
    machine_set_state(machine, MACHINE_ENDED);
    lock_release(&machine->lock);
    net_stop(machine->host->net, machine);
    view_release(TAKE_PTR(machine->view));
    (void)shutdown(machine->channel.source.fd, SHUT_RDWR);
    runtime_guest_release(&machine->guest);
    lock_take(&machine->lock);
    while (!machine->is_gone)
        cond_wait(&machine->changed, &machine->lock);
    lock_release(&machine->lock);
    file_pool_close(&machine->files);
    file_pool_close(&machine->tools);
    process_drop_all(machine);
    machine_drop_volume(machine);
    host_return_uids(machine->host, machine);
    machine_unref(machine);
}

struct machine *machine_ref(struct machine *machine)
{
    atomic_fetch_add(&machine->refs, 1);
    return machine;
}

void machine_unref(struct machine *machine)
{
    if (machine && atomic_fetch_sub(&machine->refs, 1) == 1)
        machine_free(machine);
}
