// SPDX-License-Identifier: Apache-2.0
/* The machines that have a network. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "egress/control.h"
#include "host/core/host_internal.h"
#include "host/llm/llm.h"
#include "host/machine/machine_internal.h"
#include "host/net/net_internal.h"
#include "host/secret/grant.h"
#include "host/secret/header.h"
#include "kernel/sk_lookup.h"

void net_guest_free(struct net_guest *guest)
{
    if (!guest)
        return;
    net_routes_done(&guest->routes);
    net_policy_done(&guest->policy);
    free(guest->owner);
    free(guest->recorded);
    free(guest->grants);
    free(guest);
}

struct net_guest *net_guest_find(const struct net *net, const struct machine *machine)
{
    struct net_guest *guest = net->guests;

    while (guest && guest->machine != machine)
        guest = guest->next;
    return guest;
}

struct net_guest *net_guest_of_number(const struct net *net, uint64_t number)
{
    struct net_guest *guest = net->guests;

    while (guest && guest->number != number)
        guest = guest->next;
    return guest;
}

static void guest_unlink(struct net *net, struct net_guest *guest)
{
    lock_scope(&net->lock);

    for (struct net_guest **slot = &net->guests; *slot; slot = &(*slot)->next) {
        if (*slot != guest)
            continue;
        *slot = guest->next;
        return;
    }
}

struct net_guest *net_guest_new(struct net *net, const struct net_job *job)
{
    struct net_guest *guest = xcalloc(1, sizeof(*guest));

    guest->machine = job->machine;
    guest->number = ++net->last_number;
    guest->owner = xstrdup(job->user.owner);
    guest->recorded = xstrdup(job->user.recorded);
    guest->grants = job->user.grants ? xstrdup(job->user.grants) : NULL;
    (void)snprintf(guest->id, sizeof(guest->id), "%s", job->user.id);
    net_policy_copy(job->policy, &guest->policy);
    lock_take(&net->lock);
    guest->next = net->guests;
    net->guests = guest;
    lock_release(&net->lock);
    return guest;
}

json_t *net_guest_add_secrets(struct net *net, const struct net_guest *guest, json_t *message)
{
    if (!guest->grants) /* it trusts no certificates of this host */
        return message;
    (void)json_object_set_new(message, "secrets",
                              secret_grants_for_net(net->host, guest->owner, guest->grants));
    secret_headers_for_net(net->host, guest->owner, guest->recorded, message);
    return message;
}

int net_guest_attach(struct net *net, struct net_guest *guest, struct err *err)
{
    cleanup_with(net_sockets_done) struct net_sockets sockets = { -EBADF, -EBADF };
    char token[2 * LLM_TOKEN_BYTES + 1];
    json_t *message;
    int fds[CONTROL_FDS];
    int r = net_namespace_prepare(net, guest, &sockets, err);

    if (r < 0)
        return r;
    if (guest->grants) /* it needs the authority, which may be new */
        (void)net_helper_update(net);
    atomic_store(&guest->machine->has_models, net_policy_models(&guest->policy)[0] != '\0');
    llm_token(net->host->llm, guest->id, token);
    fds[0] = sockets.listener_fd;
    fds[1] = sockets.resolver_fd;
    message =
        json_pack("{s:s, s:I, s:s, s:s, s:s, s:s, s:o, s:I}", "do", "add", "machine",
                  (json_int_t)guest->number, "id", guest->id, "owner", guest->owner, "llmToken",
                  token, "llmAddress", LLM_ADDRESS, "policy", net_policy_to_json(&guest->policy),
                  "bytesOut", (json_int_t)guest->bytes_out);
    r = net_helper_send(net, net_guest_add_secrets(net, guest, message), fds, CONTROL_FDS);
    guest->is_attached = r == 0;
    if (r < 0)
        return err_sys(err, r, "send to holt-net");
    if (guest->grants)
        net_agent_attach(net, guest);
    return 0;
}

void net_guest_detach(struct net *net, struct net_guest *guest, bool has_namespace)
{
    net_denials_write(net, guest);
    sk_lookup_unpin(net->pins_fd, guest->number);
    if (has_namespace)
        net_namespace_clear(net, guest);
    if (guest->is_attached)
        (void)net_helper_send(
            net, json_pack("{s:s, s:I}", "do", "remove", "machine", (json_int_t)guest->number),
            NULL, 0);
    guest_unlink(net, guest);
    net_guest_free(guest);
}
