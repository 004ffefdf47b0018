// SPDX-License-Identifier: Apache-2.0
/* Calls tools in a running sandbox through libholt. Prints one line of microseconds per sample;
 * with several callers, each of which makes COUNT calls, the total time divided by the number of
 * calls.
 *
 * usage: tools_holt [-c CALLERS] WHAT COUNT HOST SANDBOX
 *
 * WHAT
 * read       read_file of 1 KiB
 * write      write_file of 1 KiB
 * edit       edit_file of one word in 1 MiB
 * bash       bash of true
 * literal    grep for a missing word, below tree
 * regex      grep for a regular expression without a match, below tree
 * glob       glob below many
 */
#include <err.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "holt.h"

enum { CALLERS_MAX = 64, LINE_BYTES = 64, SMALL_LINES = 16, LARGE_LINES = 16384 };

#define FILE_PARAMS "\"path\":\"bench\""
#define EDIT_PARAMS "\"path\":\"bench-large\","

static struct {
    struct holt *holt;
    const char *sandbox;
} bench;

static void check(int r, const struct holt_error *error)
{
    if (r < 0)
        errx(1, "%s: %s", error->code, error->message);
}

/* Builds the request once, outside the measured time. */
static char *request_new(const char *tool, const char *params)
{
    char *request;

    if (asprintf(&request, "{\"sandboxId\":\"%s\",\"tool\":\"%s\",\"params\":{%s}}", bench.sandbox,
                 tool, params) < 0)
        errx(1, "no memory");
    return request;
}

static void call(const char *request)
{
    struct holt_error error;
    char *reply;

    check(holt_call(bench.holt, "holt.v1.ToolService/Execute", request, HOLT_NO_DEADLINE, &reply,
                    &error),
          &error);
    if (strstr(reply, "\"isError\":true"))
        errx(1, "%.200s", reply);
    free(reply);
}

/* Makes lines of text, escaped for JSON; only the last line contains a certain word. */
static char *content_new(size_t lines)
{
    char *text = calloc(lines + 1, LINE_BYTES + 2), *next = text;

    if (!text)
        errx(1, "no memory");
    for (size_t i = 0; i < lines; i++, next += LINE_BYTES + 1)
        (void)snprintf(next, LINE_BYTES + 2, "%0*zu\\n", LINE_BYTES - 1, i);
    (void)snprintf(next, LINE_BYTES + 2, "here\\n");
    return text;
}

static void write_lines(const char *path, size_t lines)
{
    char *content = content_new(lines), *params, *request;

    if (asprintf(&params, "\"path\":\"%s\",\"content\":\"%s\"", path, content) < 0)
        errx(1, "no memory");
    request = request_new("write_file", params);
    call(request);
    free(request);
    free(params);
    free(content);
}

struct what {
    const char *name, *tool;
    const char *params[2]; /* used alternately; the second may be NULL */
};

static const struct what whats[] = {
    { "read", "read_file", { FILE_PARAMS } },
    { "write", "write_file", { NULL } },
    { "edit",
      "edit_file",
      { EDIT_PARAMS "\"old_string\":\"here\",\"new_string\":\"there!\"",
        EDIT_PARAMS "\"old_string\":\"there!\",\"new_string\":\"here\"" } },
    { "bash", "bash", { "\"cmd\":\"true\"" } },
    { "literal",
      "grep",
      { "\"pattern\":\"no such word anywhere\",\"literal\":true,\"path\":\"tree\"" } },
    { "regex", "grep", { "\"pattern\":\"no_[a-z]+_such_\\\\w+_word\",\"path\":\"tree\"" } },
    { "glob", "glob", { "\"pattern\":\"**/*7.c\",\"path\":\"many\",\"max_results\":100000" } },
};

static char *requests[2];

static void prepare(const struct what *what)
{
    char *content = content_new(SMALL_LINES), *params;

    write_lines("bench", SMALL_LINES);
    if (strcmp(what->name, "edit") == 0)
        write_lines("bench-large", LARGE_LINES);
    if (asprintf(&params, FILE_PARAMS ",\"content\":\"%s\"", content) < 0)
        errx(1, "no memory");
    for (int i = 0; i < 2; i++)
        requests[i] = request_new(what->tool, what->params[i]   ? what->params[i]
                                              : what->params[0] ? what->params[0]
                                                                : params);
    free(params);
    free(content);
}

struct caller {
    pthread_t thread;
    long count;
};

static void *caller_main(void *argument)
{
    const struct caller *caller = argument;

    for (long i = 0; i < caller->count; i++)
        call(requests[i % 2]);
    return NULL;
}

/* Runs all callers at the same time; prints the same sample for each call. */
static void run_many(long callers, long count)
{
    struct caller list[CALLERS_MAX];
    double started = now_us(), each;

    for (long i = 0; i < callers; i++) {
        list[i] = (struct caller){ .count = count };
        if (pthread_create(&list[i].thread, NULL, caller_main, &list[i]) != 0)
            errx(1, "cannot start a thread");
    }
    for (long i = 0; i < callers; i++)
        (void)pthread_join(list[i].thread, NULL);
    each = (now_us() - started) / (double)(callers * count);
    for (long i = 0; i < count; i++)
        (void)printf("%.2f\n", each);
}

static void run_one(long count)
{
    for (long i = 0; i < count; i++) {
        double started = now_us();

        call(requests[i % 2]);
        (void)printf("%.2f\n", now_us() - started);
    }
}

int main(int argc, char **argv)
{
    struct holt_options options = HOLT_INIT(holt_options);
    long callers = 1, count;
    struct holt_error error;
    int option;

    while ((option = getopt(argc, argv, "c:")) == 'c')
        callers = strtol(optarg, NULL, 10);
    if (option != -1 || argc - optind != 4 || callers < 1 || callers > CALLERS_MAX)
        errx(2, "usage: tools_holt [-c CALLERS] WHAT COUNT HOST SANDBOX");
    count = strtol(argv[optind + 1], NULL, 10);
    options.host = argv[optind + 2];
    options.idle_max = CALLERS_MAX;
    bench.sandbox = argv[optind + 3];
    check(holt_open(&options, HOLT_NO_DEADLINE, &bench.holt, &error), &error);
    for (size_t i = 0; i < sizeof(whats) / sizeof(whats[0]); i++) {
        if (strcmp(whats[i].name, argv[optind]) != 0)
            continue;
        prepare(&whats[i]);
        if (callers > 1)
            run_many(callers, count);
        else
            run_one(count);
        holt_close(bench.holt);
        return 0;
    }
    errx(2, "unknown: %s", argv[optind]);
}
