// SPDX-License-Identifier: Apache-2.0
/* Writers of archives, the collector, and storages that fail: what is reported is whole, and what
 * is not needed goes. */
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/random.h"
#include "base/text/hex.h"
#include "base/thread.h"
#include "remote/archive/list.h"
#include "unit/remote/archives.h"

/* The marker that a host with this name would put. */
static void marker_put(const char *kind, const char *host)
{
    char key[128], random[HEX_SIZE(16)];

    CHECK(random_hex(random, 16) == 0);
    (void)snprintf(key, sizeof(key), "alice/markers/%s-%s-%s", kind, host, random);
    object_put(key, "", 0);
}

/* Makes all markers that there are older. */
static void markers_age(unsigned hours)
{
    cleanup_with(keys_done) struct keys keys = keys_of("alice/markers/");
    struct timespec times[2] = { { .tv_sec = (time_t)(clock_wall_ms() / 1000) - hours * 3600 } };

    times[1] = times[0];
    for (size_t i = 0; i < keys.count; i++) {
        char path[256];

        (void)snprintf(path, sizeof(path), "%s/%s", top, keys.keys[i]);
        CHECK(utimensat(AT_FDCWD, path, times, 0) == 0);
    }
}

static bool is_collecting_busy(void)
{
    struct archive_collected collected;

    return archive_collect(&sealed, &collected, &err) < 0 && err.kind == ERR_BUSY;
}

/* --- the collector ---------------------------------------------------------------------------- */

static void chunks_go_with_the_last_archive(void)
{
    cleanup_with(stream_done) struct stream one = random_stream(1, 5 * MIB);
    cleanup_with(stream_done) struct stream two = random_stream(1, 7 * MIB);

    (void)write_archive(&sealed, "1", &one);
    (void)write_archive(&sealed, "2", &two);
    CHECK(collect(&sealed) == 0);
    CHECK(archive_remove(&sealed, "1", &err) == 0);
    CHECK(collect(&sealed) > 0);
    check_archive(&sealed, "2", &two);
    CHECK(archive_remove(&sealed, "2", &err) == 0);
    CHECK(collect(&sealed) > 2);
    CHECK(count_keys("") == 0);
}

static void an_unfinished_stream_leaves_what_the_collector_takes(void)
{
    cleanup_with(stream_done) struct stream stream = random_stream(2, 5 * MIB);
    struct archive_writer *writer = NULL;

    CHECK(archive_writer_open(&sealed, &writer, &err) == 0, "(%s)", err.msg);
    CHECK(archive_write(writer, stream.bytes, stream.len, &err) == 0, "(%s)", err.msg);
    CHECK(is_collecting_busy() && strstr(err.msg, "writing-here-"), "(%s)", err.msg);
    archive_writer_close(writer);
    (void)collect(&sealed);
    CHECK(count_keys("") == 0);
}

static void objects_of_others_stay(void)
{
    static const char *const others[] = { "bob/chunks/ab/x", "alice/chunks/note",
                                          "alice/chunks/00/ABCD", "alice/other" };

    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        object_put(others[i], "x", 1);
    CHECK(collect(&sealed) == 0 && count_keys("") == ARRAY_SIZE(others));
}

