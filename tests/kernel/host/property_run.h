/* Runs random programs on each storage backend, each in a child process. Prints a failed program
 * up to the failure, reduces it to the operations needed to fail, and cleans up after it. */
#pragma once

#include <inttypes.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/mount.h>

#include "base/text/parse.h"
#include "kernel/host/host_world.h"

enum { LOG_BYTES = 256 * 1024, HANG_SECONDS = 60 };

struct property_run {
    const char *storage;
    uint64_t seed, count;
    uint64_t left_out; /* operations to omit, by number */
};

typedef void (*property_fn)(const struct property_run *run);

/* Output of the child process, in memory that survives it. */
static struct property_record {
    uint64_t seed;
    uint64_t digest; /* hash of all operations and results */
    size_t len;
    char log[LOG_BYTES];
} * property_record;

__attribute__((format(printf, 1, 2))) static inline void property_say(const char *format, ...)
{
    struct property_record *record = property_record;
    va_list args;
    int len;

    va_start(args, format);
    len = vsnprintf(record->log + record->len, LOG_BYTES - record->len, format, args);
    va_end(args);
    CHECK(len >= 0 && (size_t)len < LOG_BYTES - record->len, "(the program's log is full)");
    record->len += (size_t)len;
}

static inline void property_begin(uint64_t seed)
{
    property_record->seed = seed;
    property_record->len = 0;
    property_record->log[0] = '\0';
    (void)alarm(HANG_SECONDS); /* ends a program that hangs; its log shows where */
}

static inline void property_end(void)
{
    struct property_record *record = property_record;

    for (size_t i = 0; i < record->len; i++)
        record->digest = (record->digest ^ (unsigned char)record->log[i]) * UINT64_C(1099511628211);
    (void)alarm(0);
}

/* --- storages -------------------------------------------------------------------------------- */

struct property_storage {
    const char *name;
    const char *storage; /* in the syntax of the configuration */
    const char *mkfs;    /* command that makes its filesystem; NULL: uses that of /tmp */
};

static inline bool property_command(const char *command, const char *a, const char *b)
{
    int status = -1;
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid == 0) {
        (void)execl("/bin/sh", "sh", "-c", command, "sh", a, b, NULL);
        _exit(127);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    return status == 0;
}

/* Makes a state directory; its filesystem image disappears with the mount. */
static inline bool property_place(const struct property_storage *storage, char dir[static 48])
{
    (void)snprintf(dir, 48, "/tmp/holt-property-XXXXXX");
    CHECK(mkdtemp(dir));
    if (!storage->mkfs || property_command("truncate -s 2G $1.img && $2 $1.img >/dev/null 2>&1 && "
                                           "mount -o loop $1.img $1; r=$?; rm -f $1.img; exit $r",
                                           dir, storage->mkfs))
        return true;
    CHECK(rmdir(dir) == 0);
    return false;
}

static inline void property_unplace(const struct property_storage *storage, const char *dir)
{
    if (storage->mkfs)
        CHECK(umount2(dir, 0) == 0, "(%s: %s)", dir, strerror(errno));
    CHECK(rmdir(dir) == 0, "(%s: %s)", dir, strerror(errno));
}

/* --- processes ------------------------------------------------------------------------------- */

/* Destroys the sandboxes that a failed process has left. */
static inline void property_sweep(const struct property_run *run)
{
    struct sandbox_info *list;
    struct sandbox *sandbox;
    struct err err = { 0 };
    size_t count;

    world_open(run->storage);
    sandbox_list(world.host, &caller_root, NULL, 0, &list, &count);
    for (size_t i = 0; i < count; i++) {
        CHECK_OK(sandbox_find(world.host, &caller_root, list[i].id, &sandbox, &err), &err);
        world_destroy(sandbox);
        sandbox_info_done(&list[i]);
    }
    free(list);
    world_close();
}

/* Runs a program in a child process, below dir. Returns whether it succeeded. */
static inline bool property_fork(property_fn run, const struct property_run *what, const char *dir,
                                 bool is_quiet)
{
    int status = -1, null_fd;
    pid_t pid;

    (void)fflush(stdout);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (is_quiet)
            CHECK(dup2(null_fd, STDOUT_FILENO) >= 0);
        (void)close(null_fd);
        (void)snprintf(world.dir, sizeof(world.dir), "%s/host", dir);
        (void)mkdir(world.dir, 0700);
        run(what);
        exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    if (WIFSIGNALED(status) && !is_quiet)
        (void)printf("not ok: ended by signal %d\n", WTERMSIG(status));
    return status == 0;
}

