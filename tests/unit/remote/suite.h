/* What holds for every backend of remote.h. A test of a backend opens `remote` without objects and
 * calls suite_run. */
#pragma once

#include <errno.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/thread.h"
#include "check.h"
#include "remote/backend.h"
#include "remote/remote.h"

static struct remote *remote;
static struct err err;
static int suite_rounds; /* of threads that work side by side */

static void put(const char *key, const char *text)
{
    CHECK(remote_put(remote, key, text, strlen(text), &err) == 0, "(%s)", err.msg);
}

static void check_object(const char *key, const char *text)
{
    cleanup_with(buf_done) struct buf got = BUF_INIT(REMOTE_OBJECT_MAX);

    CHECK(remote_get(remote, key, &got, &err) == 0, "(%s)", err.msg);
    CHECK_TEXT(got.data, text);
}

static bool is_missing(const char *key)
{
    cleanup_with(buf_done) struct buf got = BUF_INIT(REMOTE_OBJECT_MAX);

    return remote_get(remote, key, &got, &err) < 0 && err.kind == ERR_NOT_FOUND && got.len == 0;
}

static void absurd_keys_are_refused(void)
{
    static const char *const refused[] = { "",   "/",      "/a",       "a/",   "a//b", ".",
                                           "..", "a/../b", "../a",     "a/..", "./a",  "a\nb",
                                           "~a", "a b",    "\xc3\xa4", "a\\b", "%41",  "~new/a" };
    char key[REMOTE_KEY_MAX + 2];

    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        uint64_t size;

        CHECK(remote_put(remote, refused[i], "x", 1, &err) < 0 && err.kind == ERR_INVALID, "(%s)",
              refused[i]);
        CHECK(remote_size(remote, refused[i], &size, &err) < 0 && err.kind == ERR_INVALID);
        CHECK(remote_remove(remote, refused[i], &err) < 0 && err.kind == ERR_INVALID);
    }
    memset(key, 'a', sizeof(key) - 1);
    for (size_t i = REMOTE_PART_MAX; i < sizeof(key) - 1; i += REMOTE_PART_MAX + 1)
        key[i] = '/';
    key[REMOTE_KEY_MAX + 1] = '\0';
    CHECK(!remote_key_is(key));
    key[REMOTE_KEY_MAX] = '\0';
    put(key, "at the limit");
    check_object(key, "at the limit");
    memset(key, 'b', REMOTE_PART_MAX + 1);
    key[REMOTE_PART_MAX + 1] = '\0';
    CHECK(!remote_key_is(key));
    CHECK(remote_key_is("...") && remote_key_is("-/.x/A_9"));
}

static void an_object_comes_back_as_it_was(void)
{
    static unsigned char bytes[REMOTE_OBJECT_MAX];
    cleanup_with(buf_done) struct buf got = BUF_INIT(REMOTE_OBJECT_MAX);
    uint64_t size = 0;

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)(i * 2654435761u >> 13);
    CHECK(remote_put(remote, "chunks/ab/cd", bytes, sizeof(bytes), &err) == 0, "(%s)", err.msg);
    CHECK(remote_get(remote, "chunks/ab/cd", &got, &err) == 0);
    CHECK(got.len == sizeof(bytes) && memcmp(got.data, bytes, sizeof(bytes)) == 0);
    CHECK(remote_size(remote, "chunks/ab/cd", &size, &err) == 0 && size == sizeof(bytes));
    put("empty", "");
    CHECK(remote_size(remote, "empty", &size, &err) == 0 && size == 0);
}

static void an_object_is_appended_within_the_limit(void)
{
    cleanup_with(buf_done) struct buf got = BUF_INIT(8);

    put("five", "12345");
    CHECK(remote_get(remote, "five", &got, &err) == 0);
    CHECK(remote_get(remote, "five", &got, &err) < 0 && err.kind == ERR_EXHAUSTED);
    CHECK_TEXT(got.data, "12345");
}

static void a_put_replaces(void)
{
    put("document", "one");
    put("document", "two");
    check_object("document", "two");
}

static void a_put_of_too_much_is_refused(void)
{
    static char bytes[REMOTE_OBJECT_MAX + 1];

    CHECK(remote_put(remote, "large", bytes, sizeof(bytes), &err) < 0 && err.kind == ERR_EXHAUSTED);
    CHECK(is_missing("large"));
}

static void a_put_of_an_absent_object_leaves_another_alone(void)
{
    CHECK(remote_put_absent(remote, "claim/x", "one", 3, &err) == 0, "(%s)", err.msg);
    CHECK(remote_put_absent(remote, "claim/x", "two", 3, &err) < 0 && err.kind == ERR_EXISTS);
    check_object("claim/x", "one");
}

static void a_missing_object_is_not_found(void)
{
    uint64_t size;

    CHECK(is_missing("nothing"));
    CHECK(is_missing("no/folder/either"));
    CHECK(remote_size(remote, "nothing", &size, &err) < 0 && err.kind == ERR_NOT_FOUND);
    put("leaf", "x");
    CHECK(is_missing("leaf/below"));
    put("folder/leaf", "x");
    CHECK(is_missing("folder"));
}

static void remove_may_be_repeated(void)
{
    put("a/b/one", "1");
    put("a/c", "2");
    for (int i = 0; i < 2; i++)
        CHECK(remote_remove(remote, "a/b/one", &err) == 0, "(%s)", err.msg);
    CHECK(is_missing("a/b/one"));
    check_object("a/c", "2");
}

