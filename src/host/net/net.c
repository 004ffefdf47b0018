// SPDX-License-Identifier: Apache-2.0
/* The thread that enters the namespaces of machines and talks to holt-net. Callers give it jobs and
 * wait for them. */
#include "host/net/net.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "egress/control.h"
#include "host/core/config.h"
#include "host/core/host_internal.h"
#include "host/llm/llm.h"
#include "host/machine/machine_internal.h"
#include "host/net/net_internal.h"
#include "host/net/upstream.h"
#include "host/observe/event_internal.h"
#include "kernel/netns_enter.h"
#include "kernel/sk_lookup.h"
#include "runtime/program.h"

enum {
    LEAK_PAUSE_MS = 1000,
    MESSAGES_PER_TURN = 64,
    IDLE_MS = 5000,
    BACKOFF_FIRST_MS = 20,
    BACKOFF_MAX_MS = 5000,
    STEADY_MS = 10000, /* a process that ran this long is started again at once */
    ANSWER_MS = 10000, /* without an answer for so long holt-net is ended */
    ANSWER_LOOK_MS = 1000,
    EARLIER_MS = 3000, /* in which the holt-net of an earlier daemon ends */
};

/* --- messages --- */

static void grant_handle(struct net *net, struct net_guest *guest, const json_t *message,
                         bool is_granted)
{
    json_int_t ticket = json_integer_value(json_object_get(message, "ticket"));
    int r = net_namespace_grant(net, guest, json_object_get(message, "addresses"), is_granted);

    if (is_granted && ticket != 0)
        (void)net_helper_send(net,
                              json_pack("{s:s, s:I, s:I, s:b}", "do", "granted", "machine",
                                        (json_int_t)guest->number, "ticket", ticket, "ok", r == 0),
                              NULL, 0);
}

/* A machine is valid until net_stop returns, which this thread answers. */
static void active_handle(struct net *net, const json_t *machines, const json_t *out)
{
    const json_t *each;
    size_t i;

    json_array_foreach(machines, i, each) {
        struct net_guest *guest = net_guest_of_number(net, (uint64_t)json_integer_value(each));

        if (!guest)
            continue;
        atomic_store(&guest->machine->net_active_ms, clock_boot_ms());
        if (guest->machine->beside)
            atomic_store(&guest->machine->beside->net_active_ms, clock_boot_ms());
        guest->bytes_out = (uint64_t)json_integer_value(json_array_get(out, i));
    }
}

static void line_handle(struct net *net, struct net_guest *guest, const json_t *line)
{
    net_denials_note(net, guest, line);
    lock_scope(&net->lock);
    net_log_add(net, guest->id, line);
}

/* A placeholder, or a value in a reply, was seen where it must not be. The audit log gets
 * one line a second at most for each sandbox, with the number of those before it. */
static void leak_handle(struct net *net, struct net_guest *guest, const json_t *message)
{
    static const char *const names[] = { "secret", "host", "port", "where", "cut" };
    json_t *fields = json_object();
    uint64_t now_ms = clock_ms();

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        json_t *value = json_object_get(message, names[i]);

        if (value)
            (void)json_object_set(fields, names[i], value);
    }
    machine_event(guest->machine, EVENT_SANDBOX_LEAKED, json_deep_copy(fields));
    guest->leaks++;
    if (guest->leak_written_ms > 0 && now_ms - guest->leak_written_ms < LEAK_PAUSE_MS) {
        json_decref(fields);
        return;
    }
    (void)json_object_set_new(fields, "count", json_integer((json_int_t)guest->leaks));
    host_note(net->host, "secret-leak", guest->owner, guest->id, fields);
    guest->leaks = 0;
    guest->leak_written_ms = now_ms;
}

static void llm_message_handle(struct net *net, const struct net_guest *guest,
                               const json_t *message)
{
    json_t *reply =
        llm_handle(net->host->llm, guest ? guest->id : NULL, guest ? guest->owner : NULL, message);

    if (reply)
        (void)net_helper_send(net, reply, NULL, 0);
}

static void message_handle(struct net *net, const json_t *message)
{
    const char *what = json_string_value(json_object_get(message, "do"));
    uint64_t number = (uint64_t)json_integer_value(json_object_get(message, "machine"));
    struct net_guest *guest = net_guest_of_number(net, number);

    if (!what)
        return;
    if (strcmp(what, "done") == 0) {
        net_job_answered(net, number);
    } else if (strcmp(what, "grant") == 0 && guest) {
        grant_handle(net, guest, message, true);
    } else if (strcmp(what, "revoke") == 0 && guest) {
        grant_handle(net, guest, message, false);
    } else if (strcmp(what, "log") == 0 && guest) {
        line_handle(net, guest, json_object_get(message, "line"));
    } else if (strncmp(what, "llm-", 4) == 0) {
        llm_message_handle(net, guest, message);
    } else if (strcmp(what, "active") == 0) {
        active_handle(net, json_object_get(message, "machines"), json_object_get(message, "out"));
    } else if (strcmp(what, "limit") == 0 && guest) {
        machine_event(
            guest->machine, EVENT_SANDBOX_LIMITED,
            json_pack("{s:o}", "resource", json_incref(json_object_get(message, "resource"))));
    } else if (strcmp(what, "leak") == 0 && guest) {
        leak_handle(net, guest, message);
    } else if (strcmp(what, "counters") == 0) {
        lock_scope(&net->lock);
        net_counters_read(net, message);
    }
}

