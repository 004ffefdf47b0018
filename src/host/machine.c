// SPDX-License-Identifier: Apache-2.0
#include "host/machine.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "base/xalloc.h"
#include "host/host_internal.h"
#include "kernel/cgroup.h"
#include "store/template.h"
#include "store/volume.h"
#include "wire/message.h"

enum { ANSWER_TIMEOUT_S = 30 };

_Static_assert((int)TEMPLATE_TREES_MAX <= (int)MESSAGE_MOUNTS_MAX &&
                   (int)MESSAGE_MOUNTS_MAX <= (int)FRAME_FDS_MAX,
               "every tree of a template must fit a root message");

static struct machine *machine_of(struct channel *channel)
{
    return (struct machine *)(void *)((char *)channel - offsetof(struct machine, channel));
}

static void set_state(struct machine *machine, enum machine_state state)
{
    machine->state = state;
    (void)pthread_cond_broadcast(&machine->changed);
}

/* The guest could not boot or take its root. Locked. */
static bool take_failure(struct machine *machine, const struct frame *frame)
{
    struct message_failed failed;

    if (!message_get_failed(frame, &failed))
        return false;
    (void)err_set(&machine->failure, ERR_INTERNAL, "sandbox set-up: %.200s", failed.text);
    set_state(machine, MACHINE_FAILED);
    process_end_all(machine);
    return true;
}

static bool on_frame(struct channel *channel, const struct frame *frame)
{
    struct machine *machine = machine_of(channel);
    bool is_ok = true;

    if (frame->process != 0)
        return process_frame(machine, frame);
    (void)pthread_mutex_lock(&machine->lock);
    if (frame->type == FRAME_READY && machine->state == MACHINE_BOOTING)
        set_state(machine, MACHINE_BLANK);
    else if (frame->type == FRAME_ROOTED && machine->state == MACHINE_BLANK)
        set_state(machine, MACHINE_WARM);
    else if (frame->type == FRAME_FAILED)
        is_ok = take_failure(machine, frame);
    else if (frame->type != FRAME_READY && frame->type != FRAME_ROOTED)
        is_ok = false;
    (void)pthread_mutex_unlock(&machine->lock);
    return is_ok;
}

static void on_gone(struct channel *channel)
{
    struct machine *machine = machine_of(channel);
    bool was_warm;

    (void)pthread_mutex_lock(&machine->lock);
    was_warm = machine->state == MACHINE_WARM;
    machine->is_gone = true;
    if (machine->state != MACHINE_ENDED && machine->state != MACHINE_FAILED) {
        (void)err_set(&machine->failure, ERR_INTERNAL, "the sandbox's init ended unexpectedly");
        set_state(machine, MACHINE_FAILED);
    }
    process_end_all(machine);
    (void)pthread_cond_broadcast(&machine->changed);
    (void)pthread_mutex_unlock(&machine->lock);
    if (was_warm)
        pool_note_death(machine->host->pool);
    machine_unref(machine);
}

static const struct channel_events events = { .frame = on_frame, .gone = on_gone };

static void make_id(char *id, size_t size)
{
    unsigned char bytes[6] = { 0 };

    (void)!getrandom(bytes, sizeof(bytes), 0);
    (void)snprintf(id, size, "sb-%02x%02x%02x%02x%02x%02x", bytes[0], bytes[1], bytes[2], bytes[3],
                   bytes[4], bytes[5]);
}

static struct machine *machine_new(struct host *host, unsigned uid_slot)
{
    struct machine *machine = xcalloc(1, sizeof(*machine));

    machine->host = host;
    machine->uid_slot = uid_slot;
    atomic_init(&machine->refs, 1);
    machine->channel.source.fd = -EBADF;
    make_id(machine->id, sizeof(machine->id));
    (void)pthread_mutex_init(&machine->lock, NULL);
    (void)pthread_cond_init(&machine->changed, NULL);
    return machine;
}

static void machine_free(struct machine *machine)
{
    channel_done(&machine->channel);
    (void)pthread_cond_destroy(&machine->changed);
    (void)pthread_mutex_destroy(&machine->lock);
    free(machine);
}

int machine_start_blank(struct host *host, const struct runtime_ops *ops, struct machine **ret,
                        struct err *err)
{
    struct machine *machine;
    int slot = host_take_uids(host), r;

    if (slot < 0)
        return err_set(err, ERR_EXHAUSTED, "all ranges of user ids are in use");
    machine = machine_new(host, (unsigned)slot);
    r = runtime_start(host->runtime, ops, machine->id, host_first_uid((unsigned)slot),
                      &machine->guest, err);
    if (r < 0) {
        host_return_uids(host, (unsigned)slot);
        machine_free(machine);
        return r;
    }
    (void)machine_ref(machine); /* the channel's */
    r = channel_start(&machine->channel, host->reactor, TAKE_FD(machine->guest.stream_fd), &events);
    if (r < 0) {
        (void)err_sys(err, r, "watch sandbox '%s'", machine->id);
        on_gone(&machine->channel);
        /* One reference went with the channel; the analyzer does not count them. */
        machine_destroy(machine); // NOLINT(clang-analyzer-unix.Malloc)
        machine_unref(machine);
        return r;
    }
    *ret = machine;
    return 0;
}

