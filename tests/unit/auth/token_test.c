// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "auth/token.h"
#include "auth/token_store.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
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

static enum role role_of_header(struct token_store *store, const char *header)
{
    struct caller caller;

    token_store_match(store, header, &caller);
    return caller.role;
}

static enum role bearer(struct token_store *store, const char *secret)
{
    cleanup_free char *header = xasprintf("Bearer %s", secret);

    return role_of_header(store, header);
}

static enum role role_at_port(struct token_store *store, const char *token, const char *sandbox)
{
    struct caller caller;

    token_store_match_port(store, token, sandbox, &caller);
    return caller.role;
}

static void create(struct token_store *store, const struct token_spec *spec, struct token_info *ret,
                   char secret[TOKEN_SECRET_SIZE])
{
    struct err err = { 0 };

    CHECK(token_store_create(store, spec, ret, secret, &err) == 0, "(%s)", err.msg);
}

/* Removes the directory of tokens with what is in it. */
static void remove_all_tokens(void)
{
    cleanup_free char *path = xasprintf("%s/tokens", state);
    cleanup_with(closedir_slot) DIR *dir = opendir(path);
    const struct dirent *entry;

    while (dir && (entry = readdir(dir)))
        (void)unlinkat(dirfd(dir), entry->d_name, 0);
    CHECK(rmdir(path) == 0 || errno == ENOENT, "(%s)", strerror(errno));
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
    CHECK(role_of_header(store, good) == ROLE_NONE);
    token_store_add_main(store, token);
    CHECK(role_of_header(store, good) == ROLE_ADMIN);
    CHECK(role_of_header(store, lower) == ROLE_ADMIN);
    CHECK(role_of_header(store, longer) == ROLE_NONE);
    CHECK(role_of_header(store, NULL) == ROLE_NONE);
    CHECK(role_of_header(store, "") == ROLE_NONE);
    CHECK(role_of_header(store, "Bearer") == ROLE_NONE);
    CHECK(role_of_header(store, "Bearer ") == ROLE_NONE);
    CHECK(role_of_header(store, "Basic x") == ROLE_NONE);
    CHECK(role_of_header(store, token) == ROLE_NONE);
    for (size_t i = 0; i < TOKEN_LEN; i++) {
        good[7 + i] = 'b';
        CHECK(role_of_header(store, good) == ROLE_NONE);
        good[7 + i] = 'a';
    }
    good[7 + TOKEN_LEN - 1] = '\0';
    CHECK(role_of_header(store, good) == ROLE_NONE);
    token_store_close(store);
}

static void tokens_stay_until_they_are_removed(void)
{
    const struct token_spec all = { .label = "all", .owner = OWNER_ROOT, .role = ROLE_ADMIN },
                            eyes = { .owner = OWNER_ROOT, .role = ROLE_READ };
    struct token_store *store = store_open();
    char secrets[2][TOKEN_SECRET_SIZE];
    cleanup_free struct token_info *list = NULL;
    struct token_info infos[2];
    struct err err = { 0 };
    size_t count;

    create(store, &all, &infos[0], secrets[0]);
    clock_sleep_ms(2); /* the list has the order of their milliseconds */
    create(store, &eyes, &infos[1], secrets[1]);
    token_store_close(store);
    store = store_open();
    CHECK(bearer(store, secrets[0]) == ROLE_ADMIN && bearer(store, secrets[1]) == ROLE_READ);
    token_store_list(store, &caller_root, &list, &count);
    CHECK(count == 2 && list[0].used_ms > 0);
    CHECK_TEXT(list[0].label, "all");
    CHECK_TEXT(list[1].id, infos[1].id);
    CHECK(token_store_remove(store, &caller_root, infos[0].id, &(struct token_info){ 0 }, &err) ==
          0);
    CHECK(token_store_remove(store, &caller_root, infos[0].id, &(struct token_info){ 0 }, &err) <
              0 &&
          err.kind == ERR_NOT_FOUND);
    CHECK(bearer(store, secrets[0]) == ROLE_NONE && bearer(store, secrets[1]) == ROLE_READ);
    token_store_close(store);
    store = store_open();
    CHECK(bearer(store, secrets[0]) == ROLE_NONE && bearer(store, secrets[1]) == ROLE_READ);
    CHECK(token_store_remove(store, &caller_root, infos[1].id, &(struct token_info){ 0 }, &err) ==
          0);
    token_store_close(store);
}

