// SPDX-License-Identifier: Apache-2.0
/* Tests of sandboxes in every state, on a complete host. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "host/sandbox/info.h"
#include "host/sandbox/mount.h"
#include "host/volume/named_volume.h"
#include "host/volume/shared_volume.h"
#include "kernel/host/host_world.h"

/* The err of every operation. */
static struct err err;

static enum err_cause cause_of(int result)
{
    if (result >= 0)
        return CAUSE_NONE;
    CHECK(err.cause != CAUSE_NONE, "(%s)", err.msg);
    return err.cause;
}

#define CHECK_CAUSE(call, wanted)                                                                  \
    do {                                                                                           \
        enum err_cause got = cause_of(call);                                                       \
        CHECK(got == (wanted), "(%s, not %s)", err_cause_name(got), err_cause_name(wanted));       \
    } while (0)

static enum err_cause exec_cause(struct sandbox *sandbox)
{
    char *args[] = { (char *)(uintptr_t) "/bin/true", NULL };
    struct process_spec spec = { .args = args };
    struct process *process;
    enum err_cause cause = cause_of(sandbox_exec(sandbox, &spec, &process, &err));

    if (cause == CAUSE_NONE)
        process_abandon(process);
    return cause;
}

static void a_sandbox_keeps_files_over_turns_and_rolls_back(void)
{
    struct sandbox *sandbox = world_create("turns");
    struct snapshot_info turn;

    CHECK(world_sh(sandbox, "echo one > /workspace/a; rm /etc/origin", NULL) == 0);
    CHECK_OK(sandbox_turn(sandbox, &turn, &err), &err);
    CHECK_TEXT(turn.name, "turn-0001");
    CHECK(world_sh(sandbox, "echo two > /workspace/a; echo x > /etc/origin; mkdir /d", NULL) == 0);
    CHECK_OK(sandbox_turn(sandbox, &turn, &err), &err);
    CHECK_TEXT(turn.name, "turn-0002");
    CHECK_TEXT(turn.parent, "turn-0001");
    CHECK_OK(sandbox_rollback(sandbox, "turn-0001", false, &err), &err);
    CHECK_TEXT(world_cat(sandbox, "/workspace/a"), "one");
    CHECK_TEXT(world_cat(sandbox, "/etc/origin"), "");
    CHECK(world_sh(sandbox, "test ! -e /d", NULL) == 0);
    CHECK_OK(sandbox_rollback(sandbox, "turn-0002", false, &err), &err);
    CHECK_TEXT(world_cat(sandbox, "/workspace/a"), "two");
    CHECK_OK(sandbox_turn(sandbox, &turn, &err), &err);
    CHECK_TEXT(turn.name, "turn-0003");
    world_destroy(sandbox);
}

static void a_rollback_ends_processes_and_says_so(void)
{
    struct sandbox *sandbox = world_create(NULL);
    char *args[] = { (char *)(uintptr_t) "/bin/sleep", (char *)(uintptr_t) "1000", NULL };
    struct process_spec spec = { .args = args };
    struct reader_event event;
    struct snapshot_info turn;
    struct process *process;
    char data[64];

    CHECK_OK(sandbox_turn(sandbox, &turn, &err), &err);
    CHECK_OK(sandbox_exec(sandbox, &spec, &process, &err), &err);
    CHECK_OK(sandbox_rollback(sandbox, "turn-0001", false, &err), &err);
    CHECK(process_next(process, -1, data, sizeof(data), &event) == 0);
    CHECK(event.kind == READER_ENDED && event.end.outcome == OUTCOME_KILLED);
    CHECK(strstr(event.end.reason, "rolled back"), "(%s)", event.end.reason);
    process_abandon(process);
    CHECK(world_sh(sandbox, "true", NULL) == 0);
    world_destroy(sandbox);
}

static void a_rollback_to_nothing_changes_nothing(void)
{
    struct sandbox *sandbox = world_create(NULL);

    CHECK(world_sh(sandbox, "echo here > /f; sleep 1000 & echo started", NULL) == 0);
    CHECK_CAUSE(sandbox_rollback(sandbox, "turn-0009", false, &err), CAUSE_SNAPSHOT_NOT_FOUND);
    CHECK(world_state(sandbox) == SANDBOX_ACTIVE);
    CHECK_TEXT(world_cat(sandbox, "/f"), "here");
    CHECK(world_sh(sandbox, "kill -0 $(cat /proc/[0-9]*/comm | true; ls /proc | true; echo 1)",
                   NULL) >= 0);
    world_destroy(sandbox);
}

