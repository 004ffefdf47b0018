// SPDX-License-Identifier: Apache-2.0
/* Tool calls with an id are executed once, also with concurrent and repeated calls, clients that
 * disconnect, and restarts of the daemon. */
#include <pthread.h>
#include <sys/socket.h>

#include "kernel/toolbox/call_world.h"

/* Writes a word, waits for a file, and counts how often it was run. */
#define WAITING                                                                                    \
    "{\"cmd\": \"cd /tmp; echo x >> count; echo begun; until [ -e go ]; do sleep 0.01; done; "     \
    "echo ended $(cat count)\"}"

static void let_go(struct sandbox *sandbox)
{
    CHECK(world_sh(sandbox, "echo > /tmp/go", NULL) == 0);
}

/* --- repeated calls --------------------------------------------------------------------------- */

static void a_repeated_call_gets_the_stored_result(void)
{
    struct sandbox *sandbox = make_sandbox("small");
    const char *params = "{\"cmd\": \"echo x >> /tmp/n; cat /tmp/n /proc/uptime; exit 3\", "
                         "\"timeout_ms\": 60000}";
    const char *same = "{\"timeout_ms\": 60000, \"cmd\": \"echo x >> /tmp/n; cat /tmp/n "
                       "/proc/uptime; exit 3\"}";
    cleanup_done struct done first = call_id(sandbox, "bash", "a b/\xc3\xa4", params);
    cleanup_done struct done second = call_id(sandbox, "bash", "a b/\xc3\xa4", same);
    cleanup_done struct done other = call_id(sandbox, "bash", "b", params);
    struct tool_request request = request_of("bash", "b");
    cleanup_json json_t *object = json_pack("{s:s}", "cmd", "true");
    struct tool_call *call = NULL;

    CHECK(!first.result->is_repeated && second.result->is_repeated && !other.result->is_repeated);
    CHECK_TEXT(second.text, first.text);
    CHECK(second.result->exit_code == 3 && second.result->has_exit_code);
    CHECK(second.result->tier == 2 && second.result->duration_ms == first.result->duration_ms);
    CHECK(strncmp(other.text, "x\nx\n", 4) == 0 && strncmp(other.text, "x\nx\nx", 5) != 0);
    request.params = object;
    CHECK(tool_open(sandbox, &request, -1, &call, &err) < 0 && err.kind == ERR_INVALID);
    CHECK_HAS(err.msg, "the tool call id 'b' was used");
    request.name = "list_snapshots";
    request.params = NULL;
    CHECK(tool_open(sandbox, &request, -1, &call, &err) < 0 && err.kind == ERR_INVALID);
    world_destroy(sandbox);
}

static void a_stored_result_is_complete(void)
{
    struct sandbox *sandbox = make_sandbox("small");
    struct tool_request request = request_of("bash", "all");
    const char *params =
        "{\"cmd\": \"i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done; "
        "echo > new; rm /etc/origin\"}";

    request.max_output_tokens = 500;
    request.wants_changed = true;
    request.snapshot = 1;
    {
        cleanup_done struct done first = call_with(sandbox, request, params);
        cleanup_done struct done second = call_with(sandbox, request, params);
        const struct tool_result *one = first.result, *two = second.result;

        CHECK(one->is_truncated && one->handle && one->snapshot_id && one->changed_count == 2);
        CHECK(two->is_repeated && two->is_truncated && two->changed_count == 2);
        CHECK_TEXT(two->handle, one->handle);
        CHECK_TEXT(two->snapshot_id, one->snapshot_id);
        CHECK_TEXT(second.text, first.text);
        CHECK(has_changed(two, 'A', "/workspace/new") && has_changed(two, 'D', "/etc/origin"));
        CHECK(two->shown == one->shown && two->total == one->total);
    }
    world_destroy(sandbox);
}