int machine_wait(struct machine *machine, enum machine_state state, struct err *err)
{
    struct timespec deadline;
    int r = 0;

    (void)clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += ANSWER_TIMEOUT_S;
    (void)pthread_mutex_lock(&machine->lock);
    while (r == 0 && machine->state < state)
        r = -pthread_cond_timedwait(&machine->changed, &machine->lock, &deadline);
    if (r == -ETIMEDOUT && machine->state < state)
        r = err_set(err, ERR_INTERNAL, "holt-init did not answer within %d s", ANSWER_TIMEOUT_S);
    else if (machine->state != state) {
        *err = machine->failure;
        r = -EIO;
    } else
        r = 0;
    (void)pthread_mutex_unlock(&machine->lock);
    return r;
}

static int make_volume(struct machine *machine, const char *template_name, struct volume **ret,
                       struct err *err)
{
    struct host *host = machine->host;
    cleanup_free char *name = xasprintf("%s-%s", machine->id, template_name);
    struct template *template;
    int r = template_open(host->store, template_name, &template, err);

    if (r < 0)
        return r;
    r = volume_create_scratch(host->store, name, template, ret, err);
    if (r < 0)
        template_close(template);
    return r;
}

/* Sends the root; that it was taken is not awaited, a process may be sent right behind it. */
static int send_root(struct machine *machine, const struct volume_mounts *mounts, struct err *err)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(FRAME_FROM_DAEMON_MAX);
    struct message_root message = { .hostname = machine->id, .mount_count = mounts->count };
    int r;

    memcpy(message.targets, mounts->targets, sizeof(mounts->targets[0]) * mounts->count);
    r = message_put_root(&out, &message);
    if (r == 0)
        r = channel_send(&machine->channel, &out, mounts->fds, mounts->count);
    return r < 0 ? err_sys(err, r, "hand the root to sandbox '%s'", machine->id) : 0;
}

static int set_limits(struct machine *machine, const struct sandbox_limits *limits, struct err *err)
{
    const struct sandbox_limits *defaults = &machine->host->default_limits;
    struct cgroup_limits values = {
        .memory_bytes = limits->memory_bytes ? limits->memory_bytes : defaults->memory_bytes,
        .cpu_millis = limits->cpu_millis ? limits->cpu_millis : defaults->cpu_millis,
        .pids = limits->pids ? limits->pids : defaults->pids,
    };

    /* What Holt itself runs in there is not the sandbox's to count. */
    if (values.pids)
        values.pids += runtime_guest_own_processes(&machine->guest);

    return cgroup_set_limits(machine->host->cgroups, machine->guest.limits_group, &values, err);
}

int machine_furnish(struct machine *machine, const char *template, struct err *err)
{
    cleanup_with(volume_mounts_done) struct volume_mounts mounts = { .count = 0 };
    const struct runtime_guest *guest = &machine->guest;
    struct volume *volume;
    int r = make_volume(machine, template, &volume, err);

    if (r < 0)
        return r;
    machine->old_volume = machine->volume;
    machine->volume = volume;
    (void)snprintf(machine->template, sizeof(machine->template), "%s", template);
    r = volume_mount(volume, guest->userns_fd, guest->first_uid, &mounts, err);
    return r < 0 ? r : send_root(machine, &mounts, err);
}

void machine_drop_volume(struct machine *machine)
{
    (void)volume_destroy(TAKE_PTR(machine->old_volume));
    (void)volume_destroy(TAKE_PTR(machine->volume));
}

static void enter_table(struct machine *machine)
{
    struct host *host = machine->host;

    (void)pthread_mutex_lock(&host->lock);
    machine->next = host->sandboxes;
    host->sandboxes = machine_ref(machine);
    (void)pthread_mutex_unlock(&host->lock);
}

/* Whether it was there; the table's reference is then the caller's. */
static bool leave_table(struct machine *machine)
{
    struct host *host = machine->host;
    struct machine **slot = &host->sandboxes;
    bool was_there;

    (void)pthread_mutex_lock(&host->lock);
    while (*slot && *slot != machine)
        slot = &(*slot)->next;
    was_there = *slot;
    if (was_there)
        *slot = machine->next;
    (void)pthread_mutex_unlock(&host->lock);
    return was_there;
}

static int check_limits(const struct sandbox_limits *limits, struct err *err)
{
    enum { MEMORY_MIN = 4 << 20, CPU_MIN = 10 };

    if (limits->memory_bytes && limits->memory_bytes < MEMORY_MIN)
        return err_set(err, ERR_INVALID, "the memory limit must be at least %d MiB",
                       MEMORY_MIN >> 20);
    if (limits->cpu_millis && limits->cpu_millis < CPU_MIN)
        return err_set(err, ERR_INVALID, "the CPU limit must be at least 0.01");
    return 0;
}

