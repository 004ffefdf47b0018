// SPDX-License-Identifier: Apache-2.0
/* Keys come from the real ssh-keygen; the test plays the client and the server of a login. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text/base64.h"
#include "check.h"
#include "ssh/agent.h"

extern char **environ;

enum { FAILURE = 5, SUCCESS = 6, IDENTITIES = 12, SIGNATURE = 14, NOT_EXTENDED = 28 };

static char dir[] = "/tmp/holt-ssh-test.XXXXXX";

struct pair {
    char text[SSH_KEY_TEXT_MAX];
    char line[4096]; /* of the .pub file */
};

static void file_load(const char *name, const char *suffix, char *ret, size_t size)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(SSH_KEY_TEXT_MAX - 1);
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/%s%s", dir, name, suffix);
    CHECK(file_read_at(AT_FDCWD, path, &text) == 0 && text.len < size);
    memcpy(ret, text.data, text.len + 1);
    (void)unlink(path);
}

/* Makes a key: type and size as ssh-keygen names them, and a passphrase. */
static void pair_make(struct pair *pair, const char *type, const char *bits, const char *phrase)
{
    char path[128];
    const char *const words[] = { "ssh-keygen", "-q", "-t", type, "-b",   bits, "-N",
                                  phrase,       "-f", path, "-C", "test", NULL };
    pid_t pid;
    int status;

    (void)snprintf(path, sizeof(path), "%s/key", dir);
    CHECK(posix_spawnp(&pid, words[0], NULL, NULL, (char *const *)(uintptr_t)words, environ) == 0);
    CHECK(waitpid(pid, &status, 0) == pid && status == 0, "%s", type);
    file_load("key", "", pair->text, sizeof(pair->text));
    file_load("key", ".pub", pair->line, sizeof(pair->line));
}

static struct ssh_bytes bytes_of(const void *data, size_t len)
{
    return (struct ssh_bytes){ .data = data, .len = len };
}

static struct ssh_bytes text_of(const char *text)
{
    return bytes_of(text, strlen(text));
}

static const char *const types[][2] = { { "ed25519", "256" }, { "ecdsa", "256" },
                                        { "ecdsa", "384" },   { "ecdsa", "521" },
                                        { "rsa", "2048" },    { "rsa", "3072" } };

static void keys_of_ssh_keygen_sign_what_their_public_part_verifies(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        static struct pair pair;
        cleanup_with(buf_done) struct buf out = BUF_INIT(4096);
        struct ssh_key key;
        struct ssh_public public;
        struct ssh_reader reader;
        struct ssh_bytes signature;
        struct err err = { 0 };

        pair_make(&pair, types[i][0], types[i][1], "");
        CHECK(ssh_key_read(&key, pair.text, strlen(pair.text), &err) == 0, "%s", err.msg);
        CHECK(ssh_public_parse(pair.line, &public, &err) == 0, "%s", err.msg);
        CHECK(ssh_public_equals(&public, bytes_of(key.public.blob, key.public.len)));
        CHECK(ssh_key_sign(&key, text_of("data"), SSH_RSA_SHA2_256, &out) == 0);
        reader = ssh_reader_of(out.data, out.len);
        signature = ssh_get_string(&reader);
        CHECK(ssh_reader_is_done(&reader));
        CHECK(ssh_public_verify(&public, text_of("data"), signature));
        CHECK(!ssh_public_verify(&public, text_of("date"), signature));
        out.data[out.len - 1] ^= 1;
        CHECK(!ssh_public_verify(&public, text_of("data"), signature));
        ssh_key_done(&key);
    }
}

static void refused(const char *text, size_t len, const char *why)
{
    struct ssh_key key;
    struct err err = { 0 };

    CHECK(ssh_key_read(&key, text, len, &err) < 0 && err.kind == ERR_INVALID);
    CHECK(strstr(err.msg, why) != NULL, "%s", err.msg);
}

static void other_texts_are_no_keys(void)
{
    static struct pair pair;
    struct ssh_public public;
    struct err err = { 0 };

    pair_make(&pair, "ed25519", "256", "a phrase");
    refused(pair.text, strlen(pair.text), "passphrase");
    refused(pair.line, strlen(pair.line), "no private key");
    refused("", 0, "no private key");
    pair_make(&pair, "ed25519", "256", "");
    for (size_t len = 0; len + 40 < strlen(pair.text); len += 7)
        refused(pair.text, len, "no private key");
    CHECK(ssh_public_parse("ssh-dss AAAA", &public, &err) < 0);
    CHECK(ssh_public_parse("ssh-ed25519", &public, &err) < 0);
    CHECK(ssh_public_parse("ssh-ed25519 AAAA", &public, &err) < 0);
    CHECK(ssh_public_parse("ssh-rsa AAAAC3NzaC1lZDI1NTE5", &public, &err) < 0);
    CHECK(ssh_public_parse("", &public, &err) < 0);
}

/* --- an agent with one key for one server --- */