/* A list of thousands of chunks, of which the storage has a few. */
static void a_collector_knows_thousands_of_chunks(void)
{
    enum { COUNT = 20000, STEP = 500 };
    cleanup_with(buf_done) struct buf refs = BUF_INIT(COUNT * ARCHIVE_REF_LEN);
    cleanup_with(archive_list_done) struct archive_list list = { .size = COUNT };
    struct archive_session session;
    struct archive_scratch scratch;
    char key[REMOTE_KEY_MAX + 1];

    CHECK(archive_session_open(&sealed, &session, &err) == 0);
    archive_scratch_init(&scratch);
    list.description = xstrdup("");
    for (size_t i = 0; i < 2 * (size_t)COUNT; i++) {
        struct archive_ref ref = { .size = 1 };
        uint8_t encoded[ARCHIVE_REF_LEN];

        CHECK(archive_identify(&session.keys, &i, sizeof(i), ref.id) == 0);
        archive_ref_encode(&ref, encoded);
        CHECK(i >= COUNT || buf_add(&refs, encoded, sizeof(encoded)) == 0);
        archive_chunk_key(&session, ref.id, key);
        if (i % STEP == 0)
            object_put(key, "x", 1);
    }
    CHECK(archive_pieces_store(&session, &scratch, &refs, &list, &err) == 0, "(%s)", err.msg);
    CHECK(archive_list_put(&session, &scratch, "x", &list, &err) == 0, "(%s)", err.msg);
    CHECK(collect(&sealed) == COUNT / STEP);
    CHECK(count_keys("alice/chunks/") == COUNT / STEP + list.pieces);
    archive_scratch_done(&scratch);
    archive_session_done(&session);
}

/* Chunks of a list that cannot be read are unknown. */
static void a_damaged_list_stops_the_collector(void)
{
    static const uint8_t other_key[ARCHIVE_KEY_LEN] = "another";
    cleanup_with(stream_done) struct stream stream = random_stream(3, 2 * MIB);
    cleanup_with(buf_done) struct buf list = BUF_INIT(REMOTE_OBJECT_MAX);
    struct archive_collected collected;
    struct archive_store other = sealed;
    size_t count;

    (void)write_archive(&sealed, "1", &stream);
    (void)write_archive(&sealed, "2", &stream);
    count = count_keys("");
    other.key = other_key;
    CHECK(archive_collect(&other, &collected, &err) < 0 && err.kind == ERR_INTERNAL);
    CHECK(archive_collect(&plain, &collected, &err) < 0 && err.kind == ERR_INTERNAL);
    list = object_get("alice/archives/2");
    object_put("alice/archives/2", list.data, list.len - 1);
    CHECK(archive_collect(&sealed, &collected, &err) < 0 && strstr(err.msg, "archives/2"), "(%s)",
          err.msg);
    CHECK(count_keys("") == count);
    check_archive(&sealed, "1", &stream);
}

static void a_writer_of_another_host_stops_the_collector(void)
{
    marker_put("writing", "there");
    CHECK(is_collecting_busy());
    markers_age(23);
    CHECK(is_collecting_busy());
    markers_age(25);
    CHECK(collect(&sealed) == 0);
    CHECK(count_keys("") == 0);
}

static struct archive_collected late_collected;
static int late_result;
static struct err late_err;

static void collect_late(void *argument)
{
    (void)argument;
    late_result = archive_collect(&sealed, &late_collected, &late_err);
}

static atomic_int removals;

/* A writer comes while the collector removes its first chunks. */
static int remove_slowly(const char *key, struct err *error)
{
    (void)error;
    if (strstr(key, "/chunks/") && atomic_fetch_add(&removals, 1) == 0)
        marker_put("writing", "there");
    if (strstr(key, "/chunks/"))
        clock_sleep_ms(400);
    return 0;
}

static void a_collector_gives_way_to_a_writer(void)
{
    char key[128];

    for (unsigned i = 0; i < 100; i++) {
        (void)snprintf(key, sizeof(key), "alice/chunks/%02x/%02x%062u", i, i, i);
        object_put(key, "x", 1);
    }
    hooks.remove = remove_slowly;
    CHECK(is_collecting_busy());
    hooks.remove = NULL;
    CHECK(count_keys("alice/chunks/") > 20 && count_keys("alice/chunks/") < 100, "(%zu)",
          count_keys("alice/chunks/"));
    CHECK(count_keys("alice/markers/collecting") == 0);
}

