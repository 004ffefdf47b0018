// SPDX-License-Identifier: Apache-2.0
/* Programs that the storage runs: stdout, stderr, and a bounded end. */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "check.h"
#include "store/command.h"

enum { PATIENT_MS = 300 * 1000, HASTY_MS = 50, OUTPUT_MAX = 64 << 10 };

static int run(const char *script, int timeout_ms, struct buf *output, struct command_result *ret)
{
    return command_run((const char *const[]){ "sh", "-c", script, NULL }, timeout_ms, output, ret);
}

static void check_no_children(void)
{
    CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

static void output_and_complaints_come_apart(void)
{
    cleanup_with(buf_done) struct buf output = BUF_INIT(OUTPUT_MAX);
    struct command_result result;

    CHECK(run("echo one; echo two >&2; exit 3", PATIENT_MS, &output, &result) == 0);
    CHECK(result.status == 3);
    CHECK_TEXT(output.data, "one\n");
    CHECK_TEXT(result.stderr_text, "two\n");
}

static void arguments_are_not_words_of_a_shell(void)
{
    const char *const args[] = { "echo", "a;b $(c) `d` *", NULL };
    cleanup_with(buf_done) struct buf output = BUF_INIT(OUTPUT_MAX);
    struct command_result result;

    CHECK(command_run(args, PATIENT_MS, &output, &result) == 0);
    CHECK_TEXT(output.data, "a;b $(c) `d` *\n");
}

static void a_missing_program_is_told_apart(void)
{
    struct command_result result;

    CHECK(command_run((const char *const[]){ "holt-no-such", NULL }, PATIENT_MS, NULL, &result) ==
          -ENOENT);
}

static void a_program_that_never_ends_is_killed(void)
{
    struct command_result result;

    CHECK(run("trap '' TERM; while :; do sleep 1; done", HASTY_MS, NULL, &result) == -ETIMEDOUT);
    check_no_children();
}

static void too_much_output_ends_it(void)
{
    cleanup_with(buf_done) struct buf output = BUF_INIT(OUTPUT_MAX);
    struct command_result result;

    CHECK(run("exec cat /dev/zero", PATIENT_MS, &output, &result) == -ENOBUFS);
    check_no_children();
}

static void long_complaints_are_cut(void)
{
    struct command_result result;

    CHECK(run("head -c 100000 /dev/zero | tr '\\0' x >&2", PATIENT_MS, NULL, &result) == 0);
    CHECK(result.status == 0);
    CHECK(strlen(result.stderr_text) == COMMAND_STDERR_BYTES - 1);
}

static void what_it_leaves_running_is_not_waited_for(void)
{
    cleanup_with(buf_done) struct buf output = BUF_INIT(OUTPUT_MAX);
    struct command_result result;

    CHECK(run("sleep 300 & echo $!", PATIENT_MS, &output, &result) == 0);
    CHECK(result.status == 0 && output.len > 1);
    CHECK(kill((pid_t)strtol(output.data, NULL, 10), SIGKILL) == 0);
}

static void blocked_signals_are_not_inherited(void)
{
    cleanup_with(buf_done) struct buf output = BUF_INIT(OUTPUT_MAX);
    struct command_result result;
    sigset_t all, before;

    (void)sigfillset(&all);
    CHECK(sigprocmask(SIG_BLOCK, &all, &before) == 0);
    CHECK(run("grep SigBlk /proc/self/status", PATIENT_MS, &output, &result) == 0);
    CHECK(sigprocmask(SIG_SETMASK, &before, NULL) == 0);
    CHECK_TEXT(output.data, "SigBlk:\t0000000000000000\n");
}

static void a_signal_is_no_exit_status(void)
{
    struct command_result result;

    CHECK(run("kill -SEGV $$", PATIENT_MS, NULL, &result) == 0);
    CHECK(result.status == -1);
}

int main(void)
{
    RUN(output_and_complaints_come_apart);
    RUN(arguments_are_not_words_of_a_shell);
    RUN(a_missing_program_is_told_apart);
    RUN(a_program_that_never_ends_is_killed);
    RUN(too_much_output_ends_it);
    RUN(long_complaints_are_cut);
    RUN(what_it_leaves_running_is_not_waited_for);
    RUN(blocked_signals_are_not_inherited);
    RUN(a_signal_is_no_exit_status);
    return 0;
}