static void stored_results_are_bounded(void)
{
    enum { KEPT = 512 };
    struct sandbox *sandbox = make_sandbox("small");
    char id[16];

    for (int i = 0; i <= KEPT; i++) {
        (void)snprintf(id, sizeof(id), "c%d", i);
        cleanup_done struct done done = call_id(sandbox, "list_snapshots", id, "{}");

        CHECK(!done.result->is_repeated);
    }
    {
        cleanup_done struct done last = call_id(sandbox, "list_snapshots", id, "{}");
        cleanup_done struct done oldest = call_id(sandbox, "list_snapshots", "c0", "{}");

        CHECK(last.result->is_repeated && !oldest.result->is_repeated);
    }
    world_destroy(sandbox);
}

/* --- concurrent calls ------------------------------------------------------------------------- */

struct tool_caller {
    pthread_t thread;
    struct tool_call *call;
    int result;
    struct tool_event event;
    struct err err;
};

static void *follow(void *argument)
{
    struct tool_caller *caller = argument;

    do
        caller->result = tool_next(caller->call, &caller->event, &caller->err);
    while (caller->result == 0 && caller->event.kind == TOOL_PROGRESS);
    return NULL;
}

static void caller_start(struct tool_caller *caller)
{
    CHECK(pthread_create(&caller->thread, NULL, follow, caller) == 0);
}

static void caller_join(struct tool_caller *caller)
{
    CHECK(pthread_join(caller->thread, NULL) == 0);
}

static void concurrent_calls_share_one_execution(void)
{
    struct sandbox *sandbox = make_sandbox("small");
    struct tool_caller callers[6] = { { .call = NULL } };

    for (size_t i = 0; i < ARRAY_SIZE(callers); i++)
        callers[i].call = call_open(sandbox, request_of("bash", "same"), WAITING, -1);
    for (size_t i = ARRAY_SIZE(callers); i-- > 0;)
        caller_start(&callers[i]);
    let_go(sandbox);
    for (size_t i = 0; i < ARRAY_SIZE(callers); i++) {
        caller_join(&callers[i]);
        CHECK_OK(callers[i].result, &callers[i].err);
        CHECK_HAS(callers[i].event.result->blocks[0].text, "begun\nended x\n");
        CHECK(callers[i].event.result->is_repeated == (i > 0));
        tool_close(callers[i].call);
    }
    world_destroy(sandbox);
}

/* The thread that is not the first joins the call. */
static void *race(void *argument)
{
    struct tool_caller *caller = argument;

    for (int i = 0; i < 40; i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "race%d", i);
        cleanup_done struct done done = call_id((struct sandbox *)(void *)caller->call, "bash", id,
                                                "{\"cmd\": \"echo x >> /tmp/race; echo said\"}");
        CHECK_HAS(done.text, "said\n");
        caller->result += !done.result->is_repeated;
    }
    return NULL;
}

static void racing_calls_run_once_each(void)
{
    struct sandbox *sandbox = make_sandbox("small");
    struct tool_caller callers[3] = { { .call = NULL } };
    int first = 0;

    for (size_t i = 0; i < ARRAY_SIZE(callers); i++) {
        callers[i].call = (struct tool_call *)(void *)sandbox;
        CHECK(pthread_create(&callers[i].thread, NULL, race, &callers[i]) == 0);
    }
    for (size_t i = 0; i < ARRAY_SIZE(callers); i++) {
        caller_join(&callers[i]);
        first += callers[i].result;
    }
    CHECK(first == 40, "(%d)", first);
    CHECK(world_sh(sandbox, "set -- $(cat /tmp/race); test $# = 40", NULL) == 0);
    world_destroy(sandbox);
}

/* --- clients that disconnect ------------------------------------------------------------------ */

/* Makes a call whose client disconnects while it runs. */
static void hang_up(struct sandbox *sandbox, const char *id)
{
    struct tool_event event;
    struct tool_call *call;
    int pair[2];

    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    call = call_open(sandbox, request_of("bash", id), WAITING, pair[0]);
    call_await(call, "begun");
    (void)close(pair[1]);
    CHECK(tool_next(call, &event, &err) == -ECANCELED);
    tool_close(call);
    (void)close(pair[0]);
}

