// SPDX-License-Identifier: Apache-2.0
/* How long a command takes in a shell that is there, through libholt: prints the latencies.
 * usage: shell_holt SANDBOX [COUNT [COMMAND]] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "holt.h"

static struct holt *holt;

static int fail(const struct holt_error *error)
{
    (void)fprintf(stderr, "shell_holt: %s\n", error->message);
    exit(1);
}

static double now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void run(const char *request)
{
    struct holt_stream *stream;
    struct holt_error error;
    const char *message;
    size_t len;
    int r;

    if (holt_stream_open(holt, "holt.v1.ShellService/Run", request, &stream, &error) < 0)
        (void)fail(&error);
    while ((r = holt_stream_next(stream, &message, &len, &error)) > 0)
        continue;
    if (r < 0)
        (void)fail(&error);
    holt_stream_close(stream);
}

static int compare(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;

    return (a > b) - (a < b);
}

int main(int argc, char **argv)
{
    int count = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 1000;
    double *times = calloc((size_t)count + 1, sizeof(*times));
    struct holt_error error;
    char request[512];

    if (argc < 2 || count < 1 || !times)
        return 2;
    (void)snprintf(request, sizeof(request),
                   "{\"sandboxId\":\"%s\",\"name\":\"bench\",\"command\":\"%s\"}", argv[1],
                   argc > 3 ? argv[3] : ":");
    if (holt_open(NULL, NULL, &holt, &error) < 0)
        (void)fail(&error);
    run(request);
    for (int i = 0; i < count; i++) {
        double start = now_ms();

        run(request);
        times[i] = now_ms() - start;
    }
    qsort(times, (size_t)count, sizeof(*times), compare);
    (void)printf("{\"what\":\"shell command\",\"count\":%d,\"p50_ms\":%.3f,\"p99_ms\":%.3f}\n",
                 count, times[count / 2], times[count * 99 / 100]);
    holt_close(holt);
    free(times);
    return 0;
}
