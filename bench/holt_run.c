// SPDX-License-Identifier: Apache-2.0
/* Runs a command in COUNT sandboxes through libholt, with one persistent connection per thread.
 * Prints one line "total_us first_byte_us" per run; with -j, the microseconds of all runs together.
 *
 * usage: holt_run [-p PAUSE_MS] [-j THREADS] COUNT HOST TEMPLATE COMMAND [ARGUMENT] */
#include <err.h>
#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "holt.h"

enum { REQUEST_BYTES = 1024, LAST_BYTES = 1024, THREADS_MAX = 64 };

struct bench {
    const char *host;
    char request[REQUEST_BYTES];
    long pause_ms;
    atomic_long left; /* runs that no thread has started */
};

struct sample {
    double total_us;
    double first_us;
    char last[LAST_BYTES]; /* the last message of the stream */
};

static void run(struct holt *holt, const char *request, struct sample *sample)
{
    struct holt_error error;
    struct holt_stream *stream;
    const char *message;
    double started = now_us();
    size_t len;
    int r;

    *sample = (struct sample){ 0 };
    if (holt_stream_open(holt, "holt.v1.SandboxService/Run", request, HOLT_NO_DEADLINE, &stream,
                         &error) < 0)
        errx(1, "Run: %s: %s", error.code, error.message);
    while ((r = holt_stream_next(stream, &message, &len, &error)) > 0) {
        if (sample->first_us <= 0 && memmem(message, len, "\"stdout\"", 8))
            sample->first_us = now_us() - started;
        (void)snprintf(sample->last, LAST_BYTES, "%.*s", (int)len, message);
    }
    if (r < 0)
        errx(1, "Run: %s: %s", error.code, error.message);
    holt_stream_close(stream);
    sample->total_us = now_us() - started;
}

/* Checks, outside the measured time, that the command has run and succeeded. */
static void expect_success(const struct sample *sample)
{
    json_t *message = json_loads(sample->last, 0, NULL);
    const json_t *ended = json_object_get(message, "ended");
    const char *outcome = json_string_value(json_object_get(ended, "outcome"));

    if (!outcome || strcmp(outcome, "exited") != 0 ||
        json_integer_value(json_object_get(ended, "exitCode")) != 0)
        errx(1, "the command did not end well: %s", sample->last);
    json_decref(message);
}

static void *run_many(void *argument)
{
    struct bench *bench = argument;
    struct holt_options options = HOLT_INIT(holt_options);
    struct holt_error error;
    struct holt *holt;
    struct sample sample;

    options.host = bench->host;
    if (holt_open(&options, HOLT_NO_DEADLINE, &holt, &error) < 0)
        errx(1, "%s: %s", error.code, error.message);
    while (atomic_fetch_sub(&bench->left, 1) > 0) {
        if (bench->pause_ms > 0)
            (void)usleep((useconds_t)bench->pause_ms * 1000);
        run(holt, bench->request, &sample);
        expect_success(&sample);
        if (bench->pause_ms >= 0)
            (void)printf("%.1f %.1f\n", sample.total_us, sample.first_us);
    }
    holt_close(holt);
    return NULL;
}

static void run_parallel(struct bench *bench, long threads)
{
    pthread_t thread[THREADS_MAX];
    double started = now_us();

    bench->pause_ms = -1; /* no lines for single runs */
    for (long i = 0; i < threads; i++)
        if (pthread_create(&thread[i], NULL, run_many, bench) != 0)
            errx(1, "cannot start a thread");
    for (long i = 0; i < threads; i++)
        (void)pthread_join(thread[i], NULL);
    (void)printf("%.1f\n", now_us() - started);
}

static void write_request(struct bench *bench, const char *template, char *const *words)
{
    json_t *args = json_array();
    json_t *request;
    size_t len;

    for (; *words; words++)
        (void)json_array_append_new(args, json_string(*words));
    request =
        json_pack("{s:{s:s},s:{s:o}}", "sandbox", "template", template, "process", "args", args);
    len = json_dumpb(request, bench->request, REQUEST_BYTES - 1, JSON_COMPACT);
    if (len == 0 || len >= REQUEST_BYTES)
        errx(2, "the command is too long");
    json_decref(request);
}

int main(int argc, char **argv)
{
    struct bench bench = { 0 };
    long threads = 0;
    int option;

    while ((option = getopt(argc, argv, "+j:p:")) != -1) {
        if (option == 'j')
            threads = strtol(optarg, NULL, 10);
        else if (option == 'p')
            bench.pause_ms = strtol(optarg, NULL, 10);
        else
            return 2;
    }
    if (argc < optind + 4 || threads > THREADS_MAX)
        errx(2,
             "usage: holt_run [-p PAUSE_MS] [-j THREADS] COUNT HOST TEMPLATE COMMAND [ARGUMENT]");
    bench.left = strtol(argv[optind], NULL, 10);
    bench.host = argv[optind + 1];
    write_request(&bench, argv[optind + 2], argv + optind + 3);

    if (threads > 0)
        run_parallel(&bench, threads);
    else
        (void)run_many(&bench);
    return 0;
}