static void newer_snapshots_stay_unless_they_are_to_go(void)
{
    struct sandbox *sandbox = world_create(NULL);
    struct snapshot_info turn, *list;
    size_t count;

    for (int i = 0; i < 4; i++)
        CHECK_OK(sandbox_turn(sandbox, &turn, &err), &err);
    CHECK_OK(sandbox_rollback(sandbox, "turn-0002", false, &err), &err);
    CHECK_OK(sandbox_list_snapshots(sandbox, &list, &count, &err), &err);
    CHECK(count == 4);
    free(list);
    CHECK_OK(sandbox_rollback(sandbox, "turn-0002", true, &err), &err);
    CHECK_OK(sandbox_list_snapshots(sandbox, &list, &count, &err), &err);
    CHECK(count == 2);
    free(list);
    CHECK_OK(sandbox_turn(sandbox, &turn, &err), &err);
    CHECK_TEXT(turn.name, "turn-0005"); /* numbers are not reused */
    world_destroy(sandbox);
}

static void pruning_spares_what_somebody_has_named(void)
{
    struct sandbox_spec spec = { .caller = &caller_root, .template = "small", .snapshots_max = 3 };
    struct sandbox *sandbox;
    struct snapshot_info turn, *list;
    size_t count;

    CHECK_OK(sandbox_create(world.host, &spec, &sandbox, &err), &err);
    CHECK_OK(sandbox_snapshot(sandbox, "first", SNAPSHOT_NAMED, &turn, &err), &err);
    for (int i = 0; i < 25; i++)
        CHECK_OK(sandbox_turn(sandbox, &turn, &err), &err);
    CHECK_OK(sandbox_list_snapshots(sandbox, &list, &count, &err), &err);
    CHECK(count == 4);
    CHECK_TEXT(list[0].name, "first");
    CHECK_TEXT(list[1].name, "turn-0023");
    free(list);
    CHECK_OK(sandbox_rollback(sandbox, "turn-0024", true, &err), &err);
    CHECK_OK(sandbox_turn(sandbox, &turn, &err), &err);
    CHECK_TEXT(turn.name, "turn-0026");
    world_destroy(sandbox);
}

static int count_change(const struct diff_entry *entry, void *context)
{
    bool *is_seen = context;

    *is_seen = *is_seen || strcmp(entry->path, "/workspace/same") == 0;
    return 0;
}

/* File timestamps have a granularity of milliseconds, and size and inode are equal. */
static void a_write_right_behind_a_snapshot_is_seen(void)
{
    struct sandbox *sandbox = world_create(NULL);
    const struct sandbox_diff since = { .from = NULL };

    for (int i = 0; i < 60; i++) {
        struct snapshot_info snapshot;
        bool is_seen = false;
        char name[16];

        (void)snprintf(name, sizeof(name), "s%d", i);
        CHECK(world_sh(sandbox, "echo 1 > /workspace/same", NULL) == 0);
        CHECK_OK(sandbox_snapshot(sandbox, name, SNAPSHOT_NAMED, &snapshot, &err), &err);
        CHECK(world_sh(sandbox, "echo 2 > /workspace/same", NULL) == 0);
        CHECK_OK(sandbox_diff(sandbox, &since, count_change, &is_seen, &err), &err);
        CHECK(is_seen, "(at try %d)", i);
    }
    world_destroy(sandbox);
}

