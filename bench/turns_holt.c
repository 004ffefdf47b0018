// SPDX-License-Identifier: Apache-2.0
/* Measures operations on persistent sandboxes through libholt on a persistent connection. Prints
 * one line of microseconds per sample, with one column for each part of a sample.
 *
 * usage: turns_holt [-c KIB] [-m MANY] [-p PAUSE_MS] WHAT COUNT HOST NAME
 *
 * WHAT       NAME       columns
 * create     template   create; destroy
 * snapshot   sandbox    the end of a turn
 * rollback   sandbox    rollback with a running shell; the same until a new shell responds
 * turns      sandbox    the end of a turn; rollback to it with a running shell
 * pause      sandbox    pause; resume, both with a running shell
 * stop       sandbox    stop; start
 * fork       sandbox    fork MANY times in one call; destroy them one after the other
 *
 * -c rewrites that many KiB in the sandbox before each sample, outside the measured time. */
#include <err.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "holt.h"

#define SANDBOX "holt.v1.SandboxService/"
#define SNAPSHOT "holt.v1.SnapshotService/"
#define EXEC "holt.v1.ProcessService/Exec"

enum { NAME_BYTES = 256 };

struct bench {
    struct holt *holt;
    struct holt *shell_holt; /* busy while a shell runs */
    struct holt_stream *shell;
    const char *name; /* a sandbox or a template */
    long changed_kib;
    long many;
    long pause_ms;
    char turn[NAME_BYTES]; /* the last turn */
};

struct what {
    const char *name;
    void (*prepare)(struct bench *bench); /* once, may be NULL */
    void (*sample)(struct bench *bench);
};

/* Makes one call and takes ownership of the request. *ret_us is its time, without JSON on this
 * side. */
static json_t *call(struct holt *holt, const char *method, json_t *request, double *ret_us)
{
    char *text = json_dumps(request, JSON_COMPACT), *reply = NULL;
    double started = now_us();
    struct holt_error error;
    json_t *answer;

    if (holt_call(holt, method, text, HOLT_NO_DEADLINE, &reply, &error) < 0)
        errx(1, "%s: %s: %s", method, error.code, error.message);
    *ret_us = now_us() - started;
    answer = json_loads(reply, 0, NULL);
    if (!answer)
        errx(1, "%s: the answer is not JSON", method);
    free(text);
    free(reply);
    json_decref(request);
    return answer;
}

static double call_sandbox(struct bench *bench, const char *method, const char *sandbox)
{
    double us;

    json_decref(call(bench->holt, method, json_pack("{s:s}", "sandboxId", sandbox), &us));
    return us;
}

static struct holt_stream *start(struct holt *holt, const char *sandbox, json_t *process)
{
    json_t *request = json_pack("{s:s,s:o}", "sandboxId", sandbox, "process", process);
    char *text = json_dumps(request, JSON_COMPACT);
    struct holt_stream *stream;
    struct holt_error error;

    if (holt_stream_open(holt, EXEC, text, HOLT_NO_DEADLINE, &stream, &error) < 0)
        errx(1, "Exec: %s: %s", error.code, error.message);
    free(text);
    json_decref(request);
    return stream;
}

/* Reads until a message contains a word, or to the end. */
static bool read_until(struct holt_stream *stream, const char *word)
{
    struct holt_error error;
    const char *message;
    size_t len;
    int r;

    while ((r = holt_stream_next(stream, &message, &len, &error)) > 0)
        if (word && memmem(message, len, word, strlen(word)))
            return true;
    if (r < 0)
        errx(1, "Exec: %s: %s", error.code, error.message);
    return false;
}

/* Starts a shell that waits for input, and waits for its first output. */
static void shell_start(struct bench *bench)
{
    json_t *process =
        json_pack("{s:[s,s,s],s:b}", "args", "/bin/sh", "-c", "echo x; read line", "stdin", true);

    bench->shell = start(bench->shell_holt, bench->name, process);
    if (!read_until(bench->shell, "\"stdout\""))
        errx(1, "the shell said nothing");
}

/* Reads the rest of the stream of a shell that the daemon has ended. */
static void shell_end(struct bench *bench)
{
    (void)read_until(bench->shell, NULL);
    holt_stream_close(bench->shell);
    bench->shell = NULL;
}

static void change(struct bench *bench)
{
    char of[] = "of=/workspace/changed", block[32], count[32];
    struct holt_stream *stream;
    json_t *process;

    if (bench->changed_kib == 0)
        return;
    (void)snprintf(block, sizeof(block), "bs=%ld", 1024L * 1024);
    (void)snprintf(count, sizeof(count), "count=%ld", bench->changed_kib / 1024);
    process = json_pack("{s:[s,s,s,s,s]}", "args", "/bin/dd", "if=/dev/zero", of, block, count);
    stream = start(bench->holt, bench->name, process);
    if (!read_until(stream, "\"exited\""))
        errx(1, "dd did not end well");
    (void)read_until(stream, NULL);
    holt_stream_close(stream);
}