static void a_call_with_an_id_continues_without_its_client(void)
{
    struct sandbox *sandbox = make_sandbox("small");
    struct tool_caller caller = { .call = NULL };

    hang_up(sandbox, "left");
    caller.call = call_open(sandbox, request_of("bash", "left"), WAITING, -1);
    caller_start(&caller);
    let_go(sandbox);
    caller_join(&caller);
    CHECK_OK(caller.result, &caller.err);
    CHECK_HAS(caller.event.result->blocks[0].text, "begun\nended x\n[exit code 0");
    CHECK(caller.event.result->is_repeated);
    tool_close(caller.call);
    {
        cleanup_done struct done again = call_id(sandbox, "bash", "left", WAITING);

        CHECK_HAS(again.text, "begun\nended x\n");
    }
    world_destroy(sandbox);
}

static void a_call_without_an_id_ends_with_its_client(void)
{
    struct sandbox *sandbox = make_sandbox("small");

    hang_up(sandbox, NULL);
    EVENTUALLY(world_sh(sandbox,
                        "for p in /proc/[0-9]*; do read -r w < $p/cmdline; case $w in "
                        "*until*go*) test $p = /proc/$$ || exit 1;; esac; done; true",
                        NULL) == 0);
    world_destroy(sandbox);
}

/* Nothing was executed then; the call that has joined gets an error that allows a retry. */
static void a_joined_call_gets_an_error_if_the_first_never_began(void)
{
    struct sandbox *sandbox = make_sandbox("small");
    struct tool_call *first = call_open(sandbox, request_of("bash", "never"), WAITING, -1);
    struct tool_call *joined = call_open(sandbox, request_of("bash", "never"), WAITING, -1);
    struct tool_event event;

    tool_close(first);
    CHECK(tool_next(joined, &event, &err) < 0);
    CHECK(err.kind == ERR_UNAVAILABLE && err_is_retryable(&err), "(%s)", err.msg);
    tool_close(joined);
    world_destroy(sandbox);
}

static void a_joined_call_outlives_the_first(void)
{
    struct sandbox *sandbox = make_sandbox("small");
    struct tool_call *driver = call_open(sandbox, request_of("bash", "d"), WAITING, -1);
    struct tool_caller joined = { .call = NULL };

    call_await(driver, "begun");
    joined.call = call_open(sandbox, request_of("bash", "d"), WAITING, -1);
    caller_start(&joined);
    tool_close(driver);
    let_go(sandbox);
    caller_join(&joined);
    CHECK_OK(joined.result, &joined.err);
    CHECK_HAS(joined.event.result->blocks[0].text, "ended x\n");
    tool_close(joined.call);
    world_destroy(sandbox);
}

static void cancel(struct sandbox *sandbox, const char *tool, const char *id)
{
    struct tool_caller caller = { .call = call_open(sandbox, request_of(tool, id), WAITING, -1) };

    call_await(caller.call, "begun");
    caller_start(&caller);
    tool_cancel(caller.call);
    caller_join(&caller);
    CHECK_OK(caller.result, &caller.err);
    tool_close(caller.call);
}

static void a_canceled_call_ends_at_once_and_for_good(void)
{
    struct sandbox *sandbox = make_sandbox("small");

    cancel(sandbox, "bash", NULL);
    cancel(sandbox, "bash", "stopped");
    cancel(sandbox, "shell", "interrupted");
    {
        cleanup_done struct done again = call_id(sandbox, "bash", "stopped", WAITING);
        cleanup_done struct done shell = call_id(sandbox, "shell", "interrupted", WAITING);

        CHECK(again.result->is_repeated && shell.result->is_repeated);
        CHECK(!strstr(again.text, "ended") && again.result->is_error, "(%s)", again.text);
        CHECK_HAS(shell.text, "canceled");
    }
    world_destroy(sandbox);
}

