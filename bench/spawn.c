// SPDX-License-Identifier: Apache-2.0
/* Starts a command COUNT times with vfork and exec, for a minimal overhead, and measures each run
 * from its start to its end. Prints one line "total_us first_byte_us" per run; with -j, one line
 * with the microseconds of all runs together.
 *
 * usage: spawn [-o] [-p PAUSE_MS] [-j PARALLEL] [-b SCRIPT] [-a SCRIPT] COUNT COMMAND [ARGUMENT...]
 *
 * -o reads the output of the command and records when its first byte arrives. The shell runs the
 * script of -b before each run and that of -a after it, outside the measured time. Each %d in an
 * argument or a script is replaced by a unique number of the run. A command that fails ends the
 * measurement. */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"

enum { WORDS_MAX = 64, WORD_BYTES = 1024 };

extern char **environ;

struct command {
    const char *const *words; /* as given, with %d */
    char *argv[WORDS_MAX];
    char filled[WORDS_MAX][WORD_BYTES];
    int null_fd;
};

/* Copies a word with every %d replaced by the number of the run. */
static void fill_word(char into[static WORD_BYTES], const char *word, long number)
{
    size_t used = 0;

    while (*word && used < WORD_BYTES - 1) {
        if (word[0] != '%' || word[1] != 'd') {
            into[used++] = *word++;
            continue;
        }
        used += (size_t)snprintf(into + used, WORD_BYTES - used, "%d-%ld", (int)getpid(), number);
        word += 2;
    }
    if (*word || used >= WORD_BYTES)
        errx(2, "a word is longer than %d bytes", WORD_BYTES - 1);
    into[used] = '\0';
}

static void fill_words(struct command *command, long number)
{
    for (int i = 0; command->words[i]; i++) {
        if (i == WORDS_MAX - 1)
            errx(2, "more than %d words", WORDS_MAX - 1);
        fill_word(command->filled[i], command->words[i], number);
        command->argv[i] = command->filled[i];
    }
}

static pid_t start(struct command *command, long number, int output_fd)
{
    pid_t pid;

    fill_words(command, number);
    pid = vfork();
    if (pid < 0)
        err(1, "vfork");
    if (pid == 0) {
        if (dup2(command->null_fd, 0) < 0 || dup2(output_fd, 1) < 0)
            _exit(126);
        (void)execve(command->argv[0], command->argv, environ);
        _exit(127);
    }
    return pid;
}

/* Runs a script outside the measured time, if there is one. */
static void run_script(const char *script, int null_fd, long number)
{
    static struct command shell;
    const char *const words[] = { "/bin/sh", "-c", script, NULL };
    int status;
    pid_t pid;

    if (!script)
        return;
    shell.words = words;
    shell.null_fd = null_fd;
    pid = start(&shell, number, null_fd);
    if (waitpid(pid, &status, 0) < 0)
        err(1, "waitpid");
    if (status != 0)
        errx(1, "'%s' ended with status %#x", shell.argv[2], (unsigned)status);
}

static void expect_success(const struct command *command, int status)
{
    if (status != 0)
        errx(1, "%s ended with status %#x", command->argv[0], (unsigned)status);
}

/* Reads to the end of the output; returns the arrival time of its first byte, or 0. */
static double drain(int fd)
{
    double first = 0;
    char chunk[4096];

    for (;;) {
        ssize_t n = read(fd, chunk, sizeof(chunk));

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return first;
        if (first <= 0)
            first = now_us();
    }
}

static void measure_one(struct command *command, long number, bool reads_output)
{
    int output[2] = { -1, command->null_fd }, status;
    double started, first = 0;
    pid_t pid;

    if (reads_output && pipe2(output, O_CLOEXEC) < 0)
        err(1, "pipe");
    started = now_us();
    pid = start(command, number, output[1]);
    if (reads_output) {
        (void)close(output[1]);
        first = drain(output[0]);
    }
    if (waitpid(pid, &status, 0) < 0)
        err(1, "waitpid");
    (void)printf("%.1f %.1f\n", now_us() - started, first > 0 ? first - started : 0);
    if (reads_output)
        (void)close(output[0]);
    expect_success(command, status);
}

static void measure_parallel(struct command *command, long count, long parallel)
{
    double started = now_us();
    long begun = 0, ended = 0;
    int status;

    while (ended < count) {
        if (begun < count && begun - ended < parallel) {
            (void)start(command, begun++, command->null_fd);
            continue;
        }
        if (wait(&status) < 0)
            err(1, "wait");
        expect_success(command, status);
        ended++;
    }
    (void)printf("%.1f\n", now_us() - started);
}

int main(int argc, char **argv)
{
    static struct command command;
    const char *before = NULL, *after = NULL;
    long count, parallel = 0, pause_ms = 0;
    bool reads_output = false;
    int option;

    command.null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while ((option = getopt(argc, argv, "+oa:b:j:p:")) != -1) {
        if (option == 'o')
            reads_output = true;
        else if (option == 'a')
            after = optarg;
        else if (option == 'b')
            before = optarg;
        else if (option == 'j')
            parallel = strtol(optarg, NULL, 10);
        else if (option == 'p')
            pause_ms = strtol(optarg, NULL, 10);
        else
            return 2;
    }
    count = argc > optind + 1 ? strtol(argv[optind], NULL, 10) : 0;
    if (count <= 0)
        errx(2, "usage: spawn [-o] [-p PAUSE_MS] [-j PARALLEL] [-b SCRIPT] [-a SCRIPT] COUNT "
                "COMMAND [ARGUMENT...]");
    command.words = (const char *const *)argv + optind + 1;

    if (parallel > 0) {
        measure_parallel(&command, count, parallel);
        return 0;
    }
    for (long i = 0; i < count; i++) {
        if (pause_ms > 0)
            (void)usleep((useconds_t)pause_ms * 1000);
        run_script(before, command.null_fd, i);
        measure_one(&command, i, reads_output);
        run_script(after, command.null_fd, i);
    }
    return 0;
}
