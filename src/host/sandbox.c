// SPDX-License-Identifier: Apache-2.0
#include "host/sandbox.h"

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

static struct sandbox *sandbox_of(struct channel *channel)
{
    return (struct sandbox *)(void *)((char *)channel - offsetof(struct sandbox, channel));
}

static void set_state(struct sandbox *sandbox, enum sandbox_state state)
{
    sandbox->state = state;
    (void)pthread_cond_broadcast(&sandbox->changed);
}

/* The guest could not boot or take its root. Locked. */
static bool take_failure(struct sandbox *sandbox, const struct frame *frame)
{
    struct message_failed failed;

    if (!message_get_failed(frame, &failed))
        return false;
    (void)err_set(&sandbox->failure, ERR_INTERNAL, "sandbox set-up: %.200s", failed.text);
    set_state(sandbox, SANDBOX_FAILED);
    process_end_all(sandbox);
    return true;
}

static bool on_frame(struct channel *channel, const struct frame *frame)
{
    struct sandbox *sandbox = sandbox_of(channel);
    bool is_ok = true;

    if (frame->process != 0)
        return process_frame(sandbox, frame);
    (void)pthread_mutex_lock(&sandbox->lock);
    if (frame->type == FRAME_READY && sandbox->state == SANDBOX_BOOTING)
        set_state(sandbox, SANDBOX_BLANK);
    else if (frame->type == FRAME_ROOTED && sandbox->state == SANDBOX_BLANK)
        set_state(sandbox, SANDBOX_WARM);
    else if (frame->type == FRAME_FAILED)
        is_ok = take_failure(sandbox, frame);
    else if (frame->type != FRAME_READY && frame->type != FRAME_ROOTED)
        is_ok = false;
    (void)pthread_mutex_unlock(&sandbox->lock);
    return is_ok;
}

static void on_gone(struct channel *channel)
{
    struct sandbox *sandbox = sandbox_of(channel);
    bool was_warm;

    (void)pthread_mutex_lock(&sandbox->lock);
    was_warm = sandbox->state == SANDBOX_WARM;
    sandbox->is_gone = true;
    if (sandbox->state != SANDBOX_ENDED && sandbox->state != SANDBOX_FAILED) {
        (void)err_set(&sandbox->failure, ERR_INTERNAL, "the sandbox's init ended unexpectedly");
        set_state(sandbox, SANDBOX_FAILED);
    }
    process_end_all(sandbox);
    (void)pthread_cond_broadcast(&sandbox->changed);
    (void)pthread_mutex_unlock(&sandbox->lock);
    if (was_warm)
        pool_note_death(sandbox->host->pool);
    sandbox_unref(sandbox);
}

static const struct channel_events events = { .frame = on_frame, .gone = on_gone };

static void make_id(char *id, size_t size)
{
    unsigned char bytes[6] = { 0 };

    (void)!getrandom(bytes, sizeof(bytes), 0);
    (void)snprintf(id, size, "sb-%02x%02x%02x%02x%02x%02x", bytes[0], bytes[1], bytes[2], bytes[3],
                   bytes[4], bytes[5]);
}

static struct sandbox *sandbox_new(struct host *host, unsigned uid_slot)
{
    struct sandbox *sandbox = xcalloc(1, sizeof(*sandbox));

    sandbox->host = host;
    sandbox->uid_slot = uid_slot;
    atomic_init(&sandbox->refs, 1);
    sandbox->channel.source.fd = -EBADF;
    make_id(sandbox->id, sizeof(sandbox->id));
    (void)pthread_mutex_init(&sandbox->lock, NULL);
    (void)pthread_cond_init(&sandbox->changed, NULL);
    return sandbox;
}

static void sandbox_free(struct sandbox *sandbox)
{
    channel_done(&sandbox->channel);
    (void)pthread_cond_destroy(&sandbox->changed);
    (void)pthread_mutex_destroy(&sandbox->lock);
    free(sandbox);
}

int sandbox_start_blank(struct host *host, const struct runtime_ops *ops, struct sandbox **ret,
                        struct err *err)
{
    struct sandbox *sandbox;
    int slot = host_take_uids(host), r;