static void a_writer_waits_for_the_collector(void)
{
    cleanup_with(stream_done) struct stream stream = random_stream(4, 2 * MIB);
    struct thread thread = { 0 };
    char key[128];

    for (unsigned i = 0; i < 100; i++) {
        (void)snprintf(key, sizeof(key), "alice/chunks/%02x/%02x%062u", i, i, i);
        object_put(key, "x", 1);
    }
    atomic_store(&removals, 1); /* no marker but the writer's */
    hooks.remove = remove_slowly;
    CHECK(thread_start(&thread, "collect", collect_late, NULL) == 0);
    while (atomic_load(&removals) < 2)
        clock_sleep_ms(10);
    (void)write_archive(&sealed, "x", &stream);
    thread_join(&thread);
    hooks.remove = NULL;
    CHECK(late_result < 0 && late_err.kind == ERR_BUSY, "(%s)", late_err.msg);
    (void)collect(&sealed);
    check_archive(&sealed, "x", &stream);
    CHECK(count_keys("alice/markers/") == 0);
}

static void a_writer_does_not_wait_for_ever(void)
{
    struct archive_writer *writer = NULL;

    marker_put("collecting", "there");
    CHECK(archive_writer_open(&sealed, &writer, &err) < 0 && err.kind == ERR_BUSY, "(%s)", err.msg);
    CHECK(strstr(err.msg, "collecting-there-") && !writer);
    CHECK(count_keys("alice/markers/writing") == 0);
    markers_age(25);
    CHECK(archive_writer_open(&sealed, &writer, &err) == 0, "(%s)", err.msg);
    archive_writer_close(writer);
    CHECK(count_keys("") == 0);
}

static void a_writer_without_its_marker_fails(void)
{
    cleanup_with(stream_done) struct stream stream = random_stream(5, MIB);
    cleanup_with(keys_done) struct keys keys = { 0 };
    struct archive_writer *writer = NULL;

    CHECK(archive_writer_open(&sealed, &writer, &err) == 0, "(%s)", err.msg);
    CHECK(archive_write(writer, stream.bytes, stream.len, &err) == 0, "(%s)", err.msg);
    keys = keys_of("alice/markers/writing");
    CHECK(keys.count == 1 && remote_remove(inner, keys.keys[0], &err) == 0);
    CHECK(archive_writer_finish(writer, "x", "", NULL, &err) < 0 && err.kind == ERR_BUSY, "(%s)",
          err.msg);
    archive_writer_close(writer);
    CHECK(count_keys("alice/archives/") == 0);
}

static void a_host_forgets_its_own_markers_only(void)
{
    marker_put("writing", "here");
    marker_put("collecting", "here");
    marker_put("writing", "here-2");
    marker_put("writing", "her");
    marker_put("collecting", "there");
    CHECK(archive_forget_markers(&sealed, &err) == 0, "(%s)", err.msg);
    CHECK(count_keys("alice/markers/") == 3);
    CHECK(count_keys("alice/markers/writing-here-2") == 1);
}

/* --- threads ---------------------------------------------------------------------------------- */

enum { WRITERS = 3, ROUNDS = 6, STREAM_LEN = 3 * MIB };

static atomic_uint writers_left;

static struct archive_store store_of(intptr_t writer)
{
    static const char *const hosts[] = { "a", "b", "c" };
    struct archive_store store = sealed;

    store.host = hosts[writer];
    return store;
}

/* All streams share their first half. */
static struct stream shared_stream(intptr_t writer, int round)
{
    struct stream stream = random_stream((uint64_t)(100 * writer + round), STREAM_LEN);
    cleanup_with(stream_done) struct stream half = random_stream(1, STREAM_LEN / 2);

    memcpy(stream.bytes, half.bytes, half.len);
    return stream;
}

static void write_and_remove(void *argument)
{
    intptr_t number = (intptr_t)argument;
    struct archive_store store = store_of(number);
    struct err error;
    char name[32];

    for (int i = 0; i < ROUNDS; i++) {
        cleanup_with(stream_done) struct stream stream = shared_stream(number, i);

        (void)snprintf(name, sizeof(name), "%d/%d", (int)number, i);
        CHECK(try_write(&store, name, &stream, NULL, &error) == 0, "(%s)", error.msg);
        CHECK(try_read(&store, name, &stream, &error) == 0, "(%s)", error.msg);
        if (i == ROUNDS - 1)
            break;
        CHECK(archive_remove(&store, name, &error) == 0, "(%s)", error.msg);
        clock_sleep_ms(50);
    }
    atomic_fetch_sub(&writers_left, 1);
}