/* --- calls in the background ------------------------------------------------------------------ */

static struct tool_call *background_open(struct sandbox *sandbox, const char *tool, const char *id,
                                         const char *params)
{
    struct tool_request request = request_of(tool, id);
    struct tool_call *call;

    request.is_background = true;
    call = call_open(sandbox, request, params, -1);
    CHECK(tool_is_background(call));
    return call;
}

/* Tools of the host too, which cannot be handed over once they have begun. */
static void a_call_in_the_background_needs_no_client(void)
{
    struct sandbox *sandbox = make_sandbox("small");
    const char *const tools[][2] = { { "snapshot", "{\"name\": \"one\"}" },
                                     { "diff", "{}" },
                                     { "rollback", "{\"snapshot\": \"one\"}" },
                                     { "fork", "{}" } };

    for (size_t i = 0; i < ARRAY_SIZE(tools); i++) {
        struct tool_call *call = background_open(sandbox, tools[i][0], tools[i][0], tools[i][1]);
        cleanup_done struct done done = call_finish(call);
        struct tool_call *found;
        bool is_over;

        CHECK(!done.result->is_error && !done.result->is_repeated, "(%s)", done.text);
        CHECK(tool_keep(call) == -EALREADY);
        /* Nobody was told of it, so it is forgotten, if not at the same moment. */
        while (tool_find_call(sandbox, tools[i][0], &found, &is_over, &err) == 0)
            tool_close(found);
        CHECK(err.kind == ERR_NOT_FOUND);
    }
    world_destroy(sandbox);
}

static void a_call_that_was_kept_is_found_until_a_rollback_and_after_it(void)
{
    struct sandbox *sandbox = make_sandbox("small");
    cleanup_done struct done snapshot = call_tool(sandbox, "snapshot", "{\"name\": \"one\"}");
    struct tool_call *call = background_open(sandbox, "bash", "kept", WAITING), *found = NULL;
    bool is_over;

    CHECK(!snapshot.result->is_error);
    CHECK(tool_keep(call) == 0);
    tool_close(call);
    CHECK_OK(tool_find_call(sandbox, "kept", &found, &is_over, &err), &err);
    CHECK(!is_over);
    let_go(sandbox);
    {
        cleanup_done struct done done = call_finish(found);

        CHECK_HAS(done.text, "ended x\n");
    }
    for (int i = 0; i < 2; i++) {
        cleanup_done struct done done = { .call = NULL };

        CHECK_OK(tool_find_call(sandbox, "kept", &found, &is_over, &err), &err);
        CHECK(is_over);
        done = call_finish(found);
        CHECK_HAS(done.text, "ended x\n");
        CHECK(!done.result->is_canceled);
        CHECK_OK(sandbox_rollback(sandbox, "one", false, &err), &err);
    }
    {
        cleanup_done struct done again = call_id(sandbox, "bash", "kept", "{\"cmd\": \"true\"}");

        CHECK(!again.result->is_repeated); /* the rollback has undone it */
    }
    world_destroy(sandbox);
}

/* --- rollbacks -------------------------------------------------------------------------------- */

