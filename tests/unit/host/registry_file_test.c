// SPDX-License-Identifier: Apache-2.0
/* Damage, foreign files, other processes, full and read-only disks. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "base/io.h"
#include "host/volume/named_volume.h"
#include "unit/doc_script.h"
#include "unit/host/registry_test.h"

enum { PAGE_BYTES = 4096, KILL_ROUNDS = 50, HUGE_TEXT_BYTES = 100 << 20 };

/* Every opening of the file as it is must fail, and must not change it. */
static struct err open_refused(void)
{
    struct registry *refused = NULL;
    struct err err = { 0 };
    struct stat before, after;

    CHECK(stat(path, &before) == 0);
    CHECK(registry_open(path, &refused, &err) < 0);
    CHECK(!refused && err.kind != ERR_NONE && err.errnum > 0);
    CHECK(strstr(err.msg, path), "%s", err.msg);
    CHECK(stat(path, &after) == 0 && after.st_size == before.st_size);
    CHECK(after.st_mtim.tv_sec == before.st_mtim.tv_sec &&
          after.st_mtim.tv_nsec == before.st_mtim.tv_nsec);
    return err;
}

static void check_damaged(void)
{
    struct err err = open_refused();

    CHECK(err.kind == ERR_INTERNAL);
    CHECK(strstr(err.msg, "is damaged (") && strstr(err.msg, "sqlite3 holt.db .dump"), "%s",
          err.msg);
}

/* Changes the file with SQLite itself, past the registry. */
static void change(const char *sql)
{
    sqlite3 *db = NULL;

    CHECK(sqlite3_open(path, &db) == SQLITE_OK);
    CHECK(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK, "%s", sqlite3_errmsg(db));
    CHECK(sqlite3_close(db) == SQLITE_OK);
}

static void the_file_is_private(void)
{
    static const char *const names[] = { "holt.db", "holt.db-wal", "holt.db-shm" };
    struct sandbox_info info = numbered(1);
    mode_t mask = umask(0);

    start_anew();
    (void)umask(mask);
    put(&info);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        cleanup_free char *name = xasprintf("%s/%s", scratch, names[i]);
        struct stat st;

        CHECK(stat(name, &st) == 0 && (st.st_mode & 07777) == 0600, "%s", name);
    }
    stop();
    CHECK(chmod(path, 0644) == 0);
    start();
    {
        struct stat st;

        CHECK(stat(path, &st) == 0 && (st.st_mode & 07777) == 0600);
    }
}

/* A closed registry of some pages. */
static void make_large(void)
{
    start_anew();
    for (unsigned i = 0; i < 100; i++) {
        struct label labels[2] = { 0 };
        struct sandbox_info info = full_info(labels);

        (void)snprintf(info.id, sizeof(info.id), "s%u", i);
        (void)snprintf(info.name, sizeof(info.name), "n%u", i);
        put(&info);
    }
    stop();
}

static void an_empty_file_is_a_new_registry(void)
{
    size_t count;

    clear();
    CHECK(file_create_at(AT_FDCWD, path, 0600, "") == 0);
    start();
    (void)list(&count);
    CHECK(count == 0);
}

/* Whichever page it is: of a table, of an index, or the first. */
static void a_damaged_page_is_found_when_it_is_opened(void)
{
    cleanup_close int fd = -EBADF;
    struct stat st;

    make_large();
    fd = open(path, O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 20 * PAGE_BYTES);
    for (off_t at = 0; at < st.st_size; at += PAGE_BYTES) {
        unsigned char page[PAGE_BYTES], flipped[PAGE_BYTES];

        CHECK(pread(fd, page, sizeof(page), at) == sizeof(page));
        for (size_t i = 0; i < sizeof(page); i++)
            flipped[i] = page[i] ^ 0xff;
        CHECK(pwrite(fd, flipped, sizeof(flipped), at) == sizeof(flipped));
        check_damaged();
        CHECK(pwrite(fd, page, sizeof(page), at) == sizeof(page));
    }
    start();
}