struct found {
    char keys[16][64];
    size_t count, stop_at;
    uint64_t bytes;
};

static int found_add(void *context, const struct remote_object *object)
{
    struct found *found = context;

    CHECK(found->count < ARRAY_SIZE(found->keys));
    (void)snprintf(found->keys[found->count++], sizeof(found->keys[0]), "%s", object->key);
    found->bytes += object->size;
    CHECK(object->modified_ms > UINT64_C(1700000000000));
    return found->count == found->stop_at ? -ECANCELED : 0;
}

static bool found_has(const struct found *found, const char *key)
{
    for (size_t i = 0; i < found->count; i++) {
        if (strcmp(found->keys[i], key) == 0)
            return true;
    }
    return false;
}

static struct found list(const char *prefix)
{
    struct found found = { .stop_at = 0 };

    CHECK(remote_list(remote, prefix, found_add, &found, &err) == 0, "(%s)", err.msg);
    return found;
}

static void a_list_has_what_begins_with_the_prefix(void)
{
    struct found found;

    put("s/a/1", "1");
    put("s/a/22", "22");
    put("s/ab/3", "333");
    put("s/b", "4444");
    put("t", "55555");
    found = list("");
    CHECK(found.count == 5 && found.bytes == 15);
    found = list("s/a");
    CHECK(found.count == 3 && found_has(&found, "s/a/1") && found_has(&found, "s/ab/3"));
    found = list("s/a/");
    CHECK(found.count == 2 && found_has(&found, "s/a/22") && found.bytes == 3);
    CHECK(list("s/b").count == 1 && list("x/").count == 0 && list("t/").count == 0);
    CHECK(remote_list(remote, "../", found_add, &found, &err) < 0 && err.kind == ERR_INVALID);
    CHECK(remote_list(remote, "s//", found_add, &found, &err) < 0 && err.kind == ERR_INVALID);
}

static void a_list_ends_where_the_caller_wants(void)
{
    struct found found = { .stop_at = 2 };

    put("1", "");
    put("2", "");
    put("3", "");
    err = (struct err){ .kind = ERR_NONE };
    CHECK(remote_list(remote, "", found_add, &found, &err) == -ECANCELED);
    CHECK(found.count == 2 && err.kind == ERR_NONE);
}

/* Threads put and remove objects of one folder, which comes and goes meanwhile. */
enum { THREADS = 4 };

static void churn(void *argument)
{
    struct err mine;
    char key[48], text[64];

    for (int i = 0; i < suite_rounds; i++) {
        cleanup_with(buf_done) struct buf got = BUF_INIT(64);

        (void)snprintf(key, sizeof(key), "folder/inner/%d", (int)(intptr_t)argument);
        (void)snprintf(text, sizeof(text), "%d of %s", i, key);
        CHECK(remote_put(remote, key, text, strlen(text), &mine) == 0, "(%s)", mine.msg);
        CHECK(remote_get(remote, key, &got, &mine) == 0, "(%s)", mine.msg);
        CHECK_TEXT(got.data, text);
        CHECK(remote_remove(remote, key, &mine) == 0, "(%s)", mine.msg);
    }
}

static void threads_do_not_disturb_each_other(void)
{
    struct thread threads[THREADS] = { 0 };

    for (intptr_t i = 0; i < THREADS; i++)
        CHECK(thread_start(&threads[i], "churn", churn, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++)
        thread_join(&threads[i]);
    CHECK(list("").count == 0);
}

static unsigned wins[THREADS];

static void claim(void *argument)
{
    struct err mine;
    char key[64];

    for (int i = 0; i < suite_rounds; i++) {
        (void)snprintf(key, sizeof(key), "claims/%d", i);
        if (remote_put_absent(remote, key, "x", 1, &mine) == 0)
            wins[(intptr_t)argument]++;
        else
            CHECK(mine.kind == ERR_EXISTS, "(%s)", mine.msg);
    }
}

static void one_of_several_claims_wins(void)
{
    struct thread threads[THREADS] = { 0 };
    unsigned sum = 0;

    for (intptr_t i = 0; i < THREADS; i++)
        CHECK(thread_start(&threads[i], "claim", claim, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++) {
        thread_join(&threads[i]);
        sum += wins[i];
    }
    CHECK(sum == (unsigned)suite_rounds, "(%u)", sum);
}

/* Runs all claims of this file but those about several threads, which not every server stands. */
static void suite_run(test_around_fn *around)
{
    static const struct {
        const char *name;
        test_fn *test;
    } claims[] = {
#define ROW(test) { #test, test }
        ROW(absurd_keys_are_refused),
        ROW(an_object_comes_back_as_it_was),
        ROW(an_object_is_appended_within_the_limit),
        ROW(a_put_replaces),
        ROW(a_put_of_too_much_is_refused),
        ROW(a_put_of_an_absent_object_leaves_another_alone),
        ROW(a_missing_object_is_not_found),
        ROW(remove_may_be_repeated),
        ROW(a_list_has_what_begins_with_the_prefix),
        ROW(a_list_ends_where_the_caller_wants),
#undef ROW
    };

    for (size_t i = 0; i < ARRAY_SIZE(claims); i++)
        test_run(claims[i].name, claims[i].test, around);
}
