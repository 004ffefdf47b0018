// SPDX-License-Identifier: Apache-2.0
/* Runs processes in a running sandbox through libholt. Prints one line of microseconds per sample.
 *
 * usage: exec_holt [-m MIB] [-p PAUSE_MS] WHAT COUNT HOST SANDBOX
 *
 * WHAT
 * true       /bin/true, from the request to the end of its stream, on a kept connection
 * output     dd writes MIB of zeros to its stdout; raw
 * input      cat > /dev/null reads MIB from its stdin; raw
 * echo       one byte to a terminal, until its echo arrives; raw
 * shell      ":" in a persistent shell
 */
#include <err.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/text/base64.h"
#include "clock.h"
#include "holt.h"

#define EXEC "holt.v1.ProcessService/Exec"
#define SHELL_RUN "holt.v1.ShellService/Run"

enum {
    MIB = 1024 * 1024,
    INPUT_BYTES = 64 * 1024, /* the capacity of a pipe */
};

struct bench {
    struct holt *holt;
    struct holt_stream *stream; /* of the terminal */
    struct holt_input *input;
    const char *sandbox;
    long mib;
    long pause_ms;
};

struct what {
    const char *name;
    void (*prepare)(struct bench *bench); /* once, may be NULL */
    double (*sample)(struct bench *bench);
};

/* Takes ownership of the request. */
static struct holt_stream *stream_open(struct bench *bench, const char *method, json_t *request)
{
    char *text = json_dumps(request, JSON_COMPACT);
    struct holt_stream *stream;
    struct holt_error error;

    if (!text || holt_stream_open(bench->holt, method, text, HOLT_NO_DEADLINE, &stream, &error) < 0)
        errx(1, "%s: %s: %s", method, error.code, error.message);
    free(text);
    json_decref(request);
    return stream;
}

static struct holt_stream *start(struct bench *bench, json_t *process)
{
    return stream_open(bench, EXEC,
                       json_pack("{s:s,s:o}", "sandboxId", bench->sandbox, "process", process));
}

/* Returns the next message, or false at the end of a successful stream. */
static bool next(struct holt_stream *stream, const char **ret_message, size_t *ret_len)
{
    struct holt_error error;
    int r = holt_stream_next(stream, ret_message, ret_len, &error);

    if (r < 0)
        errx(1, "%s: %s", error.code, error.message);
    return r > 0;
}

static bool contains(const char *message, size_t len, const char *word)
{
    return memmem(message, len, word, strlen(word));
}

/* Returns the string of a message {"FIELD":"..."} as written, or NULL if it is another field. */
static const char *only_text(const char *message, size_t len, const char *field, size_t *ret_len)
{
    char before[32];
    size_t skip = (size_t)snprintf(before, sizeof(before), "{\"%s\":\"", field);

    if (len < skip + 2 || memcmp(message, before, skip) != 0)
        return NULL;
    *ret_len = len - skip - 2;
    return message + skip;
}

/* Reads to the end and counts the bytes on stdout; exits if the command failed. */
static size_t drain(struct holt_stream *stream)
{
    static struct buf decoded = BUF_INIT(MIB);
    bool is_well = false;
    const char *message, *text;
    size_t len, total = 0;

    while (next(stream, &message, &len)) {
        text = only_text(message, len, "stdout", &len);
        if (!text) {
            is_well = contains(message, len, "\"exitCode\":0");
            continue;
        }
        buf_clear(&decoded);
        if (base64_decode(&decoded, text, len) < 0)
            errx(1, "the output cannot be decoded");
        total += decoded.len;
    }
    if (!is_well)
        errx(1, "the command failed");
    holt_stream_close(stream);
    return total;
}

static double sample_true(struct bench *bench)
{
    double started = now_us();

    (void)drain(start(bench, json_pack("{s:[s]}", "args", "/bin/true")));
    return now_us() - started;
}

/* A raw stream uses up its connection, so the next one opens a new connection. */
static struct holt_stream *start_raw(struct bench *bench, json_t *process)
{
    json_t *request = json_pack("{s:s,s:o}", "sandboxId", bench->sandbox, "process", process);
    char *text = json_dumps(request, JSON_COMPACT);
    struct holt_stream *stream;
    struct holt_error error;

    if (!text ||
        holt_stream_open_raw(bench->holt, EXEC, text, HOLT_NO_DEADLINE, &stream, &error) < 0)
        errx(1, "%s: %s: %s", EXEC, error.code, error.message);
    free(text);
    json_decref(request);
    return stream;
}

static bool next_raw(struct holt_stream *stream, struct holt_piece *ret)
{
    struct holt_error error;
    int r = holt_stream_next_raw(stream, ret, &error);

    if (r < 0)
        errx(1, "%s: %s", error.code, error.message);
    return r > 0;
}

/* Like drain. */
static size_t drain_raw(struct holt_stream *stream)
{
    struct holt_piece piece;
    bool is_well = false;
    size_t total = 0;

    while (next_raw(stream, &piece)) {
        if (piece.kind == HOLT_STDOUT)
            total += piece.len;
        else if (piece.kind == HOLT_EVENT)
            is_well = contains(piece.data, piece.len, "\"exitCode\":0");
    }
    if (!is_well)
        errx(1, "the command failed");
    holt_stream_close(stream);
    return total;
}