    if (slot < 0)
        return err_set(err, ERR_EXHAUSTED, "all ranges of user ids are in use");
    sandbox = sandbox_new(host, (unsigned)slot);
    r = runtime_start(host->runtime, ops, sandbox->id, host_first_uid((unsigned)slot),
                      &sandbox->guest, err);
    if (r < 0) {
        host_return_uids(host, (unsigned)slot);
        sandbox_free(sandbox);
        return r;
    }
    (void)sandbox_ref(sandbox); /* the channel's */
    r = channel_start(&sandbox->channel, host->reactor, TAKE_FD(sandbox->guest.stream_fd), &events);
    if (r < 0) {
        (void)err_sys(err, r, "watch sandbox '%s'", sandbox->id);
        on_gone(&sandbox->channel);
        /* One reference went with the channel; the analyzer does not count them. */
        sandbox_destroy(sandbox); // NOLINT(clang-analyzer-unix.Malloc)
        sandbox_unref(sandbox);
        return r;
    }
    *ret = sandbox;
    return 0;
}

int sandbox_wait(struct sandbox *sandbox, enum sandbox_state state, struct err *err)
{
    struct timespec deadline;
    int r = 0;

    (void)clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += ANSWER_TIMEOUT_S;
    (void)pthread_mutex_lock(&sandbox->lock);
    while (r == 0 && sandbox->state < state)
        r = -pthread_cond_timedwait(&sandbox->changed, &sandbox->lock, &deadline);
    if (r == -ETIMEDOUT && sandbox->state < state)
        r = err_set(err, ERR_INTERNAL, "holt-init did not answer within %d s", ANSWER_TIMEOUT_S);
    else if (sandbox->state != state) {
        *err = sandbox->failure;
        r = -EIO;
    } else
        r = 0;
    (void)pthread_mutex_unlock(&sandbox->lock);
    return r;
}

static int make_volume(struct sandbox *sandbox, const char *template_name, struct volume **ret,
                       struct err *err)
{
    struct host *host = sandbox->host;
    cleanup_free char *name = xasprintf("%s-%s", sandbox->id, template_name);
    struct template *template;
    int r = template_open(host->store, template_name, &template, err);

    if (r < 0)
        return r;
    r = volume_create(host->store, name, template, ret, err);
    if (r < 0)
        template_close(template);
    return r;
}

/* Sends the root; that it was taken is not awaited, a process may be sent right behind it. */
static int send_root(struct sandbox *sandbox, const struct volume_mounts *mounts, struct err *err)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(FRAME_FROM_DAEMON_MAX);
    struct message_root message = { .hostname = sandbox->id, .mount_count = mounts->count };
    int r;

    memcpy(message.targets, mounts->targets, sizeof(mounts->targets[0]) * mounts->count);
    r = message_put_root(&out, &message);
    if (r == 0)
        r = channel_send(&sandbox->channel, &out, mounts->fds, mounts->count);
    return r < 0 ? err_sys(err, r, "hand the root to sandbox '%s'", sandbox->id) : 0;
}

static int set_limits(struct sandbox *sandbox, const struct sandbox_limits *limits, struct err *err)
{
    const struct sandbox_limits *defaults = &sandbox->host->default_limits;
    struct cgroup_limits values = {
        .memory_bytes = limits->memory_bytes ? limits->memory_bytes : defaults->memory_bytes,
        .cpu_millis = limits->cpu_millis ? limits->cpu_millis : defaults->cpu_millis,
        .pids = limits->pids ? limits->pids : defaults->pids,
    };

    /* What Holt itself runs in there is not the sandbox's to count. */
    if (values.pids)
        values.pids += runtime_guest_own_processes(&sandbox->guest);

    return cgroup_set_limits(sandbox->host->cgroups, sandbox->guest.limits_group, &values, err);
}

int sandbox_furnish(struct sandbox *sandbox, const char *template, struct err *err)
{
    cleanup_with(volume_mounts_done) struct volume_mounts mounts = { .count = 0 };
    const struct runtime_guest *guest = &sandbox->guest;
    struct volume *volume;
    int r = make_volume(sandbox, template, &volume, err);

    if (r < 0)
        return r;
    sandbox->old_volume = sandbox->volume;
    sandbox->volume = volume;
    (void)snprintf(sandbox->template, sizeof(sandbox->template), "%s", template);
    r = volume_mount(volume, guest->userns_fd, guest->first_uid, &mounts, err);
    return r < 0 ? r : send_root(sandbox, &mounts, err);
}

void sandbox_drop_volume(struct sandbox *sandbox)
{
    (void)volume_destroy(TAKE_PTR(sandbox->old_volume));
    (void)volume_destroy(TAKE_PTR(sandbox->volume));
}

static void enter_table(struct sandbox *sandbox)
{
    struct host *host = sandbox->host;

    (void)pthread_mutex_lock(&host->lock);
    sandbox->next = host->sandboxes;
    host->sandboxes = sandbox_ref(sandbox);
    (void)pthread_mutex_unlock(&host->lock);
}

