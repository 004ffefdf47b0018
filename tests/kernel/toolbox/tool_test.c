// SPDX-License-Identifier: Apache-2.0
/* Tool calls in real sandboxes: results, limits, stored outputs. */
#include <pthread.h>
#include <stdatomic.h>

#include "host/observe/metrics.h"
#include "host/sandbox/mark.h"
#include "host/sandbox/sandbox_internal.h"
#include "kernel/toolbox/call_world.h"
#include "toolbox/archive.h"
#include "toolbox/process.h"

static struct sandbox *box; /* of the template host; shared by tests that do not change it */

/* --- invalid calls -------------------------------------------------------------------------- */

static void an_invalid_call_is_refused_by_open(void)
{
    struct tool_request request = request_of("bsh", NULL);
    struct tool_call *call = NULL;
    char long_id[TOOL_ID_MAX + 2];

    CHECK(tool_open(box, &request, -1, &call, &err) < 0 && err.kind == ERR_NOT_FOUND);
    CHECK_TEXT(err.msg, "no tool 'bsh'; did you mean 'bash'?");
    request.name = "frobnicate";
    CHECK(tool_open(box, &request, -1, &call, &err) < 0);
    CHECK_TEXT(err.msg, "no tool 'frobnicate'");
    request = request_of("bash", NULL);
    request.is_read_only = true;
    CHECK(tool_open(box, &request, -1, &call, &err) < 0 && err.kind == ERR_DENIED);
    memset(long_id, 'x', sizeof(long_id));
    long_id[sizeof(long_id) - 1] = '\0';
    request = request_of("bash", long_id);
    CHECK(tool_open(box, &request, -1, &call, &err) < 0 && err.kind == ERR_INVALID);
    request = request_of("bash", NULL);
    request.max_output_tokens = TOOL_OUTPUT_TOKENS_MAX + 1;
    CHECK(tool_open(box, &request, -1, &call, &err) < 0 && err.kind == ERR_INVALID);
}

static void wrong_parameters_are_a_result_with_an_error(void)
{
    cleanup_done struct done done = call_tool(box, "bash", "{\"comand\": \"ls\"}");

    CHECK(done.result->is_error && !done.result->has_exit_code);
    CHECK_HAS(done.text, "did you mean 'cmd'?");
}

static void a_paused_sandbox_is_an_error_of_the_call(void)
{
    struct sandbox *sandbox = make_sandbox("small");
    struct tool_call *call;
    struct tool_event event;

    CHECK_OK(sandbox_pause(sandbox, &err), &err);
    call = call_open(sandbox, request_of("bash", "p1"), "{\"cmd\": \"true\"}", -1);
    CHECK(tool_next(call, &event, &err) < 0 && err.cause == CAUSE_SESSION_PAUSED, "(%s)", err.msg);
    tool_close(call);
    CHECK_OK(sandbox_resume(sandbox, &err), &err);
    {
        /* The failed call stored no result, so the id is unused. */
        cleanup_done struct done done = call_id(sandbox, "bash", "p1", "{\"cmd\": \"true\"}");

        CHECK(!done.result->is_error && !done.result->is_repeated);
    }
    world_destroy(sandbox);
}

/* --- bash ------------------------------------------------------------------------------------- */

static void bash_returns_output_and_exit_code(void)
{
    cleanup_done struct done done = call_tool(
        box, "bash",
        "{\"command\": \"echo out; echo err >&2; [[ -n $BASH_VERSION ]] && pwd; exit 3\"}");
    cleanup_done struct done silent = call_tool(box, "bash", "{\"cmd\": \"cd /; true\"}");
    cleanup_done struct done blank = call_tool(box, "bash", "{\"cmd\": \" \\n\"}");
    cleanup_done struct done elsewhere =
        call_tool(box, "bash", "{\"cmd\": \"pwd\", \"cwd\": \"/usr/lib\"}");
    cleanup_done struct done nowhere =
        call_tool(box, "bash", "{\"cmd\": \"pwd\", \"cwd\": \"not/there\"}");

    CHECK_HAS(done.text, "out\n/workspace\n[stderr]\nerr\n[exit code 3, ");
    CHECK(!done.result->is_error && done.result->has_exit_code && done.result->exit_code == 3);
    CHECK(done.result->tier == 2 && !done.result->is_truncated && !done.result->is_repeated);
    CHECK(strstr(done.progress.data, "out\n") && strstr(done.progress.data, "err\n"));
    CHECK_HAS(silent.text, "(no output)\n[exit code 0, ");
    CHECK(blank.result->is_error);
    CHECK_HAS(blank.text, "empty");
    CHECK_HAS(elsewhere.text, "/usr/lib\n");
    CHECK(nowhere.result->is_error);
    CHECK_HAS(nowhere.text, "the working directory does not exist");
}

static void sh_is_used_without_bash(void)
{
    struct sandbox *sandbox = make_sandbox("small");
    cleanup_done struct done done =
        call_id(sandbox, "bash", "sh", "{\"cmd\": \"echo \\\"<$BASH_VERSION>\\\"\"}");

    CHECK_HAS(done.text, "<>\n[exit code 0");
    world_destroy(sandbox);
}