static double sample_output(struct bench *bench)
{
    double started = now_us();
    char count[32];
    size_t total;

    (void)snprintf(count, sizeof(count), "count=%ld", bench->mib);
    total = drain_raw(start_raw(
        bench, json_pack("{s:[s,s,s,s]}", "args", "/bin/dd", "if=/dev/zero", "bs=1024k", count)));
    if (total != (size_t)bench->mib * MIB)
        errx(1, "%zu bytes came", total);
    return now_us() - started;
}

/* Opens the stdin of the process after the first message of the stream. */
static struct holt_input *open_input(struct holt_stream *stream)
{
    struct holt_input *input;
    struct holt_error error;
    struct holt_piece piece;

    if (!next_raw(stream, &piece) || !contains(piece.data, piece.len, "\"started\""))
        errx(1, "the process did not start");
    if (holt_input_open(stream, &input, &error) < 0)
        errx(1, "%s: %s", error.code, error.message);
    return input;
}

static void send_input(struct holt_input *input, const char *data, size_t len, bool is_eof)
{
    struct holt_error error;

    if (holt_input_send(input, data, len, is_eof, HOLT_NO_DEADLINE, &error) < 0)
        errx(1, "%s: %s", error.code, error.message);
}

static double sample_input(struct bench *bench)
{
    static const char zeros[INPUT_BYTES];
    double started = now_us();
    struct holt_stream *stream = start_raw(bench, json_pack("{s:[s,s,s],s:b}", "args", "/bin/sh",
                                                            "-c", "cat > /dev/null", "stdin", 1));
    struct holt_input *input = open_input(stream);

    for (long i = 0; i < bench->mib * (MIB / INPUT_BYTES); i++)
        send_input(input, zeros, INPUT_BYTES, false);
    send_input(input, NULL, 0, true);
    holt_input_close(input);
    (void)drain_raw(stream);
    return now_us() - started;
}

/* The terminal echoes; the process that reads from it does nothing. */
static void prepare_echo(struct bench *bench)
{
    bench->stream = start_raw(bench, json_pack("{s:[s,s],s:{s:i,s:i}}", "args", "/bin/sleep",
                                               "1000", "terminal", "rows", 24, "columns", 80));
    bench->input = open_input(bench->stream);
}

static double sample_echo(struct bench *bench)
{
    struct holt_piece piece;
    double started = now_us();

    send_input(bench->input, "x", 1, false);
    do
        if (!next_raw(bench->stream, &piece))
            errx(1, "the terminal is closed");
    while (piece.kind != HOLT_STDOUT);
    return now_us() - started;
}

static double sample_shell(struct bench *bench)
{
    json_t *request =
        json_pack("{s:s,s:s,s:s}", "sandboxId", bench->sandbox, "name", "bench", "command", ":");
    double started = now_us();

    (void)drain(stream_open(bench, SHELL_RUN, request));
    return now_us() - started;
}

static const struct what whats[] = {
    { "true", NULL, sample_true },   { "output", NULL, sample_output },
    { "input", NULL, sample_input }, { "echo", prepare_echo, sample_echo },
    { "shell", NULL, sample_shell },
};

static const struct what *what_find(const char *name)
{
    for (size_t i = 0; i < sizeof(whats) / sizeof(whats[0]); i++)
        if (strcmp(whats[i].name, name) == 0)
            return &whats[i];
    errx(2, "there is nothing called '%s'", name);
}

static struct holt *open_host(const char *host)
{
    struct holt_options options = HOLT_INIT(holt_options);
    struct holt_error error;
    struct holt *holt;

    options.host = host;
    if (holt_open(&options, HOLT_NO_DEADLINE, &holt, &error) < 0)
        errx(1, "%s: %s", error.code, error.message);
    return holt;
}

static void run(struct bench *bench, const struct what *what, long count)
{
    if (what->prepare)
        what->prepare(bench);
    for (long i = 0; i < count; i++) {
        if (bench->pause_ms > 0)
            (void)usleep((useconds_t)bench->pause_ms * 1000);
        (void)printf("%.1f\n", what->sample(bench));
    }
    holt_input_close(bench->input);
    if (bench->stream)
        holt_stream_close(bench->stream); /* this kills the process */
    holt_close(bench->holt);
}

int main(int argc, char **argv)
{
    struct bench bench = { .mib = 64 };
    const struct what *what;
    int option;

    while ((option = getopt(argc, argv, "+m:p:")) != -1) {
        if (option == 'm')
            bench.mib = strtol(optarg, NULL, 10);
        else if (option == 'p')
            bench.pause_ms = strtol(optarg, NULL, 10);
        else
            return 2;
    }
    if (argc != optind + 4)
        errx(2, "usage: exec_holt [-m MIB] [-p PAUSE_MS] WHAT COUNT HOST SANDBOX");
    what = what_find(argv[optind]);
    bench.holt = open_host(argv[optind + 2]);
    bench.sandbox = argv[optind + 3];
    run(&bench, what, strtol(argv[optind + 1], NULL, 10));
    return 0;
}