static void the_documented_remedy_saves_what_can_be_read(void)
{
    static const char zeros[PAGE_BYTES];
    cleanup_close int fd = -EBADF, dir_fd = -EBADF;
    struct stat st;
    size_t count;

    if (access("/usr/bin/sqlite3", X_OK) < 0)
        SKIP("no sqlite3");
    make_large();
    fd = open(path, O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0 && fstat(fd, &st) == 0);
    CHECK(pwrite(fd, zeros, sizeof(zeros), st.st_size / 2 / PAGE_BYTES * PAGE_BYTES) > 0);
    check_damaged();
    dir_fd = open(scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(dir_fd >= 0);
    CHECK_TEXT(doc_script_run("docs/registry.md", dir_fd), "");
    start();
    (void)list(&count);
    CHECK(count > 10, "%zu", count);
}

static void a_truncated_file_is_found_when_it_is_opened(void)
{
    struct stat st;

    make_large();
    CHECK(stat(path, &st) == 0);
    for (off_t size = st.st_size / 2; size > 16; size /= 8) {
        CHECK(truncate(path, size) == 0);
        check_damaged();
    }
}

static void a_file_of_text_is_refused(void)
{
    clear();
    CHECK(file_create_at(AT_FDCWD, path, 0600, "sandboxes: none\n") == 0);
    check_damaged();
}

/* SQLite would throw the changes away, as there is nothing that they change. */
static void changes_without_their_file_are_kept(void)
{
    cleanup_free char *wal = xasprintf("%s-wal", path);
    struct registry *refused;
    struct err err = { 0 };
    struct stat st;

    clear();
    CHECK(file_create_at(AT_FDCWD, wal, 0600, "changes") == 0);
    CHECK(registry_open(path, &refused, &err) < 0 && err.kind == ERR_INTERNAL);
    CHECK(strstr(err.msg, wal), "%s", err.msg);
    CHECK(stat(path, &st) < 0 && stat(wal, &st) == 0 && st.st_size == 7);
}

static void a_newer_registry_is_refused(void)
{
    struct err err;

    start_anew();
    stop();
    change("PRAGMA user_version = 1000");
    err = open_refused();
    CHECK(err.kind == ERR_INTERNAL && strstr(err.msg, "newer") && strstr(err.msg, "1000"), "%s",
          err.msg);
}

#define SESSIONS_WITHOUT_PREVIEWS                                                                  \
    "ALTER TABLE sessions DROP COLUMN sandbox; ALTER TABLE sessions DROP COLUMN port;"             \
    "ALTER TABLE sessions DROP COLUMN parent;"

/* Takes away what later versions have brought. */
static void make_first_version(void)
{
    change("ALTER TABLE sandboxes DROP COLUMN files; ALTER TABLE snapshots DROP COLUMN note;"
           "DROP TABLE volumes; DROP TABLE template_owners; DROP TABLE templates; DROP TABLE "
           "shares;" SESSIONS_WITHOUT_PREVIEWS
           "DROP TABLE notes; DROP TABLE mounts; ALTER TABLE sandboxes DROP COLUMN request_key;"
           "ALTER TABLE sandboxes DROP COLUMN request_digest; PRAGMA user_version = 1");
}

static void an_older_registry_becomes_one_of_today(void)
{
    struct label label = { "team", "red" };
    struct sandbox_info info = numbered(7);
    struct snapshot_info snapshot = { .name = "turn-0001" };
    cleanup_free struct snapshot_info *snapshots = NULL;
    const struct sandbox_info *kept;
    struct err err = { 0 };
    size_t count = 0;

    info.labels = &label;
    info.label_count = 1;
    start_anew();
    put(&info);
    CHECK(registry_put_snapshot(registry, &info, &snapshot, &err) == 0, "%s", err.msg);
    stop();
    make_first_version();
    start();
    kept = list_one();
    CHECK_TEXT(kept->owner, OWNER_ROOT);
    CHECK(kept->label_count == 1 && strcmp(kept->labels[0].value, "red") == 0);
    CHECK(registry_list_snapshots(registry, info.id, &snapshots, &count, &err) == 0 && count == 1);
    CHECK(kept->turns == 7 && !*kept->request_key && !*kept->request_digest && !kept->metadata);
    CHECK(kept->limits.files == 0);
    (void)snprintf(info.request_key, sizeof(info.request_key), "key");
    put(&info);
    stop();
    start();
    CHECK_TEXT(list_one()->request_key, "key");
}

static void names_are_unique_for_each_owner(void)
{
    struct sandbox_info first = numbered(1), second = numbered(2), third = numbered(3);
    struct err err = { 0 };

    (void)snprintf(first.name, sizeof(first.name), "web");
    second = first;
    (void)snprintf(second.id, sizeof(second.id), "s2");
    (void)snprintf(second.owner, sizeof(second.owner), "ann");
    third = second;
    (void)snprintf(third.id, sizeof(third.id), "s3");
    start_anew();
    put(&first);
    put(&second);
    CHECK(registry_put(registry, &third, &err) < 0 && err.cause == CAUSE_SESSION_EXISTS, "%s",
          err.msg);
    stop();
}

static void volumes_are_found_by_id_and_by_name(void)
{
    cleanup_free struct volume_info *all = NULL;
    struct volume_info one = { "vol1", "root", "data", "secret" },
                       other = { "vol2", "root", "vol1", "x" };
    cleanup_free struct volume_info *by_name = NULL, *by_id = NULL, *none = NULL;
    struct err err = { 0 };
    size_t count = 0;

    start_anew();
    CHECK(registry_add_volume(registry, &one, &err) == 0, "%s", err.msg);
    CHECK(registry_add_volume(registry, &other, &err) == 0, "%s", err.msg);
    other = (struct volume_info){ "vol3", "root", "data", "x" };
    CHECK(registry_add_volume(registry, &other, &err) < 0 && err.kind == ERR_EXISTS);
    stop();
    start();
    CHECK(registry_find_volumes(registry, "data", &by_name, &count, &err) == 0 && count == 1);
    CHECK_TEXT(by_name[0].id, "vol1");
    CHECK_TEXT(by_name[0].token, "secret");
    CHECK(registry_find_volumes(registry, "vol1", &by_id, &count, &err) == 0 && count == 2);
    CHECK_TEXT(by_id[0].name, "data"); /* an id comes before a name */
    CHECK(registry_list_volumes(registry, &all, &count, &err) == 0 && count == 2);
    CHECK_TEXT(all[0].id, "vol1");
    CHECK(registry_remove_volume(registry, "vol1", &err) == 0);
    CHECK(registry_find_volumes(registry, "data", &none, &count, &err) == 0 && count == 0);
}

static void names_of_volumes_are_unique_for_each_owner(void)
{
    struct volume_info one = { "vol1", "root", "data", "x" },
                       other = { "vol2", "ann", "data", "x" };
    cleanup_free struct volume_info *both = NULL;
    struct err err = { 0 };
    size_t count = 0;

    start_anew();
    CHECK(registry_add_volume(registry, &one, &err) == 0, "%s", err.msg);
    CHECK(registry_add_volume(registry, &other, &err) == 0, "%s", err.msg);
    CHECK(registry_find_volumes(registry, "data", &both, &count, &err) == 0 && count == 2);
    (void)snprintf(other.id, sizeof(other.id), "vol3");
    CHECK(registry_add_volume(registry, &other, &err) < 0 && err.kind == ERR_EXISTS, "%s", err.msg);
    stop();
}

static void a_template_has_one_name_for_each_owner(void)
{
    struct template_record one = { "base", "root", "base" }, other = { "T1", "ann", "base" }, found;
    cleanup_free struct template_record *both = NULL;
    struct err err = { 0 };
    size_t count = 0;

    start_anew();
    CHECK(registry_add_template(registry, &one, &err) == 0, "%s", err.msg);
    CHECK(registry_add_template(registry, &other, &err) == 0, "%s", err.msg);
    (void)snprintf(other.store_name, sizeof(other.store_name), "T2");
    CHECK(registry_add_template(registry, &other, &err) < 0 && err.kind == ERR_EXISTS, "%s",
          err.msg);
    stop();
    start();
    CHECK(registry_list_templates(registry, "base", &both, &count, &err) == 0 && count == 2);
    CHECK_TEXT(both[1].owner, "ann");
    CHECK(registry_get_template(registry, "T1", &found, &err) == 1);
    CHECK_TEXT(found.name, "base");
    CHECK(registry_remove_template(registry, "T1", &err) == 0, "%s", err.msg);
    CHECK(registry_get_template(registry, "T1", &found, &err) == 0);
    CHECK(registry_add_template(registry, &other, &err) == 0, "%s", err.msg);
    stop();
}

static void what_is_shared_is_replaced_as_a_whole_and_goes_with_its_object(void)
{
    struct template_record record = { "base", "root", "base" };
    const struct share some[] = { { "ann" }, { "bob" } }, all = { SHARE_ALL };
    cleanup_free struct share *list = NULL;
    struct err err = { 0 };
    size_t count = 0;

    start_anew();
    CHECK(registry_add_template(registry, &record, &err) == 0, "%s", err.msg);
    CHECK(registry_put_shares(registry, SHARE_TEMPLATE, "base", some, 2, &err) == 0, "%s", err.msg);
    stop();
    start();
    CHECK(registry_list_shares(registry, SHARE_TEMPLATE, "base", &list, &count, &err) == 0);
    CHECK(count == 2 && strcmp(list[0].owner, "ann") == 0 && strcmp(list[1].owner, "bob") == 0);
    CHECK(registry_has_share(registry, SHARE_TEMPLATE, "base", "ann", &err) == 1);
    CHECK(registry_has_share(registry, SHARE_TEMPLATE, "base", "eve", &err) == 0);
    CHECK(registry_has_share(registry, SHARE_VOLUME, "base", "ann", &err) == 0);
    CHECK(registry_put_shares(registry, SHARE_TEMPLATE, "base", &all, 1, &err) == 0, "%s", err.msg);
    CHECK(registry_has_share(registry, SHARE_TEMPLATE, "base", "eve", &err) == 1);
    CHECK(registry_remove_template(registry, "base", &err) == 0, "%s", err.msg);
    CHECK(registry_has_share(registry, SHARE_TEMPLATE, "base", "eve", &err) == 0);
    CHECK(registry_put_shares(registry, SHARE_TEMPLATE, "base", &all, 1, &err) == 0, "%s", err.msg);
    CHECK(registry_add_template(registry, &record, &err) == 0, "%s", err.msg);
    CHECK(registry_has_share(registry, SHARE_TEMPLATE, "base", "eve", &err) == 0);
    stop();
}

static void an_owner_of_a_template_is_kept_until_it_is_dropped(void)
{
    cleanup_free char *first = NULL, *second = NULL, *none = NULL;
    struct err err = { 0 };

    start_anew();
    CHECK(registry_put_template_owner(registry, "build-1", "template a", &err) == 0);
    CHECK(registry_put_template_owner(registry, "build-1", "template b", &err) == 0);
    stop();
    start();
    CHECK(registry_get_template_owner(registry, "build-1", &first, &err) == 0);
    CHECK_TEXT(first, "template b");
    CHECK(registry_get_template_owner(registry, "build-2", &second, &err) == 0 && !second);
    CHECK(registry_put_template_owner(registry, "build-1", NULL, &err) == 0);
    CHECK(registry_get_template_owner(registry, "build-1", &none, &err) == 0 && !none);
}

static void mounts_stay_until_their_sandbox_goes(void)
{
    struct sandbox_mount mounts[] = { { "vol1", "/a", false }, { "vol2", "/a/b", true } };
    struct sandbox_info info = numbered(7);
    const struct sandbox_info *kept;
    struct err err = { 0 };

    start_anew();
    info.state = SANDBOX_CREATING;
    info.mounts = mounts;
    info.mount_count = ARRAY_SIZE(mounts);
    put(&info);
    info.state = SANDBOX_ACTIVE;
    put(&info);
    stop();
    start();
    kept = list_one();
    CHECK(kept->mount_count == 2);
    CHECK_TEXT(kept->mounts[0].shared_volume, "vol1");
    CHECK_TEXT(kept->mounts[1].shared_volume, "vol2");
    CHECK_TEXT(kept->mounts[1].path, "/a/b");
    CHECK(!kept->mounts[0].is_read_only && kept->mounts[1].is_read_only);
    CHECK(registry_remove(registry, info.id, &err) == 0, "%s", err.msg);
    put(&info);
    CHECK(list_one()->mount_count == 0);
}

static void mounts_of_an_older_registry_can_be_written_to(void)
{
    struct sandbox_mount mount = { "vol1", "/a", true };
    struct sandbox_info info = numbered(7);
    struct err err;

    start_anew();
    info.state = SANDBOX_CREATING;
    info.mounts = &mount;
    info.mount_count = 1;
    put(&info);
    stop();
    change(SESSIONS_WITHOUT_PREVIEWS
           "DROP TABLE templates; DROP TABLE shares; ALTER TABLE snapshots DROP COLUMN note;"
           "ALTER TABLE mounts DROP COLUMN read_only; PRAGMA user_version = 5");
    start();
    CHECK(list_one()->mount_count == 1 && !list_one()->mounts[0].is_read_only);
    stop();
    start(); /* checks the pages and rows of the changed table */
    CHECK_TEXT(list_one()->mounts[0].path, "/a");
    stop();
    change("UPDATE mounts SET read_only = 2");
    err = open_refused();
    CHECK(err.kind == ERR_INTERNAL && strstr(err.msg, "read_only"), "%s", err.msg);
}

static void a_note_stays_until_its_sandbox_goes(void)
{
    static char first[] = "{\"a\":1}";
    struct sandbox_info info = numbered(7);
    struct err err = { 0 };

    start_anew();
    info.state = SANDBOX_CREATING;
    info.metadata = first;
    put(&info);
    info.state = SANDBOX_ACTIVE;
    info.metadata = NULL;
    put(&info);
    stop();
    start();
    CHECK_TEXT(list_one()->metadata, first);
    CHECK(registry_put_metadata(registry, info.id, "second", &err) == 0, "%s", err.msg);
    CHECK(registry_put_expiry(registry, info.id, 4711, ACTION_STOP, &err) == 0, "%s", err.msg);
    stop();
    start();
    CHECK_TEXT(list_one()->metadata, "second");
    CHECK(list_one()->expires_ms == 4711 && list_one()->expire_action == ACTION_STOP);
    CHECK(registry_remove(registry, info.id, &err) == 0, "%s", err.msg);
    put(&info);
    CHECK(!list_one()->metadata);
    CHECK(registry_put_metadata(registry, "nobody", "text", &err) < 0);
}

static void an_older_registry_that_is_damaged_stays_as_it_is(void)
{
    struct sandbox_info info = numbered(7);
    struct err err;

    start_anew();
    put(&info);
    stop();
    make_first_version();
    change("UPDATE sandboxes SET state = 'sleeping'");
    for (int i = 0; i < 2; i++) { /* a first attempt must not have changed anything */
        err = open_refused();
        CHECK(err.kind == ERR_INTERNAL && strstr(err.msg, "state"), "%s", err.msg);
    }
    change("UPDATE sandboxes SET state = 'active'");
    start();
    CHECK(list_one()->turns == 7);
}

static void the_database_of_another_program_is_refused(void)
{
    struct err err;

    clear();
    change("CREATE TABLE sandboxes (id TEXT)");
    err = open_refused();
    CHECK(err.kind == ERR_INTERNAL && strstr(err.msg, "not a registry"), "%s", err.msg);
    start_anew();
    stop();
    change("PRAGMA application_id = 7");
    err = open_refused();
    CHECK(strstr(err.msg, "not a registry"), "%s", err.msg);
}

static void a_registry_without_its_tables_is_damaged(void)
{
    start_anew();
    stop();
    change("DROP TABLE labels");
    check_damaged();
}

static void words_that_nobody_wrote_are_named(void)
{
    static const struct {
        const char *sql, *named;
    } cases[] = {
        { "UPDATE sandboxes SET state = 'sleeping'", "bad state in sandboxes" },
        { "UPDATE sandboxes SET idle_action = ''", "bad idle_action in sandboxes" },
        { "UPDATE sandboxes SET pids = -1", "bad pids in sandboxes" },
        { "UPDATE sandboxes SET turns = 4294967296", "bad turns in sandboxes" },
        { "UPDATE sandboxes SET runtime = printf('%.16c', 'x')", "bad runtime in sandboxes" },
        { "UPDATE sandboxes SET base = 'a' || char(0) || 'b'", "bad base in sandboxes" },
        { "INSERT INTO labels VALUES ('s1', 0, printf('%.64c', 'x'), '')", "bad key in labels" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct sandbox_info info = numbered(1), *all;
        struct err err = { 0 };
        size_t count;

        start_anew();
        put(&info);
        change(cases[i].sql);
        CHECK(registry_list(registry, &all, &count, &err) < 0 && err.kind == ERR_INTERNAL);
        CHECK(strstr(err.msg, cases[i].named) && strstr(err.msg, path), "%s", err.msg);
        put(&info);
        change(cases[i].sql);
        stop();
        check_damaged();
    }
}

static size_t peak_kib(void)
{
    struct rusage usage;

    CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
    return (size_t)usage.ru_maxrss;
}

/* In processes of their own: this one's peak has to be known. */
static void a_huge_text_is_refused_without_holding_it(void)
{
    static const char *const texts[] = {
        "UPDATE sandboxes SET reason = ",
        "UPDATE sandboxes SET name = ",
        "INSERT INTO labels SELECT 's1', 0, 'key', ",
        "UPDATE snapshots SET parent = ",
    };

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct sandbox_info info = numbered(1);
        struct snapshot_info snapshot = { .name = "before" };
        char sql[128];
        int status;
        pid_t pid;

        start_anew();
        put_snapshot(&info, &snapshot);
        stop();
        (void)snprintf(sql, sizeof(sql), "%s printf('%%.%dc', 'x')", texts[i], HUGE_TEXT_BYTES);
        pid = fork();
        if (pid == 0) {
            change(sql);
            _exit(0);
        }
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
        pid = fork();
        if (pid == 0) {
            size_t before = peak_kib();

            check_damaged();
            CHECK(peak_kib() - before < (HUGE_TEXT_BYTES >> 10) / 4, "%zu KiB more",
                  peak_kib() - before);
            _exit(0);
        }
        CHECK(waitpid(pid, &status, 0) == pid && status == 0, "%s", texts[i]);
    }
}

/* A process that holds the lock until its stdin, ret_fd, is closed. */
static pid_t hold_lock(int *ret_fd)
{
    int ready[2], hold[2];
    pid_t pid;
    char byte;

    CHECK(pipe2(ready, O_CLOEXEC) == 0 && pipe2(hold, O_CLOEXEC) == 0);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        sqlite3 *db = NULL;

        (void)close(hold[1]);
        CHECK(sqlite3_open(path, &db) == SQLITE_OK &&
              sqlite3_exec(db, "BEGIN EXCLUSIVE", NULL, NULL, NULL) == SQLITE_OK);
        CHECK(write(ready[1], "x", 1) == 1);
        (void)read_full(hold[0], &byte, 1);
        _exit(0);
    }
    (void)close(ready[1]);
    (void)close(hold[0]);
    CHECK(read_full(ready[0], &byte, 1) == 1);
    (void)close(ready[0]);
    *ret_fd = hold[1];
    return pid;
}