static void invalid_utf8_in_output_is_replaced(void)
{
    cleanup_done struct done done = call_tool(
        box, "bash",
        "{\"cmd\": \"printf 'a\\\\xffb\\\\x00\\\\xe2\\\\x82'; sleep 0.05; printf '\\\\xac'\"}");

    CHECK_HAS(done.text, "a\xef\xbf\xbd"
                         "b\xef\xbf\xbd\xe2\x82\xac\n[exit code 0");
    CHECK_HAS(done.progress.data, "\xe2\x82\xac");
}

static void a_time_limit_ends_all_processes_of_the_call(void)
{
    cleanup_done struct done done =
        call_tool(box, "bash",
                  "{\"cmd\": \"setsid sh -c 'echo $$ > /tmp/child; exec sleep 1000' & while [ ! -s "
                  "/tmp/child "
                  "]; do :; done; echo begun; sleep 1000\", \"timeout_ms\": 1500}");
    struct tool_request request = request_of("bash", NULL);

    CHECK(done.result->timed_out && done.result->exit_code == 124 && !done.result->is_error);
    CHECK_HAS(done.text, "[timed out after ");
    EVENTUALLY(world_sh(box, "! kill -0 $(cat /tmp/child) 2>/dev/null", NULL) == 0);
    request.timeout_ms = 50; /* of the call; the shorter limit applies */
    {
        cleanup_done struct done call = call_with(box, request, "{\"cmd\": \"sleep 1000\"}");

        CHECK(call.result->timed_out);
    }
}

static void out_of_memory_is_reported(void)
{
    struct sandbox_spec spec = { .caller = &caller_root,
                                 .template = "host",
                                 .limits.memory_bytes = 64 << 20 };
    struct sandbox *sandbox = NULL;

    CHECK_OK(sandbox_create(world.host, &spec, &sandbox, &err), &err);
    {
        cleanup_done struct done done =
            call_tool(sandbox, "bash", "{\"cmd\": \"exec tail /dev/zero\"}");

        CHECK(done.result->oom && done.result->exit_code == 137, "(%s)", done.text);
        CHECK_HAS(done.text, "out of memory");
    }
    world_destroy(sandbox);
}

/* Needs more memory than the limit of the call, but less than that of the sandbox. */
#define HUNGRY                                                                                     \
    "{\"cmd\": \"set -o pipefail; echo begun; until [ -e /tmp/go ]; do sleep 0.01; done; head -c " \
    "100M /dev/zero | tail -c 100M | wc -c\"}"

static void a_call_can_set_limits(void)
{
    struct sandbox *sandbox = make_sandbox("host");
    struct tool_request request = request_of("bash", NULL);
    struct tool_call *call;

    request.memory_bytes = 1;
    CHECK(tool_open(sandbox, &request, -1, &call, &err) < 0 && err.kind == ERR_INVALID);
    request.memory_bytes = 32 << 20;
    request.cpus_milli = 500;
    call = call_open(sandbox, request, HUNGRY, -1);
    call_await(call, "begun");
    CHECK(world_sh(sandbox, "echo > /tmp/go", NULL) == 0);
    {
        cleanup_done struct done limited = call_finish(call);
        cleanup_done struct done plain = call_tool(sandbox, "bash", HUNGRY);

        CHECK(limited.result->oom && limited.result->exit_code == 137, "(%s)", limited.text);
        CHECK(!plain.result->oom, "(%s)", plain.text);
        CHECK_HAS(plain.text, "104857600\n");
    }
    request.name = "process_start";
    {
        cleanup_done struct done started = call_with(sandbox, request, HUNGRY);
        char id[16], params[64];

        CHECK(sscanf(started.text, "process %15s was started", id) == 1, "(%s)", started.text);
        (void)snprintf(params, sizeof(params), "{\"process_id\": \"%s\"}", id);
        for (bool is_over = false; !is_over;) {
            cleanup_done struct done logs = call_tool(sandbox, "process_logs", params);

            is_over = logs.result->has_exit_code;
        }
    }
    world_destroy(sandbox);
}

/* --- long results ----------------------------------------------------------------------------- */

static struct done read_rest(struct sandbox *sandbox, const char *handle, uint64_t offset)
{
    char params[128];

    (void)snprintf(params, sizeof(params), "{\"handle\": \"%s\", \"offset\": %llu}", handle,
                   (unsigned long long)offset);
    return call_tool(sandbox, "read_output", params);
}

/* Reads the full text in parts. */
static void read_all(struct sandbox *sandbox, const char *handle, struct buf *out)
{
    struct tool_output output = { .total = 1 };

    while (out->len < output.total) {
        const struct tool_part part = { .handle = handle, .offset = out->len, .limit = 1 << 20 };

        CHECK_OK(tool_read_output(sandbox, &part, &output, &err), &err);
        CHECK(output.len > 0);
        CHECK(buf_add(out, output.text, output.len) == 0);
        free(output.text);
    }
}

