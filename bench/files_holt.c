// SPDX-License-Identifier: Apache-2.0
/* Makes file calls in a running sandbox through libholt. Prints one line of microseconds per
 * sample; with several callers, the total time divided by the number of calls.
 *
 * usage: files_holt [-c CALLERS] WHAT COUNT HOST SANDBOX
 *
 * WHAT
 * stat       FileService/Stat of a file
 * read       FileService/Read of a file of 1 KiB
 * write      FileService/Write of 1 KiB, atomic
 */
#include <err.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "holt.h"

enum { CALLERS_MAX = 64, FILE_BYTES = 1024, TEXT_MAX = 4096 };

static struct {
    struct holt *holt;
    const char *sandbox;
    char stat[TEXT_MAX], read[TEXT_MAX], write[TEXT_MAX];
} bench;

static void check(int r, const struct holt_error *error)
{
    if (r < 0)
        errx(1, "%s: %s", error->code, error->message);
}

static void do_stat(void)
{
    struct holt_error error;
    char *reply;

    check(holt_call(bench.holt, "holt.v1.FileService/Stat", bench.stat, HOLT_NO_DEADLINE, &reply,
                    &error),
          &error);
    free(reply);
}

static void do_read(void)
{
    struct holt_stream *stream;
    struct holt_error error;
    const char *message;
    size_t len, bytes = 0;
    int r;

    check(holt_stream_open(bench.holt, "holt.v1.FileService/Read", bench.read, HOLT_NO_DEADLINE,
                           &stream, &error),
          &error);
    while ((r = holt_stream_next(stream, &message, &len, &error)) > 0)
        bytes += len;
    check(r, &error);
    if (bytes < FILE_BYTES)
        errx(1, "%zu bytes came", bytes);
    holt_stream_close(stream);
}

static void do_write(void)
{
    struct holt_upload *upload;
    struct holt_error error;
    char *reply;

    check(holt_upload_open(bench.holt, "holt.v1.FileService/Write", HOLT_NO_DEADLINE, &upload,
                           &error),
          &error);
    check(holt_upload_send(upload, bench.write, strlen(bench.write), &error), &error);
    check(holt_upload_finish(upload, &reply, &error), &error);
    holt_upload_close(upload);
    free(reply);
}

static const struct what {
    const char *name;
    void (*once)(void);
} whats[] = { { "stat", do_stat }, { "read", do_read }, { "write", do_write } };

static void prepare(const char *host, const char *sandbox)
{
    const struct holt_options options = { .size = sizeof(options), .host = host };
    struct holt_error error;
    char data[FILE_BYTES * 2];

    memset(data, 0, sizeof(data));
    for (size_t i = 0; i < (FILE_BYTES + 2) / 3 * 4; i++)
        data[i] = i < (FILE_BYTES + 2) / 3 * 4 - 2 ? 'A' : '='; /* 1 KiB of zeros in base64 */
    check(holt_open(&options, HOLT_NO_DEADLINE, &bench.holt, &error), &error);
    (void)snprintf(bench.stat, sizeof(bench.stat), "{\"sandboxId\":\"%s\",\"path\":\"bench\"}",
                   sandbox);
    memcpy(bench.read, bench.stat, sizeof(bench.read));
    (void)snprintf(bench.write, sizeof(bench.write),
                   "{\"sandboxId\":\"%s\",\"path\":\"bench\",\"atomic\":true,\"data\":\"%s\"}",
                   sandbox, data);
    do_write();
}

struct caller {
    pthread_t thread;
    void (*once)(void);
    long count;
};

static void *caller_main(void *argument)
{
    const struct caller *caller = argument;

    for (long i = 0; i < caller->count; i++)
        caller->once();
    return NULL;
}

/* Runs all callers at the same time; prints the same sample for each call. */
static void run_many(const struct what *what, long callers, long count)
{
    struct caller list[CALLERS_MAX];
    double started = now_us(), each;

    for (long i = 0; i < callers; i++) {
        list[i] = (struct caller){ .once = what->once, .count = count / callers + 1 };
        if (pthread_create(&list[i].thread, NULL, caller_main, &list[i]) != 0)
            errx(1, "cannot start a thread");
    }
    for (long i = 0; i < callers; i++)
        (void)pthread_join(list[i].thread, NULL);
    each = (now_us() - started) / (double)(callers * (count / callers + 1));
    for (long i = 0; i < count; i++)
        (void)printf("%.2f\n", each);
}

static void run_one(const struct what *what, long count)
{
    for (long i = 0; i < count; i++) {
        double started = now_us();

        what->once();
        (void)printf("%.2f\n", now_us() - started);
    }
}

int main(int argc, char **argv)
{
    long callers = 1, count;
    int option;

    while ((option = getopt(argc, argv, "c:")) == 'c')
        callers = strtol(optarg, NULL, 10);
    if (option != -1 || argc - optind != 4 || callers < 1 || callers > CALLERS_MAX)
        errx(2, "usage: files_holt [-c CALLERS] WHAT COUNT HOST SANDBOX");
    count = strtol(argv[optind + 1], NULL, 10);
    prepare(argv[optind + 2], argv[optind + 3]);
    for (size_t i = 0; i < sizeof(whats) / sizeof(whats[0]); i++) {
        if (strcmp(whats[i].name, argv[optind]) != 0)
            continue;
        if (callers > 1)
            run_many(&whats[i], callers, count);
        else
            run_one(&whats[i], count);
        holt_close(bench.holt);
        return 0;
    }
    errx(2, "unknown: %s", argv[optind]);
}
