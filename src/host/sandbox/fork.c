// SPDX-License-Identifier: Apache-2.0
/* Creates sandboxes with the files of another.
 *
 * The first fork is copied from the original, the others from the first, which nothing writes to
 * until all have their files. So all forks are identical, whatever the original does in the
 * meantime. The registry records all of them in one transaction, so a crash of the daemon leaves
 * all or none. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/thread.h"
#include "base/xalloc.h"
#include "host/core/host_internal.h"
#include "host/machine/runtime_choice.h"
#include "host/observe/event_internal.h"
#include "host/observe/metrics_internal.h"
#include "host/owner/owner_internal.h"
#include "host/sandbox/network.h"
#include "host/sandbox/sandbox_internal.h"
#include "host/secret/grant.h"
#include "store/volume/volume.h"

enum { WORKERS_MAX = 8 };

/* State of one call of sandbox_fork. */
struct fork_batch {
    const struct fork_spec *spec;
    struct sandbox **made;
    size_t count;
    atomic_size_t next; /* index of the next fork to process */
    struct lock lock;
    int result; /* 0, or the first failure, described in err */
    struct err err;
    int (*step)(struct fork_batch *fork, struct sandbox *sandbox, struct err *err);
};

/* Gives a fork what the request asks for, and nothing of the original. */
static int fork_fill(struct sandbox *sandbox, const struct fork_spec *spec, size_t index,
                     struct err *err)
{
    struct host *host = sandbox->host;
    struct sandbox_info *info = &sandbox->info;
    const char *metadata = spec->metadata_list ? spec->metadata_list[index] : NULL;

    free(info->metadata);
    info->metadata = metadata ? xstrdup(metadata) : NULL;
    info->name[0] = info->request_key[0] = info->request_digest[0] = '\0';
    if (spec->name && spec->count == 1)
        (void)snprintf(info->name, sizeof(info->name), "%s", spec->name);
    else if (spec->name)
        (void)snprintf(info->name, sizeof(info->name), "%.120s-%hu", spec->name,
                       (unsigned short)(index + 1));
    if (spec->has_ttl) {
        info->expires_ms = spec->ttl_ms ? info->created_ms + spec->ttl_ms : 0;
        info->expire_action = spec->expire_action;
    }
    if (spec->network) {
        const struct network_holder holder = { info->owner, info->runtime, info->template };
        cleanup_free char *recorded = info->network;

        info->network = NULL;
        if (network_record_again(host, &holder, recorded, spec->network, &info->network, err) < 0)
            return -err->errnum;
    }
    if (info->secrets) {
        cleanup_free char *old = info->secrets;

        info->secrets = NULL;
        if (secret_grants_renew(old, &info->secrets, err) < 0)
            return -err->errnum;
    }
    if (permissions_assign(&spec->permissions, info, err) < 0)
        return -err->errnum;
    if (sandbox_labels_set(info, spec->labels, spec->label_count, err) < 0)
        return -err->errnum;
    return caller_check_labels(spec->caller, info->labels, info->label_count, err);
}

static struct sandbox *fork_new(struct sandbox *original)
{
    struct sandbox *sandbox = sandbox_new(original->host);
    struct sandbox_info *info = &sandbox->info;
    struct sandbox_info own = *info;
    uint64_t life_ms;

    lock_take(&original->lock);
    sandbox_info_copy(&original->info, info);
    life_ms = sandbox_life_ms(original);
    lock_release(&original->lock);
    memcpy(info->id, own.id, sizeof(info->id));
    info->expires_ms = life_ms ? own.created_ms + life_ms : 0;
    info->created_ms = info->last_active_ms = own.created_ms;
    info->state = SANDBOX_CREATING;
    info->machine[0] = info->base[0] = info->reason[0] = '\0';
    info->turns = info->snapshot_count = 0;
    info->generation = 1;
    return sandbox;
}

static void fork_set_failure(struct fork_batch *fork, int r, const struct err *err)
{
    lock_take(&fork->lock);
    if (fork->result == 0) {
        fork->result = r;
        fork->err = *err;
    }
    lock_release(&fork->lock);
}