static void long_results_are_truncated_and_stored(void)
{
    struct tool_request request = request_of("bash", NULL);
    cleanup_with(buf_done) struct buf whole = BUF_INIT(1 << 20);
    const char *params = "{\"cmd\": \"seq 1 20000; echo oops >&2\"}";

    request.max_output_tokens = 1000;
    {
        cleanup_done struct done done = call_with(box, request, params);
        cleanup_done struct done more = { .call = NULL };
        char handle[32];

        CHECK(done.result->is_truncated && done.result->handle);
        CHECK(done.result->shown <= 4000 && done.result->shown > 3000);
        CHECK(strncmp(done.text, "1\n2\n3\n", 6) == 0);
        CHECK_HAS(done.text, "are not shown; to read them: read_output handle=");
        CHECK_HAS(done.text, "20000\n[stderr]\noops\n[exit code 0");
        CHECK(done.result->blocks[0].len <= 4200, "(%zu)", done.result->blocks[0].len);
        (void)snprintf(handle, sizeof(handle), "%s", done.result->handle);
        read_all(box, handle, &whole);
        CHECK(whole.len == done.result->total);
        CHECK(strncmp(whole.data, "1\n2\n", 4) == 0 && strstr(whole.data, "\n9999\n10000\n"));
        CHECK_HAS(whole.data, "\n20000\n[stderr]\noops\n[exit code 0");
        more = read_rest(box, handle, 6);
        CHECK(strncmp(more.text, "4\n5\n", 4) == 0, "(%.20s)", more.text);
        CHECK_HAS(more.text, "; continue with offset=");
    }
    {
        cleanup_done struct done unknown = read_rest(box, "o999", 0);

        CHECK(unknown.result->is_error);
        CHECK_HAS(unknown.text, "no output 'o999'");
    }
}

/* The next offset in the result is the end of this part also then. */
static void an_offset_inside_a_character_is_moved_to_the_next(void)
{
    struct tool_request request = request_of("bash", NULL);

    request.max_output_tokens = 100;
    {
        cleanup_done struct done done = call_with(
            box, request, "{\"cmd\": \"for i in $(seq 500); do printf 'a\u00e9\u20ac'; done\"}");
        cleanup_done struct done part = { .call = NULL };
        char params[128];

        CHECK(done.result->is_truncated && done.result->handle);
        (void)snprintf(params, sizeof(params), "{\"handle\": \"%s\", \"offset\": 2, \"limit\": 5}",
                       done.result->handle);
        part = call_tool(box, "read_output", params);
        CHECK(strncmp(part.text, "\u20aca\n[4 bytes at offset 3", 24) == 0, "(%s)", part.text);
        CHECK_HAS(part.text, "continue with offset=7]");
    }
}

/* More output than is kept in memory, so the text comes from the record of the process. */
static void very_long_results_are_stored_completely(void)
{
    cleanup_done struct done done = call_tool(box, "bash", "{\"cmd\": \"seq -w 1 600000\"}");
    cleanup_with(buf_done) struct buf whole = BUF_INIT(16 << 20);
    uint64_t number = 0;

    CHECK(done.result->is_truncated && done.result->handle && done.result->shown <= 40000);
    read_all(box, done.result->handle, &whole);
    CHECK(whole.len == done.result->total && whole.len > (size_t)7 * 600000);
    for (const char *line = whole.data; line[0] != '['; line += 7)
        CHECK(strtoull(line, NULL, 10) == ++number, "(%.6s at %llu)", line,
              (unsigned long long)number);
    CHECK(number == 600000);
}

/* --- git -------------------------------------------------------------------------------------- */

