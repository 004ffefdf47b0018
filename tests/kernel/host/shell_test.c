// SPDX-License-Identifier: Apache-2.0
/* Tests of both kinds of shells: the host's bash and busybox's sh. */
#include <pthread.h>

#include "host/shell/shell.h"
#include "kernel/host/host_world.h"

enum { OUTPUT_MAX = 4 << 20, TRIES_MAX = 20 };

static struct err err;

/* The result of one command. */
static struct result {
    int r; /* negative: the command did not run, see err */
    struct buf out, err;
    struct shell_end_info end;
} result = { .out = BUF_INIT(OUTPUT_MAX), .err = BUF_INIT(OUTPUT_MAX) };

static void run_into(struct sandbox *sandbox, const struct shell_command *command,
                     struct result *ret, struct err *ret_err)
{
    struct shell_event event = { .kind = SHELL_EVENT_STARTED };
    struct shell_run *run = NULL;
    char data[8192];

    buf_clear(&ret->out);
    buf_clear(&ret->err);
    ret->r = shell_run_new(sandbox, command, &run, ret_err);
    while (ret->r == 0 && event.kind != SHELL_EVENT_ENDED) {
        ret->r = shell_run_next(run, -1, data, sizeof(data), &event, ret_err);
        if (ret->out.len + sizeof(data) > ret->out.max)
            buf_clear(&ret->out); /* too much output to keep */
        if (ret->r == 0 && event.kind == SHELL_EVENT_STDOUT)
            CHECK(buf_add(&ret->out, data, event.len) == 0);
        if (ret->r == 0 && event.kind == SHELL_EVENT_STDERR)
            CHECK(buf_add(&ret->err, data, event.len) == 0);
    }
    ret->end = event.end;
    shell_run_free(run);
}

static int run_for(struct sandbox *sandbox, const char *name, const char *text, uint64_t timeout_ms)
{
    const struct shell_command command = { .name = name, .text = text, .timeout_ms = timeout_ms };

    run_into(sandbox, &command, &result, &err);
    CHECK(result.r == 0, "(%s: %s)", text, err.msg);
    return result.end.exit_code;
}

static int sh(struct sandbox *sandbox, const char *text)
{
    return run_for(sandbox, "w", text, 0);
}

static const char *text_of(const struct buf *buf)
{
    return buf->data ? buf->data : "";
}

#define CHECK_RUN(sandbox, text, code, output)                                                     \
    do {                                                                                           \
        int got_ = sh(sandbox, text);                                                              \
        CHECK(got_ == (code), "(%.60s: %d, not %d: %s)", text, got_, code, text_of(&result.err));  \
        CHECK(strcmp(text_of(&result.out), output) == 0, "(%.60s: '%.100s')", text,                \
              text_of(&result.out));                                                               \
    } while (0)

/* --- two worlds ------------------------------------------------------------------------------ */

static const char *template;

static struct sandbox *create(void)
{
    struct sandbox_spec spec = { .caller = &caller_root, .template = template };
    struct sandbox *sandbox = NULL;

    CHECK_OK(sandbox_create(world.host, &spec, &sandbox, &err), &err);
    return sandbox;
}

static bool is_bash(void)
{
    return strcmp(template, "host") == 0;
}

static const char *process_now(struct sandbox *sandbox, const char *name)
{
    static struct shell_info found;
    struct shell_info *list;
    size_t count;

    found = (struct shell_info){ .kind = SHELL_NONE };
    CHECK_OK(shell_list(sandbox, &list, &count, &err), &err);
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0)
            found = list[i];
    free(list);
    return found.process;
}

/* --- text and output ------------------------------------------------------------------------- */

