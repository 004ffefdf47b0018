// SPDX-License-Identifier: Apache-2.0
/* Measures what a client waits for a daemon that has nothing to do for it: Health, and beside each
 * call the same with a bare process that answers a byte over a socket. Prints one line
 * "health_us bare_us" per sample.
 *
 * usage: wait_holt [-p PAUSE_MS] COUNT HOST */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include "clock.h"
#include "holt.h"

/* A process that sends back what it receives, until the socket is closed. */
static int echo_start(void)
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

static double health_us(struct holt *holt)
{
    struct holt_error error;
    double started = now_us();
    char *reply;

    if (holt_call(holt, "holt.v1.HostService/Health", "{}", HOLT_NO_DEADLINE, &reply, &error) < 0)
        errx(1, "Health: %s", error.message);
    free(reply);
    return now_us() - started;
}

int main(int argc, char **argv)
{
    struct holt_options options = HOLT_INIT(holt_options);
    struct holt_error error;
    struct holt *holt;
    long pause_ms = 5, count;
    int option, fd;

    while ((option = getopt(argc, argv, "p:")) != -1) {
        if (option != 'p')
            return 2;
        pause_ms = strtol(optarg, NULL, 10);
    }
    if (argc != optind + 2)
        errx(2, "usage: wait_holt [-p PAUSE_MS] COUNT HOST");
    count = strtol(argv[optind], NULL, 10);
    options.host = argv[optind + 1];
    fd = echo_start();
    if (holt_open(&options, HOLT_NO_DEADLINE, &holt, &error) < 0)
        errx(1, "%s", error.message);
    for (long i = 0; i < count; i++) {
        (void)usleep((useconds_t)pause_ms * 1000);
        (void)printf("%.1f %.1f\n", health_us(holt), bare_us(fd));
    }
    holt_close(holt);
    return 0;
}
