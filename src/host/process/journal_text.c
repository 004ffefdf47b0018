// SPDX-License-Identifier: Apache-2.0
#include "host/process/journal_text.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "host/process/process.h"

static json_t *words_write(char *const *words)
{
    json_t *list = json_array();

    for (; list && words && *words; words++)
        (void)json_array_append_new(list, json_text(*words));
    return list;
}

json_t *journal_spec_write(const struct process_spec *spec)
{
    return json_pack("{s:o, s:o, s:s*, s:b, s:b, s:I, s:s*, s:s*, s:b, s:i, s:i, s:s*, s:s*, s:s*}",
                     "args", words_write(spec->args), "env", words_write(spec->env), "cwd",
                     spec->cwd, "stdin", spec->has_stdin, "terminal", spec->has_terminal, "timeout",
                     (json_int_t)spec->timeout_ms, "tag", spec->tag, "key", spec->key, "detached",
                     spec->is_detached, "restart", (int)spec->restart, "port", (int)spec->port,
                     "user", spec->user, "group", spec->group, "tier", spec->tier);
}

/* Returns a NULL-terminated list of strings owned by the value; NULL if it is malformed. */
static char **words_read(const json_t *list)
{
    size_t count = json_array_size(list);
    char **words = json_is_array(list) ? calloc(count + 1, sizeof(*words)) : NULL;

    for (size_t i = 0; words && i < count; i++) {
        const char *word = json_string_value(json_array_get(list, i));

        if (!word) {
            free(words);
            return NULL;
        }
        words[i] = (char *)(uintptr_t)word;
    }
    return words;
}

struct process_spec *journal_spec_read(const json_t *value)
{
    struct process_spec spec = { .args = NULL };
    json_t *args, *env;
    json_int_t timeout;
    int has_stdin, has_terminal, is_detached, restart, port;
    struct process_spec *copy = NULL;
    char **arg_words, **env_words;

    /* json_unpack takes no const. */
    if (json_unpack((json_t *)(uintptr_t)value,
                    "{s:o, s:o, s?s, s:b, s:b, s:I, s?s, s?s, s:b, s:i, s:i, s?s, s?s, s?s}",
                    "args", &args, "env", &env, "cwd", &spec.cwd, "stdin", &has_stdin, "terminal",
                    &has_terminal, "timeout", &timeout, "tag", &spec.tag, "key", &spec.key,
                    "detached", &is_detached, "restart", &restart, "port", &port, "user",
                    &spec.user, "group", &spec.group, "tier", &spec.tier) < 0 ||
        restart < RESTART_NO || restart > RESTART_ALWAYS || port < 0 || port > UINT16_MAX)
        return NULL;
    arg_words = words_read(args);
    env_words = words_read(env);
    if (arg_words && env_words) {
        spec.args = arg_words;
        spec.env = env_words;
        spec.has_stdin = has_stdin;
        spec.has_terminal = has_terminal;
        spec.timeout_ms = (uint64_t)timeout;
        spec.is_detached = is_detached;
        spec.restart = (enum restart)restart;
        spec.port = (uint16_t)port;
        copy = process_spec_copy(&spec);
    }
    free(arg_words);
    free(env_words);
    return copy;
}

json_t *journal_end_write(const struct process_end *end)
{
    return json_pack("{s:i, s:i, s:i, s:i, s:o, s:I, s:I, s:I}", "outcome", (int)end->outcome,
                     "killer", (int)end->killer, "code", end->exit_code, "signal", end->signal,
                     "reason", json_text(end->reason), "duration", (json_int_t)end->duration_ms,
                     "cpu", (json_int_t)end->cpu_ms, "memory", (json_int_t)end->memory_peak_bytes);
}

bool journal_end_read(const json_t *value, struct process_end *ret)
{
    int outcome, killer;
    const char *reason;
    json_int_t duration, cpu, memory;

    if (json_unpack((json_t *)(uintptr_t)value, "{s:i, s:i, s:i, s:i, s:s, s:I, s:I, s:I}",
                    "outcome", &outcome, "killer", &killer, "code", &ret->exit_code, "signal",
                    &ret->signal, "reason", &reason, "duration", &duration, "cpu", &cpu, "memory",
                    &memory) < 0 ||
        outcome < 0 || outcome > OUTCOME_NOT_STARTED || killer < 0 || killer > KILLER_QUOTA)
        return false;
    ret->outcome = (enum outcome)outcome;
    ret->killer = (enum killer)killer;
    (void)snprintf(ret->reason, sizeof(ret->reason), "%s", reason);
    ret->duration_ms = (uint64_t)duration;
    ret->cpu_ms = (uint64_t)cpu;
    ret->memory_peak_bytes = (uint64_t)memory;
    return true;
}
