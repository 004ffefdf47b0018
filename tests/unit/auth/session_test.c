// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include "auth/session_store.h"
#include "auth/token_store.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/files/tree.h"
#include "base/xalloc.h"
#include "check.h"

enum { ROWS_MAX = 256, HOUR_MS = 3600 * 1000 };

static char state[] = "/tmp/holt-sessions-test-XXXXXX";
static struct token_store *tokens;

/* A storage in memory, which can fail. */
static struct session_row *rows;
static size_t row_count;
static bool is_full;

static int row_put(void *context, const struct session_row *row, struct err *err)
{
    (void)context;
    if (is_full)
        return err_set(err, ERR_EXHAUSTED, "the disk is full");
    CHECK(row_count < ROWS_MAX);
    rows[row_count++] = *row;
    return 0;
}

static int row_remove(void *context, const char *id, struct err *err)
{
    (void)context;
    if (is_full)
        return err_set(err, ERR_EXHAUSTED, "the disk is full");
    for (size_t i = 0; i < row_count; i++)
        if (strcmp(rows[i].id, id) == 0)
            rows[i--] = rows[--row_count];
    return 0;
}

/* How many sessions have ended, and the last of them. */
static unsigned ended_count;
static char ended_reason[16], ended_owner[OWNER_NAME_MAX + 1];

static void session_ended(void *context, const struct session_info *info, const char *reason)
{
    (void)context;
    ended_count++;
    (void)snprintf(ended_reason, sizeof(ended_reason), "%s", reason);
    (void)snprintf(ended_owner, sizeof(ended_owner), "%s", info->login.caller.owner);
}

static struct session_store *store_new(uint64_t ttl_ms, uint64_t code_ms)
{
    const struct session_storage storage = { row_put, row_remove, session_ended, NULL };
    const struct session_rules rules = { ttl_ms, code_ms, HOUR_MS, true };

    return session_store_new(tokens, &storage, &rules);
}

static struct session_store *store_open(void)
{
    return store_new(HOUR_MS, LOGIN_CODE_MS);
}

/* What a restart of the daemon does. */
static struct session_store *store_again(struct session_store *store)
{
    struct session_store *again = store_open();

    session_store_free(store);
    for (size_t i = 0; i < row_count; i++)
        CHECK(session_store_load(again, &rows[i]));
    return again;
}

static struct login login_of(const char *owner, enum role role)
{
    struct login login = { .caller.role = role };

    (void)snprintf(login.caller.owner, sizeof(login.caller.owner), "%s", owner);
    return login;
}

static struct session_info create(struct session_store *store, const struct login *login,
                                  struct session_secrets *secrets)
{
    const struct session_spec spec = { *login, "127.0.0.1", "Browser\n\xff" };
    struct session_info info;
    struct err err = { 0 };

    CHECK(session_store_create(store, &spec, &info, secrets, &err) == 0, "(%s)", err.msg);
    return info;
}

static enum role role_with(struct session_store *store, const char *cookie, const char *key)
{
    struct caller caller;

    session_store_match(store, cookie, key, &caller);
    return caller.role;
}

static bool is_open(struct session_store *store, const struct session_secrets *secrets)
{
    return role_with(store, secrets->cookie, secrets->key) != ROLE_NONE;
}

static void both_secrets_together_give_access(void)
{
    struct session_store *store = store_open();
    struct login login = login_of("ann", ROLE_USER);
    struct session_secrets first, second;
    struct session_info info = create(store, &login, &first);
    struct caller caller;

    (void)create(store, &login, &second);
    session_store_match(store, first.cookie, first.key, &caller);
    CHECK(caller.role == ROLE_USER && strcmp(caller.owner, "ann") == 0);
    CHECK_TEXT(caller.session, info.id);
    CHECK_TEXT(info.agent, "Browser??");
    CHECK(role_with(store, first.cookie, second.key) == ROLE_NONE);
    CHECK(role_with(store, second.cookie, first.key) == ROLE_NONE);
    CHECK(role_with(store, first.key, first.cookie) == ROLE_NONE);
    CHECK(role_with(store, first.cookie, "") == ROLE_NONE);
    CHECK(role_with(store, "", first.key) == ROLE_NONE);
    CHECK(role_with(store, "", "") == ROLE_NONE);
    session_store_match_cookie(store, first.cookie, &caller);
    CHECK_TEXT(caller.session, info.id);
    session_store_match_cookie(store, first.key, &caller);
    CHECK(caller.role == ROLE_NONE);
    session_store_free(store);
}