static void any_text_ends_with_its_own_output_and_code(void)
{
    struct sandbox *sandbox = create();

    CHECK_RUN(sandbox, "printf foo", 0, "foo");
    CHECK_RUN(sandbox, "printf no-newline > /tmp/f; cat /tmp/f", 0, "no-newline");
    CHECK_RUN(sandbox, "sleep 1000 &", 0, "");
    CHECK_RUN(sandbox, "echo x # comment", 0, "x\n");
    CHECK_RUN(sandbox, "# only a comment", 0, "");
    CHECK_RUN(sandbox, "", 0, "");
    CHECK_RUN(sandbox, "cat <<E\n  it's \"here\" \\ $((1+1))\nE", 0, "  it's \"here\" \\ 2\n");
    CHECK(sh(sandbox, "cat <<E\nno end of it") == 0 &&
          strstr(text_of(&result.out), "no end of it"));
    CHECK_RUN(sandbox, "cat", 0, "");
    CHECK_RUN(sandbox, "read x; echo \"got=$x\"", 0, "got=\n");
    CHECK_RUN(sandbox, "echo '   leading'", 0, "   leading\n");
    CHECK_RUN(sandbox, "printf '\\033[31mred\\033[0m'", 0, "\033[31mred\033[0m");
    CHECK_RUN(sandbox, "printf 'ab\\b\\bc\\r\\nd\\r'", 0, "ab\b\bc\r\nd\r");
    CHECK_RUN(sandbox, "printf '\\n\\n a \\n\\n'", 0, "\n\n a \n\n");
    CHECK(sh(sandbox, "echo a\\") == 0 && strstr(text_of(&result.out), "a"));
    CHECK_RUN(sandbox, "-x", 127, "");
    CHECK_RUN(sandbox, "sh -c 'exit 3'", 3, "");
    CHECK_RUN(sandbox, "echo $?", 0, "3\n");
    CHECK_RUN(sandbox, "echo $?", 0, "0\n");
    CHECK_RUN(sandbox, "return 5", 5, "");
    CHECK_RUN(sandbox, "echo $?", 0, "5\n");
    world_destroy(sandbox);
}

static void a_syntax_error_ends_the_text_alone(void)
{
    struct sandbox *sandbox = create();

    CHECK_RUN(sandbox, "A=kept", 0, "");
    CHECK_RUN(sandbox, "if then", 2, "");
    CHECK(result.err.len > 0 && !result.end.is_shell_ended);
    CHECK_RUN(sandbox, "echo 'unterminated", 2, "");
    CHECK_RUN(sandbox, "echo $(", 2, "");
    CHECK_RUN(sandbox, "}", 2, "");
    CHECK_RUN(sandbox, "done; echo no", 2, "");
    CHECK_RUN(sandbox, "echo $A $?", 0, "kept 2\n");
    CHECK(sh(sandbox, "echo $((1/0)); echo no") != 0);
    CHECK(sh(sandbox, "echo ${nope?bad}; echo no") != 0);
    CHECK(sh(sandbox, "set -u; echo $nope; echo no") != 0 && result.out.len == 0);
    CHECK_RUN(sandbox, "set +u; echo $A", 0, "kept\n");
    CHECK(sh(sandbox, "break") == 0 && sh(sandbox, "continue") == 0);
    CHECK_RUN(sandbox, "echo $A", 0, "kept\n");
    world_destroy(sandbox);
}

static void long_lines_and_long_scripts_arrive_whole(void)
{
    struct sandbox *sandbox = create();
    cleanup_with(buf_done) struct buf text = BUF_INIT(SHELL_TEXT_MAX + 16);
    struct shell_command command = { .name = "w" };

    CHECK(buf_add_str(&text, "printf '%s' '") == 0);
    for (int i = 0; i < 100000; i++)
        CHECK(buf_add_str(&text, i % 10 ? "x" : "'\\''") == 0);
    CHECK(buf_add_str(&text, "' | { read -r line; printf '%s' ${#line}; }") == 0);
    CHECK_RUN(sandbox, text.data, 0, "100000");

    buf_clear(&text);
    CHECK(buf_add_str(&text, "N=0\n") == 0);
    while (text.len + 32 < SHELL_TEXT_MAX)
        CHECK(buf_add_str(&text, "N=$((N + 1)) # it's\n") == 0);
    CHECK(buf_add_str(&text, "echo $N") == 0);
    CHECK(sh(sandbox, text.data) == 0 && strtol(text_of(&result.out), NULL, 10) > 50000);

    while (text.len <= SHELL_TEXT_MAX)
        CHECK(buf_add_str(&text, "#") == 0);
    command.text = text.data;
    run_into(sandbox, &command, &result, &err);
    CHECK(result.r < 0 && err.kind == ERR_EXHAUSTED);
    world_destroy(sandbox);
}