static void release_lock(pid_t pid, int fd)
{
    int status;

    (void)close(fd);
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static void a_registry_that_another_process_holds_is_busy(void)
{
    struct err err;
    pid_t pid;
    int fd;

    start_anew();
    stop();
    pid = hold_lock(&fd);
    err = open_refused();
    CHECK(err.kind == ERR_BUSY && strstr(err.msg, "locked by another process"), "%s", err.msg);
    release_lock(pid, fd);
    start();
}

static void a_write_that_meets_a_lock_is_busy_and_works_later(void)
{
    struct sandbox_info info = numbered(1);
    struct err err = { 0 };
    size_t count;
    pid_t pid;
    int fd;

    start_anew();
    pid = hold_lock(&fd);
    CHECK(registry_put(registry, &info, &err) == -EBUSY && err.kind == ERR_BUSY, "%s", err.msg);
    (void)list(&count);
    CHECK(count == 0);
    release_lock(pid, fd);
    put(&info);
    (void)list_one();
}

/* Puts numbered rows for ever, and says so after each. */
static void write_rows(int report_fd)
{
    struct err err = { 0 };

    CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
    start();
    for (unsigned i = 0;; i++) {
        struct sandbox_info info = numbered(i);
        struct snapshot_info snapshot = { .name = "turn", .turn = i };

        if (registry_put_snapshot(registry, &info, &snapshot, &err) < 0)
            _exit(1);
        if (write_all(report_fd, &i, sizeof(i)) < 0)
            _exit(1);
    }
}

static void what_was_reported_survives_a_kill(void)
{
    for (unsigned round = 0; round < KILL_ROUNDS; round++) {
        struct timespec pause = { .tv_nsec = 1000 * (random() % 20000) };
        unsigned reported = 0, number;
        int report[2];
        size_t count, snapshots;
        pid_t pid;

        clear();
        CHECK(pipe2(report, O_CLOEXEC) == 0);
        pid = fork();
        CHECK(pid >= 0);
        if (pid == 0)
            write_rows(report[1]);
        (void)close(report[1]);
        (void)nanosleep(&pause, NULL);
        CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
        while (read_full(report[0], &number, sizeof(number)) == sizeof(number))
            reported = number + 1;
        (void)close(report[0]);

        start();
        (void)list(&count);
        CHECK(count == reported || count == reported + 1, "%zu of %u", count, reported);
        for (unsigned i = 0; i < count; i++) {
            struct sandbox_info info = numbered(i);

            (void)list_snapshots(info.id, &snapshots);
            CHECK(snapshots == 1);
        }
    }
}

/* Runs a test in a process that has the scratch directory on a small tmpfs of its own. */
static void run_on_tmpfs(void (*test)(void), const char *test_name)
{
    int status;
    pid_t pid;

    clear();
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("holt-test", scratch, "tmpfs", 0, "size=1m") < 0)
            _exit(errno == EPERM ? 77 : 1);
        test();
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        SKIP("%s: no mount namespace", test_name);
    CHECK(status == 0, "(%s: status %x)", test_name, (unsigned)status);
}

