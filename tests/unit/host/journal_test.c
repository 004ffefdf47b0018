// SPDX-License-Identifier: Apache-2.0
/* Tests that the journal returns what was stored, and that a damaged one does not stop the
 * daemon. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "check.h"
#include "host/process/journal.h"
#include "host/process/record_internal.h"

enum { DISK = 1 << 20, LIST_MAX = 8 };

static char dir[] = "/tmp/holt-journal-test-XXXXXX", path[64];
static struct err err;

struct list {
    struct record *records[LIST_MAX];
    size_t count;
};

static void list_add(void *context, struct record *record)
{
    struct list *list = context;

    CHECK(list->count < LIST_MAX);
    list->records[list->count++] = record;
}

static void list_done(struct list *list)
{
    for (size_t i = 0; i < list->count; i++)
        record_unref(list->records[i]);
}

static struct list load(struct journal *journal, const char *sandbox)
{
    struct list list = { .count = 0 };

    CHECK(journal_load(journal, sandbox, DISK, list_add, &list, &err) == 0, "(%s)", err.msg);
    return list;
}

static struct journal *open_journal(void)
{
    struct journal *journal = NULL;

    CHECK(journal_open(path, &journal, &err) == 0, "(%s)", err.msg);
    return journal;
}

static struct record *make_record(uint32_t number, const struct process_spec *spec)
{
    struct record *record = record_new(number, spec, DISK);

    record->started_ms = 1000 + number;
    return record;
}

static char *args[] = { (char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c",
                        (char *)(uintptr_t) "echo 'ä\n'", NULL };
static char *env[] = { (char *)(uintptr_t) "A=1", (char *)(uintptr_t) "B=", NULL };

static void check_spec(const struct process_spec *got, const struct process_spec *wanted)
{
    for (size_t i = 0; wanted->args[i]; i++)
        CHECK_TEXT(got->args[i], wanted->args[i]);
    for (size_t i = 0; wanted->env && wanted->env[i]; i++)
        CHECK_TEXT(got->env[i], wanted->env[i]);
    CHECK(!got->cwd == !wanted->cwd && (!got->cwd || strcmp(got->cwd, wanted->cwd) == 0));
    CHECK(!got->tag == !wanted->tag && (!got->tag || strcmp(got->tag, wanted->tag) == 0));
    CHECK(!got->key == !wanted->key && (!got->key || strcmp(got->key, wanted->key) == 0));
    CHECK(got->has_stdin == wanted->has_stdin && got->has_terminal == wanted->has_terminal &&
          got->timeout_ms == wanted->timeout_ms && got->restart == wanted->restart &&
          got->port == wanted->port && got->is_detached == wanted->is_detached);
}

static void a_running_process_comes_back(void)
{
    static const struct process_spec full = {
        .args = args,
        .env = env,
        .cwd = "/w",
        .has_stdin = true,
        .timeout_ms = UINT64_C(1) << 40,
        .tag = "tag",
        .key = "key",
        .restart = RESTART_ALWAYS,
        .port = 65535,
        .is_detached = true,
    };
    static const struct process_spec plain = { .args = args, .has_terminal = true };
    struct record *one = make_record(1, &full), *two = make_record(7, &plain);
    const struct journal_entry entries[] = { { "sb-1", two }, { "sb-1", one }, { "sb-2", one } };
    struct journal *journal = open_journal();
    cleanup_with(list_done) struct list list = { .count = 0 };

    one->oom_kills_before = 5;
    one->restarts = 3;
    one->host_port = 40000;
    one->base[PROCESS_ERR] = UINT64_C(1) << 33;
    CHECK(journal_put(journal, entries, ARRAY_SIZE(entries), &err) == 0, "(%s)", err.msg);
    journal_close(journal);
    journal = open_journal();
    list = load(journal, "sb-1");
    CHECK(list.count == 2 && list.records[0]->number == 1 && list.records[1]->number == 7);
    CHECK_TEXT(list.records[1]->id, "p7");
    check_spec(list.records[0]->spec, &full);
    check_spec(list.records[1]->spec, &plain);
    CHECK(list.records[0]->oom_kills_before == 5 && list.records[0]->restarts == 3 &&
          list.records[0]->host_port == 40000 && list.records[0]->started_ms == 1001 &&
          list.records[0]->base[PROCESS_ERR] == UINT64_C(1) << 33 && !list.records[0]->is_over);
    CHECK(journal_remove(journal, "sb-1", 1, &err) == 0);
    CHECK(journal_remove_sandbox(journal, "sb-2", &err) == 0);
    list_done(&list);
    list = load(journal, "sb-1");
    CHECK(list.count == 1 && list.records[0]->number == 7);
    CHECK(load(journal, "sb-2").count == 0 && load(journal, "nosuch").count == 0);
    journal_close(journal);
    record_unref(one);
    record_unref(two);
}

static void an_end_comes_back_with_its_output(void)
{
    static const struct process_spec spec = { .args = args };
    static const struct process_end end = {
        .outcome = OUTCOME_KILLED,
        .killer = KILLER_ROLLBACK,
        .exit_code = 137,
        .signal = 9,
        .reason = "it \"was\" rolled back",
        .duration_ms = 1,
        .cpu_ms = 2,
        .memory_peak_bytes = UINT64_C(3) << 40,
    };
    struct record *record = make_record(2, &spec);
    struct journal *journal = open_journal();
    cleanup_with(list_done) struct list list = { .count = 0 };
    char data[8];
    uint64_t unspooled;

    CHECK(record_add(record, PROCESS_OUT, "a\0b\xff", 4, &unspooled) == 0 && unspooled == 4);
    record_finish(record, &end, 99);
    CHECK(journal_put(journal, &(struct journal_entry){ "sb-3", record }, 1, &err) == 0);
    list = load(journal, "sb-3");
    CHECK(list.count == 1 && list.records[0]->is_over && list.records[0]->ended_ms == 99);
    CHECK(list.records[0]->end.outcome == end.outcome &&
          list.records[0]->end.killer == end.killer && list.records[0]->end.exit_code == 137 &&
          list.records[0]->end.signal == 9 && list.records[0]->end.duration_ms == 1 &&
          list.records[0]->end.cpu_ms == 2 &&
          list.records[0]->end.memory_peak_bytes == end.memory_peak_bytes);
    CHECK_TEXT(list.records[0]->end.reason, end.reason);
    CHECK(window_copy(&list.records[0]->streams[PROCESS_OUT].window, 0, data, 8) == 4 &&
          memcmp(data, "a\0b\xff", 4) == 0);
    CHECK(list.records[0]->streams[PROCESS_ERR].window.end == 0);
    journal_close(journal);
    record_unref(record);
}

/* A restart of the service may be in progress when the daemon stops, and writes the record then. */
static void a_process_that_outlives_its_daemon_has_no_end(void)
{
    static const struct process_spec spec = { .args = args };
    const struct process_end end = { .outcome = OUTCOME_LOST, .exit_code = 125 };
    struct record *record = make_record(2, &spec);
    struct journal *journal = open_journal();
    cleanup_with(list_done) struct list list = { .count = 0 };

    record_leave(record, &end);
    CHECK(record_is_over(record), "(its readers are told)");
    CHECK(journal_put(journal, &(struct journal_entry){ "sb-4", record }, 1, &err) == 0);
    list = load(journal, "sb-4");
    CHECK(list.count == 1 && !list.records[0]->is_over && list.records[0]->ended_ms == 0);
    journal_close(journal);
    record_unref(record);
}

