// SPDX-License-Identifier: Apache-2.0
/* Creates, uses and destroys many sandboxes; afterwards the host has the resources it had before.
 *
 * SOAK_ROUNDS     how many (make soak: 10000)
 * SOAK_STORAGE    as in the configuration
 */
#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>

#include "base/text/parse.h"
#include "host/observe/event.h"
#include "host/observe/event_ring.h"
#include "kernel/host/host_world.h"
#include "store/store_internal.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { ROUNDS = 50, IS_SANITIZED = true };
#else
enum { ROUNDS = 200, IS_SANITIZED = false };
#endif

enum {
    WARM_UP_ROUNDS = 30,
    CROWD =
        70, /* more than the zygotes that a host keeps for the next sandboxes (runtime/zygote.c) */
    WORKERS = 3,
    REPORTS = 3, /* during the test */

    /* The caches of SQLite and the allocator vary a little; a leak grows with the rounds. */
    HEAP_SLACK_BYTES = 192 * 1024,
};

/* Resources that could leak. */
enum thing {
    FDS,
    MOUNTS,
    THREADS,
    CHILDREN,
    GROUPS,
    SOCKETS,
    VOLUMES,
    TREES,
    QUOTAS,
    ROWS,
    THINGS
};

static const char *const thing_names[THINGS] = {
    [FDS] = "descriptors", [MOUNTS] = "mounts",   [THREADS] = "threads", [CHILDREN] = "children",
    [GROUPS] = "groups",   [SOCKETS] = "sockets", [VOLUMES] = "volumes", [TREES] = "subvolumes",
    [QUOTAS] = "quotas",   [ROWS] = "rows",
};

/* --- one sandbox ----------------------------------------------------------------------------- */

static void use_turns(struct sandbox *sandbox)
{
    struct snapshot_info turn;
    struct err err = { 0 };

    CHECK(world_sh(sandbox, "echo 1 > /workspace/a; mkdir /d; ln -s x /d/l", NULL) == 0);
    CHECK_OK(sandbox_turn(sandbox, &turn, &err), &err);
    CHECK(world_sh(sandbox, "echo 2 > /workspace/a; rm -r /d /etc/origin", NULL) == 0);
    CHECK_OK(sandbox_turn(sandbox, &turn, &err), &err);
    CHECK_OK(sandbox_rollback(sandbox, "turn-0001", true, &err), &err);
    CHECK(world_sh(sandbox, "test $(cat /workspace/a) = 1 -a -e /etc/origin", NULL) == 0);
}

static void use_forks(struct sandbox *sandbox)
{
    struct sandbox *forks[3];
    struct snapshot_info turn;
    struct err err = { 0 };

    CHECK(world_sh(sandbox, "echo 1 > /workspace/a; sleep 1000 > /dev/null 2>&1 &", NULL) == 0);
    CHECK_OK(sandbox_snapshot(sandbox, "s", SNAPSHOT_NAMED, &turn, &err), &err);
    CHECK_OK(sandbox_fork(sandbox, &(struct fork_spec){ .caller = &caller_root, .count = 2 }, forks,
                          &err),
             &err);
    CHECK_OK(sandbox_fork(forks[1], &(struct fork_spec){ .caller = &caller_root, .count = 1 },
                          &forks[2], &err),
             &err);
    CHECK(world_sh(forks[2], "test $(cat /workspace/a) = 1", NULL) == 0);
    for (size_t i = 0; i < ARRAY_SIZE(forks); i++)
        world_destroy(forks[i]);
    CHECK_OK(sandbox_rollback(sandbox, "s", false, &err), &err);
}

static void use_power(struct sandbox *sandbox)
{
    struct err err = { 0 };

    CHECK(world_sh(sandbox, "echo 1 > /workspace/a; sleep 1000 > /dev/null 2>&1 &", NULL) == 0);
    CHECK_OK(sandbox_pause(sandbox, &err), &err);
    CHECK_OK(sandbox_resume(sandbox, &err), &err);
    CHECK_OK(sandbox_stop(sandbox, &err), &err);
    CHECK_OK(sandbox_start(sandbox, &err), &err);
    CHECK(world_sh(sandbox, "test $(cat /workspace/a) = 1", NULL) == 0);
    CHECK_OK(sandbox_pause(sandbox, &err), &err); /* it is destroyed paused */
}

static void use_refusals(struct sandbox *sandbox)
{
    char *args[] = { (char *)(uintptr_t) "/bin/nosuch", NULL };
    struct process_spec spec = { .args = args };
    struct process *process;
    struct snapshot_info turn;
    struct err err = { 0 };

    CHECK_OK(sandbox_exec(sandbox, &spec, &process, &err), &err);
    process_abandon(process);
    CHECK(sandbox_rollback(sandbox, "nosuch", false, &err) < 0);
    CHECK_OK(sandbox_snapshot(sandbox, "s", SNAPSHOT_NAMED, &turn, &err), &err);
    CHECK(sandbox_snapshot(sandbox, "s", SNAPSHOT_NAMED, &turn, &err) < 0);
    CHECK_OK(sandbox_remove_snapshot(sandbox, "s", &err), &err);
}

