/* Agent types: files that say how an agent is installed, started and reached.
 *
 * A line is `key = value`; lines that begin with a blank continue the value of the line above, and
 * those that begin with # are comments. The name of a type is that of its file without ".conf".
 *
 *   summary = A small agent
 *   npm = @example/agent            packages to install, separated by blanks
 *   command = agent                 shell command for `holt agent run`; the task becomes its
 *                                   arguments
 *   task = agent --print            the same without a terminal; default: command
 *   serve = agent --listen 4096     shell command of a server
 *   port = 4096                     where the server listens
 *   ready = /health                 it is ready when a GET succeeds; default: when it accepts
 *   user = agent                    user name for HTTP Basic with the token as the password
 *   network = allow                 none, open or allow
 *   allow = api.example.com:443     rules, one per line
 *   secrets = forge                 secrets of the owner for its sandboxes, separated by blanks
 *   models = anthropic              it uses models in this format: anthropic, openai or any
 *   template = base                 what the packages are installed on; default: that of the host
 *   env NAME = value                a variable of command, task and serve
 *   file /root/.agent.json = text   a file to write before any of them is started
 *
 * In env and file, @token@, @sandbox@, @assistant@, @workspace@, @bridge-secret@, @bridge-url@,
 * @model@ and @format@ (of the first model that it may use) stand for the values of one sandbox. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct err;

enum { AGENT_ENV_MAX = 32, AGENT_FILES_MAX = 16, AGENT_ALLOW_MAX = 64, AGENT_FILE_BYTES = 65536 };

struct agent_pair {
    const char *name, *value;
};

/* Absent texts are "". Everything points into `text`. */
struct agent_type {
    char *text;
    char *name;
    const char *summary, *template, *npm, *command, *task, *serve, *ready, *user, *network, *models;
    const char *secrets;
    unsigned port; /* 0: none */
    const char *allow[AGENT_ALLOW_MAX];
    size_t allow_count;
    struct agent_pair env[AGENT_ENV_MAX];
    size_t env_count;
    struct agent_pair files[AGENT_FILES_MAX];
    size_t file_count;
};

/* Parses the text of a file, which is copied; origin is its name for messages. Fails with
 * ERR_INVALID and "ORIGIN:LINE: ...". */
int agent_type_parse(const char *name, const char *origin, const char *text, struct agent_type *ret,
                     struct err *err);
void agent_type_done(struct agent_type *type);

/* The values of one sandbox. */
struct agent_values {
    const char *token, *sandbox, *assistant, *workspace, *bridge_secret, *bridge_url;
    const char *model, *format;
};

/* Appends the text with each @word@ replaced by its value. Fails with -ENOBUFS at the limit. */
int agent_values_add(const struct agent_values *values, const char *text, struct buf *out);

/* Returns whether env or files of the type have this word: "token" for @token@. */
bool agent_type_uses(const struct agent_type *type, const char *word);
