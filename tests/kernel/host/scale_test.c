// SPDX-License-Identifier: Apache-2.0
/* Tests with many turns, snapshots and sandboxes, and of their isolation. Times are printed but
 * not checked. */
#include <inttypes.h>
#include <time.h>

#include "kernel/host/host_world.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { TURNS = 100, SNAPSHOTS = 50, SANDBOXES = 20, STORM_FILES = 40 };
#else
enum { TURNS = 1000, SNAPSHOTS = 500, SANDBOXES = 200, STORM_FILES = 300 };
#endif
enum { STRETCH = TURNS / 10 };

static struct err err;

static double now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* Sorts the array. */
static double median(double *times, size_t count)
{
    qsort(times, count, sizeof(*times), by_size);
    return times[count / 2];
}

static void write_number(struct sandbox *sandbox, int number)
{
    char command[128];

    (void)snprintf(command, sizeof(command),
                   "echo %d > /workspace/n; echo %d > /workspace/f%d; rm -f /workspace/f%d", number,
                   number, number % 50, (number + 7) % 50);
    CHECK(world_sh(sandbox, command, NULL) == 0);
}

static void check_number(struct sandbox *sandbox, int number)
{
    char wanted[16];

    (void)snprintf(wanted, sizeof(wanted), "%d", number);
    CHECK_TEXT(world_cat(sandbox, "/workspace/n"), wanted);
}

/* --- history --------------------------------------------------------------------------------- */

static double timed_turn(struct sandbox *sandbox, const char *wanted)
{
    struct snapshot_info turn;
    double start = now_ms();

    CHECK_OK(sandbox_turn(sandbox, &turn, &err), &err);
    CHECK_TEXT(turn.name, wanted);
    return now_ms() - start;
}

/* Rolls back to the middle of the previous stretch first. */
static double run_stretch(struct sandbox *sandbox, int first, double *ret_rollback_ms)
{
    static double times[STRETCH];
    char name[32];
    double start;
    int middle = first + STRETCH / 2;

    for (int i = 0; i < STRETCH; i++) {
        write_number(sandbox, first + i);
        (void)snprintf(name, sizeof(name), "turn-%04d", first + i);
        times[i] = timed_turn(sandbox, name);
    }
    (void)snprintf(name, sizeof(name), "turn-%04d", middle);
    start = now_ms();
    CHECK_OK(sandbox_rollback(sandbox, name, false, &err), &err);
    *ret_rollback_ms = now_ms() - start;
    check_number(sandbox, middle);
    return median(times, STRETCH);
}

static void a_thousand_turns_can_be_taken_and_gone_back_to(void)
{
    struct sandbox *sandbox = world_create("turns");
    double turn_ms, rollback_ms = 0, first_ms = 0;
    double start;

    for (int first = 1; first <= TURNS; first += STRETCH) {
        turn_ms = run_stretch(sandbox, first, &rollback_ms);
        if (first == 1)
            first_ms = turn_ms;
        (void)printf("# turns %d to %d: median %.2f ms, rollback %.2f ms\n", first,
                     first + STRETCH - 1, turn_ms, rollback_ms);
    }
    (void)printf("# a turn costs %.2f times what it cost at first\n", turn_ms / first_ms);
    start = now_ms();
    world_destroy(sandbox);
    (void)printf("# destroy with %d snapshots: %.0f ms\n", TURNS, now_ms() - start);
}

static void the_middle_of_many_snapshots_can_be_gone_back_to(void)
{
    cleanup_free struct snapshot_info *list = NULL;
    struct sandbox *sandbox = world_create("snapshots");
    struct snapshot_info taken;
    char name[32];
    size_t count;

    for (int i = 1; i <= SNAPSHOTS; i++) {
        write_number(sandbox, i);
        (void)snprintf(name, sizeof(name), "s%d", i);
        CHECK_OK(sandbox_snapshot(sandbox, name, SNAPSHOT_NAMED, &taken, &err), &err);
    }
    (void)snprintf(name, sizeof(name), "s%d", SNAPSHOTS / 2);
    CHECK_OK(sandbox_rollback(sandbox, name, true, &err), &err);
    check_number(sandbox, SNAPSHOTS / 2);
    CHECK_OK(sandbox_list_snapshots(sandbox, &list, &count, &err), &err);
    CHECK(count == SNAPSHOTS / 2 && strcmp(list[count - 1].name, name) == 0, "(%zu)", count);
    CHECK_OK(sandbox_rollback(sandbox, "s1", false, &err), &err);
    check_number(sandbox, 1);
    world_destroy(sandbox);
}

/* --- many at once ---------------------------------------------------------------------------- */

static void check_all_listed(struct sandbox *const *sandboxes, size_t count)
{
    struct sandbox_info *list, info;
    size_t listed;

    sandbox_list(world.host, &caller_root, NULL, 0, &list, &listed);
    CHECK(listed == count, "(%zu)", listed);
    for (size_t i = 0; i < count; i++) {
        sandbox_get_info(sandboxes[i], false, &info);
        CHECK_TEXT(list[i].id, info.id);
        CHECK(list[i].state == SANDBOX_ACTIVE);
        for (size_t j = 0; j < i; j++)
            CHECK(strcmp(list[i].id, list[j].id) != 0 && list[i].uid_slot != list[j].uid_slot);
        sandbox_info_done(&info);
    }
    for (size_t i = 0; i < count; i++)
        sandbox_info_done(&list[i]);
    free(list);
}