static void fork_work(void *argument)
{
    struct fork_batch *fork = argument;
    struct err err = { 0 };
    size_t i;

    while ((i = atomic_fetch_add(&fork->next, 1)) < fork->count) {
        int r = fork->step(fork, fork->made[i], &err);

        if (r < 0)
            fork_set_failure(fork, r, &err);
    }
}

/* Runs the step for every fork from index first on, with up to WORKERS_MAX extra threads. */
static int fork_each(struct fork_batch *fork, size_t first,
                     int (*step)(struct fork_batch *fork, struct sandbox *sandbox, struct err *err))
{
    struct thread threads[WORKERS_MAX];
    size_t started = 0, wanted = fork->count - first;

    atomic_store(&fork->next, first);
    fork->step = step;
    while (started + 1 < wanted && started < WORKERS_MAX &&
           thread_start(&threads[started], "holt-fork", fork_work, fork) == 0)
        started++;
    fork_work(fork);
    while (started > 0)
        thread_join(&threads[--started]);
    return fork->result;
}

static int fork_copy_first(struct fork_batch *fork, struct sandbox *sandbox, struct err *err)
{
    return volume_fork(fork->made[0]->volume, NULL, sandbox->info.id, sandbox->info.quota_bytes,
                       &sandbox->volume, err);
}

static int fork_boot(struct fork_batch *fork, struct sandbox *sandbox, struct err *err)
{
    (void)fork;
    return sandbox_boot(sandbox, err);
}

/* Copies the present files of the original, or those of a snapshot, to the first fork. */
static int fork_copy_original(struct sandbox *original, const char *from, struct sandbox *first,
                              struct err *err)
{
    struct err ignored;
    int r = from ? 0 : sandbox_quiesce(original, true, err);

    if (r < 0)
        return r;
    r = volume_fork(original->volume, from, first->info.id, first->info.quota_bytes, &first->volume,
                    err);
    if (!from)
        (void)sandbox_quiesce(original, false, &ignored);
    fault_point("fork.first");
    return r;
}

/* Applies the ceilings of the owner: a limit that the original has is taken as asked for, its time
 * to live only if the request sets one. */
static int fork_limit(struct sandbox *sandbox, const struct fork_spec *spec,
                      const struct ceilings *ceilings, struct err *err)
{
    struct sandbox_info *info = &sandbox->info;
    const struct sandbox_limits inherited = info->limits;
    uint64_t most_ms = ceiling_number(ceilings, CEILING_TTL);
    uint64_t ttl_ms = info->expires_ms ? info->expires_ms - info->created_ms : 0;
    const struct runtime_holder holder = { info->owner, info->template };
    int r;

    if (!spec->has_ttl && ttl_ms > most_ms)
        ttl_ms = most_ms;
    ceilings_fill_limits(ceilings, &inherited, &info->limits);
    r = ceilings_limit_ttl(ceilings, info->owner, ttl_ms, &ttl_ms, err);
    if (r < 0)
        return r;
    info->expires_ms = ttl_ms ? info->created_ms + ttl_ms : 0;
    r = host_check_runtime(sandbox->host, &holder, info->runtime, err);
    if (r == 0 && ceiling_number(ceilings, CEILING_DISK) != CEILING_UNLIMITED)
        r = host_choose_quota(sandbox->host, info->owner, ceilings, info->quota_bytes,
                              &info->quota_bytes, err);
    return r;
}

/* Makes the forks that are to be counted; none is in a table yet. */
static int fork_prepare_all(struct fork_batch *fork, struct sandbox *original,
                            struct sandbox **made, struct err *err)
{
    struct ceilings ceilings;
    int r = 0;

    host_get_ceilings(original->host, original->info.owner, &ceilings);
    for (size_t i = 0; r == 0 && i < fork->spec->count; i++) {
        made[i] = fork_new(original);
        r = fork_fill(made[i], fork->spec, i, err);
        if (r == 0)
            r = fork_limit(made[i], fork->spec, &ceilings, err);
        sandbox_charge(made[i]);
    }
    return r;
}