static void rows_have_no_secrets_and_outlive_the_daemon(void)
{
    struct session_store *store = store_open();
    struct login login = login_of("ann", ROLE_READ);
    struct session_secrets secrets;
    struct session_info info;
    struct caller caller;

    login.caller.scope[0] = (struct label){ "team", "r\"ed" };
    login.caller.scope_count = 1;
    info = create(store, &login, &secrets);
    CHECK(row_count == 1 && !memmem(rows, sizeof(*rows), secrets.cookie, 16) &&
          !memmem(rows, sizeof(*rows), secrets.key, 16));
    store = store_again(store);
    session_store_match(store, secrets.cookie, secrets.key, &caller);
    CHECK(caller.role == ROLE_READ && caller.scope_count == 1);
    CHECK_TEXT(caller.scope[0].value, "r\"ed");
    CHECK_TEXT(caller.session, info.id);
    session_store_free(store);
}

static void a_row_that_is_no_session_is_not_loaded(void)
{
    struct session_store *store = store_open();
    struct login login = login_of("ann", ROLE_USER);
    struct session_secrets secrets;
    struct session_row row;

    (void)create(store, &login, &secrets);
    row = rows[0];
    row.role[0] = 'X';
    CHECK(!session_store_load(store, &row));
    row = rows[0];
    row.id[1] = row.id[1] == '0' ? '1' : '0';
    CHECK(!session_store_load(store, &row));
    row = rows[0];
    row.key_hash[0] = 'x';
    CHECK(!session_store_load(store, &row));
    row = rows[0];
    (void)snprintf(row.scope, sizeof(row.scope), "[]");
    CHECK(!session_store_load(store, &row));
    row = rows[0];
    row.expires_ms = clock_wall_ms() - 1;
    CHECK(!session_store_load(store, &row));
    row = rows[0];
    (void)snprintf(row.token, sizeof(row.token), "00000000");
    CHECK(!session_store_load(store, &row));
    session_store_free(store);
}

static void a_session_ends_by_its_time(void)
{
    struct session_store *store = store_open();
    struct login login = login_of("ann", ROLE_USER);
    struct session_secrets secrets, later;
    struct session_info info = create(store, &login, &secrets);

    CHECK(is_open(store, &secrets) && session_store_is_valid(store, info.id));
    clock_step_wall(HOUR_MS);
    CHECK(!is_open(store, &secrets) && !session_store_is_valid(store, info.id));
    (void)create(store, &login, &later);
    CHECK(row_count == 1 && is_open(store, &later));
    session_store_free(store);
}

static void a_session_ends_with_its_token(void)
{
    struct session_store *store = store_open();
    const struct token_spec spec = { .owner = "ann", .role = ROLE_USER };
    char secret[TOKEN_SECRET_SIZE];
    struct session_secrets secrets;
    struct token_info token;
    struct session_info info;
    struct login login;
    struct err err = { 0 };

    CHECK(token_store_create(tokens, &spec, &token, secret, &err) == 0, "(%s)", err.msg);
    CHECK(session_store_match_token(store, secret, &login) && !login.is_main);
    CHECK(!session_store_match_token(store, "holt_", &login));
    CHECK(session_store_match_token(store, secret, &login));
    info = create(store, &login, &secrets);
    CHECK(is_open(store, &secrets));
    CHECK(token_store_remove(tokens, &caller_root, token.id, &token, &err) == 0);
    CHECK(!is_open(store, &secrets) && !session_store_is_valid(store, info.id));
    CHECK(session_store_remove(store, &caller_root, info.id, "revoked", &err) < 0);
    session_store_free(store);
}

static void another_main_token_ends_the_sessions_of_the_first(void)
{
    struct session_store *store = store_open();
    struct login login, local = login_of(OWNER_ROOT, ROLE_ADMIN);
    struct session_secrets secrets, of_socket;

    token_store_add_main(tokens, "first");
    CHECK(session_store_match_token(store, "first", &login) && login.is_main);
    (void)create(store, &login, &secrets);
    (void)create(store, &local, &of_socket);
    CHECK(is_open(store, &secrets) && is_open(store, &of_socket));
    token_store_add_main(tokens, "second");
    CHECK(!is_open(store, &secrets) && is_open(store, &of_socket));
    session_store_free(store);
}

