// SPDX-License-Identifier: Apache-2.0
/* Builds that exceed a time limit, are cancelled, or wait. */
#include "base/json.h"
#include "builder/build.h"
#include "builder/queue.h"
#include "kernel/host/host_world.h"

enum { LONG_MS = 3600 * 1000, SHORT_MS = 300 };

static struct err err;

static struct build *build_begin(struct build_queue *queue, const char *command, const char *ready,
                                 uint64_t limit_ms)
{
    cleanup_json json_t *steps =
        json_pack("[{s:s, s:[s]}]", "type", "RUN", "args", ready ? "true" : command);
    const struct build_spec spec = {
        .caller = &caller_root,
        .from = "host",
        .name = "made",
        .steps = steps,
        .start_command = ready ? command : "",
        .ready_command = ready ? ready : "",
        .is_forced = true,
        .files = "/nonexistent",
        .queue = queue,
        .limit_ms = limit_ms,
        .ready_ms = SHORT_MS,
    };
    struct build *build = NULL;

    CHECK_OK(build_start(world.host, &spec, &build, &err), &err);
    return build;
}

static enum build_status build_status_of(struct build *build)
{
    struct build_state state;

    build_get(build, &state);
    return state.status;
}

static struct build_state build_wait_end(struct build *build)
{
    struct build_state state;

    EVENTUALLY(build_status_of(build) == BUILD_HAS_FAILED ||
               build_status_of(build) == BUILD_IS_READY);
    build_get(build, &state);
    return state;
}

static void check_nothing_left(void)
{
    cleanup_free struct sandbox_info *infos = NULL;
    struct template *template = NULL;
    size_t count = 0;

    sandbox_list(world.host, &caller_root, NULL, 0, &infos, &count);
    CHECK(count == 0, "(%zu sandboxes)", count);
    CHECK(template_open(host_store(world.host), "made", &template, &err) < 0);
}

static void an_endless_step_ends_at_the_time_limit_of_the_build(void)
{
    struct build_queue *queue = build_queue_new(1);
    struct build *build = build_begin(queue, "sleep 100000", NULL, SHORT_MS);
    struct build_state state = build_wait_end(build);

    CHECK(state.status == BUILD_HAS_FAILED && strcmp(state.step, "1") == 0);
    CHECK(strstr(state.err.msg, "'sleep 100000': the build took longer than"), "(%s)",
          state.err.msg);
    build_free(build);
    build_queue_free(queue);
    check_nothing_left();
}

static void a_start_command_that_is_never_ready_fails_the_build(void)
{
    struct build_queue *queue = build_queue_new(1);
    struct build *build = build_begin(queue, "sleep 100000", "sleep 100000; true", LONG_MS);
    struct build_state state = build_wait_end(build);

    CHECK(state.status == BUILD_HAS_FAILED && strcmp(state.step, "finalize") == 0);
    CHECK(strstr(state.err.msg, "was not ready") && strstr(state.err.msg, "'sleep 100000; true'"),
          "(%s)", state.err.msg);
    build_free(build);
    build_queue_free(queue);
    check_nothing_left();
}

static void a_cancelled_build_ends_and_lets_the_next_one_run(void)
{
    struct build_queue *queue = build_queue_new(1);
    struct build *first = build_begin(queue, "sleep 100000", NULL, LONG_MS), *second, *third;

    EVENTUALLY(build_status_of(first) == BUILD_RUNS);
    second = build_begin(queue, "sleep 100000", NULL, LONG_MS);
    third = build_begin(queue, "exit 3", NULL, LONG_MS);
    CHECK(build_status_of(second) == BUILD_WAITS);
    build_cancel(second);
    CHECK(build_wait_end(second).status == BUILD_HAS_FAILED &&
          build_status_of(first) == BUILD_RUNS);
    CHECK(build_status_of(third) == BUILD_WAITS);
    build_cancel(first);
    CHECK(strstr(build_wait_end(first).err.msg, "cancelled"));
    CHECK(strstr(build_wait_end(third).err.msg, "exit status 3"));
    build_free(first);
    build_free(second);
    build_free(third);
    build_queue_free(queue);
    check_nothing_left();
}

static void all(void)
{
    struct host_counts before = host_count();

    must_be_root();
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    world_open("auto");
    RUN(an_endless_step_ends_at_the_time_limit_of_the_build);
    RUN(a_start_command_that_is_never_ready_fails_the_build);
    RUN(a_cancelled_build_ends_and_lets_the_next_one_run);
    world_close();
    CHECK(host_count().fds == before.fds, "(%zu, then %zu)", before.fds, host_count().fds);
    CHECK(host_count().mounts == before.mounts);
}

int main(void)
{
    RUN(all);
    return 0;
}