/* Counts all forks at once, so that of several calls those succeed that fit as a whole. */
static int fork_admit_all(struct fork_batch *fork, struct sandbox *original, struct err *err)
{
    struct sandbox *made[FORK_MAX] = { NULL };
    const size_t count = fork->spec->count;
    int r = fork_prepare_all(fork, original, made, err);
    bool is_counted = false;

    if (r == 0) {
        r = host_admit(original->host, &made[0]->charge, count, err);
        is_counted = r == 0;
    }
    for (size_t i = 0; i < count && made[i]; i++) {
        if (r == 0)
            r = sandbox_admit(made[i], err); /* counts it out if it fails */
        else if (is_counted)
            host_dismiss(original->host, &made[i]->charge);
        if (r == 0)
            fork->made[fork->count++] = made[i];
        else
            sandbox_unref(made[i]);
    }
    return r == 0 ? sandbox_admit_flush(original->host, err) : r;
}

static int fork_make_all(struct fork_batch *fork, struct sandbox *original, const char *from,
                         struct err *err)
{
    int r = fork_copy_original(original, from, fork->made[0], err);

    if (r < 0)
        return r;
    r = fork_each(fork, 1, fork_copy_first);
    fault_point("fork.copied");
    if (r == 0)
        r = fork_each(fork, 0, fork_boot);
    fault_point("fork.booted");
    if (r < 0) {
        *err = fork->err;
        return r;
    }
    r = sandbox_record_later(fork->made, fork->count, SANDBOX_ACTIVE, err); /* see create.c */
    fault_point("fork.recorded");
    return r;
}

static int fork_check(struct sandbox *original, const struct fork_spec *spec, struct err *err)
{
    const char *from = spec->from;
    int r = spec->name ? sandbox_check_name(spec->name, err) : 0;

    if (r < 0)
        return r;
    if (spec->count == 0 || spec->count > FORK_MAX)
        return err_set(err, ERR_INVALID, "the number of forks must be from 1 to %d", FORK_MAX);
    if (from && !volume_has_snapshot(original->volume, from))
        return err_refuse(err, CAUSE_SNAPSHOT_NOT_FOUND, "sandbox '%s' has no snapshot '%.100s'",
                          original->info.id, from);
    return host_check_space(original->host, err);
}

static void fork_finish_all(struct fork_batch *fork, const struct sandbox *original)
{
    struct err ignored;

    for (size_t i = 0; i < fork->count; i++) {
        sandbox_event(fork->made[i], EVENT_SANDBOX_FORKED,
                      json_pack("{s:s, s:s}", "from", original->info.id, "template",
                                original->info.template));
        /* A fork that was destroyed in the meantime returns an error when it is used. */
        (void)sandbox_finish_create(fork->made[i], &ignored);
    }
}

static void fork_undo_all(struct fork_batch *fork)
{
    for (size_t i = 0; i < fork->count; i++) {
        sandbox_undo_create(fork->made[i]);
        sandbox_unref(fork->made[i]);
    }
}

int sandbox_fork(struct sandbox *sandbox, const struct fork_spec *spec, struct sandbox **ret,
                 struct err *err)
{
    struct fork_batch fork = { .spec = spec, .made = ret, .lock = LOCK_INIT(LOCK_FORK) };
    uint64_t began_ns = clock_ns();
    enum sandbox_state state;
    int r = sandbox_begin(sandbox, OPERATION_FORK, &state, err);

    if (r < 0)
        return metrics_note(sandbox->host->metrics, TIMED_FORK, began_ns, r);
    r = fork_check(sandbox, spec, err);
    if (r == 0)
        r = fork_admit_all(&fork, sandbox, err);
    if (r == 0)
        r = fork_make_all(&fork, sandbox, spec->from, err);
    if (r < 0)
        fork_undo_all(&fork);
    else
        fork_finish_all(&fork, sandbox);
    sandbox_finish(sandbox, state);
    return metrics_note(sandbox->host->metrics, TIMED_FORK, began_ns, r);
}