static void git_works_in_a_repository(void)
{
    struct sandbox *sandbox = make_sandbox("host");

    CHECK(world_sh(sandbox,
                   "git init -q -b main /workspace/r && cd /workspace/r && echo 1 > a && "
                   "echo 2 > -n",
                   NULL) == 0);
    {
        cleanup_done struct done status = call_tool(sandbox, "git_status", "{\"repo\": \"r\"}");
        cleanup_done struct done add =
            call_tool(sandbox, "git_add", "{\"repo\": \"r\", \"paths\": [\"a\", \"-n\"]}");
        cleanup_done struct done staged =
            call_tool(sandbox, "git_diff", "{\"repo\": \"r\", \"staged\": true, \"path\": \"a\"}");
        cleanup_done struct done commit =
            call_tool(sandbox, "git_commit", "{\"repo\": \"r\", \"message\": \"-first\\nmore\"}");
        cleanup_done struct done clean =
            call_tool(sandbox, "git_status", "{\"repo\": \"/workspace/r\"}");
        cleanup_done struct done again =
            call_tool(sandbox, "git_commit", "{\"repo\": \"r\", \"message\": \"x\"}");
        cleanup_done struct done blank =
            call_tool(sandbox, "git_commit", "{\"repo\": \"r\", \"message\": \" \"}");
        cleanup_done struct done log = call_tool(sandbox, "git_log", "{\"repo\": \"r\"}");
        cleanup_done struct done show = call_tool(sandbox, "git_show", "{\"repo\": \"r\"}");

        CHECK_HAS(status.text, "?? -n\n?? a\n");
        CHECK(!status.result->is_error && status.result->exit_code == 0);
        CHECK_HAS(add.text, "(staged)");
        CHECK_HAS(staged.text, "+++ b/a\n");
        CHECK(!strstr(staged.text, "b/-n"));
        CHECK(!commit.result->is_error, "(%s)", commit.text);
        CHECK_HAS(commit.text, "Holt Agent <agent@holt.invalid>");
        CHECK_HAS(clean.text, "the working tree is clean");
        CHECK(again.result->is_error && again.result->exit_code == 1);
        CHECK_HAS(again.text, "nothing to commit");
        CHECK(blank.result->is_error);
        CHECK_HAS(log.text, "Holt Agent <agent@holt.invalid>  ");
        CHECK_HAS(log.text, "  -first more\n");
        CHECK_HAS(show.text, "-first");
        CHECK_HAS(show.text, "+2\n");
    }
    /* The identity in the configuration of git has precedence; the repository may have another
     * owner. */
    CHECK(world_sh(sandbox,
                   "cd /workspace/r && git config user.name Ann && echo 3 >> a && chown -R "
                   "1000:1000 /workspace/r",
                   NULL) == 0);
    {
        cleanup_done struct done add =
            call_tool(sandbox, "git_add", "{\"repo\": \"r\", \"path\": \"a\"}");
        cleanup_done struct done commit =
            call_tool(sandbox, "git_commit", "{\"repo\": \"r\", \"message\": \"second\"}");
        cleanup_done struct done log =
            call_tool(sandbox, "git_log", "{\"repo\": \"r\", \"n\": 1, \"ref\": \"main\"}");
        cleanup_done struct done diff =
            call_tool(sandbox, "git_diff", "{\"repo\": \"r\", \"ref\": \"HEAD~1\"}");

        CHECK(!add.result->is_error && !commit.result->is_error, "(%s, %s)", add.text, commit.text);
        CHECK_HAS(log.text, "Ann <agent@holt.invalid>");
        CHECK(!strstr(log.text, "first"));
        CHECK_HAS(diff.text, "+3\n");
    }
    world_destroy(sandbox);
}

static void git_refuses_options_and_explains_failures(void)
{
    struct sandbox *sandbox = make_sandbox("small");
    cleanup_done struct done injected =
        call_tool(box, "git_diff", "{\"ref\": \"--output=/tmp/gotcha\"}");
    cleanup_done struct done shown = call_tool(box, "git_show", "{\"ref\": \"-x\"}");
    cleanup_done struct done nowhere = call_tool(box, "git_status", "{\"repo\": \"/usr\"}");
    cleanup_done struct done missing = call_tool(box, "git_status", "{\"repo\": \"/no/such\"}");
    cleanup_done struct done none = call_tool(sandbox, "git_log", "{}");

    CHECK(injected.result->is_error && shown.result->is_error);
    CHECK_HAS(injected.text, "must not start with '-'");
    CHECK(nowhere.result->is_error && nowhere.result->exit_code == 128);
    CHECK_HAS(nowhere.text, "not a git repository");
    CHECK_HAS(nowhere.text, "git init");
    CHECK(missing.result->is_error);
    CHECK_HAS(missing.text, "'repo' must be a directory");
    CHECK(none.result->is_error && none.result->exit_code == 127);
    CHECK_HAS(none.text, "git is not installed in this sandbox");
    world_destroy(sandbox);
}

static void git_reaches_the_sandbox_and_reports_a_missing_network(void)
{
    struct sandbox *sandbox = make_sandbox("host");

    CHECK(world_sh(sandbox,
                   "cd /workspace && git init -q --bare -b main up.git && git clone -q up.git w && "
                   "cd w && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m one",
                   NULL) == 0);
    {
        cleanup_done struct done push =
            call_tool(sandbox, "git_push", "{\"repo\": \"w\", \"args\": [\"origin\", \"HEAD\"]}");
        cleanup_done struct done clone =
            call_tool(sandbox, "git_clone", "{\"args\": [\"up.git\", \"copy\"]}");
        cleanup_done struct done daemon = call_tool(
            sandbox, "process_start",
            "{\"cmd\": \"exec git daemon --reuseaddr --listen=127.0.0.1 --base-path=/workspace "
            "--export-all --verbose\"}");

        CHECK(!push.result->is_error, "(%s)", push.text);
        CHECK(!clone.result->is_error, "(%s)", clone.text);
        CHECK_HAS(daemon.text, "was started");
    }
    CHECK(world_sh(sandbox,
                   "cd /workspace && until git ls-remote -q git://127.0.0.1/up.git; do :; done && "
                   "cd w && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m two "
                   "&& git push -q origin HEAD",
                   NULL) == 0);
    {
        cleanup_done struct done clone =
            call_tool(sandbox, "git_clone", "{\"args\": [\"git://127.0.0.1/up.git\", \"third\"]}");
        cleanup_done struct done fetch = call_tool(sandbox, "git_fetch", "{\"repo\": \"copy\"}");
        cleanup_done struct done pull = call_tool(sandbox, "git_pull", "{\"repo\": \"copy\"}");
        cleanup_done struct done log = call_tool(sandbox, "git_log", "{\"repo\": \"copy\"}");
        cleanup_done struct done far =
            call_tool(sandbox, "git_clone", "{\"args\": [\"https://git.example.invalid/x.git\"]}");
        cleanup_done struct done farther = call_tool(
            sandbox, "git_fetch", "{\"repo\": \"w\", \"args\": [\"git://203.0.113.1/x\"]}");
        cleanup_done struct done refused =
            call_tool(sandbox, "git_clone", "{\"args\": [\"git://127.0.0.1:1/x.git\"]}");

        CHECK(!clone.result->is_error, "(%s)", clone.text);
        CHECK(!fetch.result->is_error && !pull.result->is_error, "(%s, %s)", fetch.text, pull.text);
        CHECK_HAS(log.text, "  two\n");
        CHECK(far.result->is_error && farther.result->is_error && refused.result->is_error);
        CHECK_HAS(far.text, "This sandbox has no network");
        CHECK_HAS(farther.text, "This sandbox has no network");
        CHECK(!strstr(refused.text, "has no network"), "(%s)", refused.text);
    }
    world_destroy(sandbox);
}