static double turn(struct bench *bench)
{
    double us;
    json_t *answer = call(bench->holt, SNAPSHOT "TurnComplete",
                          json_pack("{s:s}", "sandboxId", bench->name), &us);
    json_t *snapshot = json_object_get(answer, "snapshot");

    (void)snprintf(bench->turn, sizeof(bench->turn), "%s",
                   json_string_value(json_object_get(snapshot, "name")));
    json_decref(answer);
    return us;
}

static double roll_back(struct bench *bench)
{
    double us;

    json_decref(call(bench->holt, SNAPSHOT "Rollback",
                     json_pack("{s:s,s:s}", "sandboxId", bench->name, "snapshot", bench->turn),
                     &us));
    return us;
}

static void sample_create(struct bench *bench)
{
    double create_us, destroy_us;
    json_t *answer = call(bench->holt, SANDBOX "Create",
                          json_pack("{s:s}", "template", bench->name), &create_us);
    json_t *sandbox = json_object_get(answer, "sandbox");

    destroy_us =
        call_sandbox(bench, SANDBOX "Destroy", json_string_value(json_object_get(sandbox, "id")));
    json_decref(answer);
    (void)printf("%.1f %.1f\n", create_us, destroy_us);
}

static void sample_snapshot(struct bench *bench)
{
    change(bench);
    (void)printf("%.1f\n", turn(bench));
}

static void prepare_turn(struct bench *bench)
{
    (void)turn(bench);
}

static void sample_rollback(struct bench *bench)
{
    double started, us;

    shell_start(bench);
    change(bench);
    started = now_us();
    us = roll_back(bench);
    shell_end(bench);
    shell_start(bench);
    (void)printf("%.1f %.1f\n", us, now_us() - started);
    holt_stream_close(bench->shell); /* this kills the shell and closes the connection */
    bench->shell = NULL;
}

static void sample_turns(struct bench *bench)
{
    double turn_us, rollback_us;

    shell_start(bench);
    change(bench);
    turn_us = turn(bench);
    rollback_us = roll_back(bench);
    shell_end(bench);
    (void)printf("%.1f %.1f\n", turn_us, rollback_us);
}

static void sample_pause(struct bench *bench)
{
    double pause_us = call_sandbox(bench, SANDBOX "Pause", bench->name);
    double resume_us = call_sandbox(bench, SANDBOX "Resume", bench->name);

    (void)printf("%.1f %.1f\n", pause_us, resume_us);
}

static void sample_stop(struct bench *bench)
{
    double stop_us = call_sandbox(bench, SANDBOX "Stop", bench->name);
    double start_us = call_sandbox(bench, SANDBOX "Start", bench->name);

    (void)printf("%.1f %.1f\n", stop_us, start_us);
}

static void sample_fork(struct bench *bench)
{
    double fork_us, destroy_us = 0;
    json_t *answer, *forks, *fork;
    size_t i;

    change(bench);
    answer =
        call(bench->holt, SANDBOX "Fork",
             json_pack("{s:s,s:I}", "sandboxId", bench->name, "count", (json_int_t)bench->many),
             &fork_us);
    forks = json_object_get(answer, "sandboxes");
    if (json_array_size(forks) != (size_t)bench->many)
        errx(1, "Fork made %zu sandboxes", json_array_size(forks));
    json_array_foreach(forks, i, fork)
        destroy_us +=
            call_sandbox(bench, SANDBOX "Destroy", json_string_value(json_object_get(fork, "id")));
    json_decref(answer);
    (void)printf("%.1f %.1f\n", fork_us, destroy_us);
}

static const struct what whats[] = {
    { "create", NULL, sample_create },
    { "snapshot", NULL, sample_snapshot },
    { "rollback", prepare_turn, sample_rollback },
    { "turns", NULL, sample_turns },
    { "pause", shell_start, sample_pause },
    { "stop", NULL, sample_stop },
    { "fork", NULL, sample_fork },
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
        what->sample(bench);
    }
    if (bench->shell)
        holt_stream_close(bench->shell);
    holt_close(bench->holt);
    holt_close(bench->shell_holt);
}

int main(int argc, char **argv)
{
    struct bench bench = { .many = 1 };
    const struct what *what;
    int option;

    while ((option = getopt(argc, argv, "+c:m:p:")) != -1) {
        if (option == 'c')
            bench.changed_kib = strtol(optarg, NULL, 10);
        else if (option == 'm')
            bench.many = strtol(optarg, NULL, 10);
        else if (option == 'p')
            bench.pause_ms = strtol(optarg, NULL, 10);
        else
            return 2;
    }
    if (argc != optind + 4)
        errx(2, "usage: turns_holt [-c KIB] [-m MANY] [-p PAUSE_MS] WHAT COUNT HOST NAME");
    what = what_find(argv[optind]);
    bench.holt = open_host(argv[optind + 2]);
    bench.shell_holt = open_host(argv[optind + 2]);
    bench.name = argv[optind + 3];
    run(&bench, what, strtol(argv[optind + 1], NULL, 10));
    return 0;
}
