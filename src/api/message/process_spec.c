// SPDX-License-Identifier: Apache-2.0
#include "api/message/process_spec.h"

#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"

_Static_assert(MSG_PROCESS_SPEC_ARGS_MAX_ITEMS <= PROCESS_ARGS_MAX, "arguments");
_Static_assert(MSG_PROCESS_SPEC_TAG_MAX_BYTES <= PROCESS_TAG_MAX, "tags");
_Static_assert(MSG_PROCESS_SPEC_USER_MAX_BYTES <= PROCESS_USER_MAX, "users");
_Static_assert(MSG_PROCESS_SPEC_TIER_MAX_BYTES <= PROCESS_TIER_MAX, "tiers");

/* Checks the bytes of arguments and environment together, with what joins or ends them and a
 * pointer to each. */
static int words_check(const struct msg_process_spec *message, struct err *err)
{
    size_t bytes = 0;

    for (size_t i = 0; i < message->args_count; i++)
        bytes += strlen(message->args[i]) + 1 + sizeof(char *);
    for (size_t i = 0; i < message->env_count; i++)
        bytes += strlen(message->env[i].key) + strlen(message->env[i].value) + 2 + sizeof(char *);
    if (bytes > PROCESS_ARGS_BYTES_MAX)
        return err_set(err, ERR_EXHAUSTED, "arguments and environment are longer than %d bytes",
                       PROCESS_ARGS_BYTES_MAX);
    if (message->args[0][0] == '\0')
        return err_set(err, ERR_INVALID, "the command is empty");
    return 0;
}

char **variables_make(const struct pair *pairs, size_t count, struct arena *arena)
{
    char **env = arena_take(arena, count + 1, sizeof(*env));

    for (size_t i = 0; i < count; i++) {
        size_t key_len = strlen(pairs[i].key), value_len = strlen(pairs[i].value);

        env[i] = arena_take(arena, key_len + value_len + 2, 1);
        memcpy(env[i], pairs[i].key, key_len);
        env[i][key_len] = '=';
        memcpy(env[i] + key_len + 1, pairs[i].value, value_len);
    }
    return env;
}

/* Splits "USER:GROUP"; a group without a user is one of root. */
static void user_split(const char *text, struct arena *arena, struct process_spec *ret)
{
    const char *colon = strchr(text, ':');
    char *user;

    ret->user = text_or_null(text);
    if (!colon)
        return;
    user = arena_copy_text(arena, text);
    user[colon - text] = '\0';
    ret->user = *user ? user : "0";
    ret->group = text_or_null(colon + 1);
}

int process_spec_fill(const struct msg_process_spec *message, struct arena *arena,
                      struct process_spec *ret, struct err *err)
{
    int r = words_check(message, err);

    if (r < 0)
        return r;
    *ret = (struct process_spec){
        .args = (char *const *)(uintptr_t)message->args,
        .env = variables_make(message->env, message->env_count, arena),
        .cwd = text_or_null(message->cwd),
        .has_stdin = message->stdin,
        .timeout_ms = message->timeout_ms,
        .tag = text_or_null(message->tag),
        .tier = text_or_null(message->tier),
    };
    user_split(message->user, arena, ret);
    if (message->terminal) {
        ret->has_terminal = true;
        ret->rows = (uint16_t)message->terminal->rows;
        ret->columns = (uint16_t)message->terminal->columns;
    }
    return 0;
}