static void every_operation_answers_by_the_state(void)
{
    struct sandbox *sandbox = world_create("states"), *forks[1], *none;
    struct snapshot_info turn;
    struct sandbox_spec again = { .caller = &caller_root, .name = "states", .template = "small" };

    /* active */
    CHECK_CAUSE(sandbox_turn(sandbox, &turn, &err), CAUSE_NONE);
    CHECK_CAUSE(sandbox_resume(sandbox, &err), CAUSE_INVALID_STATE);
    CHECK_CAUSE(sandbox_start(sandbox, &err), CAUSE_INVALID_STATE);
    CHECK_CAUSE(sandbox_create(world.host, &again, &none, &err), CAUSE_SESSION_EXISTS);
    CHECK_CAUSE(sandbox_snapshot(sandbox, "s", SNAPSHOT_NAMED, &turn, &err), CAUSE_NONE);
    CHECK_CAUSE(sandbox_snapshot(sandbox, "s", SNAPSHOT_NAMED, &turn, &err), CAUSE_SNAPSHOT_EXISTS);
    CHECK_CAUSE(sandbox_remove_snapshot(sandbox, "t", &err), CAUSE_SNAPSHOT_NOT_FOUND);

    /* paused */
    CHECK_CAUSE(sandbox_pause(sandbox, &err), CAUSE_NONE);
    CHECK(exec_cause(sandbox) == CAUSE_SESSION_PAUSED);
    CHECK_CAUSE(sandbox_pause(sandbox, &err), CAUSE_SESSION_PAUSED);
    CHECK_CAUSE(sandbox_turn(sandbox, &turn, &err), CAUSE_SESSION_PAUSED);
    CHECK_CAUSE(sandbox_rollback(sandbox, "s", false, &err), CAUSE_SESSION_PAUSED);
    CHECK_CAUSE(sandbox_start(sandbox, &err), CAUSE_INVALID_STATE);
    CHECK_CAUSE(sandbox_snapshot(sandbox, "paused", SNAPSHOT_NAMED, &turn, &err), CAUSE_NONE);
    CHECK_CAUSE(sandbox_fork(sandbox, &(struct fork_spec){ .caller = &caller_root, .count = 1 },
                             forks, &err),
                CAUSE_NONE);
    CHECK(world_state(forks[0]) == SANDBOX_ACTIVE);
    world_destroy(forks[0]);
    CHECK_CAUSE(sandbox_resume(sandbox, &err), CAUSE_NONE);
    CHECK(world_state(sandbox) == SANDBOX_ACTIVE);

    /* stopped */
    CHECK_CAUSE(sandbox_stop(sandbox, &err), CAUSE_NONE);
    CHECK_CAUSE(sandbox_stop(sandbox, &err), CAUSE_NONE);
    CHECK(exec_cause(sandbox) == CAUSE_INVALID_STATE);
    CHECK_CAUSE(sandbox_pause(sandbox, &err), CAUSE_INVALID_STATE);
    CHECK_CAUSE(sandbox_resume(sandbox, &err), CAUSE_INVALID_STATE);
    CHECK_CAUSE(sandbox_turn(sandbox, &turn, &err), CAUSE_NONE);
    CHECK_CAUSE(sandbox_rollback(sandbox, "s", false, &err), CAUSE_NONE);
    CHECK(world_state(sandbox) == SANDBOX_STOPPED);
    CHECK_CAUSE(sandbox_start(sandbox, &err), CAUSE_NONE);
    CHECK(exec_cause(sandbox) == CAUSE_NONE);

    /* gone */
    CHECK_CAUSE(sandbox_destroy(sandbox, &err), CAUSE_NONE);
    CHECK_CAUSE(sandbox_destroy(sandbox, &err), CAUSE_NONE);
    CHECK(exec_cause(sandbox) == CAUSE_SESSION_DESTROYING);
    CHECK_CAUSE(sandbox_find(world.host, &caller_root, "states", &none, &err),
                CAUSE_SESSION_NOT_FOUND);
    sandbox_unref(sandbox);
}

static void a_pause_freezes_and_a_stop_keeps_files(void)
{
    struct sandbox *sandbox = world_create(NULL);
    char before[32], *now;

    CHECK(world_sh(sandbox,
                   "(i=0; while :; do i=$((i+1)); echo $i > /n.new; mv /n.new /n; done) "
                   "> /dev/null 2>&1 & sleep 0.1",
                   NULL) == 0);
    CHECK_OK(sandbox_pause(sandbox, &err), &err);
    CHECK_OK(sandbox_resume(sandbox, &err), &err);
    (void)snprintf(before, sizeof(before), "%.30s", world_cat(sandbox, "/n"));
    for (int i = 0; i < 1000; i++) {
        now = (char *)(uintptr_t)world_cat(sandbox, "/n");
        if (*now && strcmp(now, before) != 0)
            break;
        pause_ms(POLL_MS);
    }
    CHECK(strcmp(world_cat(sandbox, "/n"), before) != 0, "(it still says %s)", before);
    CHECK_OK(sandbox_stop(sandbox, &err), &err);
    CHECK_OK(sandbox_start(sandbox, &err), &err);
    (void)snprintf(before, sizeof(before), "%.30s", world_cat(sandbox, "/n"));
    CHECK(before[0]);
    CHECK_TEXT(world_cat(sandbox, "/n"), before); /* the counter has ended */
    world_destroy(sandbox);
}

