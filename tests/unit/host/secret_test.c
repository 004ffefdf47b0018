// SPDX-License-Identifier: Apache-2.0
/* Secrets are sealed, and only what Holt has written can be opened. */
#include <errno.h>
#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "host/secret/authority.h"
#include "host/secret/secret.h"
#include "unit/host/registry_test.h"

#define VALUE "sk-test-0123456789-abcdefghij"

static struct secrets *secrets;
static int state_fd = -EBADF;

static void secrets_start(void)
{
    struct err err = { 0 };

    start();
    state_fd = open(scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(state_fd >= 0);
    CHECK(secrets_open(state_fd, registry, &secrets, &err) == 0, "%s", err.msg);
}

static void secrets_stop(void)
{
    secrets_close(secrets);
    secrets = NULL;
    if (state_fd >= 0)
        (void)close(state_fd);
    state_fd = -EBADF;
    stop();
}

static void secrets_start_anew(void)
{
    secrets_stop();
    clear();
    secrets_start();
}

static struct secret_use example_use(void)
{
    static const char *const hosts[] = { "API.example.com", "*.git.example.com:8443" };
    struct secret_use use;
    struct err err = { 0 };

    CHECK(secret_use_init("example-token",
                          &(struct secret_request){ .hosts = hosts, .host_count = 2 }, &use,
                          &err) == 0,
          "%s", err.msg);
    return use;
}

static struct secret_info put_value(const char *owner, const char *name, const char *value)
{
    const struct secret_use use = example_use();
    const struct secret_change change = { owner, name, &use, value, strlen(value) };
    struct secret_info info;
    struct err err = { 0 };

    CHECK(secrets_put(secrets, &change, &info, &err) == 0, "%s", err.msg);
    return info;
}

static void check_value(const char *id, const char *value)
{
    cleanup_with(secret_value_done) struct secret_value got;
    struct err err = { 0 };

    CHECK(secrets_get_value(secrets, id, &got, &err) == 0, "%s", err.msg);
    CHECK_TEXT(got.bytes, value);
    CHECK(got.len == strlen(value));
}

static void sql(const char *text)
{
    sqlite3 *db = NULL;

    CHECK(sqlite3_open(path, &db) == SQLITE_OK);
    CHECK(sqlite3_exec(db, text, NULL, NULL, NULL) == SQLITE_OK, "%s", sqlite3_errmsg(db));
    CHECK(sqlite3_close(db) == SQLITE_OK);
}

static void a_sealed_text_opens_with_its_key_and_context_only(void)
{
    struct seal_key key = { { 1 } }, other = { { 2 } };
    const struct seal_context context = { "abc", 3 }, changed = { "abd", 3 };
    char text[SEAL_TEXT_SIZE(5)], again[SEAL_TEXT_SIZE(5)], got[5];

    CHECK(seal_close(&key, &context, "hello", 5, text) == 0);
    CHECK(seal_close(&key, &context, "hello", 5, again) == 0);
    CHECK(strcmp(text, again) != 0);
    CHECK(seal_open(&key, &context, text, got, sizeof(got)) == 5);
    CHECK(memcmp(got, "hello", 5) == 0);
    CHECK(seal_open(&other, &context, text, got, sizeof(got)) == -EBADMSG);
    CHECK(seal_open(&key, &changed, text, got, sizeof(got)) == -EBADMSG);
    CHECK(seal_open(&key, &context, text, got, 4) == -ENOSPC);
    CHECK(seal_open(&key, &context, "", got, sizeof(got)) == -EBADMSG);
    CHECK(seal_open(&key, &context, "zz", got, sizeof(got)) == -EBADMSG);
    for (size_t i = 0; text[i]; i++) {
        char was = text[i];

        text[i] = was == '0' ? '1' : '0';
        CHECK(seal_open(&key, &context, text, got, sizeof(got)) == -EBADMSG, "at %zu", i);
        text[i] = was;
    }
}

static void a_secret_comes_back_after_a_restart(void)
{
    struct secret_info info, found;
    struct err err = { 0 };

    secrets_start_anew();
    info = put_value("alice", "example-token", VALUE);
    secrets_stop();
    secrets_start();
    check_value(info.id, VALUE);
    CHECK(secrets_find(secrets, "alice", "example-token", &found, &err) == 0);
    CHECK_TEXT(found.id, info.id);
    CHECK(found.use.host_count == 2 && found.use.hosts[0].port == 443 &&
          found.use.hosts[1].port == 8443);
    CHECK_TEXT(found.use.hosts[0].name, "api.example.com");
    CHECK_TEXT(found.use.field, "Authorization");
    CHECK_TEXT(found.use.template, "Bearer {}");
    CHECK_TEXT(found.use.env, "EXAMPLE_TOKEN");
    CHECK(secrets_find(secrets, "bob", "example-token", &found, &err) < 0);
    CHECK(err.kind == ERR_NOT_FOUND);
}

static void a_rotated_secret_keeps_its_id_and_use(void)
{
    struct secret_change change = { "alice", "example-token", NULL, "new-value", 9 };
    struct secret_info info, again;
    struct err err = { 0 };

    secrets_start_anew();
    CHECK(secrets_put(secrets, &change, &again, &err) < 0 && err.kind == ERR_NOT_FOUND);
    info = put_value("alice", "example-token", VALUE);
    CHECK(secrets_put(secrets, &change, &again, &err) == 0, "%s", err.msg);
    CHECK_TEXT(again.id, info.id);
    CHECK(memcmp(&again.use, &info.use, sizeof(info.use)) == 0);
    check_value(info.id, "new-value");
}

static void names_are_of_one_owner_and_removal_is_final(void)
{
    struct secret_info *list = NULL, alice, bob;
    struct secret_value value;
    struct err err = { 0 };
    size_t count = 0;

    secrets_start_anew();
    alice = put_value("alice", "token", "value-of-alice");
    bob = put_value("bob", "token", "value-of-bob");
    CHECK(strcmp(alice.id, bob.id) != 0);
    CHECK(secrets_list(secrets, "alice", &list, &count, &err) == 0 && count == 1);
    CHECK_TEXT(list[0].owner, "alice");
    free(list);
    CHECK(secrets_list(secrets, NULL, &list, &count, &err) == 0 && count == 2);
    free(list);
    CHECK(secrets_remove(secrets, alice.id, &err) == 0);
    CHECK(secrets_get_value(secrets, alice.id, &value, &err) < 0 && err.kind == ERR_NOT_FOUND);
    check_value(bob.id, "value-of-bob");
}

static void no_file_of_the_state_has_the_value(void)
{
    static const char *const files[] = { "holt.db", "holt.db-wal", "secret.key" };

    secrets_start_anew();
    (void)put_value("alice", "token", VALUE);
    (void)put_value("alice", "token", VALUE "2");
    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        cleanup_with(buf_done) struct buf content = BUF_INIT(16 << 20);
        struct stat st;

        CHECK(file_read_at(state_fd, files[i], &content) == 0, "%s", files[i]);
        CHECK(!memmem(content.data, content.len, VALUE, strlen(VALUE)), "%s", files[i]);
        CHECK(fstatat(state_fd, files[i], &st, 0) == 0 && (st.st_mode & 077) == 0, "%s", files[i]);
    }
}

