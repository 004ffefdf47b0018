// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "egress/control.h"
#include "host/core/host_internal.h"
#include "host/llm/llm.h"
#include "host/net/net_internal.h"
#include "host/secret/authority.h"
#include "host/secret/secret.h"
#include "kernel/clone.h"
#include "kernel/fds.h"
#include "kernel/route.h"
#include "runtime/program.h"

enum {
    READY_MS = 10000,
    LINE_MAX_BYTES = 512,
    ANSWER_MAX = 256,
    REFRESH_MS = 5000,
    SEND_SECONDS = 5
};

/* The name servers of the host, as its resolv.conf has them. */
static json_t *resolvers_read(void)
{
    json_t *list = json_array();
    FILE *file = fopen("/etc/resolv.conf", "re");
    char line[LINE_MAX_BYTES], word[LINE_MAX_BYTES];

    while (file && fgets(line, sizeof(line), file)) {
        unsigned char address[sizeof(struct in6_addr)];

        if (sscanf(line, "nameserver %511s", word) == 1 &&
            (inet_pton(AF_INET, word, address) == 1 || inet_pton(AF_INET6, word, address) == 1))
            (void)json_array_append_new(list, json_string(word));
    }
    if (file)
        (void)fclose(file);
    return list;
}

/* Adds the authority of this host, if there is one. */
static void authority_add(struct net *net, json_t *config)
{
    const struct authority *authority = NULL;
    struct err err = { 0 };

    if (secrets_authority(net->host->secrets, false, &authority, &err) < 0)
        log_error("secrets cannot be used: %s", err.msg);
    if (authority)
        (void)json_object_set_new(
            config, "ca",
            json_pack("{s:s, s:s}", "certificate", authority->certificate, "key", authority->key));
}

/* Fills in the key of a provider that is a secret. One that does not exist, or cannot be opened,
 * stays empty: the gateway says so. */
static void provider_key_add(struct host *host, json_t *provider)
{
    const char *name = json_string_value(json_object_get(provider, "secret"));
    const char *owner = json_string_value(json_object_get(provider, "owner"));
    cleanup_with(secret_value_done) struct secret_value value = { .len = 0 };
    struct secret_info info;
    struct err ignored;

    if (!name)
        return;
    if (secrets_find(host->secrets, *owner ? owner : OWNER_ROOT, name, &info, &ignored) == 0 &&
        secrets_get_value(host->secrets, info.id, &value, &ignored) == 0)
        (void)json_object_set_new(provider, "key", json_text(value.bytes));
    (void)json_object_del(provider, "secret");
}

static json_t *models_make(struct host *host)
{
    json_t *models = llm_message(host->llm);
    const json_t *providers = json_object_get(models, "providers");

    for (size_t i = 0; i < json_array_size(providers); i++)
        provider_key_add(host, json_array_get(providers, i));
    return models;
}

static json_t *hello_make(struct net *net)
{
    json_t *config = json_pack("{s:o, s:b, s:O}", "resolvers", resolvers_read(), "hasIpv6",
                               (int)route_has_ipv6(), "bounds", net->bounds);
    json_t *models = models_make(net->host);

    authority_add(net, config);
    lock_scope(&net->lock);

    net->has_news = false;
    (void)json_object_update(config, net->upstream);
    (void)json_object_set_new(config, "llm", models);
    return json_pack("{s:s, s:o}", "do", "hello", "config", config);
}

int net_helper_send(struct net *net, json_t *message, const int *fds, size_t fd_count)
{
    cleanup_json json_t *owned = message;
    cleanup_free char *text = owned ? json_dumps(owned, JSON_COMPACT) : NULL;
    ssize_t n;

    if (!text)
        return -ENOMEM;
    if (net->control_fd < 0)
        return -ENOTCONN;
    n = fds_send(net->control_fd, text, strlen(text), 0, fds, fd_count);
    if (n < 0) /* dead, or it does not read: the thread sees its end and starts it again */
        (void)kill(net->pid, SIGKILL);
    return n < 0 ? (int)n : 0;
}