/* Returns false when holt-net has ended. */
static bool messages_receive(struct net *net, char *text)
{
    for (int i = 0; i < MESSAGES_PER_TURN; i++) {
        cleanup_json json_t *message = NULL;
        struct err ignored;
        ssize_t n = recv(net->control_fd, text, CONTROL_MESSAGE_MAX, MSG_DONTWAIT);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return true;
        if (n <= 0)
            return false;
        net->heard_ms = clock_ms();
        if (json_parse_object(text, (size_t)n, &message, &ignored) == 0)
            message_handle(net, message);
    }
    return true;
}

/* --- the end of holt-net --- */

static void counters_keep(struct net *net)
{
    struct net_counters all;

    net_count(net, &all);
    lock_scope(&net->lock);
    net->past = all;
    net->past.open = 0;
    net->past.restarts++;
    net->now = (struct net_counters){ 0 };
}

/* Sandboxes reach nothing until it runs again: their listeners are closed. */
static void helper_lost(struct net *net)
{
    uint64_t now_ms = clock_ms();

    net_helper_stop(net);
    for (struct net_guest *guest = net->guests; guest; guest = guest->next)
        guest->is_attached = false;
    counters_keep(net);
    llm_helper_lost(net->host->llm);
    if (now_ms - net->started_ms >= STEADY_MS)
        net->backoff_ms = 0;
    else
        net->backoff_ms = net->backoff_ms == 0                   ? BACKOFF_FIRST_MS
                          : net->backoff_ms < BACKOFF_MAX_MS / 2 ? net->backoff_ms * 2
                                                                 : BACKOFF_MAX_MS;
    net->restart_ms = now_ms + net->backoff_ms;
    log_warn("holt-net has ended; it is started again");
}

/* A set that was under way is in force: no connection has survived. */
static void helper_restart(struct net *net)
{
    struct err err = { 0 };

    if (net_helper_start(net, &err) < 0) {
        log_error("holt-net cannot be started: %s", err.msg);
        net->restart_ms = clock_ms() + BACKOFF_MAX_MS;
        return;
    }
    for (struct net_guest *guest = net->guests; guest; guest = guest->next)
        if (net_guest_attach(net, guest, &err) < 0)
            log_error("sandbox '%s' has no network any more: %s", guest->id, err.msg);
    net_jobs_end(net);
}

/* --- the thread --- */

static int poll_timeout(const struct net *net)
{
    int timeout_ms = net->guests ? IDLE_MS : -1;

    if (net->control_fd < 0 && (net->guests || net->waiting))
        timeout_ms = clock_left_ms(net->restart_ms);
    else if (net->waiting)
        timeout_ms = ANSWER_LOOK_MS;
    if (net->denials_due_ms > 0) {
        int due_ms = clock_left_ms(net->denials_due_ms);

        timeout_ms = timeout_ms >= 0 && timeout_ms < due_ms ? timeout_ms : due_ms;
    }
    return timeout_ms;
}

static bool net_is_stopping(struct net *net)
{
    lock_scope(&net->lock);

    return net->is_stopping;
}

static void net_main(void *argument)
{
    struct net *net = argument;
    cleanup_free char *text = xcalloc(1, CONTROL_MESSAGE_MAX);

    net->ports_until_ms = clock_ms() + EARLIER_MS;
    while (!net_is_stopping(net)) {
        struct pollfd polled[2] = { { .fd = net->wake_fd, .events = POLLIN },
                                    { .fd = net->control_fd, .events = POLLIN } };
        uint64_t count;

        (void)poll(polled, ARRAY_SIZE(polled), poll_timeout(net));
        if (polled[0].revents)
            (void)!read(net->wake_fd, &count, sizeof(count));
        if (net->control_fd >= 0 && polled[1].revents && !messages_receive(net, text))
            helper_lost(net);
        if (net->control_fd >= 0 && net->waiting && clock_ms() >= net->heard_ms + ANSWER_MS)
            helper_lost(net);
        if (net->control_fd < 0 && (net->guests || net->waiting) && clock_ms() >= net->restart_ms)
            helper_restart(net);
        net_denials_tick(net);
        net_helper_refresh(net); /* first: a job may wait for what has changed */
        net_jobs_run(net);
    }
    net_jobs_abandon(net);
}