static void a_row_that_was_changed_cannot_be_opened(void)
{
    static const char *const changes[] = {
        "UPDATE secrets SET owner = 'eve'",
        "UPDATE secrets SET name = 'other'",
        "UPDATE secrets SET id = 'secx'",
        "UPDATE secrets SET use = replace(use, 'api.example.com', 'api.example.net')",
        "UPDATE secrets SET sealed = substr(sealed, 3) || '00'",
    };

    for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
        struct secret_value value;
        struct secret_info info;
        struct err err = { 0 };

        secrets_start_anew();
        info = put_value("alice", "token", VALUE);
        secrets_stop();
        sql(changes[i]);
        secrets_start();
        CHECK(secrets_get_value(secrets, i == 2 ? "secx" : info.id, &value, &err) < 0, "%s",
              changes[i]);
        CHECK(err.kind == ERR_INTERNAL && !strstr(err.msg, VALUE), "%s", err.msg);
    }
}

static void a_lost_key_is_not_replaced(void)
{
    const struct secret_use use = example_use();
    const struct secret_change change = { "alice", "second", &use, VALUE, strlen(VALUE) };
    struct secret_info info, ignored;
    struct secret_value value;
    struct err err = { 0 };

    secrets_start_anew();
    info = put_value("alice", "token", VALUE);
    secrets_stop();
    state_fd = open(scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(renameat(state_fd, "secret.key", state_fd, "kept") == 0);
    (void)close(state_fd);
    secrets_start();
    CHECK(secrets_get_value(secrets, info.id, &value, &err) < 0);
    CHECK(strstr(err.msg, "secret.key is missing"), "%s", err.msg);
    CHECK(secrets_put(secrets, &change, &ignored, &err) < 0);
    CHECK(faccessat(state_fd, "secret.key", F_OK, 0) < 0);
    CHECK(renameat(state_fd, "kept", state_fd, "secret.key") == 0);
    secrets_stop();
    secrets_start();
    check_value(info.id, VALUE);
}

static void a_key_that_others_can_read_is_refused(void)
{
    struct secrets *ignored = NULL;
    struct err err = { 0 };

    secrets_start_anew();
    (void)put_value("alice", "token", VALUE);
    CHECK(fchmodat(state_fd, "secret.key", 0644, 0) == 0);
    CHECK(secrets_open(state_fd, registry, &ignored, &err) < 0);
    CHECK(strstr(err.msg, "can be read by others"), "%s", err.msg);
}

static void an_authority_is_made_once(void)
{
    const struct authority *authority = NULL, *again = NULL;
    cleanup_free char *certificate = NULL;
    struct err err = { 0 };
    struct stat st;

    secrets_start_anew();
    CHECK(secrets_authority(secrets, false, &authority, &err) == 0 && !authority);
    CHECK(secrets_authority(secrets, true, &authority, &err) == 0, "%s", err.msg);
    CHECK(authority && strlen(authority->hash) == 8 && strstr(authority->key, "PRIVATE KEY"));
    certificate = xstrdup(authority->certificate);
    CHECK(secrets_authority(secrets, true, &again, &err) == 0 && again == authority);
    CHECK(fstatat(state_fd, "ca.key", &st, 0) == 0 && (st.st_mode & 077) == 0);
    secrets_stop();
    secrets_start();
    CHECK(secrets_authority(secrets, false, &authority, &err) == 0 && authority);
    CHECK_TEXT(authority->certificate, certificate);
    /* One that was half made is made again. */
    CHECK(unlinkat(state_fd, "ca.pem", 0) == 0);
    secrets_stop();
    secrets_start();
    CHECK(secrets_authority(secrets, true, &authority, &err) == 0 && authority);
    CHECK(strcmp(authority->certificate, certificate) != 0);
}

static void bad_values_and_names_are_refused(void)
{
    const struct secret_use plain = { .place = SECRET_IN_HEADER };
    char big[SECRET_VALUE_MAX + 1];
    struct err err = { 0 };

    memset(big, 'x', sizeof(big));
    CHECK(secret_check_value(&plain, big, SECRET_VALUE_MAX, &err) == 0);
    CHECK(secret_check_value(&plain, big, sizeof(big), &err) < 0);
    CHECK(secret_check_value(&plain, "", 0, &err) < 0);
    CHECK(secret_check_value(&plain, "a\nb", 3, &err) < 0);
    CHECK(secret_check_value(&plain, "a\0b", 3, &err) < 0);
    CHECK(secret_check_value(&plain, "a ", 2, &err) < 0);
    CHECK(secret_check_name("github-token", &err) == 0);
    CHECK(secret_check_name("", &err) < 0);
    CHECK(secret_check_name("../x", &err) < 0);
    CHECK(secret_check_name("Holt-x", &err) < 0);
}

static int use_of(const char *host, const char *header, const char *query, const char *json,
                  const char *env)
{
    const struct secret_request request = {
        .hosts = &host, .host_count = 1, .header = header, .query = query, .json = json, .env = env
    };
    struct secret_use use;
    struct err err = { 0 };
    int r = secret_use_init("name", &request, &use, &err);

    CHECK(r == 0 || err.kind == ERR_INVALID);
    return r;
}

static void uses_are_checked(void)
{
    CHECK(use_of("example.com", NULL, NULL, NULL, NULL) == 0);
    CHECK(use_of("*.example.com:8443", "X-Key: {}", NULL, NULL, "KEY") == 0);
    CHECK(use_of("example.com", NULL, "key", NULL, NULL) == 0);
    CHECK(use_of("example.com", NULL, NULL, "/auth/key", NULL) == 0);
    CHECK(use_of("", NULL, NULL, NULL, NULL) < 0);
    CHECK(use_of("*", NULL, NULL, NULL, NULL) < 0);
    CHECK(use_of("*.com", NULL, NULL, NULL, NULL) < 0);
    CHECK(use_of("localhost", NULL, NULL, NULL, NULL) < 0);
    CHECK(use_of("127.0.0.1", NULL, NULL, NULL, NULL) < 0);
    CHECK(use_of("https://example.com", NULL, NULL, NULL, NULL) < 0);
    CHECK(use_of("example.com:0", NULL, NULL, NULL, NULL) < 0);
    CHECK(use_of("example.com:65536", NULL, NULL, NULL, NULL) < 0);
    CHECK(use_of("example.com", "Authorization: Bearer", NULL, NULL, NULL) < 0);
    CHECK(use_of("example.com", "Authorization: {} {}", NULL, NULL, NULL) < 0);
    CHECK(use_of("example.com", "Host: {}", NULL, NULL, NULL) < 0);
    CHECK(use_of("example.com", "X Y: {}", NULL, NULL, NULL) < 0);
    CHECK(use_of("example.com", "X: a\r\nb {}", NULL, NULL, NULL) < 0);
    CHECK(use_of("example.com", "X: {}", "q", NULL, NULL) < 0);
    CHECK(use_of("example.com", NULL, "a&b", NULL, NULL) < 0);
    CHECK(use_of("example.com", NULL, NULL, "auth", NULL) < 0);
    CHECK(use_of("example.com", NULL, NULL, NULL, "PATH") < 0);
    CHECK(use_of("example.com", NULL, NULL, NULL, "LD_PRELOAD") < 0);
    CHECK(use_of("example.com", NULL, NULL, NULL, "A=B") < 0);
    CHECK(use_of("example.com", NULL, NULL, NULL, "1A") < 0);
}

int main(void)
{
    scratch_make();
    RUN(a_sealed_text_opens_with_its_key_and_context_only);
    RUN(a_secret_comes_back_after_a_restart);
    RUN(a_rotated_secret_keeps_its_id_and_use);
    RUN(names_are_of_one_owner_and_removal_is_final);
    RUN(no_file_of_the_state_has_the_value);
    RUN(a_row_that_was_changed_cannot_be_opened);
    RUN(a_lost_key_is_not_replaced);
    RUN(a_key_that_others_can_read_is_refused);
    RUN(an_authority_is_made_once);
    RUN(bad_values_and_names_are_refused);
    RUN(uses_are_checked);
    scratch_remove();
    return 0;
}