static void a_collector_never_takes_what_a_writer_needs(void)
{
    struct thread threads[WRITERS] = { 0 };

    atomic_store(&writers_left, WRITERS);
    for (intptr_t i = 0; i < WRITERS; i++)
        CHECK(thread_start(&threads[i], "writer", write_and_remove, (void *)i) == 0);
    while (atomic_load(&writers_left) > 0) {
        struct archive_collected collected;

        CHECK(archive_collect(&sealed, &collected, &err) == 0 || err.kind == ERR_BUSY, "(%s)",
              err.msg);
        clock_sleep_ms(5);
    }
    for (int i = 0; i < WRITERS; i++)
        thread_join(&threads[i]);
    for (intptr_t i = 0; i < WRITERS; i++) {
        cleanup_with(stream_done) struct stream stream = shared_stream(i, ROUNDS - 1);
        struct archive_store store = store_of(i);
        char name[32];

        (void)snprintf(name, sizeof(name), "%d/%d", (int)i, ROUNDS - 1);
        check_archive(&store, name, &stream);
        CHECK(archive_remove(&store, name, &err) == 0);
    }
    (void)collect(&sealed);
    CHECK(count_keys("") == 0);
}

/* --- deaths ----------------------------------------------------------------------------------- */

static struct stream death_stream;

/* What a process does that dies at a step. */
static void live(void)
{
    struct archive_collected collected;

    (void)try_write(&sealed, "new", &death_stream, NULL, &err);
    (void)archive_remove(&sealed, "old", &err);
    (void)archive_collect(&sealed, &collected, &err);
}

static void die_at(const char *step)
{
    int status = 0;
    pid_t pid;

    CHECK(setenv("HOLT_FAULT", step, 1) == 0);
    (void)fflush(NULL);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        fault_init();
        live();
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "(%s: %d)", step, status);
}

static void a_death_at_any_step_leaves_no_orphan(void)
{
    static const char *const steps[] = { "archive.chunk",     "archive.chunk:4",
                                         "archive.verified",  "archive.listed",
                                         "archive.collected", "archive.collected:3" };
    cleanup_with(stream_done) struct stream old = random_stream(6, 8 * MIB);
    cleanup_with(stream_done) struct stream new = random_stream(7, 8 * MIB);
    struct archive_info info;

    memcpy(new.bytes, old.bytes, old.len / 2);
    death_stream = new;
    for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
        bool is_new, is_old;

        (void)write_archive(&sealed, "old", &old);
        die_at(steps[i]);
        CHECK(count_keys("alice/markers/") == 1, "(%s)", steps[i]);
        CHECK(archive_forget_markers(&sealed, &err) == 0, "(%s)", err.msg);
        (void)collect(&sealed);
        is_new = archive_find(&sealed, "new", &info, &err) == 0;
        if (is_new)
            archive_info_done(&info);
        is_old = archive_find(&sealed, "old", &info, &err) == 0;
        if (is_old)
            archive_info_done(&info);
        CHECK(is_new == (i >= 3) && is_old == (i <= 3), "(%s)", steps[i]);
        if (is_new)
            check_archive(&sealed, "new", &new);
        if (is_old)
            check_archive(&sealed, "old", &old);
        CHECK(archive_remove(&sealed, "new", &err) == 0);
        CHECK(archive_remove(&sealed, "old", &err) == 0);
        (void)collect(&sealed);
        CHECK(count_keys("") == 0, "(%s)", steps[i]);
    }
}

/* --- storages that fail ----------------------------------------------------------------------- */

static atomic_int puts_left;

