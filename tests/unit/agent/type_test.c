// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "agent/type.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "check.h"

static void a_type_has_what_its_file_says(void)
{
    static const char text[] = "# a comment\n"
                               "summary = An agent\n"
                               "npm = one two\n"
                               "command = agent \"$@\"\n"
                               "serve = agent --listen\n"
                               "port = 4096\n"
                               "ready = /health\n"
                               "network = allow\n"
                               "allow =\n"
                               "    a.example\n"
                               "    b.example:443\n"
                               "models = openai\n"
                               "secrets = forge  mail\n"
                               "env KEY = a=@token@\n"
                               "file /root/x.json =\n"
                               "    {\n"
                               "      \"a\": 1\n"
                               "\n"
                               "    }\n";
    struct agent_type type;
    struct err err;

    CHECK(agent_type_parse("x", "x.conf", text, &type, &err) == 0);
    CHECK(strcmp(type.summary, "An agent") == 0 && strcmp(type.npm, "one two") == 0);
    CHECK(strcmp(type.command, "agent \"$@\"") == 0 && type.port == 4096);
    CHECK(type.allow_count == 2 && strcmp(type.allow[1], "b.example:443") == 0);
    CHECK(strcmp(type.models, "openai") == 0 && strcmp(type.secrets, "forge  mail") == 0);
    CHECK(type.env_count == 1 && strcmp(type.env[0].value, "a=@token@") == 0);
    CHECK(type.file_count == 1 && strcmp(type.files[0].name, "/root/x.json") == 0);
    CHECK(strcmp(type.files[0].value, "{\n  \"a\": 1\n\n}") == 0);
    CHECK(agent_type_uses(&type, "token") && !agent_type_uses(&type, "workspace"));
    agent_type_done(&type);
}

/* Each text, and what its message names. */
static const char *const wrong[][2] = {
    { "command = x\nfoo = 1\n", "x.conf:2: unknown key 'foo'" },
    { "command\n", "x.conf:1: 'command' is not" },
    { "command = x\ncommand = y\n", "x.conf:2: 'command' is set twice" },
    { "command = x\nport = 0\n", "x.conf:2: port '0'" },
    { "command = x\nport = 65536\n", "x.conf:2: port '65536'" },
    { "command = x\nport = 1\nport = 2\n", "x.conf:3: 'port' is set twice" },
    { "command = x\nenv 1A = b\n", "x.conf:2: '1A' is not a name" },
    { "command = x\nenv A = b\nenv A = c\n", "x.conf:3: 'env A' is set twice" },
    { "command = x\nenv A = @nothing@\n", "x.conf:2: unknown word '@nothing@'" },
    { "command = x\nfile etc = b\n", "x.conf:2: the file 'etc'" },
    { "command = x\nfile /a/../b = c\n", "x.conf:2: the file '/a/../b'" },
    { "  x\n", "x.conf:1: a line that begins with a blank" },
    { "summary = x\n", "x.conf: neither 'command' nor 'serve'" },
    { "serve = x\n", "x.conf: 'serve' and 'port'" },
    { "command = x\nport = 1\n", "x.conf: 'serve' and 'port'" },
    { "command = x\nnetwork = all\n", "x.conf: network 'all'" },
    { "command = x\nsecrets = a\nsecrets = b\n", "x.conf:3: 'secrets' is set twice" },
    { "command = x\nallow = a\n", "x.conf: 'allow' needs" },
    { "command = x\nmodels = any\n", "x.conf: 'models' needs 'network'" },
    { "command = x\nnetwork = none\nmodels = all\n", "x.conf: models 'all'" },
    { "command = x\nready = health\n", "x.conf: ready 'health'" },
    { "command = x\ntemplate = A/B\n", "x.conf: template 'A/B'" },
};

static void errors_name_file_line_and_key(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        struct agent_type type;
        struct err err;

        CHECK(agent_type_parse("x", "x.conf", wrong[i][0], &type, &err) < 0);
        CHECK(err.kind == ERR_INVALID);
        CHECK(strncmp(err.msg, wrong[i][1], strlen(wrong[i][1])) == 0);
    }
}

static void words_are_replaced_once(void)
{
    const struct agent_values values = { .token = "@sandbox@",
                                         .sandbox = "sb-1",
                                         .assistant = "Andy",
                                         .workspace = "",
                                         .bridge_secret = "s",
                                         .bridge_url = "u",
                                         .model = "m",
                                         .format = "f" };
    cleanup_with(buf_done) struct buf out = BUF_INIT(100), small = BUF_INIT(4);

    CHECK(agent_values_add(&values,
                           "@token@ a@b @sandbox@@assistant@@ [@workspace@] @format@/@model@",
                           &out) == 0);
    CHECK(strcmp(out.data, "@sandbox@ a@b sb-1Andy@ [] f/m") == 0);
    CHECK(agent_values_add(&values, "@token@", &small) < 0);
}

int main(void)
{
    RUN(a_type_has_what_its_file_says);
    RUN(errors_name_file_line_and_key);
    RUN(words_are_replaced_once);
    return 0;
}