static void all_bytes_come_through_on_both_streams(void)
{
    struct sandbox *sandbox = create();

    CHECK(sh(sandbox, "i=0; while [ $i -lt 256 ]; do printf \"\\\\$(printf %o $i)\"; "
                      "printf \"\\\\$(printf %o $((255 - i)))\" >&2; i=$((i + 1)); done") == 0);
    CHECK(result.out.len == 256 && result.err.len == 256);
    for (int i = 0; i < 256; i++)
        CHECK((unsigned char)result.out.data[i] == i &&
              (unsigned char)result.err.data[i] == 255 - i);
    CHECK(sh(sandbox, "echo out; echo err >&2; exec 3>&1; echo three >&3") == 0);
    CHECK_TEXT(text_of(&result.out), "out\nthree\n");
    CHECK_TEXT(text_of(&result.err), "err\n");
    /* More than all windows and pipes together hold. */
    CHECK(sh(sandbox, "dd if=/dev/zero bs=1024 count=3000 2>/dev/null") == 0);
    CHECK(result.out.len == 3000 * 1024);
    world_destroy(sandbox);
}

static void commands_see_none_of_the_channel(void)
{
    struct sandbox *sandbox = create();

    CHECK_RUN(sandbox,
              "sh -c 'n=3; while [ $n -lt 300 ]; do [ -e /proc/self/fd/$n ] && echo $n; "
              "n=$((n + 1)); done; :'",
              0, "");
    CHECK_RUN(sandbox, "sleep 1000 & J=$!", 0, "");
    CHECK_RUN(
        sandbox,
        "for n in 7 8 9 240 241 242 243 244 245; do [ -e /proc/$J/fd/$n ] && echo $n; done; :", 0,
        "");
    world_destroy(sandbox);
}

/* --- state ----------------------------------------------------------------------------------- */

static void state_stays_from_command_to_command(void)
{
    struct sandbox *sandbox = create();
    int tries = 0;

    CHECK_RUN(sandbox, "cd /tmp; A=1; export B='x y'; f() { echo f$1; }; alias ll='echo aliased'",
              0, "");
    CHECK_RUN(sandbox, "pwd; echo $A; sh -c 'echo $B'; f 2", 0, "/tmp\n1\nx y\nf2\n");
    CHECK_RUN(sandbox, "ll", 0, "aliased\n");
    CHECK_RUN(sandbox, "set -f; umask 077", 0, "");
    CHECK_RUN(sandbox, "echo *; set +f; umask", 0, "*\n0077\n");
    CHECK_RUN(sandbox, "sleep 1000 & J=$!", 0, "");
    CHECK_RUN(sandbox, "kill -0 $J && kill $J && echo killed", 0, "killed\n");
    /* A job that ends while the shell is idle. */
    for (int i = 0; i < 20; i++)
        CHECK_RUN(sandbox, "sleep 0.01 &", 0, "");
    CHECK_RUN(sandbox, "trap 'echo usr' USR1", 0, "");
    /* The guest may have sent two SIGWINCH to a bash that started slowly; bash runs no other
     * trap before it has handled the second. */
    do {
        CHECK(sh(sandbox, "kill -USR1 $$; echo after") == 0);
    } while (strcmp(text_of(&result.out), "after\n") == 0 && ++tries < TRIES_MAX);
    CHECK_TEXT(text_of(&result.out), "usr\nafter\n");
    if (is_bash()) {
        CHECK_RUN(sandbox, "declare -A m=([a]=1); declare -i n=1; shopt -s extglob", 0, "");
        CHECK_RUN(sandbox, "n=2+3; echo ${m[a]} $n; shopt -q extglob", 0, "1 5\n");
        CHECK_RUN(sandbox, "echo \"hi!\" !!", 0, "hi! !!\n");
        CHECK_RUN(sandbox, "exec 3>/tmp/three; echo a >&3", 0, "");
        CHECK_RUN(sandbox, "echo b >&3; cat /tmp/three", 0, "a\nb\n");
    }
    CHECK(run_for(sandbox, "other", "echo $A; pwd", 0) == 0);
    CHECK_TEXT(text_of(&result.out), "\n/workspace\n");
    world_destroy(sandbox);
}