static int put_until_full(const struct remote_put *put, struct err *error)
{
    if (atomic_fetch_sub(&puts_left, 1) > 0)
        return 0;
    return err_refuse(error, CAUSE_NO_SPACE, "no space for '%s'", put->key);
}

static void a_full_storage_fails_the_archive(void)
{
    cleanup_with(stream_done) struct stream stream = random_stream(8, 6 * MIB);
    int puts = 0;

    for (bool is_done = false; !is_done; puts++) {
        atomic_store(&puts_left, puts);
        hooks.put = put_until_full;
        is_done = try_write(&sealed, "x", &stream, NULL, &err) == 0;
        hooks.put = NULL;
        CHECK(is_done || err.cause == CAUSE_NO_SPACE, "(%s)", err.msg);
        CHECK(count_keys("alice/archives/") == is_done && count_keys("alice/markers/") == 0);
        if (!is_done) {
            (void)collect(&sealed);
            CHECK(count_keys("") == 0);
        }
    }
    CHECK(puts > 6, "(%d)", puts);
    check_archive(&sealed, "x", &stream);
}

/* The storage confirms a chunk and keeps something else. */
static int put_elsewhere(const struct remote_put *put, int r, struct err *error)
{
    (void)error;
    if (strstr(put->key, "/chunks/"))
        object_put(put->key, "something else", 14);
    return r;
}

static int put_lost(const struct remote_put *put, int r, struct err *error)
{
    if (strstr(put->key, "/chunks/"))
        CHECK(remote_remove(inner, put->key, error) == 0);
    return r;
}

static int list_put_elsewhere(const struct remote_put *put, int r, struct err *error)
{
    (void)error;
    if (strstr(put->key, "/archives/"))
        object_put(put->key, "something else", 14);
    return r;
}

static void a_storage_that_keeps_other_bytes_is_noticed(void)
{
    cleanup_with(stream_done) struct stream stream = random_stream(9, MIB);

    hooks.put_done = put_elsewhere;
    CHECK(try_write(&sealed, "1", &stream, NULL, &err) < 0 && strstr(err.msg, "other bytes"),
          "(%s)", err.msg);
    hooks.put_done = put_lost;
    CHECK(try_write(&sealed, "2", &stream, NULL, &err) < 0 && strstr(err.msg, "other bytes"),
          "(%s)", err.msg);
    hooks.put_done = list_put_elsewhere;
    CHECK(try_write(&sealed, "3", &stream, NULL, &err) < 0 && strstr(err.msg, "other bytes"),
          "(%s)", err.msg);
    hooks.put_done = NULL;
}

/* Changes a bit of each chunk, and writes them again. */
static void check_compared(const struct archive_store *store)
{
    cleanup_with(stream_done) struct stream stream = random_stream(10, 5 * MIB);
    cleanup_free char *prefix = xasprintf("%s/chunks/", store->owner);
    cleanup_with(keys_done) struct keys keys = { 0 };

    (void)write_archive(store, "1", &stream);
    keys = keys_of(prefix);
    for (size_t i = 0; i < keys.count; i++) {
        cleanup_with(buf_done) struct buf object = object_get(keys.keys[i]);
        char name[32];

        object.data[object.len / 2] ^= 1;
        object_put(keys.keys[i], object.data, object.len);
        (void)snprintf(name, sizeof(name), "again%zu", i);
        CHECK(write_archive(store, name, &stream) >= object.len - 1);
        check_archive(store, "1", &stream);
    }
}

static void chunks_that_were_found_are_compared(void)
{
    struct archive_store bob = plain;

    bob.owner = "bob";
    check_compared(&sealed);
    check_compared(&bob);
}

/* The list was stored, and its reply was lost; or the repeated put found that of the first. */
static int list_reply_lost(const struct remote_put *put, int r, struct err *error)
{
    if (r == 0 && strstr(put->key, "/archives/"))
        return err_set(error, strchr(put->key, '1') ? ERR_UNAVAILABLE : ERR_EXISTS, "no reply");
    return r;
}