static void forks_share_nothing_but_the_past(void)
{
    struct sandbox *sandbox = world_create("parent"), *forks[9];
    char machine_id[64], boot_id[64];
    struct snapshot_info turn;

    CHECK(world_sh(sandbox, "echo 1 > /f", NULL) == 0);
    CHECK_OK(sandbox_turn(sandbox, &turn, &err), &err);
    CHECK(world_sh(sandbox, "echo 2 > /f", NULL) == 0);
    CHECK_OK(sandbox_fork(sandbox, &(struct fork_spec){ .caller = &caller_root, .count = 8 }, forks,
                          &err),
             &err);
    CHECK_OK(
        sandbox_fork(sandbox,
                     &(struct fork_spec){ .caller = &caller_root, .from = "turn-0001", .count = 1 },
                     &forks[8], &err),
        &err);
    CHECK(world_sh(sandbox, "echo 3 > /f", NULL) == 0);
    (void)snprintf(machine_id, sizeof(machine_id), "%.60s", world_cat(sandbox, "/etc/machine-id"));
    (void)snprintf(boot_id, sizeof(boot_id), "%.60s",
                   world_cat(sandbox, "/proc/sys/kernel/random/boot_id"));
    CHECK(strlen(machine_id) == 32 && strlen(boot_id) == 36, "(%s, %s)", machine_id, boot_id);
    for (int i = 0; i < 9; i++) {
        CHECK_TEXT(world_cat(forks[i], "/f"), i == 8 ? "1" : "2");
        CHECK(world_sh(forks[i], "echo fork > /f; rm -r /etc/origin", NULL) == 0);
        CHECK(strcmp(world_cat(forks[i], "/etc/machine-id"), machine_id) != 0);
        CHECK(strcmp(world_cat(forks[i], "/proc/sys/kernel/random/boot_id"), boot_id) != 0);
    }
    CHECK_TEXT(world_cat(sandbox, "/f"), "3");
    CHECK_TEXT(world_cat(sandbox, "/etc/origin"), "template");
    world_destroy(sandbox); /* the original first */
    for (int i = 0; i < 9; i++) {
        CHECK_TEXT(world_cat(forks[i], "/f"), "fork");
        world_destroy(forks[i]);
    }
}

/* --- races ----------------------------------------------------------------------------------- */

struct racer {
    struct sandbox *sandbox;
    int (*run)(struct sandbox *sandbox, struct err *why);
    atomic_uint done, busy;
    atomic_bool is_over;
};

static int run_rollback(struct sandbox *sandbox, struct err *why)
{
    return sandbox_rollback(sandbox, "base", false, why);
}

static int run_turn(struct sandbox *sandbox, struct err *why)
{
    struct snapshot_info turn;

    return sandbox_turn(sandbox, &turn, why);
}

static int run_power(struct sandbox *sandbox, struct err *why)
{
    int r = sandbox_pause(sandbox, why);

    return r < 0 ? r : sandbox_resume(sandbox, why);
}

static int run_exec(struct sandbox *sandbox, struct err *why)
{
    char *args[] = { (char *)(uintptr_t) "/bin/true", NULL };
    struct process_spec spec = { .args = args };
    struct reader_event event = { .kind = READER_DATA };
    struct process *process;
    char data[64];
    int r = sandbox_exec(sandbox, &spec, &process, why);

    while (r >= 0 && event.kind != READER_ENDED)
        CHECK(process_next(process, -1, data, sizeof(data), &event) == 0);
    if (r >= 0)
        process_abandon(process);
    return r;
}