static void owners_end_only_their_own(void)
{
    struct session_store *store = store_open();
    struct login ann = login_of("ann", ROLE_USER), bob = login_of("bob", ROLE_USER);
    struct session_secrets of_ann, of_bob;
    struct session_info info = create(store, &ann, &of_ann), *list;
    struct err err = { 0 };
    size_t count;

    (void)create(store, &bob, &of_bob);
    session_store_list(store, &bob.caller, &list, &count);
    CHECK(count == 1 && strcmp(list[0].login.caller.owner, "bob") == 0);
    free(list);
    session_store_list(store, &caller_root, &list, &count);
    CHECK(count == 2);
    free(list);
    CHECK(session_store_remove(store, &bob.caller, info.id, "revoked", &err) < 0);
    CHECK(err.kind == ERR_NOT_FOUND && is_open(store, &of_ann));
    CHECK(session_store_remove(store, &ann.caller, info.id, "revoked", &err) == 0);
    CHECK(!is_open(store, &of_ann) && is_open(store, &of_bob) && row_count == 1);
    for (size_t i = 0; i < 3; i++)
        CHECK(session_store_remove(store, &ann.caller, (const char *[]){ "", "s", "szzzzzzz" }[i],
                                   "revoked", &err) < 0);
    session_store_free(store);
}

static void an_owner_has_a_number_of_sessions(void)
{
    struct session_store *store = store_open();
    struct login ann = login_of("ann", ROLE_USER), bob = login_of("bob", ROLE_USER);
    struct session_secrets first, of_bob, last;

    (void)create(store, &bob, &of_bob);
    (void)create(store, &ann, &first);
    for (unsigned i = 0; i < SESSIONS_OF_OWNER_MAX; i++) {
        clock_step_wall(1);
        (void)create(store, &ann, &last);
    }
    CHECK(!is_open(store, &first) && is_open(store, &last) && is_open(store, &of_bob));
    CHECK(row_count == SESSIONS_OF_OWNER_MAX + 1);
    session_store_free(store);
}

static void sessions_of_a_token_make_room_for_its_own(void)
{
    struct session_store *store = store_open();
    const struct token_spec spec = { .owner = "ann", .role = ROLE_ADMIN };
    struct login weak = login_of("ann", ROLE_READ), admin;
    struct session_secrets of_admin, last;
    char secret[TOKEN_SECRET_SIZE];
    struct token_info token;
    struct err err = { 0 };

    CHECK(token_store_create(tokens, &spec, &token, secret, &err) == 0, "(%s)", err.msg);
    CHECK(session_store_match_token(store, secret, &admin));
    (void)create(store, &admin, &of_admin);
    for (unsigned i = 0; i < SESSIONS_OF_OWNER_MAX; i++) {
        clock_step_wall(1);
        (void)create(store, &weak, &last);
    }
    CHECK(is_open(store, &of_admin) && is_open(store, &last));
    session_store_free(store);
}

static void every_end_is_reported_once_with_its_reason(void)
{
    struct session_store *store = store_open();
    const struct token_spec spec = { .owner = "bob", .role = ROLE_USER };
    struct login ann = login_of("ann", ROLE_USER), bob;
    struct session_secrets secrets;
    struct session_info info;
    char secret[TOKEN_SECRET_SIZE];
    struct token_info token;
    struct err err = { 0 };

    CHECK(token_store_create(tokens, &spec, &token, secret, &err) == 0, "(%s)", err.msg);
    CHECK(session_store_match_token(store, secret, &bob));
    info = create(store, &bob, &secrets);
    CHECK(session_store_sweep(store, &err) == 0 && ended_count == 0);
    CHECK(token_store_remove(tokens, &caller_root, token.id, &token, &err) == 0);
    CHECK(session_store_sweep(store, &err) == 0 && ended_count == 1);
    CHECK_TEXT(ended_reason, "token");
    CHECK_TEXT(ended_owner, "bob");
    info = create(store, &ann, &secrets);
    CHECK(session_store_remove(store, &ann.caller, info.id, "logout", &err) == 0);
    CHECK(session_store_remove(store, &ann.caller, info.id, "logout", &err) < 0);
    CHECK(ended_count == 2);
    CHECK_TEXT(ended_reason, "logout");
    for (unsigned i = 0; i <= SESSIONS_OF_OWNER_MAX; i++)
        (void)create(store, &ann, &secrets);
    CHECK(ended_count == 3);
    CHECK_TEXT(ended_reason, "limit");
    clock_step_wall(2 * HOUR_MS);
    CHECK(session_store_sweep(store, &err) == 0 && row_count == 0);
    CHECK(ended_count == 3 + SESSIONS_OF_OWNER_MAX);
    CHECK_TEXT(ended_reason, "expired");
    CHECK(session_store_sweep(store, &err) == 0 && ended_count == 3 + SESSIONS_OF_OWNER_MAX);
    session_store_free(store);
}