/* --- shells, processes, turns ----------------------------------------------------------------- */

static void a_shell_keeps_its_state(void)
{
    cleanup_done struct done set =
        call_tool(box, "shell", "{\"cmd\": \"cd /usr; x=5; echo said; echo no >&2\"}");
    cleanup_done struct done got = call_tool(box, "shell", "{\"cmd\": \"pwd; echo $x; false\"}");
    cleanup_done struct done other =
        call_tool(box, "shell", "{\"cmd\": \"echo \\\"<$x>\\\"\", \"name\": \"other\"}");
    cleanup_done struct done named =
        call_tool(box, "shell", "{\"cmd\": \"true\", \"name\": \"../x\"}");
    cleanup_done struct done slow =
        call_tool(box, "shell", "{\"cmd\": \"sleep 1000\", \"timeout_ms\": 200}");

    CHECK_HAS(set.text, "said\n[stderr]\nno\n[exit code 0, ");
    CHECK_HAS(got.text, "/usr\n5\n[exit code 1, ");
    CHECK(got.result->exit_code == 1 && !got.result->is_error);
    CHECK_HAS(other.text, "<>\n");
    CHECK(named.result->is_error);
    /* On a slow machine the time limit may end it before the command starts. */
    CHECK(slow.result->timed_out ? slow.result->exit_code == 124 : slow.result->is_error, "(%s)",
          slow.text);
}

static void background_processes_start_log_and_end(void)
{
    cleanup_done struct done start = call_tool(
        box, "process_start",
        "{\"cmd\": \"pwd; echo ready; echo bad >&2; exec sleep 1000\", \"cwd\": \"/usr\"}");
    char id[16], params[64];

    CHECK(sscanf(start.text, "process %15s was started", id) == 1, "(%s)", start.text);
    (void)snprintf(params, sizeof(params), "{\"process_id\": \"%s\"}", id);
    for (bool is_there = false; !is_there;) {
        cleanup_done struct done logs = call_tool(box, "process_logs", params);

        is_there = strstr(logs.text, "/usr\nready\n[stderr]\nbad\n[process ");
        CHECK_HAS(logs.text, " is running");
        CHECK(!logs.result->has_exit_code && !logs.result->is_error);
    }
    {
        cleanup_done struct done sent = call_tool(box, "process_kill", params);

        CHECK_HAS(sent.text, "SIGTERM was sent to process");
    }
    for (bool is_over = false; !is_over;) {
        cleanup_done struct done logs = call_tool(box, "process_logs", params);

        is_over = strstr(logs.text, " has ended: ");
        CHECK(is_over == logs.result->has_exit_code);
    }
    {
        cleanup_done struct done again = call_tool(box, "process_kill", params);
        cleanup_done struct done unknown =
            call_tool(box, "process_logs", "{\"process_id\": \"p9999\"}");
        cleanup_done struct done wrong =
            call_tool(box, "process_kill", "{\"process_id\": \"p1\", \"signal\": \"NUKE\"}");

        CHECK(again.result->is_error && unknown.result->is_error && wrong.result->is_error);
        CHECK_HAS(again.text, "has ended");
        CHECK_HAS(unknown.text, "no process 'p9999'");
        CHECK_HAS(wrong.text, "no signal 'NUKE'");
    }
}