/* Tokens that have expired leave their places. */
static void a_port_token_opens_one_sandbox(void)
{
    const struct token_spec all = { .label = "all", .owner = OWNER_ROOT, .role = ROLE_ADMIN },
                            eyes = { .owner = OWNER_ROOT, .role = ROLE_READ };
    struct token_store *store = store_open();
    char secret[TOKEN_SECRET_SIZE], reader[TOKEN_SECRET_SIZE], token[TOKEN_PORT_SIZE];
    struct token_info info = { 0 }, other = { 0 };
    struct err err = { 0 };

    create(store, &all, &info, secret);
    create(store, &eyes, &other, reader);
    token_port_derive(&info, secret, "sb-1", token);
    CHECK(strncmp(token, "holt_port_", 10) == 0 && !strstr(token, secret + 5));
    CHECK(role_at_port(store, token, "sb-1") == ROLE_ADMIN);
    CHECK(role_at_port(store, secret, "sb-1") == ROLE_ADMIN);
    CHECK(role_at_port(store, token, "sb-2") == ROLE_NONE);
    CHECK(role_at_port(store, reader, "sb-1") == ROLE_READ);
    CHECK(role_at_port(store, "", "sb-1") == ROLE_NONE);
    CHECK(bearer(store, token) == ROLE_NONE);
    token[TOKEN_PORT_SIZE - 2] ^= 1;
    CHECK(role_at_port(store, token, "sb-1") == ROLE_NONE);
    token_port_derive(&other, reader, "sb-1", token);
    CHECK(role_at_port(store, token, "sb-1") == ROLE_NONE);
    token_port_derive(&info, secret, "sb-1", token);
    CHECK(token_store_remove(store, &caller_root, info.id, &(struct token_info){ 0 }, &err) == 0);
    CHECK(role_at_port(store, token, "sb-1") == ROLE_NONE);
    token_store_close(store);
}

static void file_put(const char *name, const char *text)
{
    cleanup_free char *path = xasprintf("%s/%s", state, name);

    CHECK(file_create_at(AT_FDCWD, path, 0600, text) == 0);
}

static bool file_exists(const char *name)
{
    cleanup_free char *path = xasprintf("%s/%s", state, name);

    return access(path, F_OK) == 0;
}

/* Files are put there at once: to create so many takes minutes of flushing. */
static void there_is_room_for_so_many(void)
{
    const struct token_spec spec = { .owner = OWNER_ROOT, .role = ROLE_USER, .ttl_ms = 1 };
    const struct token_spec lasting = { .owner = OWNER_ROOT, .role = ROLE_USER };
    struct token_store *store;
    char secret[TOKEN_SECRET_SIZE];
    struct token_info info;
    struct err err = { 0 };

    remove_all_tokens();
    store = store_open();
    create(store, &spec, &info, secret);
    (void)usleep(2000);
    CHECK(bearer(store, secret) == ROLE_NONE);
    token_store_close(store);
    for (int i = 0; i < TOKENS_MAX - 1; i++) {
        cleanup_free char *name = xasprintf("tokens/%08x", i);
        cleanup_free char *text =
            xasprintf("{\"id\":\"%08x\",\"hash\":\"%064x\",\"role\":\"user\"}", i, i);

        file_put(name, text);
    }
    store = store_open();
    create(store, &lasting, &info, secret); /* in the place of the one that has expired */
    CHECK(bearer(store, secret) == ROLE_USER);
    CHECK(token_store_create(store, &lasting, &info, secret, &err) < 0);
    CHECK(err.kind == ERR_EXHAUSTED, "(%s)", err.msg);
    CHECK(token_store_remove(store, &caller_root, "00000008", &(struct token_info){ 0 }, &err) ==
          0);
    create(store, &lasting, &info, secret);
    token_store_close(store);
    remove_all_tokens();
}

