// SPDX-License-Identifier: Apache-2.0
/* What is put into the registry comes out again. */
#include "unit/host/registry_test.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>

enum { THREADS = 8, PUTS_PER_THREAD = 50, MANY_SNAPSHOTS = 10000 };

static void check_same(const struct sandbox_info *got, const struct sandbox_info *wanted)
{
    struct sandbox_info copy = *got;

    CHECK(got->label_count == wanted->label_count);
    for (size_t i = 0; i < got->label_count; i++) {
        CHECK_TEXT(got->labels[i].key, wanted->labels[i].key);
        CHECK_TEXT(got->labels[i].value, wanted->labels[i].value);
    }
    copy.labels = wanted->labels;
    CHECK(memcmp(&copy, wanted, sizeof(copy)) == 0);
}

static void every_field_comes_back(void)
{
    struct label labels[2] = { 0 };
    struct sandbox_info info;

    start_anew();
    /* Padding too: the whole structs are compared. */
    memset(&info, 0, sizeof(info));
    info = full_info(labels);
    put(&info);
    check_same(list_one(), &info);
    stop();
    start();
    check_same(list_one(), &info);
}

static void what_is_filled_in_for_clients_is_not_stored(void)
{
    struct sandbox_info info = numbered(1);

    start_anew();
    info.snapshot_count = 7;
    info.space_used = 8;
    put(&info);
    CHECK(list_one()->snapshot_count == 0 && list_one()->space_used == 0);
}

static void every_field_of_a_snapshot_comes_back(void)
{
    struct sandbox_info info = numbered(1);
    struct snapshot_info snapshot = {
        .kind = SNAPSHOT_NAMED,
        .turn = UINT32_MAX,
        .created_ms = 12,
        .space_used = UINT64_MAX,
    };
    const struct snapshot_info *got;
    size_t count;

    start_anew();
    fill(snapshot.name, sizeof(snapshot.name), 'n');
    fill(snapshot.parent, sizeof(snapshot.parent), 'p');
    put_snapshot(&info, &snapshot);
    got = list_snapshots(info.id, &count);
    CHECK(count == 1);
    CHECK_TEXT(got->name, snapshot.name);
    CHECK_TEXT(got->parent, snapshot.parent);
    CHECK(got->kind == SNAPSHOT_NAMED && got->turn == UINT32_MAX);
    CHECK(got->created_ms == 12 && got->space_used == UINT64_MAX);
}

static void a_put_replaces_the_sandbox_and_its_labels_but_keeps_its_snapshots(void)
{
    struct label labels[2] = { 0 }, other = { "only", "one" };
    struct snapshot_info snapshot = { .name = "turn-0001" };
    struct sandbox_info info = full_info(labels);
    size_t count;

    start_anew();
    put_snapshot(&info, &snapshot);
    info.labels = &other;
    info.label_count = 1;
    info.state = SANDBOX_FAILED;
    info.name[0] = '\0';
    put(&info);
    CHECK(list_one()->state == SANDBOX_FAILED && list_one()->label_count == 1);
    CHECK_TEXT(list_one()->labels[0].key, "only");
    CHECK_TEXT(list_one()->name, "");
    (void)list_snapshots(info.id, &count);
    CHECK(count == 1);
}

static void a_network_policy_is_recorded_at_creation_and_replaced(void)
{
    struct sandbox_info info = numbered(1), other = numbered(2);
    struct err err = { 0 };
    char first[] = "{\"layers\":[1]}";
    size_t count;

    start_anew();
    info.state = SANDBOX_CREATING;
    info.network = first;
    put(&info);
    put(&other);
    info.state = SANDBOX_ACTIVE;
    info.network = NULL;
    put(&info);
    CHECK_TEXT(list(&count)[0].network, first);
    CHECK(!list(&count)[1].network);
    CHECK(registry_put_network(registry, "s1", "{}", &err) == 0, "%s", err.msg);
    stop();
    start();
    CHECK_TEXT(list(&count)[0].network, "{}");
    CHECK(registry_remove(registry, "s1", &err) == 0);
    CHECK(count == 2 && !list_one()->network);
}

static void a_name_that_another_has_is_refused(void)
{
    struct sandbox_info first = numbered(1), second = numbered(2);
    struct err err = { 0 };
    size_t count;

    start_anew();
    (void)snprintf(first.name, sizeof(first.name), "dev");
    (void)snprintf(second.name, sizeof(second.name), "dev");
    put(&first);
    put(&first);
    CHECK(registry_put(registry, &second, &err) == -EEXIST);
    CHECK(err.kind == ERR_EXISTS && err.cause == CAUSE_SESSION_EXISTS);
    CHECK(strstr(err.msg, "'dev'"), "%s", err.msg);
    CHECK_TEXT(list_one()->id, "s1");

    /* A name is free again once its sandbox is removed; the empty name is never taken. */
    CHECK(registry_remove(registry, "s1", &err) == 0);
    put(&second);
    second.name[0] = first.name[0] = '\0';
    put(&second);
    put(&first);
    (void)list(&count);
    CHECK(count == 2);
}