static int hello_send(struct net *net)
{
    cleanup_json json_t *hello = hello_make(net);
    char *text = json_dumps(hello, JSON_COMPACT);
    int r = 0;

    net->hello_ms = clock_ms();
    if (!text || (net->resolvers && strcmp(net->resolvers, text) == 0)) {
        free(text);
        return 0;
    }
    free(net->resolvers);
    net->resolvers = text;
    r = net_helper_send(net, json_incref(hello), NULL, 0);
    return r;
}

int net_helper_update(struct net *net)
{
    return net->control_fd >= 0 ? hello_send(net) : 0;
}

static bool has_news(struct net *net)
{
    lock_scope(&net->lock);

    return net->has_news;
}

void net_helper_refresh(struct net *net)
{
    if (net->control_fd >= 0 && (clock_ms() >= net->hello_ms + REFRESH_MS || has_news(net)))
        (void)hello_send(net);
}

/* It says that it has given up its privileges, or ends with a reason in the daemon's log. */
static int ready_wait(struct net *net, struct err *err)
{
    struct pollfd wait = { .fd = net->control_fd, .events = POLLIN };
    char text[ANSWER_MAX];
    int n = poll(&wait, 1, READY_MS);

    if (n > 0 && recv(net->control_fd, text, sizeof(text), MSG_DONTWAIT) > 0)
        return 0;
    return err_set(err, ERR_INTERNAL,
                   n == 0 ? "holt-net did not start within %d s" : "holt-net has ended",
                   READY_MS / 1000);
}

static int helper_exec(struct net *net, int program_fd, int socket_fd)
{
    static char name[] = "holt-net";
    char *const args[] = { name, NULL };
    char *const env[] = { NULL };
    const struct clone_exec spec = {
        .cgroup_fd = -1,
        .program_fd = program_fd,
        .args = args,
        .env = env,
        .fds = &socket_fd,
        .fd_count = 1,
    };

    return clone_exec(&spec, &net->pid, &net->pidfd);
}

int net_helper_start(struct net *net, struct err *err)
{
    cleanup_close int mine = -EBADF, its = -EBADF, program_fd = -EBADF;
    cleanup_free char *path = NULL;
    const struct timeval timeout = { .tv_sec = SEND_SECONDS };
    int pair[2], bytes = 2 * CONTROL_MESSAGE_MAX;
    int r;

    if (net->control_fd >= 0)
        return 0;
    r = program_find("holt-net", &path, err);
    if (r < 0)
        return r;
    program_fd = open(path, O_PATH | O_CLOEXEC);
    if (program_fd < 0)
        return err_sys(err, -errno, "open '%s'", path);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, -errno, "make a connection to holt-net");
    mine = pair[0];
    its = pair[1];
    /* A policy is one packet, which must fit the buffer. */
    (void)setsockopt(mine, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes));
    (void)setsockopt(mine, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
    r = helper_exec(net, program_fd, its);
    if (r < 0)
        return err_sys(err, r, "start '%s'", path);
    net->control_fd = TAKE_FD(mine);
    net->started_ms = clock_ms();
    free(net->resolvers);
    net->resolvers = NULL;
    r = hello_send(net);
    if (r == 0)
        r = ready_wait(net, err);
    else
        (void)err_sys(err, r, "send to holt-net");
    if (r < 0)
        net_helper_stop(net);
    return r;
}

void net_helper_stop(struct net *net)
{
    siginfo_t info;

    net->control_fd = fd_close(net->control_fd);
    if (net->pidfd < 0)
        return;
    (void)kill(net->pid, SIGKILL);
    (void)waitid(P_PIDFD, (id_t)net->pidfd, &info, WEXITED);
    net->pidfd = fd_close(net->pidfd);
    net->pid = 0;
}
