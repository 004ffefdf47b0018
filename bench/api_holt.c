// SPDX-License-Identifier: Apache-2.0
/* Makes calls that do no work through libholt, with one thread per connection.
 *
 * usage: api_holt [-r RATE] SECONDS CONNECTIONS HOST
 *
 * Without -r every connection calls again as soon as it has a reply, which measures throughput.
 * With -r all connections together make RATE calls per second, evenly spaced, and each is measured
 * from the moment at which it was due, which measures latency under load.
 *
 * Prints one JSON object. The token is $HOLT_TOKEN. */
#include <err.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "holt.h"

enum { CALLS_MAX = 4 * 1000 * 1000, CONNECTIONS_MAX = 1000 };

struct bench {
    const char *host;
    double seconds;
    long rate; /* calls per second of all connections; 0: unlimited */
    int connections;
    double start_us;
    pthread_barrier_t ready;
};

struct caller {
    struct bench *bench;
    pthread_t thread;
    int number;
    size_t count, max;
    float *samples; /* us */
};

static void sleep_until(double moment_us)
{
    struct timespec until = {
        .tv_sec = (time_t)(moment_us / 1e6),
        .tv_nsec = (long)(moment_us - (double)(time_t)(moment_us / 1e6) * 1e6) * 1000,
    };

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0)
        continue;
}

static void call_once(struct holt *holt)
{
    struct holt_error error;
    char *reply;

    if (holt_call(holt, "holt.v1.HostService/Health", "{}", HOLT_NO_DEADLINE, &reply, &error) < 0)
        errx(1, "Health: %s", error.message);
    free(reply);
}

static void calls_make(struct caller *caller, struct holt *holt)
{
    const struct bench *bench = caller->bench;
    double end_us = bench->start_us + bench->seconds * 1e6;
    double step_us = bench->rate > 0 ? 1e6 * bench->connections / (double)bench->rate : 0;
    double due_us = bench->start_us + step_us * caller->number / bench->connections;

    while (caller->count < caller->max) {
        double begin_us;

        if (step_us > 0)
            sleep_until(due_us);
        begin_us = step_us > 0 ? due_us : now_us();
        if (begin_us >= end_us)
            return;
        call_once(holt);
        caller->samples[caller->count++] = (float)(now_us() - begin_us);
        due_us += step_us;
    }
}

static void *caller_run(void *context)
{
    struct caller *caller = context;
    struct bench *bench = caller->bench;
    const struct holt_options options = { .size = sizeof(options), .host = bench->host };
    struct holt_error error;
    struct holt *holt;

    if (holt_open(&options, HOLT_NO_DEADLINE, &holt, &error) < 0)
        errx(1, "connect: %s", error.message);
    call_once(holt);
    (void)pthread_barrier_wait(&bench->ready);
    (void)pthread_barrier_wait(&bench->ready); /* the clock is read between the two barriers */
    calls_make(caller, holt);
    holt_close(holt);
    return NULL;
}

static int compare(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

static void results_print(const struct bench *bench, struct caller *callers)
{
    size_t count = 0, at = 0;
    float *all;

    for (int i = 0; i < bench->connections; i++)
        count += callers[i].count;
    all = calloc(count + 1, sizeof(*all));
    if (!all || count == 0)
        errx(1, "no calls");
    for (int i = 0; i < bench->connections; i++) {
        memcpy(all + at, callers[i].samples, callers[i].count * sizeof(*all));
        at += callers[i].count;
    }
    qsort(all, count, sizeof(*all), compare);
    (void)printf("{\"calls\": %zu, \"calls_per_s\": %.0f, \"p50_us\": %.1f, \"p99_us\": %.1f, "
                 "\"max_us\": %.1f}\n",
                 count, (double)count / bench->seconds, (double)all[count / 2],
                 (double)all[count * 99 / 100], (double)all[count - 1]);
    free(all);
}

int main(int argc, char **argv)
{
    struct bench bench = { .rate = 0 };
    struct caller *callers;
    int option;

    while ((option = getopt(argc, argv, "r:")) == 'r')
        bench.rate = strtol(optarg, NULL, 10);
    if (option != -1 || argc - optind != 3)
        errx(2, "usage: api_holt [-r RATE] SECONDS CONNECTIONS HOST");
    bench.seconds = strtod(argv[optind], NULL);
    bench.connections = (int)strtol(argv[optind + 1], NULL, 10);
    bench.host = argv[optind + 2];
    if (bench.connections < 1 || bench.connections > CONNECTIONS_MAX || bench.seconds <= 0)
        errx(2, "1 to %d connections, for some time", CONNECTIONS_MAX);
    (void)pthread_barrier_init(&bench.ready, NULL, (unsigned)bench.connections + 1);
    callers = calloc((size_t)bench.connections, sizeof(*callers));
    for (int i = 0; callers && i < bench.connections; i++) {
        callers[i] = (struct caller){ .bench = &bench, .number = i };
        callers[i].max = CALLS_MAX / (size_t)bench.connections;
        callers[i].samples = calloc(callers[i].max, sizeof(*callers[i].samples));
        if (!callers[i].samples ||
            pthread_create(&callers[i].thread, NULL, caller_run, &callers[i]) != 0)
            errx(1, "cannot start connection %d", i);
    }
    (void)pthread_barrier_wait(&bench.ready);
    bench.start_us = now_us();
    (void)pthread_barrier_wait(&bench.ready);
    for (int i = 0; i < bench.connections; i++)
        (void)pthread_join(callers[i].thread, NULL);
    results_print(&bench, callers);
    return 0;
}