static void a_rollback_discards_calls_that_it_undoes(void)
{
    struct sandbox *sandbox = make_sandbox("small");
    const char *params = "{\"cmd\": \"echo x >> /f; cat /f\"}";
    struct snapshot_info turn;
    struct tool_caller caller = { .call = NULL };

    CHECK_OK(sandbox_turn(sandbox, &turn, &err), &err);
    {
        cleanup_done struct done first = call_id(sandbox, "bash", "f", params);
        cleanup_done struct done second = call_id(sandbox, "bash", "f", params);

        CHECK(!first.result->is_repeated && second.result->is_repeated);
    }
    caller.call = call_open(sandbox, request_of("bash", "w"), WAITING, -1);
    call_await(caller.call, "begun");
    caller_start(&caller);
    {
        cleanup_done struct done back =
            call_id(sandbox, "rollback", "back", "{\"snapshot\": \"turn-0001\"}");

        CHECK(!back.result->is_error && !back.result->is_repeated, "(%s)", back.text);
    }
    caller_join(&caller);
    CHECK_OK(caller.result, &caller.err);
    CHECK_HAS(caller.event.result->blocks[0].text, "killed");
    tool_close(caller.call);
    {
        cleanup_done struct done third = call_id(sandbox, "bash", "f", params);
        cleanup_done struct done back =
            call_id(sandbox, "rollback", "back", "{\"snapshot\": \"turn-0001\"}");

        CHECK(!third.result->is_repeated && strncmp(third.text, "x\n[", 3) == 0, "(%s)",
              third.text);
        CHECK(back.result->is_repeated);
        CHECK_TEXT(world_cat(sandbox, "/f"), "x"); /* the rollback was not repeated */
    }
    let_go(sandbox);
    {
        cleanup_done struct done anew = call_id(sandbox, "bash", "w", WAITING);

        CHECK(!anew.result->is_repeated);
        CHECK_HAS(anew.text, "begun\nended x\n");
    }
    world_destroy(sandbox);
}

/* --- restarts of the daemon ------------------------------------------------------------------- */

static void restart(struct sandbox **sandbox)
{
    struct sandbox_info info;

    sandbox_get_info(*sandbox, false, &info);
    sandbox_unref(*sandbox);
    host_close(TAKE_PTR(world.host));
    world_start();
    CHECK_OK(sandbox_find(world.host, &caller_root, info.id, sandbox, &err), &err);
    sandbox_info_done(&info);
}

static void the_next_daemon_has_results_and_running_calls(void)
{
    struct sandbox *sandbox = make_sandbox("small");
    const char *params = "{\"cmd\": \"echo x >> /f; cat /f\"}";
    char handle[32] = "";

    {
        struct tool_request request = request_of("bash", "long");
        cleanup_done struct done done = call_id(sandbox, "bash", "done", params);

        request.max_output_tokens = 10;
        {
            cleanup_done struct done cut = call_with(
                sandbox, request, "{\"cmd\": \"echo 0123456789012345678901234567890123456789x\"}");

            CHECK(cut.result->handle);
            (void)snprintf(handle, sizeof(handle), "%s", cut.result->handle);
        }
        CHECK(!done.result->is_error);
    }
    hang_up(sandbox, "on");
    restart(&sandbox);
    {
        cleanup_done struct done again = call_id(sandbox, "bash", "done", params);
        const struct tool_part part = { .handle = handle, .offset = 40 };
        struct tool_output output;

        CHECK(again.result->is_repeated && strncmp(again.text, "x\n[", 3) == 0, "(%s)", again.text);
        CHECK_OK(tool_read_output(sandbox, &part, &output, &err), &err);
        CHECK(output.text[0] == 'x' && output.total > 40);
        free(output.text);
    }
    let_go(sandbox);
    {
        /* The output before and after the restart, of one execution. */
        cleanup_done struct done done = call_id(sandbox, "bash", "on", WAITING);
        cleanup_done struct done again = call_id(sandbox, "bash", "on", WAITING);

        CHECK_HAS(done.text, "begun\nended x\n[exit code 0");
        CHECK_TEXT(again.text, done.text);
        CHECK(again.result->is_repeated);
    }
    world_destroy(sandbox);
}

#define ONCE "{\"cmd\": \"echo x >> /tmp/once; cat /tmp/once\"}"

