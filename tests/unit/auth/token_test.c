// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "auth/token.h"
#include "auth/token_store.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/xalloc.h"
#include "check.h"

static char state[] = "/tmp/holt-tokens-test-XXXXXX";

static struct token_store *store_open(void)
{
    struct token_store *store = NULL;
    struct err err = { 0 };

    CHECK(token_store_open(state, &store, &err) == 0, "(%s)", err.msg);
    return store;
}

static enum token_access bearer(struct token_store *store, const char *secret)
{
    cleanup_free char *header = xasprintf("Bearer %s", secret);

    return token_store_match(store, header);
}

static void create(struct token_store *store, const struct token_spec *spec, struct token_info *ret,
                   char secret[TOKEN_SECRET_SIZE])
{
    struct err err = { 0 };

    CHECK(token_store_create(store, spec, ret, secret, &err) == 0, "(%s)", err.msg);
}

static void only_the_whole_token_matches(void)
{
    struct token_store *store = store_open();
    char token[TOKEN_LEN + 1];
    cleanup_free char *good = NULL, *longer = NULL, *lower = NULL;

    memset(token, 'a', TOKEN_LEN);
    token[TOKEN_LEN] = '\0';
    good = xasprintf("Bearer %s", token);
    lower = xasprintf("bearer  %s", token);
    longer = xasprintf("Bearer %sa", token);
    CHECK(token_store_match(store, good) == ACCESS_NONE);
    token_store_add_main(store, token);
    CHECK(token_store_match(store, good) == ACCESS_FULL);
    CHECK(token_store_match(store, lower) == ACCESS_FULL);
    CHECK(token_store_match(store, longer) == ACCESS_NONE);
    CHECK(token_store_match(store, NULL) == ACCESS_NONE);
    CHECK(token_store_match(store, "") == ACCESS_NONE);
    CHECK(token_store_match(store, "Bearer") == ACCESS_NONE);
    CHECK(token_store_match(store, "Bearer ") == ACCESS_NONE);
    CHECK(token_store_match(store, "Basic x") == ACCESS_NONE);
    CHECK(token_store_match(store, token) == ACCESS_NONE);
    for (size_t i = 0; i < TOKEN_LEN; i++) {
        good[7 + i] = 'b';
        CHECK(token_store_match(store, good) == ACCESS_NONE);
        good[7 + i] = 'a';
    }
    good[7 + TOKEN_LEN - 1] = '\0';
    CHECK(token_store_match(store, good) == ACCESS_NONE);
    token_store_close(store);
}

static void tokens_stay_until_they_are_removed(void)
{
    const struct token_spec all = { .label = "all" }, eyes = { .is_read_only = true };
    struct token_store *store = store_open();
    char secrets[2][TOKEN_SECRET_SIZE];
    cleanup_free struct token_info *list = NULL;
    struct token_info infos[2];
    struct err err = { 0 };
    size_t count;

    create(store, &all, &infos[0], secrets[0]);
    create(store, &eyes, &infos[1], secrets[1]);
    token_store_close(store);
    store = store_open();
    CHECK(bearer(store, secrets[0]) == ACCESS_FULL && bearer(store, secrets[1]) == ACCESS_READ);
    token_store_list(store, &list, &count);
    CHECK(count == 2 && list[0].used_ms > 0);
    CHECK_TEXT(list[0].label, "all");
    CHECK_TEXT(list[1].id, infos[1].id);
    CHECK(token_store_remove(store, infos[0].id, &err) == 0);
    CHECK(token_store_remove(store, infos[0].id, &err) < 0 && err.kind == ERR_NOT_FOUND);
    CHECK(bearer(store, secrets[0]) == ACCESS_NONE && bearer(store, secrets[1]) == ACCESS_READ);
    token_store_close(store);
    store = store_open();
    CHECK(bearer(store, secrets[0]) == ACCESS_NONE && bearer(store, secrets[1]) == ACCESS_READ);
    CHECK(token_store_remove(store, infos[1].id, &err) == 0);
    token_store_close(store);
}

/* Tokens that have expired leave their places. */
static void a_port_token_opens_one_sandbox(void)
{
    const struct token_spec all = { .label = "all" }, eyes = { .is_read_only = true };
    struct token_store *store = store_open();
    char secret[TOKEN_SECRET_SIZE], reader[TOKEN_SECRET_SIZE], token[TOKEN_PORT_SIZE];
    struct token_info info = { 0 }, other = { 0 };
    struct err err = { 0 };

    create(store, &all, &info, secret);
    create(store, &eyes, &other, reader);
    token_port_derive(secret, "sb-1", token);
    CHECK(strncmp(token, "holt_port_", 10) == 0 && !strstr(token, secret + 5));
    CHECK(token_store_match_port(store, token, "sb-1"));
    CHECK(token_store_match_port(store, secret, "sb-1"));
    CHECK(!token_store_match_port(store, token, "sb-2"));
    CHECK(!token_store_match_port(store, reader, "sb-1"));
    CHECK(!token_store_match_port(store, "", "sb-1"));
    CHECK(token_store_match_key(store, token) == ACCESS_NONE);
    token[TOKEN_PORT_SIZE - 2] ^= 1;
    CHECK(!token_store_match_port(store, token, "sb-1"));
    token_port_derive(reader, "sb-1", token);
    CHECK(!token_store_match_port(store, token, "sb-1"));
    token_port_derive(secret, "sb-1", token);
    CHECK(token_store_remove(store, info.id, &err) == 0);
    CHECK(!token_store_match_port(store, token, "sb-1"));
    token_store_close(store);
}

