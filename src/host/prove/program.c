// SPDX-License-Identifier: Apache-2.0
/* Runs holt-prove: outside, and in sandboxes, which get it by the standard input of a shell. */
#include "runtime/program.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/io.h"
#include "base/spawn_signals.h"
#include "base/xalloc.h"
#include "host/process/process.h"
#include "host/process/record.h"
#include "host/prove/prove_internal.h"
#include "host/sandbox/sandbox.h"

enum { PROGRAM_BYTES_MAX = 8 << 20, TIMEOUT_MS = 5 * 60 * 1000, CHUNK = 4096 };

/* --- outside ---------------------------------------------------------------------------------- */

static int helper_spawn(const char *program, const char *mode, const char *dir, int in_fd,
                        int out_fd, pid_t *ret)
{
    static char *const env[] = { NULL };
    char *const args[] = { (char *)(uintptr_t)program, (char *)(uintptr_t)mode,
                           (char *)(uintptr_t)dir, NULL };
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int r;

    (void)posix_spawnattr_init(&attributes);
    (void)spawn_signals_reset(&attributes, 0);
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_adddup2(&actions, in_fd, STDIN_FILENO);
    (void)posix_spawn_file_actions_adddup2(&actions, out_fd, STDOUT_FILENO);
    r = posix_spawn(ret, program, &actions, &attributes, args, env);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attributes);
    return -r;
}

int prove_helper_start(const char *program, const char *mode, const char *dir,
                       struct prove_helper *ret, struct err *err)
{
    cleanup_close int in_fd = -EBADF, out_fd = -EBADF, theirs_in = -EBADF, theirs_out = -EBADF;
    int ends[2], r;
    size_t len = 0;
    ssize_t n;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(err, -errno, "create a pipe");
    theirs_in = ends[0];
    in_fd = ends[1];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(err, -errno, "create a pipe");
    out_fd = ends[0];
    theirs_out = ends[1];
    r = helper_spawn(program, mode, dir, theirs_in, theirs_out, &ret->pid);
    if (r < 0)
        return err_sys(err, r, "run holt-prove");
    (void)close(TAKE_FD(theirs_out)); /* its end tells of the end of the helper */
    do {
        n = read(out_fd, ret->line + len, sizeof(ret->line) - 1 - len);
        len += n > 0 ? (size_t)n : 0;
        ret->line[len] = '\0';
    } while ((n > 0 || (n < 0 && errno == EINTR)) && !strchr(ret->line, '\n'));
    ret->in_fd = TAKE_FD(in_fd);
    if (strchr(ret->line, '\n'))
        return 0;
    prove_helper_stop(ret);
    return err_set(err, ERR_INTERNAL, "holt-prove %s ended early", mode);
}

void prove_helper_stop(struct prove_helper *helper)
{
    if (helper->pid <= 0)
        return;
    helper->in_fd = fd_close(helper->in_fd);
    while (waitpid(helper->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    helper->pid = 0;
}

int prove_program_load(struct prove_program *ret, struct err *err)
{
    cleanup_with(buf_done) struct buf data = BUF_INIT(PROGRAM_BYTES_MAX);
    int r = program_find("holt-prove", &ret->path, err);

    if (r < 0)
        return r;
    r = file_read_at(AT_FDCWD, ret->path, &data);
    if (r < 0)
        return err_sys(err, r, "read %.160s", ret->path);
    ret->len = data.len;
    ret->data = TAKE_PTR(data.data);
    data.len = 0;
    return 0;
}

void prove_program_done(struct prove_program *program)
{
    free(program->path);
    free(program->data);
    *program = (struct prove_program){ .path = NULL };
}

/* --- inside ----------------------------------------------------------------------------------- */

/* The shell takes exactly the program; what follows is for the program. */
static int prover_start(struct sandbox *sandbox, const struct prove_program *program,
                        const char *mode, const char *argument, struct process **ret,
                        struct err *err)
{
    cleanup_free char *script =
        xasprintf("d=$(mktemp -d) && head -c %zu >$d/p && chmod 700 $d/p && "
                  "exec $d/p \"$@\"",
                  program->len);
    char *const args[] = { (char *)(uintptr_t) "/bin/sh",
                           (char *)(uintptr_t) "-c",
                           script,
                           (char *)(uintptr_t) "sh",
                           (char *)(uintptr_t)mode,
                           (char *)(uintptr_t)argument,
                           NULL };
    const struct process_spec spec = { .args = args, .has_stdin = true, .timeout_ms = TIMEOUT_MS };
    int r = sandbox_exec(sandbox, &spec, ret, err);

    for (size_t sent = 0; r == 0 && sent < program->len; sent += PROCESS_INPUT_MAX) {
        size_t left = program->len - sent;

        r = process_send_input(*ret, program->data + sent,
                               left < PROCESS_INPUT_MAX ? left : PROCESS_INPUT_MAX, false, err);
        if (r < 0) {
            prove_inside_stop(*ret);
            *ret = NULL;
        }
    }
    return r;
}

/* Collects output to the end, or to the end of a line. */
static int output_collect(struct process *process, bool is_line, struct buf *output,
                          struct err *err)
{
    struct reader_event event = { .kind = READER_DATA };
    char data[CHUNK];

    while (event.kind != READER_ENDED) {
        if (process_next(process, -1, data, sizeof(data), &event) < 0)
            break;
        if (event.kind == READER_DATA && buf_add(output, data, event.len) < 0)
            return err_set(err, ERR_EXHAUSTED, "holt-prove prints too much");
        if (is_line && event.kind == READER_DATA && memchr(data, '\n', event.len))
            return 0;
    }
    if (!is_line && event.end.outcome == OUTCOME_EXITED && event.end.exit_code == 0)
        return 0;
    return err_set(err, ERR_INTERNAL, "holt-prove failed in the sandbox: %.160s",
                   event.end.reason[0] ? event.end.reason
                   : output->data      ? output->data
                                       : "no output");
}

int prove_inside(struct sandbox *sandbox, const struct prove_program *program, const char *mode,
                 const char *argument, struct buf *output, struct err *err)
{
    struct process *process = NULL;
    int r = prover_start(sandbox, program, mode, argument, &process, err);

    if (r < 0)
        return r;
    r = output_collect(process, false, output, err);
    prove_inside_stop(process);
    return r;
}

int prove_inside_start(struct sandbox *sandbox, const struct prove_program *program,
                       const char *mode, const char *argument, struct prove_guest *ret,
                       struct err *err)
{
    cleanup_with(buf_done) struct buf output = BUF_INIT(PROOF_FACTS_MAX - 1);
    int r = prover_start(sandbox, program, mode, argument, &ret->process, err);

    if (r < 0)
        return r;
    r = output_collect(ret->process, true, &output, err);
    if (r < 0) {
        prove_inside_stop(TAKE_PTR(ret->process));
        return r;
    }
    (void)snprintf(ret->line, sizeof(ret->line), "%.*s", (int)output.len, output.data);
    return 0;
}

void prove_inside_stop(struct process *process)
{
    if (!process)
        return;
    process_kill(process, KILLER_USER);
    process_unref(process);
}