/* A daemon that has finished one call and runs another; it then writes to the parent. */
static void live(int to_parent)
{
    struct sandbox_info info;
    struct sandbox *sandbox;

    world_open("auto");
    world_import("small");
    sandbox = make_sandbox("small");
    {
        cleanup_done struct done done = call_id(sandbox, "bash", "over", ONCE);

        CHECK(!done.result->is_error);
    }
    call_await(call_open(sandbox, request_of("bash", "middle"), WAITING, -1), "begun");
    sandbox_get_info(sandbox, false, &info);
    CHECK(write(to_parent, info.id, sizeof(info.id)) == (ssize_t)sizeof(info.id));
    for (;;)
        (void)pause();
}

/* Called first, so that the process forks with a single thread. */
static char *kill_a_daemon(void)
{
    static char id[SANDBOX_ID_MAX];
    int fds[2];
    pid_t pid;

    (void)snprintf(world.dir, sizeof(world.dir), "/tmp/holt-host-test-XXXXXX");
    CHECK(mkdtemp(world.dir) && pipe2(fds, O_CLOEXEC) == 0);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0)
        live(fds[1]);
    (void)close(fds[1]);
    CHECK(read(fds[0], id, sizeof(id)) == (ssize_t)sizeof(id));
    (void)close(fds[0]);
    CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
    return id;
}

static const char *left_behind; /* the sandbox of the daemon that was killed */

static void a_call_is_not_repeated_after_a_killed_daemon(void)
{
    struct sandbox *sandbox = NULL;

    CHECK_OK(sandbox_find(world.host, &caller_root, left_behind, &sandbox, &err), &err);
    let_go(sandbox);
    {
        cleanup_done struct done over = call_id(sandbox, "bash", "over", ONCE);
        cleanup_done struct done middle = call_id(sandbox, "bash", "middle", WAITING);

        CHECK(over.result->is_repeated && strncmp(over.text, "x\n[", 3) == 0, "(%s)", over.text);
        CHECK_HAS(middle.text, "begun\nended x\n[exit code 0");
    }
    world_destroy(sandbox);
}

static void a_destroyed_sandbox_leaves_nothing(void)
{
    struct sandbox *sandbox = make_sandbox("small");
    cleanup_done struct done done = call_id(sandbox, "bash", "x", "{\"cmd\": \"true\"}");
    struct sandbox_info info;
    char path[256];

    CHECK(!done.result->is_error);
    sandbox_get_info(sandbox, false, &info);
    (void)snprintf(path, sizeof(path), "%s/state/tools/%s", world.dir, info.id);
    CHECK(access(path, F_OK) == 0);
    hang_up(sandbox, "orphan");
    CHECK_OK(sandbox_destroy(sandbox, &err), &err);
    sandbox_unref(sandbox);
    sandbox_info_done(&info);
    CHECK(access(path, F_OK) < 0);
}

static void all(void)
{
    struct host_counts before = host_count();

    must_be_root();
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    left_behind = kill_a_daemon();
    world_open("auto");
    RUN(a_call_is_not_repeated_after_a_killed_daemon);
    RUN(a_repeated_call_gets_the_stored_result);
    RUN(a_stored_result_is_complete);
    RUN(stored_results_are_bounded);
    RUN(concurrent_calls_share_one_execution);
    RUN(racing_calls_run_once_each);
    RUN(a_call_with_an_id_continues_without_its_client);
    RUN(a_call_without_an_id_ends_with_its_client);
    RUN(a_joined_call_gets_an_error_if_the_first_never_began);
    RUN(a_joined_call_outlives_the_first);
    RUN(a_canceled_call_ends_at_once_and_for_good);
    RUN(a_call_in_the_background_needs_no_client);
    RUN(a_call_that_was_kept_is_found_until_a_rollback_and_after_it);
    RUN(a_rollback_discards_calls_that_it_undoes);
    RUN(the_next_daemon_has_results_and_running_calls);
    RUN(a_destroyed_sandbox_leaves_nothing);
    world_close();
    CHECK(host_count().fds == before.fds, "(%zu, then %zu)", before.fds, host_count().fds);
    CHECK(host_count().mounts == before.mounts);
}

int main(void)
{
    RUN(all);
    return 0;
}