static void set_read_only(bool is_read_only)
{
    CHECK(mount(NULL, scratch, NULL, MS_REMOUNT | (is_read_only ? MS_RDONLY : 0), NULL) == 0);
}

static void open_read_only(void)
{
    struct sandbox_info info = numbered(1);
    struct registry *refused;
    struct err err = { 0 };

    set_read_only(true);
    CHECK(registry_open(path, &refused, &err) < 0 && err.kind == ERR_INTERNAL);
    CHECK(strstr(err.msg, path) && strstr(err.msg, "Read-only file system"), "%s", err.msg);
    set_read_only(false);
    start();
    put(&info);
    stop();
    set_read_only(true);
    err = open_refused();
    CHECK(err.kind == ERR_INTERNAL && strstr(err.msg, "writable"), "%s", err.msg);
    set_read_only(false);
    start();
    (void)list_one();
    stop();
}

static void a_read_only_directory_is_refused(void)
{
    run_on_tmpfs(open_read_only, __func__);
}

static void a_missing_directory_is_refused(void)
{
    cleanup_free char *missing = xasprintf("%s/missing/holt.db", scratch);
    struct registry *refused;
    struct err err = { 0 };

    CHECK(registry_open(missing, &refused, &err) < 0 && err.kind == ERR_INTERNAL);
    CHECK(strstr(err.msg, missing) && strstr(err.msg, "No such file"), "%s", err.msg);
    CHECK(registry_open(scratch, &refused, &err) < 0 && err.kind == ERR_INTERNAL);
    CHECK(strstr(err.msg, scratch), "%s", err.msg);
}

