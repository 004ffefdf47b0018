// SPDX-License-Identifier: Apache-2.0
#include "egress/agent.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "egress/egress_internal.h"
#include "ssh/agent.h"

enum {
    CLIENTS_MAX = 16,        /* of one sandbox */
    CLIENT_IDLE_MS = 600000, /* ssh asks while it logs in */
    KEYS_MAX = 64,
    READ_BYTES = 16 * 1024,
};

struct agent_client {
    struct watch watch; /* first; fd < 0: this place is free */
    struct agent *agent;
    struct ssh_agent_session session;
    struct buf in, out;
    uint64_t active_ms;
};

struct agent {
    struct watch listener; /* first */
    struct guest *guest;
    struct ssh_agent keys;
    struct agent_client clients[CLIENTS_MAX];
};

static void client_close(struct agent_client *client)
{
    watch_close(client->agent->guest->egress, &client->watch);
    client->watch.fd = -EBADF;
    buf_done(&client->in);
    buf_done(&client->out);
}

static void event_report(struct agent *agent, const struct ssh_agent_event *event)
{
    if (!event->key && !event->refusal)
        return;
    if (event->refusal)
        agent->guest->egress->counters.denied++;
    report_line(agent->guest, &(struct egress_line){
                                  .protocol = "agent",
                                  .name = event->key ? event->key->comment : "",
                                  .rule = event->refusal ? event->refusal : "signed a login",
                                  .end = event->refusal ? "denied" : "signed",
                                  .is_allowed = !event->refusal,
                              });
}

/* Answers the first message of the buffer. Returns 1, 0 if it is not complete, or -errno. */
static int message_answer(struct agent_client *client)
{
    struct ssh_reader reader = ssh_reader_of(client->in.data, client->in.len);
    uint32_t len = ssh_get_u32(&reader);
    struct ssh_agent_event event;
    int r;

    if (!reader.ok)
        return 0;
    if (len == 0 || len > SSH_AGENT_MESSAGE_MAX)
        return -EPROTO;
    if (reader.left < len)
        return 0;
    r = ssh_agent_answer(&client->agent->keys, &client->session,
                         (struct ssh_bytes){ reader.next, len }, &client->out, &event);
    if (r < 0)
        return r;
    event_report(client->agent, &event);
    buf_consume(&client->in, sizeof(len) + len);
    return 1;
}

/* Returns whether everything was sent, or -errno. */
static int client_send(struct agent_client *client)
{
    while (client->out.len > 0) {
        ssize_t n = send(client->watch.fd, client->out.data, client->out.len, MSG_NOSIGNAL);

        if (n < 0)
            return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        buf_consume(&client->out, (size_t)n);
    }
    return 1;
}

/* Answers what has come, one message after the other: nothing is read or answered while a reply
 * waits to be sent. Returns 0 or -errno. */
static int client_serve(struct agent_client *client)
{
    int r = 1;

    while (r > 0) {
        r = client_send(client);
        if (r > 0)
            r = message_answer(client);
    }
    return r;
}

