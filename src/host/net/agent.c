// SPDX-License-Identifier: Apache-2.0
/* The ssh-agent of a sandbox. One socket has two ends of interest: holt-init binds it where
 * programs of the sandbox look for an agent, and holt-net accepts on it. holtd keeps none: a
 * holt-net or holtd that starts anew makes another one, which takes the place of the first. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "host/machine/machine_internal.h"
#include "host/net/net_internal.h"
#include "host/secret/grant.h"
#include "wire/message.h"

static json_t *agent_message(struct net *net, const struct net_guest *guest)
{
    json_t *keys = secret_grants_keys(net->host, guest->grants);

    if (!keys)
        return NULL;
    return json_pack("{s:s, s:I, s:o}", "do", "agent", "machine", (json_int_t)guest->number, "keys",
                     keys);
}

static int socket_send_inside(struct machine *machine, int fd)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(FRAME_HEADER_SIZE);
    int r = message_put_numbers(&out, FRAME_AGENT, 0, 0, 0);

    return r < 0 ? r : channel_send(&machine->channel, &out, &fd, 1);
}

void net_agent_attach(struct net *net, const struct net_guest *guest)
{
    json_t *message = agent_message(net, guest);
    cleanup_close int fd = -EBADF;
    int r;

    if (!message)
        return;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    r = fd < 0 ? -errno : socket_send_inside(guest->machine, fd);
    if (r < 0)
        log_warn("sandbox '%s' has no ssh-agent: %s", guest->id, strerror(-r));
    if (r == 0)
        (void)net_helper_send(net, message, &fd, 1);
    else
        json_decref(message);
}

void net_agent_renew(struct net *net, const struct net_guest *guest)
{
    json_t *message = agent_message(net, guest);

    if (message)
        (void)net_helper_send(net, message, NULL, 0);
}