static void snapshots_rollback_diff_and_fork_work(void)
{
    struct sandbox *sandbox = make_sandbox("small"), *fork = NULL;
    cleanup_done struct done none = call_tool(sandbox, "list_snapshots", "{}");
    cleanup_done struct done one = call_tool(sandbox, "bash", "{\"cmd\": \"echo 1 > f\"}");
    cleanup_done struct done turn = call_tool(sandbox, "snapshot", "{}");
    cleanup_done struct done two =
        call_tool(sandbox, "bash", "{\"cmd\": \"echo 2 > f; echo n > g\"}");
    cleanup_done struct done diff = call_tool(sandbox, "diff", "{\"patch\": true}");
    cleanup_done struct done named = call_tool(sandbox, "snapshot", "{\"name\": \"mine\"}");
    cleanup_done struct done taken = call_tool(sandbox, "snapshot", "{\"name\": \"mine\"}");
    cleanup_done struct done list = call_tool(sandbox, "list_snapshots", "{}");
    cleanup_done struct done missing = call_tool(sandbox, "rollback", "{\"snapshot\": \"yours\"}");
    cleanup_done struct done forked = call_tool(sandbox, "fork", "{\"from\": \"turn-0001\"}");
    cleanup_done struct done back = call_tool(sandbox, "rollback", "{\"snapshot\": \"turn-0001\"}");
    char id[SANDBOX_ID_MAX];

    CHECK_HAS(none.text, "no snapshots");
    CHECK_HAS(turn.text, "snapshot turn-0001 was taken");
    CHECK(turn.result->tier == 0);
    CHECK_HAS(diff.text, "M /workspace/f\n");
    CHECK_HAS(diff.text, "-1\n+2\n");
    CHECK_HAS(diff.text, "A /workspace/g\n");
    CHECK_HAS(named.text, "snapshot mine was taken");
    CHECK(taken.result->is_error);
    CHECK_HAS(taken.text, "already");
    CHECK_HAS(list.text, "turn-0001  turn  ");
    CHECK_HAS(list.text, "mine  named  ");
    CHECK(missing.result->is_error);
    CHECK_HAS(missing.text, "list_snapshots");
    CHECK(!back.result->is_error, "(%s)", back.text);
    CHECK_TEXT(world_cat(sandbox, "/workspace/f"), "1");
    CHECK(sscanf(forked.text, "%31s", id) == 1);
    CHECK_OK(sandbox_find(world.host, &caller_root, id, &fork, &err), &err);
    CHECK_TEXT(world_cat(fork, "/workspace/f"), "1");
    CHECK(!one.result->is_error && !two.result->is_error);
    world_destroy(fork);
    world_destroy(sandbox);
}