static int client_read(struct agent_client *client)
{
    ssize_t n;

    if (client->out.len > 0)
        return 0;
    if (buf_reserve(&client->in, READ_BYTES) < 0)
        return -ENOBUFS;
    n = recv(client->watch.fd, client->in.data + client->in.len, READ_BYTES, MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    client->in.len += (size_t)n;
    return n == 0 ? -EPIPE : 0;
}

static void client_ready(struct watch *watch, uint32_t events)
{
    struct agent_client *client = (struct agent_client *)watch;
    struct egress *egress = client->agent->guest->egress;

    client->active_ms = egress->now_ms;
    if ((events & (EPOLLERR | EPOLLHUP)) || client_read(client) < 0 || client_serve(client) < 0) {
        client_close(client);
        return;
    }
    watch_set(egress, watch, client->out.len > 0 ? EPOLLOUT : EPOLLIN);
}

static struct agent_client *client_place(struct agent *agent)
{
    for (size_t i = 0; i < CLIENTS_MAX; i++)
        if (agent->clients[i].watch.fd < 0)
            return &agent->clients[i];
    return NULL;
}

static void listener_ready(struct watch *watch, uint32_t events)
{
    struct agent *agent = (struct agent *)watch;
    struct egress *egress = agent->guest->egress;
    struct agent_client *client = client_place(agent);
    cleanup_close int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    (void)events;
    if (fd < 0 || !client) /* without a place it is closed */
        return;
    *client = (struct agent_client){
        .watch = { .fd = TAKE_FD(fd), .guest = agent->guest, .ready = client_ready },
        .agent = agent,
        .in = BUF_INIT(SSH_AGENT_MESSAGE_MAX + READ_BYTES),
        .out = BUF_INIT(SSH_AGENT_REPLY_MAX + sizeof(uint32_t)),
        .active_ms = egress->now_ms,
    };
    watch_set(egress, &client->watch, EPOLLIN);
}

/* --- keys --- */

static int key_from_json(const json_t *json, struct ssh_agent_key *ret)
{
    const char *name = json_string_value(json_object_get(json, "name"));
    const char *text = json_string_value(json_object_get(json, "key"));
    const json_t *hosts = json_object_get(json, "hostKeys");
    size_t count = json_array_size(hosts);
    struct err err = { 0 };

    if (!name || !text || count == 0 || count > SSH_HOST_KEYS_MAX ||
        ssh_key_read(&ret->key, text, strlen(text), &err) < 0)
        return -EPROTO;
    (void)snprintf(ret->comment, sizeof(ret->comment), "%s", name);
    ret->hosts = xcalloc(count, sizeof(*ret->hosts));
    for (; ret->host_count < count; ret->host_count++) {
        const char *line = json_string_value(json_array_get(hosts, ret->host_count));

        if (!line || ssh_public_parse(line, &ret->hosts[ret->host_count], &err) < 0)
            return -EPROTO;
    }
    return 0;
}

static int keys_from_json(const json_t *json, struct ssh_agent *ret)
{
    size_t count = json_array_size(json);
    int r = json_is_array(json) && count <= KEYS_MAX ? 0 : -EPROTO;

    if (r == 0)
        ret->keys = xcalloc(count ? count : 1, sizeof(*ret->keys));
    for (size_t i = 0; r == 0 && i < count; i++) {
        r = key_from_json(json_array_get(json, i), &ret->keys[i]);
        ret->count++; /* also one that is not complete, which is freed then */
    }
    return r;
}

static struct agent *agent_new(struct guest *guest)
{
    struct agent *agent = xcalloc(1, sizeof(*agent));

    agent->guest = guest;
    agent->listener.fd = -EBADF;
    for (size_t i = 0; i < CLIENTS_MAX; i++)
        agent->clients[i].watch.fd = -EBADF;
    return agent;
}

int agent_set(struct guest *guest, const json_t *keys, int listener_fd)
{
    cleanup_with(ssh_agent_done) struct ssh_agent read = { .keys = NULL };
    cleanup_close int fd = listener_fd;
    struct agent *agent = guest->agent;
    struct ssh_agent old;

    if (keys_from_json(keys, &read) < 0 || (!agent && fd < 0))
        return -EPROTO;
    if (!agent)
        agent = guest->agent = agent_new(guest);
    old = agent->keys;
    agent->keys = read;
    read = old;
    if (fd < 0)
        return 0;
    watch_close(guest->egress, &agent->listener);
    agent->listener = (struct watch){ .fd = TAKE_FD(fd), .guest = guest, .ready = listener_ready };
    return 0;
}

void agent_close(struct guest *guest)
{
    struct agent *agent = guest->agent;

    if (!agent)
        return;
    for (size_t i = 0; i < CLIENTS_MAX; i++)
        if (agent->clients[i].watch.fd >= 0)
            client_close(&agent->clients[i]);
    watch_close(guest->egress, &agent->listener);
    ssh_agent_done(&agent->keys);
    /* Events of this turn may still point to it: it is freed with the guest. */
}

/* Waits for connections once holt-init listens; before that epoll would report an end. */
static void listener_begin(struct agent *agent)
{
    int is_listening = 0;
    socklen_t len = sizeof(is_listening);

    if (agent->listener.events == 0 &&
        getsockopt(agent->listener.fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &len) == 0 &&
        is_listening)
        watch_set(agent->guest->egress, &agent->listener, EPOLLIN);
}

bool agent_is_waiting(const struct guest *guest)
{
    return guest->agent && guest->agent->listener.fd >= 0 && guest->agent->listener.events == 0;
}

void agent_tick(struct guest *guest)
{
    struct agent *agent = guest->agent;

    if (agent_is_waiting(guest))
        listener_begin(agent);
    for (size_t i = 0; agent && i < CLIENTS_MAX; i++) {
        struct agent_client *client = &agent->clients[i];

        if (client->watch.fd >= 0 && guest->egress->now_ms >= client->active_ms + CLIENT_IDLE_MS)
            client_close(client);
    }
}