static void use_sandbox(uint64_t round)
{
    struct sandbox *sandbox = world_create(NULL);

    if (round % 7 == 1)
        use_turns(sandbox);
    else if (round % 23 == 2)
        use_forks(sandbox);
    else if (round % 13 == 3)
        use_power(sandbox);
    else if (round % 11 == 4)
        use_refusals(sandbox);
    world_destroy(sandbox);
}

/* --- many of them ---------------------------------------------------------------------------- */

static atomic_uint_fast64_t next_round;
static uint64_t rounds_end;

static void *work(void *argument)
{
    uint64_t round;

    (void)argument;
    while ((round = atomic_fetch_add(&next_round, 1)) < rounds_end)
        use_sandbox(round);
    return NULL;
}

static void run_rounds(uint64_t count)
{
    pthread_t threads[WORKERS];

    atomic_store(&next_round, 0);
    rounds_end = count;
    for (size_t i = 0; i < WORKERS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, NULL) == 0);
    for (size_t i = 0; i < WORKERS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

/* --- counting -------------------------------------------------------------------------------- */

/* Counts the lines that a command prints about the store's filesystem, which has no mount point. */
static size_t lines_of(const char *command)
{
    char line[256], file[96];
    pid_t pid;
    int status;

    (void)snprintf(file, sizeof(file), "%s/lines", world.dir);
    (void)snprintf(line, sizeof(line), "%s /proc/%d/fd/%d > %s 2>/dev/null", command, getpid(),
                   host_store(world.host)->volumes_fd, file);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        (void)execl("/bin/sh", "sh", "-c", line, NULL);
        _exit(127);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    return count_lines(file); /* 0 unless it is btrfs */
}

static size_t count_volumes(void)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d/.", host_store(world.host)->volumes_fd);
    return count_entries(path);
}

static size_t count_table(sqlite3 *db, const char *query)
{
    sqlite3_stmt *statement;
    size_t count;

    CHECK(sqlite3_prepare_v2(db, query, -1, &statement, NULL) == SQLITE_OK);
    CHECK(sqlite3_step(statement) == SQLITE_ROW);
    count = (size_t)sqlite3_column_int64(statement, 0);
    CHECK(sqlite3_finalize(statement) == SQLITE_OK);
    return count;
}

static size_t count_rows(void)
{
    char path[128];
    sqlite3 *db;
    size_t count;

    (void)snprintf(path, sizeof(path), "%s/state/holt.db", world.dir);
    CHECK(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK);
    CHECK(sqlite3_busy_timeout(db, PATIENCE_MS) == SQLITE_OK);
    count = count_table(db, "SELECT count(*) FROM sandboxes") +
            count_table(db, "SELECT count(*) FROM snapshots") +
            count_table(db, "SELECT count(*) FROM labels");
    CHECK(sqlite3_close(db) == SQLITE_OK);
    return count;
}