static void remedies_name_tools_not_commands_of_holt(void)
{
    static const struct {
        const char *tool, *params, *says;
    } calls[] = {
        { "process_logs", "{\"process_id\": \"p999\"}", "process_start" },
        { "process_kill", "{\"process_id\": \"p999\"}", "process_start" },
        { "process_start", "{\"cmd\": \"true\", \"cwd\": \"/nowhere\"}",
          "the working directory does not exist" },
        { "rollback", "{\"snapshot\": \"none\"}", "list_snapshots" },
        { "diff", "{\"from\": \"none\"}", "list_snapshots" },
        { "fork", "{\"from\": \"none\"}", "list_snapshots" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
        cleanup_done struct done done = call_tool(box, calls[i].tool, calls[i].params);

        CHECK(done.result->is_error);
        CHECK_HAS(done.text, calls[i].says);
        CHECK(!strstr(done.text, "holt "), "(%s)", done.text);
    }
}

/* Read-only clients cannot use up the processes of a sandbox. */
static void processes_of_read_only_clients_are_limited(void)
{
    struct tool_request request = request_of("git_status", NULL);
    struct tool_event event;
    struct tool_call *call;

    request.is_read_only = true;
    tool_archive_of(box)->read_only_processes = TOOL_READ_ONLY_PROCESSES_MAX;
    call = call_open(box, request, "{}", -1);
    CHECK(tool_next(call, &event, &err) < 0 && err.cause == CAUSE_CAPACITY_EXCEEDED);
    tool_close(call);
    {
        cleanup_done struct done other = call_tool(box, "git_status", "{}");

        CHECK(other.result->has_exit_code);
    }
    CHECK(tool_archive_of(box)->read_only_processes == TOOL_READ_ONLY_PROCESSES_MAX);
    tool_archive_of(box)->read_only_processes = TOOL_READ_ONLY_PROCESSES_MAX - 1;
    {
        cleanup_done struct done last = call_with(box, request, "{}");

        CHECK(last.result->has_exit_code);
    }
    CHECK(tool_archive_of(box)->read_only_processes == TOOL_READ_ONLY_PROCESSES_MAX - 1);
    tool_archive_of(box)->read_only_processes = 0;
}

/* --- changes, snapshots --------------------------------------------------------------------- */

struct unmarking {
    struct sandbox *sandbox;
    struct sandbox_mark mark;
    atomic_bool has_begun;
};

static void *unmark(void *argument)
{
    struct unmarking *unmarking = argument;

    unmarking->has_begun = true;
    sandbox_unmark(unmarking->sandbox, &unmarking->mark);
    return NULL;
}

/* As when a rollback ends the process of a call that wants the list of changes. */
static void a_mark_is_removed_also_during_a_rollback(void)
{
    struct unmarking unmarking = { .sandbox = make_sandbox("small") };
    struct sandbox *sandbox = unmarking.sandbox;
    enum sandbox_state state;
    pthread_t thread;
    char **names = NULL;
    size_t count = 0;

    CHECK_OK(sandbox_mark(sandbox, &unmarking.mark, &err), &err);
    CHECK_OK(sandbox_begin(sandbox, OPERATION_ROLLBACK, &state, &err), &err);
    sandbox_set_state(sandbox, SANDBOX_ROLLING_BACK);
    CHECK(pthread_create(&thread, NULL, unmark, &unmarking) == 0);
    EVENTUALLY(unmarking.has_begun);
    sandbox_finish(sandbox, state);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_OK(volume_list_snapshots(sandbox->volume, &names, &count, &err), &err);
    CHECK(count == 0, "(%s)", names[0]);
    free(names);
    world_destroy(sandbox);
}

static void the_list_of_changes_is_exact(void)
{
    struct sandbox *sandbox = make_sandbox("small");
    struct tool_request request = request_of("bash", NULL);

    CHECK(world_sh(sandbox,
                   "cd /workspace; echo 1 > stays; echo 1 > goes; echo 1 > same; mkdir d; "
                   "echo 1 > d/moves",
                   NULL) == 0);
    request.wants_changed = true;
    {
        cleanup_done struct done done = call_with(
            sandbox, request,
            "{\"cmd\": \"echo 2 > stays; rm goes; touch same; echo 1 > comes; rm /etc/origin; mv "
            "d/moves d/moved\"}");
        const struct tool_result *result = done.result;

        CHECK(has_changed(result, 'M', "/workspace/stays"));
        CHECK(has_changed(result, 'D', "/workspace/goes"));
        CHECK(has_changed(result, 'A', "/workspace/comes"));
        CHECK(has_changed(result, 'D', "/etc/origin"));
        CHECK(has_changed(result, 'D', "/workspace/d/moves"));
        CHECK(has_changed(result, 'A', "/workspace/d/moved"));
        CHECK(result->changed_count == 6 && !result->changed_is_cut, "(%zu)",
              result->changed_count);
    }
    {
        cleanup_done struct done many = call_with(
            sandbox, request,
            "{\"cmd\": \"i=0; while [ $i -lt 1100 ]; do echo x > m$i; i=$((i+1)); done\"}");
        cleanup_done struct done none = call_with(sandbox, request, "{\"cmd\": \"cat m1\"}");
        cleanup_done struct done list = call_tool(sandbox, "list_snapshots", "{}");

        CHECK(many.result->changed_count == 1000 && many.result->changed_is_cut);
        CHECK(none.result->changed_count == 0 && !none.result->changed_is_cut);
        CHECK_HAS(list.text, "no snapshots"); /* the marks were removed */
    }
    world_destroy(sandbox);
}

static void a_call_can_take_a_snapshot(void)
{
    struct sandbox *sandbox = make_sandbox("small");
    struct tool_request request = request_of("bash", "../toolu 01/\xc3\xa4");
    char first[SNAPSHOT_NAME_MAX + 1];

    request.snapshot = 1;
    {
        cleanup_done struct done done =
            call_with(sandbox, request, "{\"cmd\": \"echo 1 > f; false\"}");

        CHECK(done.result->snapshot_id && !done.result->snapshot_error);
        CHECK(strncmp(done.result->snapshot_id, "tool-.._toolu_01_", 17) == 0, "(%s)",
              done.result->snapshot_id);
        (void)snprintf(first, sizeof(first), "%s", done.result->snapshot_id);
    }
    request.call_id = NULL;
    for (int i = 0; i < 3; i++) {
        cleanup_done struct done done = call_with(sandbox, request, "{\"cmd\": \"echo 2 > f\"}");

        CHECK(done.result->snapshot_id && strcmp(done.result->snapshot_id, first) != 0);
    }
    request.name = "git_status"; /* read-only */
    {
        cleanup_done struct done done = call_with(sandbox, request, "{}");

        CHECK(!done.result->snapshot_id);
    }
    request.name = "bash"; /* a result with an error */
    {
        cleanup_done struct done done = call_with(sandbox, request, "{\"cmd\": \"\\t\"}");
        cleanup_done struct done plain = call_tool(sandbox, "bash", "{\"cmd\": \"true\"}");

        CHECK(!done.result->snapshot_id && !done.result->snapshot_error);
        CHECK(!plain.result->snapshot_id);
    }
    CHECK_OK(sandbox_rollback(sandbox, first, false, &err), &err);
    CHECK_TEXT(world_cat(sandbox, "/workspace/f"), "1");
    world_destroy(sandbox);
}

static void settings_of_the_daemon_are_the_defaults_of_a_call(void)
{
    struct sandbox *sandbox = make_sandbox("small");
    const char *params = "{\"cmd\": \"echo 0123456789 0123456789 0123456789\"}";

    world_set("tool.snapshots", "yes");
    world_set("tool.output-tokens", "5");
    CHECK_OK(host_reload(world.host, &world.config, &err), &err);
    {
        cleanup_done struct done done = call_tool(sandbox, "bash", params);
        struct tool_request request = request_of("bash", NULL);
        cleanup_done struct done asked = { .call = NULL };

        CHECK(done.result->snapshot_id && done.result->is_truncated);
        request.snapshot = 0;
        request.max_output_tokens = 1000;
        asked = call_with(sandbox, request, params);
        CHECK(!asked.result->snapshot_id && !asked.result->is_truncated);
    }
    world_set("tool.output-tokens", "0");
    CHECK(host_reload(world.host, &world.config, &err) < 0 && err.kind == ERR_INVALID);
    world_set("tool.snapshots", "no");
    world_set("tool.output-tokens", "10000");
    CHECK_OK(host_reload(world.host, &world.config, &err), &err);
    world_destroy(sandbox);
}

static void calls_are_counted(void)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(1 << 20);
    struct host_health health = { 0 };
    struct tool_call *call =
        call_open(box, request_of("bash", NULL), "{\"cmd\": \"echo begun; exec sleep 1000\"}", -1);

    call_await(call, "begun");
    host_health(world.host, &caller_root, &health);
    CHECK(health.tools == 1, "(%u)", health.tools);
    CHECK(host_metrics_write(world.host, &text) == 0);
    CHECK_HAS(text.data, "\nholt_tools_running 1\n");
    CHECK_HAS(text.data, "{operation=\"tool-process\"");
    CHECK_HAS(text.data, "{type=\"tool.executed\"}");
    tool_close(call);
    host_health(world.host, &caller_root, &health);
    CHECK(health.tools == 0, "(%u)", health.tools);
}