static void a_shell_that_ends_says_so_and_the_next_is_fresh(void)
{
    struct sandbox *sandbox = create();

    CHECK_RUN(sandbox, "A=1; exit 3", 3, "");
    CHECK(result.end.is_shell_ended && !result.end.is_timed_out);
    CHECK_TEXT(process_now(sandbox, "w"), "");
    CHECK_RUN(sandbox, "echo x$A", 0, "x\n");
    CHECK(!result.end.is_shell_ended && *process_now(sandbox, "w"));
    CHECK_RUN(sandbox, "exec sh -c 'echo last words; exit 9'", 9, "last words\n");
    CHECK(result.end.is_shell_ended);
    CHECK_RUN(sandbox, "echo here; kill -9 $$", 137, "here\n");
    CHECK(result.end.is_shell_ended);
    CHECK_RUN(sandbox, "set -e; true", 0, "");
    CHECK_RUN(sandbox, "echo one; false; echo two", 1, "one\n");
    CHECK(result.end.is_shell_ended);
    CHECK_RUN(sandbox, "echo $-", 0, is_bash() ? "himBHs\n" : "mi\n");
    /* No processes are left. */
    buf_clear(&result.out);
    CHECK(
        world_sh(sandbox,
                 "for p in /proc/[0-9]*; do while read k v r; do "
                 "[ $k = State: ] && [ $v = Z ] && echo $p; done 2>/dev/null < $p/status; done; :",
                 &result.out) == 0);
    CHECK_TEXT(text_of(&result.out), "");
    CHECK_OK(shell_remove(sandbox, "w", &err), &err);
    CHECK(shell_remove(sandbox, "w", &err) < 0 && err.kind == ERR_NOT_FOUND);
    world_destroy(sandbox);
}

/* --- time ------------------------------------------------------------------------------------ */

static void a_timeout_ends_the_command_and_keeps_the_shell(void)
{
    struct sandbox *sandbox = create();

    CHECK_RUN(sandbox, "A=kept; echo $$ > /tmp/pid", 0, "");
    CHECK(run_for(sandbox, "w", "echo before; sleep 1000; echo no", 100) == 124);
    CHECK(result.end.is_timed_out && !result.end.is_shell_ended);
    CHECK_TEXT(text_of(&result.out), "before\n");
    CHECK_RUN(sandbox, "echo $A $?; [ $$ = $(cat /tmp/pid) ]", 0, "kept 130\n");
    CHECK(run_for(sandbox, "w", "while :; do :; done; echo no", 100) == 124);
    CHECK(result.end.is_timed_out && !result.end.is_shell_ended && result.out.len == 0,
          "(timed out %d, ended %d, %zu bytes: %s)", result.end.is_timed_out,
          result.end.is_shell_ended, result.out.len, result.end.reason);
    CHECK_RUN(sandbox, "echo $A; [ $$ = $(cat /tmp/pid) ]", 0, "kept\n");
    CHECK(run_for(sandbox, "w", "(trap '' INT; sleep 1000)", 100) == 124);
    CHECK(result.end.is_timed_out && !result.end.is_shell_ended);
    CHECK_RUN(sandbox, "echo $A; [ $$ = $(cat /tmp/pid) ]", 0, "kept\n");
    CHECK(run_for(sandbox, "w", "dd if=/dev/zero bs=1024 2>/dev/null", 100) == 124);
    CHECK(result.end.is_timed_out && !result.end.is_shell_ended);
    CHECK_RUN(sandbox, "echo $A", 0, "kept\n");
    /* Only the end of the shell stops this one. */
    CHECK(run_for(sandbox, "w", "trap '' INT; while :; do :; done", 100) == 124);
    CHECK(result.end.is_timed_out && result.end.is_shell_ended);
    CHECK_RUN(sandbox, "echo x$A", 0, "x\n");
    world_destroy(sandbox);
}

/* Starts the command, and leaves it after the first event of this kind. */
static void run_and_leave(struct sandbox *sandbox, const char *text, enum shell_event_kind kind)
{
    const struct shell_command command = { .name = "w", .text = text };
    struct shell_event event = { .kind = SHELL_EVENT_STARTED };
    struct shell_run *run;
    char data[16];

    CHECK_OK(shell_run_new(sandbox, &command, &run, &err), &err);
    do
        CHECK_OK(shell_run_next(run, -1, data, sizeof(data), &event, &err), &err);
    while (event.kind != kind);
    shell_run_free(run);
}