static void one_owner_leaves_tokens_to_others(void)
{
    const struct token_spec ann = { .owner = "ann", .role = ROLE_USER };
    const struct token_spec bob = { .owner = "bob", .role = ROLE_USER };
    char secret[TOKEN_SECRET_SIZE];
    struct token_store *store;
    struct token_info info;
    struct err err = { 0 };

    remove_all_tokens();
    token_store_close(store_open()); /* makes the directory */
    for (int i = 0; i < TOKENS_MAX / 2 - 1; i++) {
        cleanup_free char *name = xasprintf("tokens/%08x", i);
        cleanup_free char *text = xasprintf(
            "{\"id\":\"%08x\",\"hash\":\"%064x\",\"role\":\"user\",\"owner\":\"ann\"}", i, i);

        file_put(name, text);
    }
    store = store_open();
    create(store, &ann, &info, secret);
    CHECK(token_store_create(store, &ann, &info, secret, &err) < 0);
    CHECK(err.kind == ERR_EXHAUSTED && strstr(err.msg, "owner 'ann'"), "(%s)", err.msg);
    create(store, &bob, &info, secret);
    token_store_close(store);
    remove_all_tokens();
}

static void tokens_of_before_owners_are_roots(void)
{
    cleanup_free struct token_info *list = NULL;
    struct token_store *store;
    size_t count;

    file_put("tokens.json", "{\"tokens\":[{\"id\":\"00000001\",\"label\":\"ci\",\"hash\":"
                            "\"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\","
                            "\"createdMs\":1},{\"id\":\"00000002\",\"readOnly\":true,\"hash\":"
                            "\"cb8379ac2098aa165029e3938a51da0bcecfc008fd6795f401178647f96c5b34\","
                            "\"createdMs\":2}]}");
    for (int i = 0; i < 2; i++) { /* and are so at the next start */
        store = store_open();
        CHECK(bearer(store, "abc") == ROLE_ADMIN && bearer(store, "def") == ROLE_READ);
        token_store_list(store, &caller_root, &list, &count);
        CHECK(count == 2 && !file_exists("tokens.json"));
        CHECK_TEXT(list[0].owner, OWNER_ROOT);
        CHECK_TEXT(list[0].label, "ci");
        token_store_close(store);
        free(TAKE_PTR(list));
    }
    remove_all_tokens();
}

static void a_token_knows_its_owner_and_scope(void)
{
    static const struct label scope = { "team", "red" };
    const struct token_spec red = {
        .owner = "ann", .role = ROLE_USER, .scope = &scope, .scope_count = 1
    };
    const struct token_spec bobs = { .owner = "bob", .role = ROLE_USER };
    struct token_store *store = store_open();
    char secrets[2][TOKEN_SECRET_SIZE];
    cleanup_free struct token_info *list = NULL;
    struct token_info infos[2];
    struct caller ann, bob;
    struct err err = { 0 };
    size_t count;

    create(store, &red, &infos[0], secrets[0]);
    create(store, &bobs, &infos[1], secrets[1]);
    token_store_close(store);
    store = store_open();
    token_store_match_key(store, secrets[0], &ann);
    token_store_match_key(store, secrets[1], &bob);
    CHECK_TEXT(ann.owner, "ann");
    CHECK_TEXT(ann.token, infos[0].id);
    CHECK(ann.role == ROLE_USER && ann.scope_count == 1);
    CHECK_TEXT(ann.scope[0].value, "red");
    token_store_list(store, &bob, &list, &count);
    CHECK(count == 1);
    CHECK_TEXT(list[0].owner, "bob");
    CHECK(token_store_remove(store, &bob, infos[0].id, &(struct token_info){ 0 }, &err) < 0 &&
          err.kind == ERR_NOT_FOUND);
    CHECK(token_store_is_valid(store, ann.token));
    CHECK(token_store_remove(store, &ann, infos[0].id, &(struct token_info){ 0 }, &err) == 0 &&
          !token_store_is_valid(store, ann.token));
    token_store_close(store);
    remove_all_tokens();
}