struct world {
    struct ssh_agent agent;
    struct ssh_key host, other; /* servers; the key is for the first */
    struct ssh_agent_session session;
    struct ssh_agent_event event;
};

static void key_make(struct ssh_key *ret)
{
    static struct pair pair;
    struct err err = { 0 };

    pair_make(&pair, "ed25519", "256", "");
    CHECK(ssh_key_read(ret, pair.text, strlen(pair.text), &err) == 0, "%s", err.msg);
}

static struct world world_make(void)
{
    struct world world = { .agent = { .count = 1 } };
    struct ssh_agent_key *key = world.agent.keys = calloc(1, sizeof(*key));

    key_make(&world.host);
    key_make(&world.other);
    key_make(&key->key);
    (void)snprintf(key->comment, sizeof(key->comment), "deploy");
    key->host_count = 1;
    key->hosts = calloc(1, sizeof(*key->hosts));
    key->hosts[0] = world.host.public;
    return world;
}

static void world_done(struct world *world)
{
    ssh_agent_done(&world->agent);
    ssh_key_done(&world->host);
    ssh_key_done(&world->other);
}

/* Returns the type of the reply; its content is in ret, if that is wanted. */
static int ask(struct world *world, const struct buf *message, struct buf *ret)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(SSH_AGENT_REPLY_MAX);
    struct ssh_reader reader;
    struct ssh_bytes reply;

    CHECK(ssh_agent_answer(&world->agent, &world->session, bytes_of(message->data, message->len),
                           &out, &world->event) == 0);
    reader = ssh_reader_of(out.data, out.len);
    reply = ssh_get_string(&reader);
    CHECK(ssh_reader_is_done(&reader) && reply.len > 0);
    if (ret)
        CHECK(buf_add(ret, reply.data, reply.len) == 0);
    return reply.data[0];
}

static int bind_as(struct world *world, const struct ssh_key *shown, const struct ssh_key *signer,
                   const char *id, bool is_forwarding)
{
    cleanup_with(buf_done) struct buf message = BUF_INIT(8192);

    CHECK(ssh_put_u8(&message, 27) && ssh_put_text(&message, "session-bind@openssh.com"));
    CHECK(ssh_put_string(&message, shown->public.blob, shown->public.len));
    CHECK(ssh_put_text(&message, id) && ssh_key_sign(signer, text_of(id), 0, &message) == 0);
    CHECK(ssh_put_u8(&message, is_forwarding));
    return ask(world, &message, NULL);
}

struct login {
    const char *id, *method;
    const struct ssh_key *host;   /* of a host-bound login */
    const struct ssh_public *key; /* NULL: that of the agent */
    uint8_t type;
};

static void login_put(const struct world *world, const struct login *login, struct buf *ret)
{
    const struct ssh_public *key = login->key ? login->key : &world->agent.keys[0].key.public;

    CHECK(ssh_put_text(ret, login->id) && ssh_put_u8(ret, login->type ? login->type : 50));
    CHECK(ssh_put_text(ret, "git") && ssh_put_text(ret, "ssh-connection"));
    CHECK(ssh_put_text(ret, login->method) && ssh_put_u8(ret, 1));
    CHECK(ssh_put_text(ret, "ssh-ed25519") && ssh_put_string(ret, key->blob, key->len));
    if (login->host)
        CHECK(ssh_put_string(ret, login->host->public.blob, login->host->public.len));
}

static int sign_data(struct world *world, const struct buf *data, struct buf *ret)
{
    cleanup_with(buf_done) struct buf message = BUF_INIT(8192);
    const struct ssh_public *key = &world->agent.keys[0].key.public;

    CHECK(ssh_put_u8(&message, 13) && ssh_put_string(&message, key->blob, key->len));
    CHECK(ssh_put_string(&message, data->data, data->len) && ssh_put_u32(&message, 0));
    return ask(world, &message, ret);
}

static int sign(struct world *world, const struct login *login)
{
    cleanup_with(buf_done) struct buf data = BUF_INIT(8192);

    login_put(world, login, &data);
    return sign_data(world, &data, NULL);
}

#define HOST_BOUND "publickey-hostbound-v00@openssh.com"

static void a_login_to_the_server_of_the_key_is_signed(void)
{
    struct world world = world_make();
    const struct login login = { .id = "session", .method = HOST_BOUND, .host = &world.host };
    cleanup_with(buf_done) struct buf data = BUF_INIT(8192), reply = BUF_INIT(8192);
    struct ssh_reader reader;

    CHECK(bind_as(&world, &world.host, &world.host, "session", false) == SUCCESS);
    login_put(&world, &login, &data);
    CHECK(sign_data(&world, &data, &reply) == SIGNATURE);
    CHECK(!world.event.refusal && world.event.key == &world.agent.keys[0]);
    reader = ssh_reader_of(reply.data + 1, reply.len - 1);
    CHECK(ssh_public_verify(&world.agent.keys[0].key.public, bytes_of(data.data, data.len),
                            ssh_get_string(&reader)));
    CHECK(sign(&world, &(struct login){ .id = "session", .method = "publickey" }) == SIGNATURE);
    world_done(&world);
}

