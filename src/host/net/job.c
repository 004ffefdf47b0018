// SPDX-License-Identifier: Apache-2.0
/* What callers ask the thread of the network to do. A job ends when holt-net has answered. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/xalloc.h"
#include "host/machine/machine_internal.h"
#include "host/net/net_internal.h"

static void job_finish(struct net *net, struct net_job *job, int result)
{
    lock_scope(&net->lock);

    job->result = result;
    job->is_done = true;
    cond_broadcast(&net->changed);
}

/* Keeps the job until holt-net has answered. */
static void job_await(struct net *net, struct net_job *job, uint64_t number)
{
    struct net_job **slot = &net->waiting;

    if (!*slot)
        net->heard_ms = clock_ms();
    while (*slot)
        slot = &(*slot)->next;
    job->number = number;
    job->next = NULL;
    *slot = job;
}

static void start_run(struct net *net, struct net_job *job)
{
    struct net_guest *guest;
    int r = net_helper_start(net, job->err);

    if (r < 0) {
        job_finish(net, job, r);
        return;
    }
    guest = net_guest_new(net, job);
    r = net_guest_attach(net, guest, job->err);
    if (r < 0) {
        net_guest_detach(net, guest, true);
        job_finish(net, job, r);
        return;
    }
    job_await(net, job, guest->number);
}

/* Makes holt-net use the policy of the guest. A guest that could not be attached when holt-net was
 * started again gets another try, and the caller its error. Returns whether an answer will come;
 * otherwise *ret_result is the end of the job. */
static bool policy_send(struct net *net, struct net_guest *guest, struct err *err, int *ret_result)
{
    int r;

    if (net->control_fd >= 0 && !guest->is_attached) {
        *ret_result = net_guest_attach(net, guest, err);
        return *ret_result == 0;
    }
    r = net_helper_send(net,
                        net_guest_add_secrets(net, guest,
                                              json_pack("{s:s, s:I, s:o}", "do", "set", "machine",
                                                        (json_int_t)guest->number, "policy",
                                                        net_policy_to_json(&guest->policy))),
                        NULL, 0);
    *ret_result = 0; /* also if it has died: the next one gets the new policy */
    return r == 0;
}

static void policy_set(struct net *net, struct net_guest *guest, struct net_job *job)
{
    int r;

    net_policy_done(&guest->policy);
    net_policy_copy(job->policy, &guest->policy);
    atomic_store(&guest->machine->has_models, net_policy_models(&guest->policy)[0] != '\0');
    if (policy_send(net, guest, job->err, &r))
        job_await(net, job, guest->number);
    else
        job_finish(net, job, r);
}

static void set_run(struct net *net, struct net_job *job)
{
    struct net_guest *guest = net_guest_find(net, job->machine);

    if (!guest) {
        start_run(net, job);
        return;
    }
    lock_take(&net->lock);
    free(guest->recorded);
    guest->recorded = xstrdup(job->user.recorded);
    lock_release(&net->lock);
    policy_set(net, guest, job);
}

/* A guest that holt-net does not know gets the values when it is attached again. */
static void secrets_run(struct net *net, struct net_job *job)
{
    const struct net_guest *guest = net_guest_of_number(net, job->target);
    json_t *message;

    if (!guest || !guest->grants || !guest->is_attached) {
        job_finish(net, job, 0);
        return;
    }
    net_agent_renew(net, guest); /* before the message whose answer the caller waits for */
    message = json_pack("{s:s, s:I}", "do", "secrets", "machine", (json_int_t)guest->number);
    if (net_helper_send(net, net_guest_add_secrets(net, guest, message), NULL, 0) == 0)
        job_await(net, job, guest->number);
    else
        job_finish(net, job, 0);
}

static void renew_run(struct net *net, struct net_job *job)
{
    struct net_guest *guest = net_guest_of_number(net, job->target);

    if (guest)
        policy_set(net, guest, job);
    else
        job_finish(net, job, 0);
}

static void stop_run(struct net *net, struct net_job *job)
{
    struct net_guest *guest = net_guest_find(net, job->machine);

    bool is_run = guest && strcmp(guest->id, guest->machine->id) == 0;
    /* The machine goes on and may get a network again, so its ports must be free. */
    bool waits = guest && guest->is_attached && job->policy && net->control_fd >= 0;
    uint64_t number = guest ? guest->number : 0;

    if (is_run) /* no sandbox is left that could be asked for it */
        net_forget(net, guest->id);
    if (guest)
        net_guest_detach(net, guest, job->policy != NULL);
    if (waits)
        job_await(net, job, number);
    else
        job_finish(net, job, 0);
}

void net_jobs_run(struct net *net)
{
    for (;;) {
        struct net_job *job;

        lock_take(&net->lock);
        job = net->jobs;
        if (job)
            net->jobs = job->next;
        if (!net->jobs)
            net->last_job = &net->jobs;
        lock_release(&net->lock);
        if (!job)
            return;
        if (job->kind == NET_JOB_START)
            start_run(net, job);
        else if (job->kind == NET_JOB_SET)
            set_run(net, job);
        else if (job->kind == NET_JOB_RENEW)
            renew_run(net, job);
        else if (job->kind == NET_JOB_SECRETS)
            secrets_run(net, job);
        else
            stop_run(net, job);
    }
}

void net_job_answered(struct net *net, uint64_t number)
{
    struct net_job **slot = &net->waiting, *job;
    struct net_guest *guest;
    int r = 0;

    while (*slot && (*slot)->number != number)
        slot = &(*slot)->next;
    job = *slot;
    if (!job)
        return;
    *slot = job->next;
    guest = net_guest_of_number(net, number);
    if ((job->kind == NET_JOB_SET || job->kind == NET_JOB_RENEW) && guest) {
        struct net_routes routes;

        net_routes_fill(&guest->policy, &routes);
        r = net_namespace_reroute(net, guest, &routes, job->err);
    }
    job_finish(net, job, r);
}

void net_jobs_end(struct net *net)
{
    while (net->waiting) {
        struct net_job *job = net->waiting;

        net->waiting = job->next;
        job_finish(net, job, 0);
    }
}

void net_jobs_abandon(struct net *net)
{
    for (;;) {
        struct net_job *job;

        lock_take(&net->lock);
        job = net->jobs ? net->jobs : net->waiting;
        if (job && job == net->jobs)
            net->jobs = job->next;
        else if (job)
            net->waiting = job->next;
        lock_release(&net->lock);
        if (!job)
            return;
        job_finish(net, job,
                   err_refuse(job->err, CAUSE_SHUTTING_DOWN, "the daemon is shutting down"));
    }
}