static void a_command_whose_client_goes_is_interrupted(void)
{
    struct sandbox *sandbox = create();

    CHECK_RUN(sandbox, "A=kept", 0, "");
    run_and_leave(sandbox, "B=1; sh -c 'echo up; exec sleep 1000'; B=2", SHELL_EVENT_STDOUT);
    CHECK_RUN(sandbox, "echo $A $B", 0, "kept 1\n");
    world_destroy(sandbox);
}

/* bash continues after a SIGINT that its child gets between fork and exec, so B is not checked. */
static void a_command_can_be_interrupted_as_soon_as_it_starts(void)
{
    struct sandbox *sandbox = create();

    CHECK_RUN(sandbox, "A=kept", 0, "");
    run_and_leave(sandbox, "B=1; sleep 1000; B=2", SHELL_EVENT_STARTED);
    CHECK_RUN(sandbox, "echo $A", 0, "kept\n");
    world_destroy(sandbox);
}

/* --- many ------------------------------------------------------------------------------------ */

enum { CALLERS = 8, CALLS = 25, COMMANDS = 1000 };

struct shell_caller {
    pthread_t thread;
    struct sandbox *sandbox;
    int number;
    int wrong;
};

static void *call(void *context)
{
    struct shell_caller *caller = context;
    struct result mine = { .out = BUF_INIT(65536), .err = BUF_INIT(65536) };
    struct err ignored;
    char text[128], wanted[32];

    for (int i = 0; i < CALLS; i++) {
        struct shell_command command = { .name = "w", .text = text };

        (void)snprintf(text, sizeof(text), "N=$((N + 1)); printf '%d-%d'; sh -c 'exit %d'",
                       caller->number, i, caller->number);
        (void)snprintf(wanted, sizeof(wanted), "%d-%d", caller->number, i);
        run_into(caller->sandbox, &command, &mine, &ignored);
        caller->wrong += mine.r < 0 || mine.end.exit_code != caller->number ||
                         strcmp(text_of(&mine.out), wanted) != 0;
    }
    buf_done(&mine.out);
    buf_done(&mine.err);
    return NULL;
}

static void concurrent_commands_wait_for_each_other(void)
{
    struct sandbox *sandbox = create();
    struct shell_caller callers[CALLERS];
    char wanted[32];

    for (int i = 0; i < CALLERS; i++) {
        callers[i] = (struct shell_caller){ .sandbox = sandbox, .number = i };
        CHECK(pthread_create(&callers[i].thread, NULL, call, &callers[i]) == 0);
    }
    for (int i = 0; i < CALLERS; i++) {
        CHECK(pthread_join(callers[i].thread, NULL) == 0);
        CHECK(callers[i].wrong == 0, "(%d of caller %d)", callers[i].wrong, i);
    }
    (void)snprintf(wanted, sizeof(wanted), "%d\n", CALLERS * CALLS);
    CHECK_RUN(sandbox, "echo $N", 0, wanted);
    world_destroy(sandbox);
}

static void the_queue_is_bounded(void)
{
    struct sandbox *sandbox = create();
    struct shell_command command = { .name = "w", .text = ":" };
    struct shell_run *runs[SHELL_QUEUE_MAX + 1] = { NULL };

    for (int i = 0; i < SHELL_QUEUE_MAX; i++)
        CHECK_OK(shell_run_new(sandbox, &command, &runs[i], &err), &err);
    CHECK(shell_run_new(sandbox, &command, &runs[SHELL_QUEUE_MAX], &err) < 0);
    CHECK(err.kind == ERR_EXHAUSTED);
    for (int i = 0; i < SHELL_QUEUE_MAX; i++)
        shell_run_free(runs[i]);
    CHECK_RUN(sandbox, "echo free", 0, "free\n");
    command.text = "sleep 1000";
    CHECK_OK(shell_run_new(sandbox, &command, &runs[0], &err), &err);
    command = (struct shell_command){ .name = "w", .text = "echo no", .timeout_ms = 50 };
    run_into(sandbox, &command, &result, &err);
    CHECK(result.r < 0 && err.kind == ERR_BUSY, "(%s)", err.msg);
    shell_run_free(runs[0]);
    world_destroy(sandbox);
}