/* The daemon starts without the processes. */
static void a_damaged_journal_is_put_aside(void)
{
    char aside[80];
    struct journal *journal;
    struct stat st;

    CHECK(file_create_at(AT_FDCWD, path, 0600, "this is no database, but a text of some length") ==
          0);
    journal = open_journal();
    CHECK(load(journal, "sb-1").count == 0);
    journal_close(journal);
    (void)snprintf(aside, sizeof(aside), "%s.bad", path);
    CHECK(stat(aside, &st) == 0 && stat(path, &st) == 0 && (st.st_mode & 077) == 0);
    CHECK(unlink(aside) == 0);
}

static void remove_all(void)
{
    static const char *const endings[] = { "", "-wal", "-shm", ".bad-wal", ".bad-shm" };

    for (size_t i = 0; i < ARRAY_SIZE(endings); i++) {
        char name[80];

        (void)snprintf(name, sizeof(name), "%s%s", path, endings[i]);
        (void)unlink(name);
    }
    CHECK(rmdir(dir) == 0);
}

static void all(void)
{
    CHECK(mkdtemp(dir));
    (void)snprintf(path, sizeof(path), "%s/processes.db", dir);
    RUN(a_running_process_comes_back);
    RUN(an_end_comes_back_with_its_output);
    RUN(a_process_that_outlives_its_daemon_has_no_end);
    RUN(a_damaged_journal_is_put_aside);
    remove_all();
}

int main(void)
{
    RUN(all);
    return 0;
}