static void too_many_labels_are_refused(void)
{
    struct label labels[SANDBOX_LABELS_MAX + 1];
    struct sandbox_info info = numbered(1);
    struct err err = { 0 };

    start_anew();
    for (unsigned i = 0; i < ARRAY_SIZE(labels); i++) {
        (void)snprintf(labels[i].key, sizeof(labels[i].key), "key-%u", i);
        fill(labels[i].value, sizeof(labels[i].value), 'v');
    }
    info.labels = labels;
    info.label_count = SANDBOX_LABELS_MAX + 1;
    CHECK(registry_put(registry, &info, &err) < 0 && err.kind == ERR_INVALID);
    info.label_count = SANDBOX_LABELS_MAX;
    put(&info);
    check_same(list_one(), &info);
}

static void removing_a_sandbox_takes_labels_and_snapshots(void)
{
    struct label labels[2] = { 0 };
    struct sandbox_info info = full_info(labels), other = numbered(2);
    struct snapshot_info snapshot = { .name = "turn-0001" };
    struct err err = { 0 };
    size_t count;

    start_anew();
    put_snapshot(&info, &snapshot);
    put_snapshot(&other, &snapshot);
    CHECK(registry_remove(registry, info.id, &err) == 0, "%s", err.msg);
    CHECK_TEXT(list_one()->id, "s2");
    (void)list_snapshots(info.id, &count);
    CHECK(count == 0);
    (void)list_snapshots(other.id, &count);
    CHECK(count == 1);
    info.label_count = 0;
    put(&info);
    (void)list_snapshots(info.id, &count);
    CHECK(count == 0);
    CHECK(registry_remove(registry, "never-was", &err) == 0);
}

static void a_snapshot_can_be_removed_and_taken_again(void)
{
    struct sandbox_info info = numbered(1);
    struct snapshot_info snapshot = { .name = "before" };
    char parent[SNAPSHOT_NAME_MAX + 1];
    struct err err = { 0 };
    size_t count;

    start_anew();
    put_snapshot(&info, &snapshot);
    CHECK(registry_note_snapshot(registry, info.id, "before", "a note", &err) == 0, "%s", err.msg);
    CHECK_TEXT(list_snapshots(info.id, &count)->note, "a note");
    CHECK(registry_note_snapshot(registry, info.id, "other", "x", &err) < 0);
    CHECK(err.kind == ERR_NOT_FOUND && err.cause == CAUSE_SNAPSHOT_NOT_FOUND);
    CHECK(registry_note_snapshot(registry, "other", "before", "x", &err) < 0);
    CHECK_TEXT(list_snapshots(info.id, &count)->note, "a note");
    CHECK(registry_remove_snapshot(registry, "other", "before", parent, &err) == 0);
    CHECK(registry_remove_snapshot(registry, info.id, "other", parent, &err) == 0);
    CHECK_TEXT(parent, "");
    (void)list_snapshots(info.id, &count);
    CHECK(count == 1);
    CHECK(registry_remove_snapshot(registry, info.id, "before", parent, &err) == 0);
    (void)list_snapshots(info.id, &count);
    CHECK(count == 0);
    put_snapshot(&info, &snapshot);
}

/* Else one that comes later under its name would be its own ancestor. */
static void what_goes_back_to_a_removed_snapshot_goes_back_to_its_parent(void)
{
    struct sandbox_info info = numbered(1), other = numbered(2);
    struct snapshot_info first = { .name = "first" };
    struct snapshot_info second = { .name = "second", .parent = "first" };
    struct snapshot_info third = { .name = "third", .parent = "second" };
    const struct snapshot_info *list;
    char parent[SNAPSHOT_NAME_MAX + 1];
    struct err err = { 0 };
    size_t count;

    start_anew();
    put_snapshot(&info, &first);
    put_snapshot(&info, &second);
    (void)snprintf(info.base, sizeof(info.base), "second");
    put_snapshot(&info, &third);
    put_snapshot(&other, &third);
    CHECK(registry_remove_snapshot(registry, info.id, "second", parent, &err) == 0);
    CHECK_TEXT(parent, "first");
    list = list_snapshots(info.id, &count);
    CHECK(count == 2);
    CHECK_TEXT(list[1].parent, "first");
    list = list_snapshots(other.id, &count);
    CHECK_TEXT(list[0].parent, "second");
    CHECK(registry_remove(registry, other.id, &err) == 0);
    CHECK_TEXT(list_one()->base, "first");
}