static void a_thousand_commands_without_a_newline(void)
{
    struct sandbox *sandbox = create();

    for (int i = 0; i < COMMANDS; i++) {
        char text[128], out[32], errors[32];

        (void)snprintf(text, sizeof(text), "printf out%d; printf err%d >&2; return %d", i, i,
                       i % 256);
        (void)snprintf(out, sizeof(out), "out%d", i);
        (void)snprintf(errors, sizeof(errors), "err%d", i);
        CHECK(sh(sandbox, text) == i % 256, "(%d: %d)", i, result.end.exit_code);
        CHECK_TEXT(text_of(&result.out), out);
        CHECK_TEXT(text_of(&result.err), errors);
    }
    world_destroy(sandbox);
}

static void jobs_that_write_between_commands_do_not_wait(void)
{
    struct sandbox *sandbox = create();

    CHECK_RUN(sandbox,
              "(dd if=/dev/zero bs=1024 count=2000 2>/dev/null; echo done > /tmp/done) &"
              " sleep 0",
              0, "");
    CHECK(world_sh(sandbox, "until [ -e /tmp/done ]; do sleep 0.01; done", NULL) == 0);
    CHECK_RUN(sandbox, "echo clean", 0, "clean\n");
    world_destroy(sandbox);
}

/* --- what outlives a process ----------------------------------------------------------------- */

/* A shell that does not respond in time is not in the snapshot, and starts with an empty state. */
static bool is_new(struct sandbox *sandbox)
{
    CHECK(sh(sandbox, "pwd") == 0);
    return strcmp(text_of(&result.out), "/workspace\n") == 0;
}

static bool are_brought_back(struct sandbox *sandbox)
{
    struct snapshot_info turn;

    CHECK_RUN(sandbox,
              "mkdir /tmp/d; cd /tmp/d; A='one\n two'; export B=\"it's\"; set -f; umask 027; "
              "alias ll='echo aliased'; X=$(printf '\\377\\001')",
              0, "");
    if (is_bash())
        CHECK_RUN(sandbox,
                  "f() { echo f \"$1\"; }; declare -A m=([a b]=$'1\\n2'); declare -i n=1; "
                  "declare -a l=(x '' z); shopt -s extglob; readonly R=ro",
                  0, "");
    CHECK_OK(sandbox_turn(sandbox, &turn, &err), &err);
    CHECK_RUN(sandbox, "cd /; A=2; unset B; set +f; umask 022; unalias ll", 0, "");
    CHECK(run_for(sandbox, "later", "echo hi", 0) == 0);
    CHECK_OK(sandbox_turn(sandbox, &turn, &err), &err);
    CHECK_OK(sandbox_rollback(sandbox, "turn-0001", false, &err), &err);
    CHECK_TEXT(process_now(sandbox, "w"), "");
    if (is_new(sandbox))
        return false;
    CHECK_RUN(sandbox, "pwd; echo \"$A\"; sh -c 'echo $B'; echo *; umask; ll; printf %s \"$X\"", 0,
              "/tmp/d\none\n two\nit's\n*\n0027\naliased\n\377\001");
    if (is_bash())
        CHECK_RUN(sandbox, "f 1; echo \"${m[a b]}\" ${#l[@]}; n=2+2; echo $n $R; shopt -q extglob",
                  0, "f 1\n1\n2 3\n4 ro\n");
    CHECK(run_for(sandbox, "later", "echo new $?", 0) == 0);
    CHECK_OK(sandbox_rollback(sandbox, "turn-0002", false, &err), &err);
    if (is_new(sandbox))
        return false;
    CHECK_RUN(sandbox, "pwd; echo $A", 0, "/\n2\n");
    return true;
}

static void a_rollback_brings_shells_back(void)
{
    bool are_back = false;

    for (int tries = 0; tries < TRIES_MAX && !are_back; tries++) {
        struct sandbox *sandbox = create();

        are_back = are_brought_back(sandbox);
        world_destroy(sandbox);
    }
    CHECK(are_back);
}