static void a_session_of_a_higher_role_stays(void)
{
    struct session_store *store = store_open();
    struct login weak = login_of("ann", ROLE_USER), admin = login_of("ann", ROLE_ADMIN);
    struct session_secrets of_admin, of_weak, first;
    struct session_info info, weak_info;
    struct err err = { 0 };

    (void)create(store, &admin, &first);
    info = create(store, &admin, &of_admin);
    weak_info = create(store, &weak, &of_weak);
    CHECK(session_store_remove(store, &weak.caller, info.id, "revoked", &err) < 0 &&
          err.kind == ERR_DENIED);
    CHECK(is_open(store, &of_admin) && is_open(store, &first));
    CHECK(session_store_remove(store, &admin.caller, weak_info.id, "revoked", &err) == 0);
    session_store_free(store);
}

static void sessions_of_higher_roles_make_no_room(void)
{
    struct session_store *store = store_open();
    const struct token_spec spec = { .owner = "ann", .role = ROLE_READ };
    struct login admin = login_of("ann", ROLE_ADMIN);
    struct session_spec weak = { .address = "127.0.0.1" };
    char secret[TOKEN_SECRET_SIZE];
    struct session_secrets first, last;
    struct session_info info;
    struct token_info token;
    struct err err = { 0 };

    (void)create(store, &admin, &first);
    for (unsigned i = 1; i < SESSIONS_OF_OWNER_MAX; i++)
        (void)create(store, &admin, &last);
    CHECK(token_store_create(tokens, &spec, &token, secret, &err) == 0, "(%s)", err.msg);
    CHECK(session_store_match_token(store, secret, &weak.login));
    CHECK(session_store_create(store, &weak, &info, &last, &err) < 0 && err.kind == ERR_EXHAUSTED);
    CHECK(is_open(store, &first));
    session_store_free(store);
}

static void a_session_that_cannot_be_recorded_is_none(void)
{
    struct session_store *store = store_open();
    const struct session_spec spec = { login_of("ann", ROLE_USER), "127.0.0.1", NULL };
    struct session_secrets secrets;
    struct session_info info = create(store, &spec.login, &secrets), again;
    struct err err = { 0 };

    is_full = true;
    CHECK(session_store_create(store, &spec, &again, &secrets, &err) < 0);
    CHECK(err.kind == ERR_EXHAUSTED && !is_open(store, &secrets));
    CHECK(session_store_remove(store, &caller_root, info.id, "revoked", &err) < 0);
    CHECK(session_store_is_valid(store, info.id));
    session_store_free(store);
}

static void a_code_is_used_once(void)
{
    struct session_store *store = store_open();
    struct login ann = login_of("ann", ROLE_USER), found;
    char code[SESSION_SECRET_SIZE];
    uint64_t expires_ms = 0;
    struct err err = { 0 };

    CHECK(session_store_create_code(store, &ann, code, &expires_ms, &err) == 0);
    CHECK(expires_ms > clock_wall_ms() && expires_ms <= clock_wall_ms() + LOGIN_CODE_MS);
    CHECK(!session_store_take_code(store, "", NULL, &found) &&
          !session_store_peek_code(store, "", &found));
    CHECK(session_store_peek_code(store, code, &found) && strcmp(found.caller.owner, "ann") == 0);
    CHECK(session_store_take_code(store, code, NULL, &found));
    CHECK_TEXT(found.caller.owner, "ann");
    CHECK(!session_store_take_code(store, code, NULL, &found));
    CHECK(!session_store_peek_code(store, code, &found));
    session_store_free(store);
}

static void a_code_expires(void)
{
    struct session_store *store = store_new(HOUR_MS, 1);
    struct login ann = login_of("ann", ROLE_USER), found;
    char code[SESSION_SECRET_SIZE];
    uint64_t expires_ms = 0;
    struct err err = { 0 };

    CHECK(session_store_create_code(store, &ann, code, &expires_ms, &err) == 0);
    clock_sleep_ms(2);
    CHECK(!session_store_take_code(store, code, NULL, &found));
    session_store_free(store);
}