static void there_is_room_for_so_many(void)
{
    const struct token_spec spec = { .ttl_ms = 1 }, lasting = { .label = NULL };
    cleanup_with(buf_done) struct buf file = BUF_INIT(1 << 20);
    cleanup_free char *path = xasprintf("%s/tokens.json", state);
    struct token_store *store = store_open();
    char secret[TOKEN_SECRET_SIZE];
    struct token_info info;
    struct err err = { 0 };

    create(store, &spec, &info, secret);
    (void)usleep(2000);
    CHECK(bearer(store, secret) == ACCESS_NONE);
    token_store_close(store);
    CHECK(buf_add_str(&file, "{\"tokens\":[") == 0);
    for (int i = 0; i < TOKENS_MAX; i++)
        CHECK(buf_printf(&file, "%s{\"id\":\"%08x\",\"hash\":\"%064x\",\"expiresMs\":%d}",
                         i ? "," : "", i, i, i == 7 ? 1 : 0) == 0);
    CHECK(buf_add_str(&file, "]}") == 0);
    CHECK(file_create_at(AT_FDCWD, path, 0600, file.data) == 0);
    store = store_open();
    create(store, &lasting, &info, secret);
    CHECK(token_store_create(store, &lasting, &info, secret, &err) < 0);
    CHECK(err.kind == ERR_EXHAUSTED, "(%s)", err.msg);
    CHECK(token_store_remove(store, "00000007", &err) < 0 && err.kind == ERR_NOT_FOUND);
    CHECK(token_store_remove(store, "00000008", &err) == 0);
    create(store, &lasting, &info, secret);
    token_store_close(store);
    CHECK(unlink(path) == 0);
}

static void a_file_that_is_damaged_is_not_overwritten(void)
{
    static const char *const texts[] = {
        "",
        "{",
        "[]",
        "{\"tokens\":1}",
        "{\"tokens\":[{\"id\":\"x\",\"hash\":\"12\"}]}",
        "{\"tokens\":[{\"id\":\"../x\"}]}",
    };
    cleanup_free char *path = xasprintf("%s/tokens.json", state);

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct token_store *store = NULL;
        struct err err = { 0 };

        CHECK(file_create_at(AT_FDCWD, path, 0600, texts[i]) == 0);
        CHECK(token_store_open(state, &store, &err) < 0, "(%s was accepted)", texts[i]);
        CHECK(strstr(err.msg, "tokens.json"), "(%s)", err.msg);
    }
    CHECK(unlink(path) == 0);
}

static void a_token_is_made_once_and_private(void)
{
    char dir[] = "/tmp/holt-token-test-XXXXXX";
    char first[TOKEN_LEN + 1], second[TOKEN_LEN + 1];
    struct err err = { 0 };
    struct stat st;

    CHECK(mkdtemp(dir));
    CHECK(token_load(dir, first, &err) == 0, "(%s)", err.msg);
    CHECK(strlen(first) == TOKEN_LEN);
    CHECK(token_load(dir, second, &err) == 0, "(%s)", err.msg);
    CHECK_TEXT(second, first);
    CHECK(chdir(dir) == 0 && stat("token", &st) == 0 && (st.st_mode & 07777) == 0600);
    CHECK(truncate("token", 10) == 0);
    CHECK(token_load(dir, second, &err) < 0 && err.kind == ERR_INVALID);
    CHECK(unlink("token") == 0 && chdir("/") == 0 && rmdir(dir) == 0);
}

static void all(void)
{
    CHECK(mkdtemp(state));
    RUN(only_the_whole_token_matches);
    RUN(tokens_stay_until_they_are_removed);
    RUN(a_port_token_opens_one_sandbox);
    RUN(there_is_room_for_so_many);
    RUN(a_file_that_is_damaged_is_not_overwritten);
    RUN(a_token_is_made_once_and_private);
    {
        cleanup_free char *path = xasprintf("%s/tokens.json", state);

        (void)unlink(path);
    }
    CHECK(rmdir(state) == 0);
}

int main(void)
{
    RUN(all);
    return 0;
}