static void a_stop_keeps_the_state(void)
{
    struct sandbox *sandbox = create();
    const struct shell_command command = { .name = "w", .text = "echo no" };

    CHECK_RUN(sandbox, "cd /tmp; A=1", 0, "");
    CHECK_OK(sandbox_pause(sandbox, &err), &err);
    run_into(sandbox, &command, &result, &err);
    CHECK(result.r < 0 && err.cause == CAUSE_SESSION_PAUSED);
    CHECK_OK(sandbox_resume(sandbox, &err), &err);
    for (int tries = 0; tries == 0 || (tries < TRIES_MAX && is_new(sandbox)); tries++) {
        CHECK_RUN(sandbox, "cd /tmp; A=1", 0, "");
        CHECK_OK(sandbox_stop(sandbox, &err), &err);
        run_into(sandbox, &command, &result, &err);
        CHECK(result.r < 0 && err.cause == CAUSE_INVALID_STATE);
        CHECK_OK(sandbox_start(sandbox, &err), &err);
    }
    CHECK_RUN(sandbox, "pwd; echo $A", 0, "/tmp\n1\n");
    world_destroy(sandbox);
}

static void shells_outlive_the_host(void)
{
    struct sandbox *sandbox = create();
    struct sandbox_info info;
    char id[SANDBOX_ID_MAX];

    sandbox_get_info(sandbox, false, &info);
    (void)snprintf(id, sizeof(id), "%s", info.id);
    sandbox_info_done(&info);
    CHECK_RUN(sandbox, "cd /tmp; A=1; f() { echo f; }; echo $$ > /tmp/pid; sh -c 'exit 6'", 6, "");
    CHECK(run_for(sandbox, "gone", "exit 0", 0) == 0);
    sandbox_unref(sandbox);
    host_close(TAKE_PTR(world.host));
    world_start();
    CHECK_OK(sandbox_find(world.host, &caller_root, id, &sandbox, &err), &err);
    CHECK(*process_now(sandbox, "w") && !*process_now(sandbox, "gone"));
    CHECK_RUN(sandbox, "echo $?; pwd; echo $A; f; [ $$ = $(cat /tmp/pid) ]", 0, "6\n/tmp\n1\nf\n");
    world_destroy(sandbox);
}

static void the_kind_is_that_of_the_template(void)
{
    struct sandbox *sandbox = create();
    struct shell_info info;

    CHECK_OK(shell_open(sandbox, "w", &info, &err), &err);
    CHECK(info.kind == (is_bash() ? SHELL_BASH : SHELL_SH) && info.process[0]);
    world_destroy(sandbox);
}

static void run_all(const char *of)
{
    template = of;
    (void)printf("# %s\n", of);
    RUN(the_kind_is_that_of_the_template);
    RUN(any_text_ends_with_its_own_output_and_code);
    RUN(a_syntax_error_ends_the_text_alone);
    RUN(long_lines_and_long_scripts_arrive_whole);
    RUN(all_bytes_come_through_on_both_streams);
    RUN(commands_see_none_of_the_channel);
    RUN(state_stays_from_command_to_command);
    RUN(a_shell_that_ends_says_so_and_the_next_is_fresh);
    RUN(a_timeout_ends_the_command_and_keeps_the_shell);
    RUN(a_command_whose_client_goes_is_interrupted);
    RUN(a_command_can_be_interrupted_as_soon_as_it_starts);
    RUN(concurrent_commands_wait_for_each_other);
    RUN(the_queue_is_bounded);
    RUN(a_thousand_commands_without_a_newline);
    RUN(jobs_that_write_between_commands_do_not_wait);
    RUN(a_rollback_brings_shells_back);
    RUN(a_stop_keeps_the_state);
    RUN(shells_outlive_the_host);
}

static void all(void)
{
    struct host_counts before = host_count();

    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    world_open("auto");
    world_import("small");
    run_all("host");
    run_all("small");
    world_close();
    buf_done(&result.out);
    buf_done(&result.err);
    CHECK(host_count().fds == before.fds);
    CHECK(host_count().mounts == before.mounts);
}

int main(void)
{
    RUN(all);
    return 0;
}