static void net_wake(struct net *net)
{
    const uint64_t one = 1;

    (void)!write(net->wake_fd, &one, sizeof(one));
}

/* Gives the thread a job. */
static int job_give(struct net *net, struct net_job *job)
{
    lock_scope(&net->lock);

    if (net->is_stopping)
        return err_refuse(job->err, CAUSE_SHUTTING_DOWN, "the daemon is shutting down");
    if (!net->thread.is_started) {
        int r = thread_start(&net->thread, "holt-net", net_main, net);

        if (r < 0)
            return err_sys(job->err, r, "start the thread of the network");
    }
    *net->last_job = job;
    net->last_job = &job->next;
    net_wake(net);
    return 0;
}

/* Waits for a job that was given. */
static int job_wait(struct net *net, const struct net_job *job)
{
    lock_scope(&net->lock);

    while (!job->is_done)
        cond_wait(&net->changed, &net->lock);
    return job->result;
}

/* --- what others call --- */

static json_t *bounds_make(const struct config *config)
{
    const json_int_t second = 1000;

    return json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I}", "connections", (json_int_t)config->net_connections,
        "connectsPerSecond", (json_int_t)config->net_connects, "queriesPerSecond",
        (json_int_t)config->net_queries, "idleSeconds", (json_int_t)config->net_idle / second,
        "totalSeconds", (json_int_t)config->net_time / second, "bytesOut",
        (json_int_t)config->net_bytes_out);
}

int net_open(struct host *host, const struct config *config, struct net **ret, struct err *err)
{
    struct net *net = xcalloc(1, sizeof(*net));
    int r = 0;

    net->host = host;
    net->bounds = bounds_make(config);
    net->control_fd = net->pidfd = -EBADF;
    net->last_job = &net->jobs;
    net->home = netns_id();
    net->bpf_result = sk_lookup_check();
    net->pins_fd = net->bpf_result < 0 ? -EBADF : sk_lookup_pins_open();
    if (net->bpf_result == 0 && net->pins_fd < 0)
        net->bpf_result = net->pins_fd;
    lock_init(&net->lock, LOCK_NET);
    cond_init(&net->changed);
    net->home_fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    net->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (net->home_fd < 0 || net->wake_fd < 0 || net->home == 0)
        r = err_sys(err, -errno, "open the network namespace of the daemon");
    if (r == 0)
        r = net_configure(net, config, err);
    if (r < 0) {
        net_close(net);
        return r;
    }
    *ret = net;
    return 0;
}

int net_configure(struct net *net, const struct config *config, struct err *err)
{
    json_t *upstream = NULL, *old;
    int r = net_upstream_read(config, &upstream, err);

    if (r < 0)
        return r;
    lock_take(&net->lock);
    old = net->upstream;
    net->upstream = upstream;
    net->has_news = true;
    lock_release(&net->lock);
    json_decref(old);
    net_wake(net);
    return 0;
}

void net_keys_changed(struct net *net)
{
    lock_take(&net->lock);
    net->has_news = true;
    lock_release(&net->lock);
    net_wake(net);
}

void net_close(struct net *net)
{
    if (!net)
        return;
    lock_take(&net->lock);
    net->is_stopping = true;
    cond_broadcast(&net->changed);
    lock_release(&net->lock);
    if (net->wake_fd >= 0)
        net_wake(net);
    thread_join(&net->thread);
    net_helper_stop(net);
    while (net->guests) {
        struct net_guest *guest = net->guests;

        net->guests = guest->next;
        net_guest_free(guest);
    }
    net_logs_free(net);
    json_decref(net->upstream);
    free(net->resolvers);
    json_decref(net->bounds);
    (void)fd_close(net->wake_fd);
    (void)fd_close(net->home_fd);
    (void)fd_close(net->pins_fd);
    cond_destroy(&net->changed);
    lock_destroy(&net->lock);
    free(net);
}

int net_check(struct net *net, struct err *err)
{
    cleanup_free char *path = NULL;

    if (program_find("holt-net", &path, err) < 0) {
        (void)err_set(err, ERR_UNSUPPORTED, "sandboxes cannot have a network: holt-net is missing");
        return err_remedy(err, "install holt-net beside holt-init, or use --net none");
    }
    if (net->bpf_result == 0)
        return 0;
    (void)err_set(err, ERR_UNSUPPORTED, "sandboxes cannot have a network: load a BPF program: %s",
                  strerror(-net->bpf_result));
    return err_remedy(err, "run holtd as root on a kernel with sk_lookup (5.9), or use --net none");
}

static int net_do(struct net *net, enum net_job_kind kind, struct net_job job, struct err *err)
{
    int r;

    job.kind = kind;
    job.err = err;
    r = job_give(net, &job);
    return r < 0 ? r : job_wait(net, &job);
}