/* --- file tools ----------------------------------------------------------------------------- */

static void file_tools_run_in_a_worker(void)
{
    struct sandbox *sandbox = make_sandbox("small");
    struct tool_request request = request_of("write_file", "w1");
    const char *params =
        "{\"path\": \"d/f\", \"content\": \"one\\ntwo\\n\", \"create_dirs\": true}";

    request.wants_changed = true;
    {
        cleanup_done struct done made = call_with(sandbox, request, params);
        cleanup_done struct done again = call_with(sandbox, request, params);

        CHECK(!made.result->is_error && made.result->tier == 1, "(%s)", made.text);
        CHECK(has_changed(made.result, 'A', "/workspace/d/f"));
        CHECK(again.result->is_repeated && has_changed(again.result, 'A', "/workspace/d/f"));
    }
    request = request_of("read_file", NULL);
    request.is_read_only = true;
    {
        cleanup_done struct done read = call_with(sandbox, request, "{\"path\": \"d/f\"}");
        cleanup_done struct done none = call_with(sandbox, request, "{\"path\": \"d/g\"}");

        CHECK_HAS(read.text, "     1\tone\n");
        CHECK(!read.result->is_error && !read.result->has_exit_code);
        CHECK(none.result->is_error);
    }
    CHECK(world_sh(sandbox,
                   "cd /workspace; i=0; while [ $i -lt 1500 ]; do echo $i; i=$((i+1)); done "
                   "> long",
                   NULL) == 0);
    request.max_output_tokens = 500;
    {
        cleanup_done struct done cut = call_with(sandbox, request, "{\"path\": \"long\"}");

        CHECK(cut.result->is_truncated && cut.result->handle);
        CHECK_HAS(cut.text, "     1\t0\n");
        CHECK_HAS(cut.text, "  1500\t1499");
    }
    world_destroy(sandbox);
}

static void all(void)
{
    struct host_counts before = host_count();

    must_be_root();
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    world_open("auto");
    world_import("small");
    box = make_sandbox("host");
    RUN(an_invalid_call_is_refused_by_open);
    RUN(wrong_parameters_are_a_result_with_an_error);
    RUN(a_paused_sandbox_is_an_error_of_the_call);
    RUN(bash_returns_output_and_exit_code);
    RUN(sh_is_used_without_bash);
    RUN(invalid_utf8_in_output_is_replaced);
    RUN(a_time_limit_ends_all_processes_of_the_call);
    RUN(out_of_memory_is_reported);
    RUN(a_call_can_set_limits);
    RUN(long_results_are_truncated_and_stored);
    RUN(an_offset_inside_a_character_is_moved_to_the_next);
    RUN(very_long_results_are_stored_completely);
    RUN(git_works_in_a_repository);
    RUN(git_refuses_options_and_explains_failures);
    RUN(git_reaches_the_sandbox_and_reports_a_missing_network);
    RUN(a_shell_keeps_its_state);
    RUN(background_processes_start_log_and_end);
    RUN(snapshots_rollback_diff_and_fork_work);
    RUN(remedies_name_tools_not_commands_of_holt);
    RUN(processes_of_read_only_clients_are_limited);
    RUN(a_mark_is_removed_also_during_a_rollback);
    RUN(the_list_of_changes_is_exact);
    RUN(a_call_can_take_a_snapshot);
    RUN(settings_of_the_daemon_are_the_defaults_of_a_call);
    RUN(calls_are_counted);
    RUN(file_tools_run_in_a_worker);
    world_destroy(box);
    world_close();
    CHECK(host_count().fds == before.fds, "(%zu, then %zu)", before.fds, host_count().fds);
    CHECK(host_count().mounts == before.mounts);
}

int main(void)
{
    RUN(all);
    return 0;
}