static void a_lost_reply_does_not_fail_the_archive(void)
{
    cleanup_with(stream_done) struct stream stream = random_stream(11, MIB);

    hooks.put_done = list_reply_lost;
    (void)write_archive(&sealed, "1", &stream);
    (void)write_archive(&sealed, "2", &stream);
    hooks.put_done = NULL;
    check_archive(&sealed, "1", &stream);
    check_archive(&sealed, "2", &stream);
}

/* Another writer takes the name at the last moment. */
static int list_put_late(const struct remote_put *put, struct err *error)
{
    (void)error;
    if (strstr(put->key, "/archives/"))
        object_put(put->key, "of another", 10);
    return 0;
}

static void of_two_writers_of_a_name_one_wins(void)
{
    cleanup_with(stream_done) struct stream stream = random_stream(13, 1000);
    cleanup_with(buf_done) struct buf list = BUF_INIT(REMOTE_OBJECT_MAX);

    hooks.put = list_put_late;
    CHECK(try_write(&sealed, "x", &stream, NULL, &err) < 0 && err.kind == ERR_EXISTS, "(%s)",
          err.msg);
    hooks.put = NULL;
    list = object_get("alice/archives/x");
    CHECK_TEXT(list.data, "of another");
}

static int put_refused(const struct remote_put *put, struct err *error)
{
    return strstr(put->key, "/chunks/") ? err_set(error, ERR_UNAVAILABLE, "first failure") : 0;
}

static void a_writer_repeats_its_first_failure(void)
{
    cleanup_with(stream_done) struct stream stream = random_stream(12, 30 * MIB);
    struct archive_writer *writer = NULL;

    CHECK(archive_writer_open(&sealed, &writer, &err) == 0, "(%s)", err.msg);
    hooks.put = put_refused;
    CHECK(archive_write(writer, stream.bytes, stream.len, &err) < 0);
    CHECK_TEXT(err.msg, "first failure");
    err = (struct err){ 0 };
    CHECK(archive_write(writer, stream.bytes, 1, &err) < 0 && err.kind == ERR_UNAVAILABLE);
    err = (struct err){ 0 };
    CHECK(archive_writer_finish(writer, "x", "", NULL, &err) < 0 && err.kind == ERR_UNAVAILABLE);
    archive_writer_close(writer);
    hooks.put = NULL;
    CHECK(count_keys("alice/archives/") == 0);
}

int main(void)
{
    RUN_WITH_STORAGE(chunks_go_with_the_last_archive);
    RUN_WITH_STORAGE(an_unfinished_stream_leaves_what_the_collector_takes);
    RUN_WITH_STORAGE(objects_of_others_stay);
    RUN_WITH_STORAGE(a_collector_knows_thousands_of_chunks);
    RUN_WITH_STORAGE(a_damaged_list_stops_the_collector);
    RUN_WITH_STORAGE(a_writer_of_another_host_stops_the_collector);
    RUN_WITH_STORAGE(a_collector_gives_way_to_a_writer);
    RUN_WITH_STORAGE(a_writer_waits_for_the_collector);
    RUN_WITH_STORAGE(a_writer_does_not_wait_for_ever);
    RUN_WITH_STORAGE(a_writer_without_its_marker_fails);
    RUN_WITH_STORAGE(a_host_forgets_its_own_markers_only);
    RUN_WITH_STORAGE(a_collector_never_takes_what_a_writer_needs);
    RUN_WITH_STORAGE(a_death_at_any_step_leaves_no_orphan);
    RUN_WITH_STORAGE(a_full_storage_fails_the_archive);
    RUN_WITH_STORAGE(a_storage_that_keeps_other_bytes_is_noticed);
    RUN_WITH_STORAGE(chunks_that_were_found_are_compared);
    RUN_WITH_STORAGE(a_lost_reply_does_not_fail_the_archive);
    RUN_WITH_STORAGE(of_two_writers_of_a_name_one_wins);
    RUN_WITH_STORAGE(a_writer_repeats_its_first_failure);
    return 0;
}