/* Leaves no byte free. */
static void fill_disk(const char *filler)
{
    static const char zeros[PAGE_BYTES];
    cleanup_close int fd = open(filler, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    CHECK(fd >= 0);
    while (write(fd, zeros, sizeof(zeros)) > 0)
        continue;
    CHECK(errno == ENOSPC);
}

static void write_to_a_full_disk(void)
{
    cleanup_free char *filler = xasprintf("%s/filler", scratch);
    struct snapshot_info snapshot = { .name = "turn" };
    struct err err = { 0 };
    unsigned recorded = 0, tried;
    size_t count;

    start();
    for (unsigned round = 0; round < 3; round++) {
        struct sandbox_info info;

        fill_disk(filler);
        for (;; recorded++) {
            info = numbered(recorded);
            if (registry_put_snapshot(registry, &info, &snapshot, &err) < 0)
                break;
        }
        CHECK(err.kind == ERR_EXHAUSTED && strstr(err.msg, "disk is full"), "%s", err.msg);
        for (tried = 0; tried < 3; tried++)
            CHECK(registry_put_snapshot(registry, &info, &snapshot, &err) < 0);
        (void)list(&count);
        CHECK(count == recorded);
        CHECK(unlink(filler) == 0);
        put_snapshot(&info, &snapshot);
        recorded++;
        (void)list(&count);
        CHECK(count == recorded, "%zu of %u", count, recorded);
        if (round == 1) {
            stop();
            start();
        }
    }
    stop();
}

static void a_full_disk_loses_nothing_and_passes(void)
{
    run_on_tmpfs(write_to_a_full_disk, __func__);
}

static void open_on_a_full_disk(void)
{
    cleanup_free char *filler = xasprintf("%s/filler", scratch);
    struct registry *refused;
    struct err err = { 0 };

    fill_disk(filler);
    CHECK(registry_open(path, &refused, &err) < 0 && err.kind == ERR_EXHAUSTED, "%s", err.msg);
    CHECK(strstr(err.msg, path) && strstr(err.msg, "disk is full"), "%s", err.msg);
    CHECK(unlink(filler) == 0);
    start();
    stop();
}

static void a_full_disk_is_named_when_it_is_opened(void)
{
    run_on_tmpfs(open_on_a_full_disk, __func__);
}

static void all(void)
{
    scratch_make();
    srandom((unsigned)time(NULL));
    RUN(the_file_is_private);
    RUN(an_empty_file_is_a_new_registry);
    RUN(a_damaged_page_is_found_when_it_is_opened);
    RUN(the_documented_remedy_saves_what_can_be_read);
    RUN(a_truncated_file_is_found_when_it_is_opened);
    RUN(a_file_of_text_is_refused);
    RUN(changes_without_their_file_are_kept);
    RUN(a_newer_registry_is_refused);
    RUN(an_older_registry_becomes_one_of_today);
    RUN(names_are_unique_for_each_owner);
    RUN(volumes_are_found_by_id_and_by_name);
    RUN(names_of_volumes_are_unique_for_each_owner);
    RUN(a_template_has_one_name_for_each_owner);
    RUN(what_is_shared_is_replaced_as_a_whole_and_goes_with_its_object);
    RUN(an_owner_of_a_template_is_kept_until_it_is_dropped);
    RUN(mounts_stay_until_their_sandbox_goes);
    RUN(mounts_of_an_older_registry_can_be_written_to);
    RUN(a_note_stays_until_its_sandbox_goes);
    RUN(an_older_registry_that_is_damaged_stays_as_it_is);
    RUN(the_database_of_another_program_is_refused);
    RUN(a_registry_without_its_tables_is_damaged);
    RUN(words_that_nobody_wrote_are_named);
    RUN(a_huge_text_is_refused_without_holding_it);
    RUN(a_registry_that_another_process_holds_is_busy);
    RUN(a_write_that_meets_a_lock_is_busy_and_works_later);
    RUN(what_was_reported_survives_a_kill);
    RUN(a_read_only_directory_is_refused);
    RUN(a_missing_directory_is_refused);
    RUN(a_full_disk_loses_nothing_and_passes);
    RUN(a_full_disk_is_named_when_it_is_opened);
    scratch_remove();
}

int main(void)
{
    RUN(all);
    return 0;
}