static void *race(void *argument)
{
    struct racer *racer = argument;
    struct err why = { 0 };

    while (!atomic_load(&racer->is_over)) {
        if (racer->run(racer->sandbox, &why) == 0)
            atomic_fetch_add(&racer->done, 1);
        else
            atomic_fetch_add(&racer->busy, 1);
    }
    return NULL;
}

static void operations_that_race_leave_it_whole(void)
{
    struct sandbox *sandbox = world_create("racing");
    struct racer racers[] = {
        { .run = run_rollback }, { .run = run_rollback }, { .run = run_turn },
        { .run = run_power },    { .run = run_exec },     { .run = run_exec }
    };
    pthread_t threads[ARRAY_SIZE(racers)];
    struct snapshot_info turn;

    CHECK(world_sh(sandbox, "echo base > /f", NULL) == 0);
    CHECK_OK(sandbox_snapshot(sandbox, "base", SNAPSHOT_NAMED, &turn, &err), &err);
    for (size_t i = 0; i < ARRAY_SIZE(racers); i++) {
        racers[i].sandbox = sandbox;
        CHECK(pthread_create(&threads[i], NULL, race, &racers[i]) == 0);
    }
    for (size_t i = 0; i < ARRAY_SIZE(racers); i++) /* each operation succeeded a few times */
        while (atomic_load(&racers[i].done) < 5)
            pause_ms(POLL_MS);
    for (size_t i = 0; i < ARRAY_SIZE(racers); i++)
        atomic_store(&racers[i].is_over, true);
    for (size_t i = 0; i < ARRAY_SIZE(racers); i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(world_state(sandbox) == SANDBOX_ACTIVE);
    CHECK_OK(sandbox_rollback(sandbox, "base", false, &err), &err);
    CHECK_TEXT(world_cat(sandbox, "/f"), "base");
    world_destroy(sandbox);
}

static void *destroy_by_name(void *argument)
{
    struct sandbox *sandbox;
    struct err why = { 0 };

    (void)argument;
    for (;;) {
        if (sandbox_find(world.host, &caller_root, "doomed", &sandbox, &why) < 0)
            continue;
        CHECK_OK(sandbox_destroy(sandbox, &why), &why);
        sandbox_unref(sandbox);
        return NULL;
    }
}

static void a_destroy_during_create_wins(void)
{
    for (int i = 0; i < 20; i++) {
        struct sandbox_spec spec = { .caller = &caller_root,
                                     .name = "doomed",
                                     .template = "small" };
        struct sandbox *sandbox = NULL;
        pthread_t thread;

        CHECK(pthread_create(&thread, NULL, destroy_by_name, NULL) == 0);
        if (sandbox_create(world.host, &spec, &sandbox, &err) < 0)
            CHECK(err.cause == CAUSE_SESSION_DESTROYING, "(%s)", err.msg);
        CHECK(pthread_join(thread, NULL) == 0);
        sandbox_unref(sandbox);
        CHECK_CAUSE(sandbox_find(world.host, &caller_root, "doomed", &sandbox, &err),
                    CAUSE_SESSION_NOT_FOUND);
    }
}

/* --- keys ------------------------------------------------------------------------------------ */

static struct sandbox *create_once(const char *digest, bool *ret_is_joined)
{
    struct sandbox_spec spec = {
        .caller = &caller_root, .template = "small", .key = "key", .digest = digest
    };
    struct sandbox *sandbox = NULL;
    struct err why = { 0 };

    CHECK_OK(sandbox_create_once(world.host, &spec, &sandbox, ret_is_joined, &why), &why);
    return sandbox;
}

struct requester {
    struct sandbox *sandbox;
    bool is_joined;
};

static void *create_with_key(void *argument)
{
    struct requester *requester = argument;

    requester->sandbox = create_once("same", &requester->is_joined);
    return NULL;
}

static void many_with_one_key_get_one_sandbox(void)
{
    for (int round = 0; round < 10; round++) {
        struct requester requesters[8] = { { NULL, false } };
        pthread_t threads[ARRAY_SIZE(requesters)];
        size_t made = 0;

        for (size_t i = 0; i < ARRAY_SIZE(requesters); i++)
            CHECK(pthread_create(&threads[i], NULL, create_with_key, &requesters[i]) == 0);
        for (size_t i = 0; i < ARRAY_SIZE(requesters); i++)
            CHECK(pthread_join(threads[i], NULL) == 0);
        for (size_t i = 0; i < ARRAY_SIZE(requesters); i++) {
            CHECK(requesters[i].sandbox == requesters[0].sandbox);
            CHECK(world_state(requesters[i].sandbox) == SANDBOX_ACTIVE);
            made += !requesters[i].is_joined;
        }
        CHECK(made == 1, "(%zu)", made);
        for (size_t i = 1; i < ARRAY_SIZE(requesters); i++)
            sandbox_unref(requesters[i].sandbox);
        world_destroy(requesters[0].sandbox);
    }
}

static void a_key_stands_for_one_wish_until_its_sandbox_is_gone(void)
{
    struct sandbox_spec other = {
        .caller = &caller_root, .template = "small", .key = "key", .digest = "other"
    };
    struct sandbox *sandbox, *again = NULL;
    bool is_joined = true;

    sandbox = create_once("same", &is_joined);
    CHECK(!is_joined);
    CHECK(sandbox_create_once(world.host, &other, &again, &is_joined, &err) < 0);
    CHECK(err.kind == ERR_INVALID && !is_joined, "(%s)", err.msg);
    sandbox_unref(sandbox);
    host_close(TAKE_PTR(world.host));
    world_start();
    sandbox = create_once("same", &is_joined);
    CHECK(is_joined);
    world_destroy(sandbox);
    sandbox = create_once("other", &is_joined);
    CHECK(!is_joined);
    world_destroy(sandbox);
}

static void a_key_does_not_hide_that_a_name_is_taken(void)
{
    struct sandbox *sandbox = world_create("named"), *other = NULL;
    struct sandbox_spec spec = {
        .caller = &caller_root, .name = "named", .template = "small", .key = "key", .digest = "same"
    };
    bool is_joined;

    CHECK_CAUSE(sandbox_create_once(world.host, &spec, &other, &is_joined, &err),
                CAUSE_SESSION_EXISTS);
    world_destroy(sandbox);
    CHECK_OK(sandbox_create_once(world.host, &spec, &other, &is_joined, &err), &err);
    CHECK(!is_joined);
    world_destroy(other);
}

/* --- restarts -------------------------------------------------------------------------------- */

static void sandboxes_outlive_the_host(void)
{
    struct sandbox *running = world_create("running"), *paused = world_create("frozen");
    struct sandbox *stopped = world_create("halted");
    struct snapshot_info turn;

    CHECK(world_sh(running, "echo $$ > /pid; exec sleep 1000 > /dev/null 2>&1 & echo kept > /f",
                   NULL) == 0);
    CHECK_OK(sandbox_turn(running, &turn, &err), &err);
    CHECK_OK(sandbox_pause(paused, &err), &err);
    CHECK(world_sh(stopped, "echo kept > /f", NULL) == 0);
    CHECK_OK(sandbox_stop(stopped, &err), &err);
    sandbox_unref(running);
    sandbox_unref(paused);
    sandbox_unref(stopped);

    host_close(TAKE_PTR(world.host));
    world_start();

    CHECK_OK(sandbox_find(world.host, &caller_root, "running", &running, &err), &err);
    CHECK_OK(sandbox_find(world.host, &caller_root, "frozen", &paused, &err), &err);
    CHECK_OK(sandbox_find(world.host, &caller_root, "halted", &stopped, &err), &err);
    CHECK(world_state(running) == SANDBOX_ACTIVE);
    CHECK(world_state(paused) == SANDBOX_PAUSED);
    CHECK(world_state(stopped) == SANDBOX_STOPPED);
    CHECK_TEXT(world_cat(running, "/f"), "kept");
    CHECK(world_sh(running, "ls /proc/[0-9]*/exe | true; kill -0 $(cat /pid | true) || true",
                   NULL) == 0);
    CHECK_OK(sandbox_rollback(running, "turn-0001", false, &err), &err);
    CHECK_TEXT(world_cat(running, "/f"), "kept");
    CHECK_OK(sandbox_turn(running, &turn, &err), &err);
    CHECK_TEXT(turn.name, "turn-0002");
    CHECK_OK(sandbox_resume(paused, &err), &err);
    CHECK(world_sh(paused, "true", NULL) == 0);
    CHECK_OK(sandbox_start(stopped, &err), &err);
    CHECK_TEXT(world_cat(stopped, "/f"), "kept");
    world_destroy(running);
    world_destroy(paused);
    world_destroy(stopped);
}

static int mounts_update(struct sandbox *sandbox, const struct sandbox_mount *mount)
{
    const struct sandbox_change change = {
        .caller = &caller_root, .has_mounts = true, .mounts = mount, .mount_count = mount ? 1 : 0
    };

    return sandbox_update(sandbox, &change, &err);
}

/* The update finds the volume by name, and the removal begins or ends before the update goes on. */
static void a_volume_that_is_removed_is_not_mounted(void)
{
    struct sandbox *sandbox = world_create("mounting");
    struct sandbox_mount mount, kept;
    struct shared_volume_removal removal = { .shared_volume = mount.shared_volume };
    struct volume_info volume;

    CHECK_OK(sandbox_stop(sandbox, &err), &err);
    CHECK_OK(named_volume_create(world.host, &caller_root, "kept", &volume, &err), &err);
    CHECK_OK(named_volume_mount(world.host, &caller_root,
                                &(struct named_mount){ .volume = "kept", .path = "/mnt" }, &kept,
                                &err),
             &err);
    CHECK_OK(mounts_update(sandbox, &kept), &err);
    CHECK_OK(named_volume_create(world.host, &caller_root, "data", &volume, &err), &err);
    CHECK_OK(named_volume_mount(world.host, &caller_root,
                                &(struct named_mount){ .volume = "data", .path = "/mnt" }, &mount,
                                &err),
             &err);

    CHECK_OK(shared_volume_removal_begin(world.host, &removal, &err), &err);
    CHECK(mounts_update(sandbox, &mount) < 0 && err.kind == ERR_NOT_FOUND);
    shared_volume_removal_end(world.host, &removal);
    CHECK_OK(named_volume_remove(world.host, &caller_root, "data", &err), &err);
    CHECK(mounts_update(sandbox, &mount) < 0 && err.kind == ERR_NOT_FOUND);

    CHECK(named_volume_remove(world.host, &caller_root, "kept", &err) < 0 && err.kind == ERR_BUSY);
    CHECK_OK(sandbox_start(sandbox, &err), &err);
    world_destroy(sandbox);
    CHECK_OK(named_volume_remove(world.host, &caller_root, "kept", &err), &err);
}

/* The removal begins while the update records the change: old and new volumes are in use. */
static void a_volume_that_is_being_mounted_is_not_removed(void)
{
    struct sandbox *sandbox = world_create("mounting");
    struct sandbox_mount kept, mount;
    struct sandbox_info info = { .id = "x", .mounts = &mount, .mount_count = 1 };
    struct volume_info volume;

    CHECK_OK(sandbox_stop(sandbox, &err), &err);
    CHECK_OK(named_volume_create(world.host, &caller_root, "kept", &volume, &err), &err);
    CHECK_OK(named_volume_mount(world.host, &caller_root,
                                &(struct named_mount){ .volume = "kept", .path = "/mnt" }, &kept,
                                &err),
             &err);
    CHECK_OK(mounts_update(sandbox, &kept), &err);
    CHECK_OK(named_volume_create(world.host, &caller_root, "data", &volume, &err), &err);
    CHECK_OK(named_volume_mount(world.host, &caller_root,
                                &(struct named_mount){ .volume = "data", .path = "/mnt" }, &mount,
                                &err),
             &err);

    CHECK_OK(sandbox_mounts_reserve(sandbox, &info, &err), &err);
    CHECK(named_volume_remove(world.host, &caller_root, "data", &err) < 0 && err.kind == ERR_BUSY);
    CHECK(named_volume_remove(world.host, &caller_root, "kept", &err) < 0 && err.kind == ERR_BUSY);
    sandbox_mounts_release(sandbox);

    CHECK_OK(mounts_update(sandbox, &mount), &err);
    CHECK_OK(named_volume_remove(world.host, &caller_root, "kept", &err), &err);
    CHECK_OK(sandbox_start(sandbox, &err), &err);
    CHECK_OK(sandbox_stop(sandbox, &err), &err);
    CHECK_OK(mounts_update(sandbox, NULL), &err);
    CHECK_OK(named_volume_remove(world.host, &caller_root, "data", &err), &err);
    world_destroy(sandbox);
}

/* A volume that cannot be opened now is there all the same. */
static void a_shortage_of_descriptors_is_no_missing_volume(void)
{
    struct volume_info volume;
    struct rlimit before, none;

    CHECK_OK(named_volume_create(world.host, &caller_root, "data", &volume, &err), &err);
    CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
    none = (struct rlimit){ 0, before.rlim_max };
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    CHECK(shared_volume_check(world.host, volume.id, &err) < 0);
    CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
    CHECK(err.kind != ERR_NOT_FOUND && err.errnum == EMFILE, "%s", err.msg);
    CHECK_OK(shared_volume_check(world.host, volume.id, &err), &err);
    CHECK_OK(named_volume_remove(world.host, &caller_root, "data", &err), &err);
    CHECK(shared_volume_check(world.host, volume.id, &err) < 0 && err.kind == ERR_NOT_FOUND);
}

struct volume_race {
    struct sandbox *sandbox;
    int updated;
};

static void *update_race(void *argument)
{
    struct volume_race *volume_race = argument;
    struct sandbox_mount mount;
    struct sandbox_change change = {
        .caller = &caller_root, .has_mounts = true, .mounts = &mount, .mount_count = 1
    };
    struct err why = { 0 };

    volume_race->updated =
        named_volume_mount(world.host, &caller_root,
                           &(struct named_mount){ .volume = "data", .path = "/mnt" }, &mount, &why);
    if (volume_race->updated == 0)
        volume_race->updated = sandbox_update(volume_race->sandbox, &change, &why);
    return NULL;
}

static void of_a_mount_and_a_removal_one_succeeds(void)
{
    enum { ROUNDS = 20 };
    struct volume_race volume_race = { .sandbox = world_create("mounting") };

    CHECK_OK(sandbox_stop(volume_race.sandbox, &err), &err);
    for (int i = 0; i < ROUNDS; i++) {
        struct volume_info volume;
        pthread_t thread;
        int removed;

        CHECK_OK(named_volume_create(world.host, &caller_root, "data", &volume, &err), &err);
        CHECK(pthread_create(&thread, NULL, update_race, &volume_race) == 0);
        removed = named_volume_remove(world.host, &caller_root, "data", &err);
        CHECK(pthread_join(thread, NULL) == 0);
        CHECK((removed == 0) == (volume_race.updated < 0), "(round %d: %d %d)", i, removed,
              volume_race.updated);
        CHECK_OK(mounts_update(volume_race.sandbox, NULL), &err);
        if (removed < 0)
            CHECK_OK(named_volume_remove(world.host, &caller_root, "data", &err), &err);
    }
    CHECK_OK(sandbox_start(volume_race.sandbox, &err), &err);
    world_destroy(volume_race.sandbox);
}

static void all(void)
{
    struct host_counts before = host_count();

    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    world_open("auto");
    world_import("small");
    RUN(a_sandbox_keeps_files_over_turns_and_rolls_back);
    RUN(a_rollback_ends_processes_and_says_so);
    RUN(a_rollback_to_nothing_changes_nothing);
    RUN(newer_snapshots_stay_unless_they_are_to_go);
    RUN(pruning_spares_what_somebody_has_named);
    RUN(a_write_right_behind_a_snapshot_is_seen);
    RUN(every_operation_answers_by_the_state);
    RUN(a_pause_freezes_and_a_stop_keeps_files);
    RUN(forks_share_nothing_but_the_past);
    RUN(operations_that_race_leave_it_whole);
    RUN(a_destroy_during_create_wins);
    RUN(many_with_one_key_get_one_sandbox);
    RUN(a_key_stands_for_one_wish_until_its_sandbox_is_gone);
    RUN(a_key_does_not_hide_that_a_name_is_taken);
    RUN(sandboxes_outlive_the_host);
    RUN(a_volume_that_is_removed_is_not_mounted);
    RUN(a_volume_that_is_being_mounted_is_not_removed);
    RUN(a_shortage_of_descriptors_is_no_missing_volume);
    RUN(of_a_mount_and_a_removal_one_succeeds);
    world_close();
    CHECK(host_count().fds == before.fds);
    CHECK(host_count().mounts == before.mounts);
}

int main(void)
{
    RUN(all);
    return 0;
}