static void an_owner_has_a_number_of_codes(void)
{
    struct session_store *store = store_open();
    struct login ann = login_of("ann", ROLE_USER), bob = login_of("bob", ROLE_USER), found;
    char code[SESSION_SECRET_SIZE];
    uint64_t expires_ms = 0;
    struct err err = { 0 };

    for (unsigned i = 0; i < LOGIN_CODES_OF_OWNER_MAX; i++)
        CHECK(session_store_create_code(store, &ann, code, &expires_ms, &err) == 0);
    CHECK(session_store_take_code(store, code, NULL, &found));
    CHECK(session_store_create_code(store, &ann, code, &expires_ms, &err) == 0);
    CHECK(session_store_create_code(store, &ann, code, &expires_ms, &err) < 0);
    CHECK(err.kind == ERR_EXHAUSTED);
    CHECK(session_store_create_code(store, &bob, code, &expires_ms, &err) == 0);
    session_store_free(store);
}

static void around(test_fn *test)
{
    struct err err = { 0 };

    rows = xcalloc(ROWS_MAX, sizeof(*rows));
    CHECK(mkdtemp(state) && token_store_open(state, &tokens, &err) == 0, "(%s)", err.msg);
    test();
    token_store_close(tokens);
    free(rows);
    CHECK(tree_remove_at(AT_FDCWD, state) == 0);
}

/* --- previews --------------------------------------------------------------------------------- */

static const struct preview_target target = { "sb-1", 8000 };

static struct login preview_of(const char *owner, const char *session)
{
    struct login login = login_of(owner, ROLE_USER);

    login.preview = target;
    (void)snprintf(login.caller.session, sizeof(login.caller.session), "%s", session);
    return login;
}

static struct session_info preview_make(struct session_store *store, const struct login *login,
                                        struct session_secrets *ret_secrets)
{
    const struct session_spec spec = { .login = *login, .address = "" };
    struct session_info info;
    struct err err;

    CHECK(session_store_create(store, &spec, &info, ret_secrets, &err) == 0);
    return info;
}

static bool opens(struct session_store *store, const char *cookie, const char *sandbox,
                  uint16_t port)
{
    struct preview_target other = { .port = port };
    struct caller caller;

    (void)snprintf(other.sandbox, sizeof(other.sandbox), "%s", sandbox);
    session_store_match_preview(store, cookie, &other, &caller);
    return caller.role != ROLE_NONE;
}

static void a_code_is_for_one_port_or_a_login(void)
{
    static const struct preview_target others[] = { { "sb-2", 8000 }, { "sb-1", 8001 } };
    struct session_store *store = store_open();
    struct login found, preview = preview_of("ann", ""), login = login_of("ann", ROLE_USER);
    char code[SESSION_SECRET_SIZE];
    uint64_t expires_ms;
    struct err err;

    for (size_t i = 0; i < 4; i++) {
        CHECK(session_store_create_code(store, i == 3 ? &login : &preview, code, &expires_ms,
                                        &err) == 0);
        CHECK(!session_store_take_code(store, code,
                                       i < 2    ? &others[i]
                                       : i == 2 ? NULL
                                                : &target,
                                       &found));
        CHECK(!session_store_take_code(store, code, i == 3 ? NULL : &target, &found));
    }
    CHECK(session_store_create_code(store, &preview, code, &expires_ms, &err) == 0);
    CHECK(session_store_take_code(store, code, &target, &found));
    CHECK(strcmp(found.preview.sandbox, "sb-1") == 0 && found.preview.port == 8000);
    CHECK(!session_store_take_code(store, code, &target, &found));
    session_store_free(store);
}

static void a_preview_opens_one_port_and_nothing_else(void)
{
    struct session_store *store = store_open();
    struct login preview = preview_of("ann", "");
    struct session_secrets secrets;
    struct caller caller;

    (void)preview_make(store, &preview, &secrets);
    for (int i = 0; i < 2; i++) {
        CHECK(opens(store, secrets.cookie, "sb-1", 8000));
        CHECK(!opens(store, secrets.cookie, "sb-1", 8001) &&
              !opens(store, secrets.cookie, "sb-2", 8000));
        CHECK(!opens(store, secrets.cookie, "", 0) && !opens(store, secrets.key, "sb-1", 8000));
        session_store_match(store, secrets.cookie, secrets.key, &caller);
        CHECK(caller.role == ROLE_NONE);
        session_store_match_cookie(store, secrets.cookie, &caller);
        CHECK(caller.role == ROLE_NONE);
        store = store_again(store);
    }
    session_store_free(store);
}