/* Whether it was there; the table's reference is then the caller's. */
static bool leave_table(struct sandbox *sandbox)
{
    struct host *host = sandbox->host;
    struct sandbox **slot = &host->sandboxes;
    bool was_there;

    (void)pthread_mutex_lock(&host->lock);
    while (*slot && *slot != sandbox)
        slot = &(*slot)->next;
    was_there = *slot;
    if (was_there)
        *slot = sandbox->next;
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
                  struct sandbox **ret, struct err *err)
{
    struct sandbox *sandbox = pool_take(host->pool, ops, template);
    int r = 0;

    if (!sandbox)
        r = sandbox_start_blank(host, ops, &sandbox, err);
    if (r < 0)
        return r;
    assert(sandbox);
    if (strcmp(sandbox->template, template) != 0)
        r = sandbox_furnish(sandbox, template, err);
    if (r < 0) {
        sandbox_destroy(sandbox);
        sandbox_unref(sandbox);
        return r;
    }
    *ret = sandbox;
    return 0;
}

static int activate(struct sandbox *sandbox, const struct sandbox_limits *limits, struct err *err)
{
    int r = set_limits(sandbox, limits, err);

    if (r < 0)
        return r;
    (void)pthread_mutex_lock(&sandbox->lock);
    if (sandbox->state < SANDBOX_ACTIVE)
        set_state(sandbox, SANDBOX_ACTIVE);
    (void)pthread_mutex_unlock(&sandbox->lock);
    enter_table(sandbox);
    return 0;
}

static int create_admitted(struct host *host, const struct runtime_ops *ops, const char *template,
                           const struct sandbox_limits *limits, struct sandbox **ret,
                           struct err *err)
{
    struct sandbox *sandbox = NULL;
    int r = obtain(host, ops, template, &sandbox, err);

    if (r < 0)
        return r;
    assert(sandbox);
    r = activate(sandbox, limits, err);
    if (r < 0) {
        sandbox_destroy(sandbox);
        sandbox_unref(sandbox);
        return r;
    }
    note_warm_template(host, template);
    *ret = sandbox;
    return 0;
}

int sandbox_create(struct host *host, const struct sandbox_spec *spec, struct sandbox **ret,
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

int sandbox_find(struct host *host, const char *id, struct sandbox **ret, struct err *err)
{
    struct sandbox *sandbox;

    (void)pthread_mutex_lock(&host->lock);
    sandbox = host->sandboxes;
    while (sandbox && strcmp(sandbox->id, id) != 0)
        sandbox = sandbox->next;
    if (sandbox)
        (void)sandbox_ref(sandbox);
    (void)pthread_mutex_unlock(&host->lock);
    if (!sandbox)
        return err_set(err, ERR_NOT_FOUND, "no sandbox '%.40s'", id);
    *ret = sandbox;
    return 0;
}

const char *sandbox_id(const struct sandbox *sandbox)
{
    return sandbox->id;
}

void sandbox_destroy(struct sandbox *sandbox)
{
    bool is_first;

    (void)pthread_mutex_lock(&sandbox->lock);
    is_first = sandbox->state != SANDBOX_ENDED;
    set_state(sandbox, SANDBOX_ENDED);
    (void)pthread_mutex_unlock(&sandbox->lock);
    if (!is_first)
        return;
    runtime_guest_kill(&sandbox->guest);
    if (leave_table(sandbox))
        host_dismiss(sandbox->host);
    else
        (void)sandbox_ref(sandbox);
    host_reap_later(sandbox->host, sandbox);
}

void sandbox_reap(struct sandbox *sandbox)
{
    struct host *host = sandbox->host;

    (void)runtime_guest_done(&sandbox->guest);
    (void)pthread_mutex_lock(&sandbox->lock);
    while (!sandbox->is_gone)
        (void)pthread_cond_wait(&sandbox->changed, &sandbox->lock);
    (void)pthread_mutex_unlock(&sandbox->lock);
    process_drop_all(sandbox);
    sandbox_drop_volume(sandbox);
    host_return_uids(host, sandbox->uid_slot);
    sandbox_unref(sandbox);
}

struct sandbox *sandbox_ref(struct sandbox *sandbox)
{
    atomic_fetch_add(&sandbox->refs, 1);
    return sandbox;
}

void sandbox_unref(struct sandbox *sandbox)
{
    if (sandbox && atomic_fetch_sub(&sandbox->refs, 1) == 1)
        sandbox_free(sandbox);
}