/* Returns whether the program still fails; cleans up after it. */
static inline bool property_fails(property_fn run, const struct property_run *what, const char *dir)
{
    if (property_fork(run, what, dir, true))
        return false;
    CHECK(property_fork(property_sweep, what, dir, false));
    return true;
}

/* Omits operations that the program fails without, in ever smaller groups. */
static inline void property_shrink(property_fn run, struct property_run *what, const char *dir,
                                   unsigned operations)
{
    for (unsigned part = operations / 2; part > 0; part /= 2) {
        for (unsigned first = 0; first < operations; first += part) {
            struct property_run shorter = *what;

            shorter.left_out |= ((UINT64_C(1) << part) - 1) << first;
            if (shorter.left_out != what->left_out && property_fails(run, &shorter, dir))
                *what = shorter;
        }
    }
}

static inline void property_tell(void)
{
    (void)printf("# PROPERTY_SEED=%" PRIu64 " PROPERTY_PROGRAMS=1 runs it alone:\n%s\n",
                 property_record->seed, property_record->log);
}

static inline void property_failed(property_fn run, const struct property_run *what,
                                   const char *dir, unsigned operations)
{
    struct property_run alone = { .storage = what->storage, .count = 1 };

    property_tell();
    CHECK(property_fork(property_sweep, what, dir, false));
    alone.seed = property_record->seed;
    if (!property_fails(run, &alone, dir)) {
        (void)printf("# alone, it does not fail\n");
        return;
    }
    property_shrink(run, &alone, dir, operations);
    (void)printf("# what of it must be there to fail:\n");
    (void)property_fork(run, &alone, dir, false);
    property_tell();
    CHECK(property_fork(property_sweep, &alone, dir, false));
}

static inline uint64_t property_number(const char *variable, uint64_t otherwise)
{
    const char *text = getenv(variable);
    uint64_t value = otherwise;

    CHECK(!text || parse_u64(text, &value) == 0, "(%s is not a number)", variable);
    return value;
}

/* Returns whether all programs matched the model; skips storage that is unavailable. */
static inline bool property_try(property_fn run, const struct property_storage *storage,
                                unsigned operations)
{
    struct property_run what = { .storage = storage->storage };
    char dir[48];
    bool is_good;

    what.seed = property_number("PROPERTY_SEED", 1);
    what.count = property_number("PROPERTY_PROGRAMS", 400);
    property_record->digest = 0;
    if (!property_place(storage, dir)) {
        (void)printf("skip: %s: cannot be made or mounted here\n", storage->name);
        return !getenv("TESTS_MUST_RUN");
    }
    is_good = property_fork(run, &what, dir, false);
    if (!is_good)
        property_failed(run, &what, dir, operations);
    else
        (void)printf("ok: %s: %" PRIu64 " programs from seed %" PRIu64 " do as the model says\n",
                     storage->name, what.count, what.seed);
    property_unplace(storage, dir);
    return is_good;
}

/* Programs must have the same results on all storage backends. */
static inline int property_main(property_fn run, unsigned operations)
{
    const struct property_storage all[] = {
        { "btrfs image", "btrfs", NULL },
        { "dir", "dir", NULL },
        { "dir on xfs", "dir", "mkfs.xfs -q" },
        { "zfs", getenv("HOLT_TEST_ZFS"), NULL }, /* zfs:POOL/DATASET: needs its own pool */
    };
    struct property_storage only = { getenv("PROPERTY_STORAGE"), getenv("PROPERTY_STORAGE"), NULL };
    const struct property_storage *storages = only.name ? &only : all;
    size_t count = only.name ? 1 : ARRAY_SIZE(all) - !all[ARRAY_SIZE(all) - 1].storage;
    uint64_t digest = 0;
    bool has_failed = false;

    property_record = mmap(NULL, sizeof(*property_record), PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(property_record != MAP_FAILED);
    /* Mounts of the other backends are private; zfs-fuse would mount in the old namespace. */
    if (!only.name)
        CHECK(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    for (size_t i = 0; i < count; i++) {
        if (!property_try(run, &storages[i], operations)) {
            has_failed = true;
            continue;
        }
        CHECK(digest == 0 || property_record->digest == 0 || property_record->digest == digest,
              "(on %s other things happened)", storages[i].name);
        digest = property_record->digest;
    }
    return has_failed;
}