static void a_preview_ends_with_the_login_that_made_it(void)
{
    struct session_store *store = store_open();
    const struct session_spec spec = { .login = login_of("ann", ROLE_USER), .address = "" };
    struct session_secrets secrets, login_secrets;
    struct session_info info, login;
    struct login preview;
    struct caller ann = login_of("ann", ROLE_USER).caller;
    struct err err;

    CHECK(session_store_create(store, &spec, &login, &login_secrets, &err) == 0);
    preview = preview_of("ann", login.id);
    info = preview_make(store, &preview, &secrets);
    store = store_again(store);
    CHECK(opens(store, secrets.cookie, "sb-1", 8000) && session_store_is_valid(store, info.id));
    CHECK(session_store_remove(store, &ann, login.id, "logout", &err) == 0);
    CHECK(!opens(store, secrets.cookie, "sb-1", 8000) && !session_store_is_valid(store, info.id));
    session_store_free(store);
}

static void previews_do_not_push_logins_out(void)
{
    struct session_store *store = store_open();
    const struct session_spec spec = { .login = login_of("ann", ROLE_USER), .address = "" };
    struct login preview = preview_of("ann", "");
    struct session_secrets secrets;
    struct session_info login;
    char code[SESSION_SECRET_SIZE];
    uint64_t expires_ms;
    struct err err;

    CHECK(session_store_create(store, &spec, &login, &secrets, &err) == 0);
    for (int i = 0; i < SESSIONS_OF_OWNER_MAX + 1; i++)
        (void)preview_make(store, &preview, &secrets);
    CHECK(session_store_is_valid(store, login.id) && row_count == SESSIONS_OF_OWNER_MAX + 1);
    for (int i = 0; i < LOGIN_CODES_OF_OWNER_MAX + 1; i++)
        CHECK(session_store_create_code(store, &preview, code, &expires_ms, &err) == 0);
    CHECK(session_store_create_code(store, &spec.login, code, &expires_ms, &err) == 0);
    session_store_free(store);
}

int main(void)
{
    test_run("both_secrets_together_give_access", both_secrets_together_give_access, around);
    test_run("rows_have_no_secrets_and_outlive_the_daemon",
             rows_have_no_secrets_and_outlive_the_daemon, around);
    test_run("a_row_that_is_no_session_is_not_loaded", a_row_that_is_no_session_is_not_loaded,
             around);
    test_run("a_session_ends_by_its_time", a_session_ends_by_its_time, around);
    test_run("a_session_ends_with_its_token", a_session_ends_with_its_token, around);
    test_run("another_main_token_ends_the_sessions_of_the_first",
             another_main_token_ends_the_sessions_of_the_first, around);
    test_run("owners_end_only_their_own", owners_end_only_their_own, around);
    test_run("an_owner_has_a_number_of_sessions", an_owner_has_a_number_of_sessions, around);
    test_run("every_end_is_reported_once_with_its_reason",
             every_end_is_reported_once_with_its_reason, around);
    test_run("a_session_that_cannot_be_recorded_is_none", a_session_that_cannot_be_recorded_is_none,
             around);
    test_run("a_code_is_used_once", a_code_is_used_once, around);
    test_run("a_code_expires", a_code_expires, around);
    test_run("sessions_of_a_token_make_room_for_its_own", sessions_of_a_token_make_room_for_its_own,
             around);
    test_run("a_session_of_a_higher_role_stays", a_session_of_a_higher_role_stays, around);
    test_run("sessions_of_higher_roles_make_no_room", sessions_of_higher_roles_make_no_room,
             around);
    test_run("an_owner_has_a_number_of_codes", an_owner_has_a_number_of_codes, around);
    test_run("a_code_is_for_one_port_or_a_login", a_code_is_for_one_port_or_a_login, around);
    test_run("a_preview_opens_one_port_and_nothing_else", a_preview_opens_one_port_and_nothing_else,
             around);
    test_run("a_preview_ends_with_the_login_that_made_it",
             a_preview_ends_with_the_login_that_made_it, around);
    test_run("previews_do_not_push_logins_out", previews_do_not_push_logins_out, around);
    return 0;
}