static size_t count_groups(void)
{
    static char label[32];
    char real[PATH_MAX], state[128];
    uint32_t hash = 2166136261U;

    (void)snprintf(state, sizeof(state), "%s/state", world.dir);
    CHECK(realpath(state, real));
    for (const char *c = real; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619U;
    (void)snprintf(label, sizeof(label), "holt-%08" PRIx32, hash);
    return groups_with(label);
}

struct counts {
    size_t of[THINGS];
    size_t heap_bytes; /* bytes in use; 0 under a sanitizer, which finds leaks itself */
};

static struct counts count(void)
{
    struct host_counts host = host_count();
    char guests[128];

    (void)snprintf(guests, sizeof(guests), "%s/state/guests", world.dir);
    return (struct counts){
        .of = { [FDS] = host.fds,
                [MOUNTS] = host.mounts,
                [THREADS] = count_entries("/proc/self/task"),
                [CHILDREN] = host.children,
                [GROUPS] = count_groups(),
                [SOCKETS] = count_entries(guests),
                [VOLUMES] = count_volumes(),
                [TREES] = lines_of("btrfs subvolume list"),
                [QUOTAS] = lines_of("btrfs qgroup show"),
                [ROWS] = count_rows() },
        .heap_bytes = IS_SANITIZED ? 0 : mallinfo2().uordblks,
    };
}

static bool has_more(const struct counts *now, const struct counts *before)
{
    for (size_t i = 0; i < THINGS; i++)
        if (now->of[i] > before->of[i])
            return true;
    return false;
}

static void print(const char *when, const struct counts *counts)
{
    (void)printf("# %s:", when);
    for (size_t i = 0; i < THINGS; i++)
        (void)printf(" %zu %s,", counts->of[i], thing_names[i]);
    (void)printf(" %zu KiB of heap\n", counts->heap_bytes / 1024);
}

static bool pool_is_full(void)
{
    struct host_health health;

    host_health(world.host, &caller_root, &health);
    return health.pool_ready >= world.config.pool_size;
}

/* btrfs frees the quota group of a volume after its files, and Holt removes it when the next
 * volume is removed. */
static struct counts count_again(void)
{
    (void)lines_of("btrfs filesystem sync"); /* wakes the cleaner of btrfs */
    pause_ms(40 * POLL_MS);
    use_sandbox(0);
    EVENTUALLY(pool_is_full());
    pause_ms(20 * POLL_MS); /* for zygotes that it prepares */
    return count();
}

/* Waits for the pool, the reaper and the cleaner of the storage. */
static struct counts settle(const struct counts *before)
{
    struct counts now = count_again();

    for (int waited = 0; has_more(&now, before); waited += 60 * POLL_MS) {
        if (waited >= PATIENCE_MS)
            print("before", before), print("now", &now);
        CHECK(waited < PATIENCE_MS, "(something was left behind)");
        now = count_again();
    }
    return now;
}

/* Counts an idle host several times and returns the maximum, as the numbers vary, more so on a
 * busy machine. */
static struct counts count_at_rest(void)
{
    struct counts most = count_again(), now;

    for (int i = 0; i < 12; i++) {
        now = count_again();
        for (size_t j = 0; j < THINGS; j++)
            if (now.of[j] > most.of[j])
                most.of[j] = now.of[j];
    }
    most.heap_bytes = now.heap_bytes;
    return most;
}

static uint64_t rounds_wanted(void)
{
    const char *text = getenv("SOAK_ROUNDS");
    uint64_t rounds = ROUNDS;

    CHECK(!text || parse_u64(text, &rounds) == 0, "(SOAK_ROUNDS is no number)");
    return rounds;
}

/* Checks that the counts include a sandbox that exists, once the pool has replaced its machine. */
static void a_sandbox_that_is_there_is_counted(void)
{
    static const enum thing things[] = { FDS, GROUPS, SOCKETS, VOLUMES, ROWS };
    bool is_btrfs = strcmp(store_backend(host_store(world.host)), "btrfs") == 0;
    struct counts before = count_again(), now;
    struct sandbox *sandbox = world_create(NULL);

    now = count_again();
    for (size_t i = 0; i < ARRAY_SIZE(things); i++)
        CHECK(now.of[things[i]] > before.of[things[i]], "(%s)", thing_names[things[i]]);
    CHECK(now.of[TREES] > before.of[TREES] || !is_btrfs);
    CHECK(now.of[QUOTAS] > before.of[QUOTAS] || !is_btrfs);
    world_destroy(sandbox);
}

/* Makes the host have as many zygotes as it ever keeps. */
static void fill_zygotes(void)
{
    struct sandbox *crowd[CROWD];

    for (size_t i = 0; i < CROWD; i++)
        crowd[i] = world_create(NULL);
    for (size_t i = 0; i < CROWD; i++)
        world_destroy(crowd[i]);
}

/* Makes the host have as many events as it ever keeps. */
static void fill_events(void)
{
    for (int i = 0; i < EVENT_RING_COUNT; i++)
        host_event(world.host, EVENT_PORT_CLOSED, json_pack("{s:i}", "round", i));
}

static void sandboxes_that_came_and_went_leave_nothing(void)
{
    uint64_t rounds = rounds_wanted(), part = (rounds + REPORTS - 1) / REPORTS;
    struct counts before, at_first = count_at_rest(), now = { .heap_bytes = 0 };

    fill_zygotes();
    fill_events();
    run_rounds(WARM_UP_ROUNDS);
    before = count_at_rest();
    print("before", &before);
    for (uint64_t done = 0; done < rounds; done += part) {
        run_rounds(part);
        now = settle(&before);
        (void)printf("# after %" PRIu64 ": %zu KiB of heap\n", done + part, now.heap_bytes / 1024);
    }
    CHECK(now.heap_bytes < before.heap_bytes + HEAP_SLACK_BYTES, "(%zu bytes, then %zu)",
          before.heap_bytes, now.heap_bytes);
    /* The cleaner of the storage is slow, so the test waits for it once, at the end. */
    for (enum thing i = VOLUMES; i <= QUOTAS; i++)
        before.of[i] = at_first.of[i];
    (void)settle(&before);
}

static void all(void)
{
    struct host_counts before = host_count();
    const char *storage = getenv("SOAK_STORAGE");

    must_be_root();
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    world_open(storage ? storage : "auto");
    world_import("small");
    RUN(a_sandbox_that_is_there_is_counted);
    RUN(sandboxes_that_came_and_went_leave_nothing);
    world_close();
    CHECK(host_count().fds == before.fds);
    CHECK(host_count().mounts == before.mounts);
}

int main(void)
{
    RUN(all);
    return 0;
}