/* Models are reached over the network of Holt also where there is no other. */
static bool policy_has_network(const struct net_policy *policy)
{
    return net_policy_mode(policy) != NET_NONE || net_policy_models(policy)[0];
}

struct net_pending {
    struct net *net;
    struct net_job job;
    struct err err;
};

int net_start_begin(struct net *net, struct machine *machine, const struct net_user *user,
                    const struct net_policy *policy, struct net_pending **ret, struct err *err)
{
    struct net_pending *pending;
    int r;

    *ret = NULL;
    if (!policy_has_network(policy))
        return 0;
    pending = xcalloc(1, sizeof(*pending));
    pending->net = net;
    pending->job = (struct net_job){ .kind = NET_JOB_START,
                                     .machine = machine,
                                     .user = *user,
                                     .policy = policy,
                                     .err = &pending->err };
    r = job_give(net, &pending->job);
    if (r < 0) {
        *err = pending->err;
        free(pending);
        return r;
    }
    *ret = pending;
    return 0;
}

int net_start_end(struct net_pending *pending, struct err *err)
{
    int r;

    if (!pending)
        return 0;
    r = job_wait(pending->net, &pending->job);
    if (r < 0)
        *err = pending->err;
    free(pending);
    return r;
}

char **net_environment(struct net *net, const struct machine *machine)
{
    const struct net_guest *guest;

    if (!atomic_load(&machine->has_models))
        return NULL;
    lock_scope(&net->lock);
    guest = net_guest_find(net, machine);
    return guest ? llm_environment(net->host->llm, guest->id) : NULL;
}

static bool net_has(struct net *net, const struct machine *machine)
{
    lock_scope(&net->lock);

    return net_guest_find(net, machine) != NULL;
}

int net_set(struct net *net, struct machine *machine, const struct net_user *user,
            const struct net_policy *policy, struct err *err)
{
    const struct net_job job = { .machine = machine, .user = *user, .policy = policy };

    if (policy_has_network(policy))
        return net_do(net, NET_JOB_SET, job, err);
    return net_has(net, machine) ? net_do(net, NET_JOB_STOP, job, err) : 0;
}

void net_each_user(struct net *net, net_user_fn *fn)
{
    struct user_copy {
        char id[NET_ID_MAX];
        char *owner, *recorded, *grants;
    } * list;
    size_t count = 0, i = 0;

    lock_take(&net->lock);
    for (const struct net_guest *guest = net->guests; guest; guest = guest->next)
        count++;
    list = xcalloc(count + 1, sizeof(*list));
    for (const struct net_guest *guest = net->guests; guest; guest = guest->next, i++) {
        memcpy(list[i].id, guest->id, sizeof(list[i].id));
        list[i].owner = xstrdup(guest->owner);
        list[i].recorded = xstrdup(guest->recorded);
        list[i].grants = guest->grants ? xstrdup(guest->grants) : NULL;
    }
    lock_release(&net->lock);
    for (i = 0; i < count; i++) {
        fn(net->host,
           &(struct net_user){ list[i].id, list[i].owner, list[i].recorded, list[i].grants });
        free(list[i].owner);
        free(list[i].recorded);
        free(list[i].grants);
    }
    free(list);
}

/* Returns the lowest number above `after` of a guest with this id; 0: none. */
static uint64_t guest_next(struct net *net, const char *id, uint64_t after)
{
    uint64_t next = 0;
    lock_scope(&net->lock);

    for (const struct net_guest *guest = net->guests; guest; guest = guest->next)
        if (strcmp(guest->id, id) == 0 && guest->number > after &&
            (next == 0 || guest->number < next))
            next = guest->number;
    return next;
}

/* Does a job for all guests with this id: the second machine of a sandbox has the id of the first.
 */
static int net_do_all(struct net *net, enum net_job_kind kind, struct net_job job, struct err *err)
{
    int r = 0;

    job.target = guest_next(net, job.user.id, 0);
    for (; r == 0 && job.target != 0; job.target = guest_next(net, job.user.id, job.target))
        r = net_do(net, kind, job, err);
    return r;
}

int net_renew(struct net *net, const char *id, const struct net_policy *policy, struct err *err)
{
    return net_do_all(net, NET_JOB_RENEW,
                      (struct net_job){ .user = { .id = id }, .policy = policy }, err);
}

int net_renew_secrets(struct net *net, const char *id, struct err *err)
{
    return net_do_all(net, NET_JOB_SECRETS, (struct net_job){ .user = { .id = id } }, err);
}

void net_stop(struct net *net, struct machine *machine)
{
    const struct net_job job = { .machine = machine };
    struct err ignored;

    if (net && net_has(net, machine))
        (void)net_do(net, NET_JOB_STOP, job, &ignored);
}