static int find_runtime(const struct host *host, const char *name, const struct runtime_ops **ret,
                        struct err *err)
{
    int r = 0;

    *ret = host->default_runtime;
    if (name)
        r = runtime_find(name, ret, err);
    return r < 0 ? r : (*ret)->probe(err);
}

/* The template that this create wants, which is also what the pool will have ready next. */
static int choose_template(struct host *host, const char *wanted, char *ret, struct err *err)
{
    const char *name = wanted ? wanted : host->default_template;

    if (!is_name(name))
        return err_set(err, ERR_INVALID, "'%.80s' is not a template name", name);
    (void)snprintf(ret, TEMPLATE_NAME_MAX + 1, "%s", name);
    return 0;
}

static void note_warm_template(struct host *host, const char *template)
{
    (void)pthread_mutex_lock(&host->lock);
    (void)snprintf(host->warm_template, sizeof(host->warm_template), "%s", template);
    (void)pthread_mutex_unlock(&host->lock);
}

/* From the pool if it has one, made now if not. */
static int obtain(struct host *host, const struct runtime_ops *ops, const char *template,
                  struct machine **ret, struct err *err)
{
    struct machine *machine = pool_take(host->pool, ops, template);
    int r = 0;

    if (!machine)
        r = machine_start_blank(host, ops, &machine, err);
    if (r < 0)
        return r;
    assert(machine);
    if (strcmp(machine->template, template) != 0)
        r = machine_furnish(machine, template, err);
    if (r < 0) {
        machine_destroy(machine);
        machine_unref(machine);
        return r;
    }
    *ret = machine;
    return 0;
}

static int activate(struct machine *machine, const struct sandbox_limits *limits, struct err *err)
{
    int r = set_limits(machine, limits, err);

    if (r < 0)
        return r;
    (void)pthread_mutex_lock(&machine->lock);
    if (machine->state < MACHINE_ACTIVE)
        set_state(machine, MACHINE_ACTIVE);
    (void)pthread_mutex_unlock(&machine->lock);
    enter_table(machine);
    return 0;
}

static int create_admitted(struct host *host, const struct runtime_ops *ops, const char *template,
                           const struct sandbox_limits *limits, struct machine **ret,
                           struct err *err)
{
    struct machine *machine = NULL;
    int r = obtain(host, ops, template, &machine, err);

    if (r < 0)
        return r;
    assert(machine);
    r = activate(machine, limits, err);
    if (r < 0) {
        machine_destroy(machine);
        machine_unref(machine);
        return r;
    }
    note_warm_template(host, template);
    *ret = machine;
    return 0;
}

int machine_create(struct host *host, const struct machine_spec *spec, struct machine **ret,
                   struct err *err)
{
    char template[TEMPLATE_NAME_MAX + 1];
    const struct runtime_ops *ops = NULL;
    int r = check_limits(&spec->limits, err);

    if (r == 0)
        r = choose_template(host, spec->template, template, err);
    if (r == 0)
        r = find_runtime(host, spec->runtime, &ops, err);
    if (r == 0)
        r = host_admit(host, err);
    if (r < 0)
        return r;
    r = create_admitted(host, ops, template, &spec->limits, ret, err);
    if (r < 0)
        host_dismiss(host);
    return r;
}

int machine_find(struct host *host, const char *id, struct machine **ret, struct err *err)
{
    struct machine *machine;

    (void)pthread_mutex_lock(&host->lock);
    machine = host->sandboxes;
    while (machine && strcmp(machine->id, id) != 0)
        machine = machine->next;
    if (machine)
        (void)machine_ref(machine);
    (void)pthread_mutex_unlock(&host->lock);
    if (!machine)
        return err_set(err, ERR_NOT_FOUND, "no sandbox '%.40s'", id);
    *ret = machine;
    return 0;
}

const char *machine_id(const struct machine *machine)
{
    return machine->id;
}

void machine_destroy(struct machine *machine)
{
    bool is_first;

    (void)pthread_mutex_lock(&machine->lock);
    is_first = machine->state != MACHINE_ENDED;
    set_state(machine, MACHINE_ENDED);
    (void)pthread_mutex_unlock(&machine->lock);
    if (!is_first)
        return;
    runtime_guest_kill(&machine->guest);
    if (leave_table(machine))
        host_dismiss(machine->host);
    else
        (void)machine_ref(machine);
    host_reap_later(machine->host, machine);
}

void machine_reap(struct machine *machine)
{
    struct host *host = machine->host;

    (void)runtime_guest_done(&machine->guest);
    (void)pthread_mutex_lock(&machine->lock);
    while (!machine->is_gone)
        (void)pthread_cond_wait(&machine->changed, &machine->lock);
    (void)pthread_mutex_unlock(&machine->lock);
    process_drop_all(machine);
    machine_drop_volume(machine);
    host_return_uids(host, machine->uid_slot);
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
