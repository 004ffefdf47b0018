// SPDX-License-Identifier: Apache-2.0
/* holt-net: moves the bytes of sandboxes that have a network, and decides what they may reach.
 *
 * holtd starts it with a connection as descriptor 3 and restarts it when it dies. It has no
 * privileges, opens no file and starts no program; everything that it holds of a sandbox are two
 * sockets in the sandbox's network namespace. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "egress/control.h"
#include "egress/egress_internal.h"
#include "egress/tls/trust.h"
#include "kernel/route.h"

enum {
    UNSENT_MAX = 4 * 1024 * 1024,
    DESCRIPTORS_KEPT = 2048, /* for pipes, queries and the sockets of sandboxes */
    DESCRIPTORS_PER_CONNECTION = 2,
    CONNECTIONS_MIN = 64,
};

/* Returns how many connections fit the limit of descriptors, which is raised first. */
static unsigned connections_max(void)
{
    struct rlimit limit = { .rlim_cur = 1024 };

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
        (void)getrlimit(RLIMIT_NOFILE, &limit);
    }
    if (limit.rlim_cur < DESCRIPTORS_KEPT + DESCRIPTORS_PER_CONNECTION * CONNECTIONS_MIN)
        return CONNECTIONS_MIN;
    if (limit.rlim_cur > 1000000)
        limit.rlim_cur = 1000000;
    return (unsigned)(limit.rlim_cur - DESCRIPTORS_KEPT) / DESCRIPTORS_PER_CONNECTION;
}

/* Messages of holtd have values of secrets. */
static void wiping_free(void *memory)
{
    if (memory)
        explicit_bzero(memory, malloc_usable_size(memory));
    free(memory);
}

int main(void)
{
    static struct egress egress = {
        .bounds = { .connections = GUEST_CONNECTIONS_MAX,
                    .connects_per_second = GUEST_CONNECTS_PER_SECOND,
                    .queries_per_second = GUEST_QUERIES_PER_SECOND,
                    .idle_seconds = IDLE_SECONDS,
                    .total_seconds = TOTAL_SECONDS },
        .unsent = BUF_INIT(UNSENT_MAX),
    };
    int r;

    if (fcntl(CONTROL_FD, F_SETFD, FD_CLOEXEC) < 0) {
        (void)fprintf(stderr, "holt-net is started by holtd\n");
        return 2;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){ 0 });
    (void)prctl(PR_SET_NAME, "holt-net", 0, 0, 0);
    egress.now_ms = clock_ms();
    egress.connection_max = connections_max();
    egress.control = (struct watch){ .fd = CONTROL_FD, .ready = control_ready };
    egress.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    egress.route_fd = route_open(); /* the filter allows no socket of this kind */
    (void)random_u64(); /* this and the next two before the filter: they may open files */
    json_object_seed(0);
    (void)strerror(ECONNREFUSED);
    egress.trust_fd = trust_open_host();
    json_set_alloc_funcs(malloc, wiping_free);
    if (OPENSSL_init_ssl(0, NULL) != 1) /* reads its configuration */
        return 1;
    if (egress.epoll_fd < 0 || egress.route_fd < 0)
        return 1;
    r = confine();
    if (r < 0) {
        log_error("holt-net cannot give up its privileges: %s", strerror(-r));
        return 1;
    }
    watch_set(&egress, &egress.control, EPOLLIN);
    control_send(&egress, json_pack("{s:s}", "do", "ready"));
    egress_run(&egress);
    return 0;
}