/* The sandbox must not know of a snapshot that is not recorded. */
static void a_snapshot_that_exists_is_refused_with_all_that_came_with_it(void)
{
    struct sandbox_info info = numbered(1);
    struct snapshot_info snapshot = { .name = "before" };
    struct err err = { 0 };

    start_anew();
    put_snapshot(&info, &snapshot);
    info.turns = 99;
    CHECK(registry_put_snapshot(registry, &info, &snapshot, &err) == -EEXIST);
    CHECK(err.cause == CAUSE_SNAPSHOT_EXISTS && strstr(err.msg, "'before'"), "%s", err.msg);
    CHECK(list_one()->turns == 1);
}

/* By arrival: clocks go back at times. */
static void lists_are_in_the_order_of_arrival(void)
{
    struct sandbox_info info;
    const struct sandbox_info *all;
    const struct snapshot_info *snapshots;
    size_t count;

    start_anew();
    for (unsigned i = 20; i > 0; i--) {
        struct snapshot_info snapshot = { .turn = i, .created_ms = 7 };

        info = numbered(i);
        put(&info);
        info = numbered(20);
        (void)snprintf(snapshot.name, sizeof(snapshot.name), "t%u", i);
        put_snapshot(&info, &snapshot);
    }
    all = list(&count);
    CHECK(count == 20);
    for (unsigned i = 0; i < 20; i++)
        CHECK(all[i].turns == 20 - i);
    snapshots = list_snapshots("s20", &count);
    CHECK(count == 20);
    for (unsigned i = 0; i < 20; i++)
        CHECK(snapshots[i].turn == 20 - i);
}

static void ten_thousand_snapshots_are_listed(void)
{
    struct sandbox_info info = numbered(1);
    const struct snapshot_info *snapshots;
    size_t count;

    start_anew();
    for (unsigned i = 0; i < MANY_SNAPSHOTS; i++) {
        struct snapshot_info snapshot = { .turn = i };

        (void)snprintf(snapshot.name, sizeof(snapshot.name), "turn-%04u", i);
        put_snapshot(&info, &snapshot);
    }
    snapshots = list_snapshots(info.id, &count);
    CHECK(count == MANY_SNAPSHOTS);
    for (unsigned i = 0; i < MANY_SNAPSHOTS; i++)
        CHECK(snapshots[i].turn == i);
}

static void *put_many(void *context)
{
    unsigned first = *(unsigned *)context;

    for (unsigned i = first; i < first + PUTS_PER_THREAD; i++) {
        struct sandbox_info info = numbered(i), *all;
        struct snapshot_info snapshot = { .name = "turn", .turn = i };
        struct err err;
        size_t count;

        CHECK(registry_put(registry, &info, &err) == 0, "%s", err.msg);
        CHECK(registry_put_snapshot(registry, &info, &snapshot, &err) == 0, "%s", err.msg);
        if (i % 10 == 0) {
            CHECK(registry_list(registry, &all, &count, &err) == 0 && count > 0, "%s", err.msg);
            free(all);
        }
    }
    return NULL;
}

static void threads_may_write_at_the_same_time(void)
{
    pthread_t threads[THREADS];
    unsigned firsts[THREADS];
    size_t count;

    start_anew();
    for (unsigned i = 0; i < THREADS; i++) {
        firsts[i] = i * PUTS_PER_THREAD;
        CHECK(pthread_create(&threads[i], NULL, put_many, &firsts[i]) == 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    (void)list(&count);
    CHECK(count == (size_t)THREADS * PUTS_PER_THREAD);
}

static void all(void)
{
    scratch_make();
    RUN(every_field_comes_back);
    RUN(what_is_filled_in_for_clients_is_not_stored);
    RUN(every_field_of_a_snapshot_comes_back);
    RUN(a_put_replaces_the_sandbox_and_its_labels_but_keeps_its_snapshots);
    RUN(a_network_policy_is_recorded_at_creation_and_replaced);
    RUN(a_name_that_another_has_is_refused);
    RUN(too_many_labels_are_refused);
    RUN(removing_a_sandbox_takes_labels_and_snapshots);
    RUN(a_snapshot_can_be_removed_and_taken_again);
    RUN(what_goes_back_to_a_removed_snapshot_goes_back_to_its_parent);
    RUN(a_snapshot_that_exists_is_refused_with_all_that_came_with_it);
    RUN(lists_are_in_the_order_of_arrival);
    RUN(ten_thousand_snapshots_are_listed);
    RUN(threads_may_write_at_the_same_time);
    scratch_remove();
}

int main(void)
{
    RUN(all);
    return 0;
}
