// SPDX-License-Identifier: Apache-2.0
/* Measures what a client waits for a daemon that has next to nothing to do for it: lists the
 * shells of a sandbox without any, and beside each call asks a bare process that answers a byte
 * over a socket. Prints one line "lookup_us bare_us" per sample.
 *
 * usage: wait_holt [-p PAUSE_MS] [-g GROUP] COUNT HOST SANDBOX
 *
 * -g moves the bare process to this control group. */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include "clock.h"
#include "holt.h"

static void group_join(const char *group)
{
    char path[4096];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/cgroup.procs", group);
    file = fopen(path, "we");
    if (!file || fputs("0", file) == EOF || fclose(file) == EOF)
        err(1, "join %s", group);
}

/* A process that sends back what it receives, until the socket is closed. */
static int echo_start(const char *group)
{
    int ends[2];
    char byte;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        err(1, "make a socket");
    switch (fork()) {
    case -1:
        err(1, "fork");
    case 0:
        (void)close(ends[0]);
        if (group)
            group_join(group);
        while (read(ends[1], &byte, 1) == 1)
            if (write(ends[1], &byte, 1) != 1)
                break;
        _exit(0);
    default:
        (void)close(ends[1]);
        return ends[0];
    }
}

static double bare_us(int fd)
{
    double started = now_us();
    char byte = 0;

    if (write(fd, &byte, 1) != 1 || read(fd, &byte, 1) != 1)
        err(1, "ask the bare process");
    return now_us() - started;
}

static double lookup_us(struct holt *holt, const char *sandbox)
{
    struct holt_error error;
    char request[256], *reply;
    double started = now_us();

    (void)snprintf(request, sizeof(request), "{\"sandboxId\":\"%s\"}", sandbox);
    if (holt_call(holt, "holt.v1.ShellService/List", request, HOLT_NO_DEADLINE, &reply, &error) < 0)
        errx(1, "List: %s", error.message);
    free(reply);
    return now_us() - started;
}

int main(int argc, char **argv)
{
    struct holt_options options = HOLT_INIT(holt_options);
    struct holt_error error;
    struct holt *holt;
    const char *group = NULL;
    long pause_ms = 5, count;
    int option, fd;

    while ((option = getopt(argc, argv, "p:g:")) != -1) {
        if (option == 'p')
            pause_ms = strtol(optarg, NULL, 10);
        else if (option == 'g')
            group = optarg;
        else
            return 2;
    }
    if (argc != optind + 3)
        errx(2, "usage: wait_holt [-p PAUSE_MS] [-g GROUP] COUNT HOST SANDBOX");
    count = strtol(argv[optind], NULL, 10);
    options.host = argv[optind + 1];
    fd = echo_start(group);
    if (holt_open(&options, HOLT_NO_DEADLINE, &holt, &error) < 0)
        errx(1, "%s", error.message);
    for (long i = 0; i < count; i++) {
        (void)usleep((useconds_t)pause_ms * 1000);
        (void)printf("%.1f %.1f\n", lookup_us(holt, argv[optind + 2]), bare_us(fd));
    }
    holt_close(holt);
    return 0;
}