static void a_token_of_a_higher_role_stays(void)
{
    const struct token_spec user = { .owner = "ann", .role = ROLE_USER };
    const struct token_spec admin = { .owner = "ann", .role = ROLE_ADMIN };
    struct token_store *store = store_open();
    char secrets[2][TOKEN_SECRET_SIZE];
    struct token_info infos[2], removed;
    struct caller weak, strong;
    struct err err = { 0 };

    create(store, &user, &infos[0], secrets[0]);
    create(store, &admin, &infos[1], secrets[1]);
    token_store_match_key(store, secrets[0], &weak);
    token_store_match_key(store, secrets[1], &strong);
    CHECK(token_store_remove(store, &weak, infos[1].id, &removed, &err) < 0 &&
          err.kind == ERR_DENIED);
    CHECK(token_store_is_valid(store, infos[1].id));
    CHECK(token_store_remove(store, &strong, infos[0].id, &removed, &err) == 0);
    token_store_close(store);
    remove_all_tokens();
}

static void a_bound_ends_a_token_at_the_latest(void)
{
    const uint64_t bound = clock_wall_ms() + 60000;
    struct token_spec spec = { .owner = "ann", .role = ROLE_USER, .expires_ms = bound };
    struct token_store *store = store_open();
    char secret[TOKEN_SECRET_SIZE];
    struct token_info info;

    create(store, &spec, &info, secret);
    CHECK(info.expires_ms == bound);
    spec.ttl_ms = 3600000;
    create(store, &spec, &info, secret);
    CHECK(info.expires_ms == bound);
    spec.ttl_ms = 1;
    create(store, &spec, &info, secret);
    CHECK(info.expires_ms == info.created_ms + 1);
    token_store_close(store);
    remove_all_tokens();
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

        file_put("tokens.json", texts[i]);
        CHECK(token_store_open(state, &store, &err) < 0, "(%s was accepted)", texts[i]);
        CHECK(strstr(err.msg, "tokens.json"), "(%s)", err.msg);
    }
    CHECK(unlink(path) == 0);
}

/* One damaged file must keep nobody else out; a copy must not outlive its token. */
static void a_damaged_token_opens_nothing(void)
{
    static const char *const texts[] = { "", "{", "[]", "{\"id\":\"0000000a\",\"hash\":\"12\"}" };
    const struct token_spec spec = { .owner = OWNER_ROOT, .role = ROLE_USER };
    struct token_store *store = store_open();
    cleanup_free struct token_info *list = NULL;
    char secret[TOKEN_SECRET_SIZE];
    struct token_info info;
    size_t count;

    create(store, &spec, &info, secret);
    token_store_close(store);
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        cleanup_free char *name = xasprintf("tokens/0000000%zu", i);

        file_put(name, texts[i]);
    }
    file_put("tokens/0000000b",
             "{\"id\":\"00000001\",\"role\":\"user\",\"hash\":"
             "\"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\"}");
    file_put("tokens/0000000c.new", "");
    file_put("tokens/notes.txt", "");
    store = store_open();
    CHECK(bearer(store, secret) == ROLE_USER && bearer(store, "abc") == ROLE_NONE);
    token_store_list(store, &caller_root, &list, &count);
    CHECK(count == 1);
    CHECK(!file_exists("tokens/0000000c.new") && file_exists("tokens/notes.txt"));
    token_store_close(store);
    remove_all_tokens();
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
    RUN(tokens_of_before_owners_are_roots);
    RUN(a_token_knows_its_owner_and_scope);
    RUN(a_token_of_a_higher_role_stays);
    RUN(a_bound_ends_a_token_at_the_latest);
    RUN(a_file_that_is_damaged_is_not_overwritten);
    RUN(a_damaged_token_opens_nothing);
    RUN(a_token_is_made_once_and_private);
    RUN(one_owner_leaves_tokens_to_others);
    remove_all_tokens();
    CHECK(rmdir(state) == 0);
}

int main(void)
{
    RUN(all);
    return 0;
}