static void many_sandboxes_live_side_by_side(void)
{
    static struct sandbox *sandboxes[SANDBOXES];
    double start = now_ms();

    for (int i = 0; i < SANDBOXES; i++) {
        sandboxes[i] = world_create(NULL);
        write_number(sandboxes[i], i);
        CHECK(world_sh(sandboxes[i], "sleep 1000 > /dev/null 2>&1 &", NULL) == 0);
    }
    (void)printf("# %d sandboxes made and used: %.1f ms each\n", SANDBOXES,
                 (now_ms() - start) / SANDBOXES);
    check_all_listed(sandboxes, SANDBOXES);
    for (int i = 0; i < SANDBOXES; i++)
        check_number(sandboxes[i], i);
    for (int i = 0; i < SANDBOXES; i++)
        world_destroy(sandboxes[i]);
    check_all_listed(NULL, 0);
}

/* --- isolation ------------------------------------------------------------------------------- */

static struct process *storm_start(struct sandbox *sandbox, const char *word)
{
    char script[512];
    char *args[] = { (char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-c", script, NULL };
    struct process_spec spec = { .args = args };
    struct process *process;

    (void)snprintf(
        script, sizeof(script),
        "i=0; while [ $i -lt %d ]; do echo %s > /workspace/$i; echo %s >> /shared/$((i %% "
        "20)); mkdir -p /etc/%s$i; mv /workspace/$i /workspace/m$i; i=$((i+1)); done; "
        "rm -f /shared/x; echo %s > /etc/origin",
        STORM_FILES, word, word, word, word);
    CHECK_OK(sandbox_exec(sandbox, &spec, &process, &err), &err);
    return process;
}

static void storm_wait(struct process *process)
{
    struct reader_event event = { .kind = READER_DATA };
    char data[1024];

    while (event.kind != READER_ENDED)
        CHECK(process_next(process, -1, data, sizeof(data), &event) == 0);
    CHECK(event.end.exit_code == 0, "(%d)", event.end.exit_code);
    process_abandon(process);
}

/* A sandbox has all of its own files and none of another's. */
static void storm_check(struct sandbox *sandbox, const char *word, const char *others)
{
    char script[512];

    (void)snprintf(script, sizeof(script),
                   "b=/bin/busybox; test $($b grep -lrx %s /workspace | $b wc -l) = %d && "
                   "! $b grep -rqw '%s' /workspace /shared /etc && "
                   "test $(ls -d /etc/%s* | $b wc -l) = %d && ! ls /etc | $b grep -q '%s' && "
                   "test $($b grep -rx %s /shared | $b wc -l) = %d && "
                   "test $(cat /etc/origin) = %s && test ! -e /shared/x",
                   word, STORM_FILES, others, word, STORM_FILES, others, word, STORM_FILES, word);
    CHECK(world_sh(sandbox, script, NULL) == 0, "(%s)", word);
}

static void sandboxes_of_one_template_never_see_each_other(void)
{
    struct sandbox *one = world_create(NULL), *two = world_create(NULL);
    struct process *first, *second;

    CHECK(world_sh(one, "mkdir /shared; echo x > /shared/x", NULL) == 0);
    CHECK(world_sh(two, "mkdir /shared; echo x > /shared/x", NULL) == 0);
    first = storm_start(one, "one");
    second = storm_start(two, "two");
    storm_wait(first);
    storm_wait(second);
    storm_check(one, "one", "two");
    storm_check(two, "two", "one");
    world_destroy(one);
    world_destroy(two);
}

static void forks_and_their_origin_never_see_each_other(void)
{
    static const char *const words[] = { "parent", "child", "grandchild" };
    static const char *const others[] = { "child", "parent\\|grand", "parent" };
    struct sandbox *sandboxes[3] = { world_create(NULL) };
    struct process *storms[3];

    CHECK(world_sh(sandboxes[0], "mkdir /shared; echo x > /shared/x", NULL) == 0);
    CHECK_OK(sandbox_fork(sandboxes[0], &(struct fork_spec){ .caller = &caller_root, .count = 1 },
                          &sandboxes[1], &err),
             &err);
    CHECK_OK(sandbox_fork(sandboxes[1], &(struct fork_spec){ .caller = &caller_root, .count = 1 },
                          &sandboxes[2], &err),
             &err);
    for (size_t i = 0; i < ARRAY_SIZE(storms); i++)
        storms[i] = storm_start(sandboxes[i], words[i]);
    for (size_t i = 0; i < ARRAY_SIZE(storms); i++)
        storm_wait(storms[i]);
    for (size_t i = 0; i < ARRAY_SIZE(storms); i++)
        storm_check(sandboxes[i], words[i], others[i]);
    for (size_t i = 0; i < ARRAY_SIZE(storms); i++)
        world_destroy(sandboxes[i]);
}

static void all(void)
{
    struct host_counts before = host_count();

    must_be_root();
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    world_open("auto");
    world_import("small");
    RUN(a_thousand_turns_can_be_taken_and_gone_back_to);
    RUN(the_middle_of_many_snapshots_can_be_gone_back_to);
    RUN(many_sandboxes_live_side_by_side);
    RUN(sandboxes_of_one_template_never_see_each_other);
    RUN(forks_and_their_origin_never_see_each_other);
    world_close();
    CHECK(host_count().fds == before.fds);
    CHECK(host_count().mounts == before.mounts);
}

int main(void)
{
    RUN(all);
    return 0;
}