static void nothing_is_signed_without_a_bind(void)
{
    struct world world = world_make();

    CHECK(sign(&world, &(struct login){ .id = "session", .method = "publickey" }) == FAILURE);
    CHECK(strstr(world.event.refusal, "has not bound") != NULL);
    world_done(&world);
}

static void a_bind_needs_the_signature_of_the_host_key(void)
{
    struct world world = world_make();

    CHECK(bind_as(&world, &world.host, &world.other, "session", false) == FAILURE);
    CHECK(sign(&world, &(struct login){ .id = "session", .method = "publickey" }) == FAILURE);
    /* A later bind does not mend it. */
    (void)bind_as(&world, &world.host, &world.host, "session", false);
    CHECK(sign(&world, &(struct login){ .id = "session", .method = "publickey" }) == FAILURE);
    world_done(&world);
}

static void other_servers_sessions_and_texts_are_refused(void)
{
    struct world world = world_make();
    const struct login logins[] = {
        { .id = "another", .method = "publickey" },
        { .id = "session", .method = HOST_BOUND, .host = &world.other },
        { .id = "session", .method = HOST_BOUND },
        { .id = "session", .method = "publickey", .host = &world.host },
        { .id = "session", .method = "password" },
        { .id = "session", .method = "publickey", .key = &world.other.public },
        { .id = "session", .method = "publickey", .type = 51 },
    };
    cleanup_with(buf_done) struct buf text = BUF_INIT(64);

    CHECK(bind_as(&world, &world.host, &world.host, "session", false) == SUCCESS);
    for (size_t i = 0; i < ARRAY_SIZE(logins); i++)
        CHECK(sign(&world, &logins[i]) == FAILURE && world.event.refusal, "login %zu", i);
    CHECK(buf_add_str(&text, "SSHSIG a text to sign") == 0);
    CHECK(sign_data(&world, &text, NULL) == FAILURE);
    world_done(&world);
}

static void a_key_is_for_its_own_servers(void)
{
    struct world world = world_make();
    const struct login login = { .id = "session", .method = HOST_BOUND, .host = &world.other };

    CHECK(bind_as(&world, &world.other, &world.other, "session", false) == SUCCESS);
    CHECK(sign(&world, &login) == FAILURE);
    CHECK(strstr(world.event.refusal, "other servers") != NULL);
    world_done(&world);
}

static void a_connection_is_bound_once_and_not_forwarded(void)
{
    struct world world = world_make();

    CHECK(bind_as(&world, &world.host, &world.host, "session", false) == SUCCESS);
    CHECK(bind_as(&world, &world.host, &world.host, "again", false) == FAILURE);
    CHECK(sign(&world, &(struct login){ .id = "session", .method = "publickey" }) == FAILURE);
    world.session = (struct ssh_agent_session){ .is_bound = false };
    CHECK(bind_as(&world, &world.host, &world.host, "session", true) == FAILURE);
    CHECK(strstr(world.event.refusal, "not forwarded") != NULL);
    world_done(&world);
}

static void the_list_has_the_keys_of_the_server(void)
{
    struct world world = world_make();
    cleanup_with(buf_done) struct buf message = BUF_INIT(16), all = BUF_INIT(8192),
                                      none = BUF_INIT(8192);

    CHECK(ssh_put_u8(&message, 11));
    CHECK(ask(&world, &message, &all) == IDENTITIES && all.data[4] == 1);
    CHECK(memmem(all.data, all.len, "deploy", 6) != NULL);
    CHECK(bind_as(&world, &world.other, &world.other, "session", false) == SUCCESS);
    CHECK(ask(&world, &message, &none) == IDENTITIES && none.data[4] == 0 && none.len == 5);
    world_done(&world);
}

static void other_messages_fail(void)
{
    struct world world = world_make();

    for (unsigned type = 0; type < 256; type++) {
        cleanup_with(buf_done) struct buf message = BUF_INIT(16);
        int reply;

        CHECK(ssh_put_u8(&message, (uint8_t)type));
        reply = ask(&world, &message, NULL);
        CHECK(reply == (type == 11 ? IDENTITIES : type == 27 ? NOT_EXTENDED : FAILURE), "%u", type);
    }
    world_done(&world);
}

int main(void)
{
    if (!mkdtemp(dir))
        return 1;
    RUN(keys_of_ssh_keygen_sign_what_their_public_part_verifies);
    RUN(other_texts_are_no_keys);
    RUN(a_login_to_the_server_of_the_key_is_signed);
    RUN(nothing_is_signed_without_a_bind);
    RUN(a_bind_needs_the_signature_of_the_host_key);
    RUN(other_servers_sessions_and_texts_are_refused);
    RUN(a_key_is_for_its_own_servers);
    RUN(a_connection_is_bound_once_and_not_forwarded);
    RUN(the_list_has_the_keys_of_the_server);
    RUN(other_messages_fail);
    (void)rmdir(dir);
    return 0;
}
