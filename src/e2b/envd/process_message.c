// SPDX-License-Identifier: Apache-2.0
#include "e2b/envd/process_message.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "host/process/record.h"
#include "http/stream.h"

_Static_assert(ENVD_START_REQUEST_TAG_MAX_BYTES == PROCESS_TAG_MAX,
               "proto/e2b/envd/process.proto has the limit of the host");

/* Go's names, by which clients know them. */
static const char *const signal_names[] = {
    [SIGHUP] = "hangup",
    [SIGINT] = "interrupt",
    [SIGQUIT] = "quit",
    [SIGILL] = "illegal instruction",
    [SIGTRAP] = "trace/breakpoint trap",
    [SIGABRT] = "aborted",
    [SIGBUS] = "bus error",
    [SIGFPE] = "floating point exception",
    [SIGKILL] = "killed",
    [SIGUSR1] = "user defined signal 1",
    [SIGSEGV] = "segmentation fault",
    [SIGUSR2] = "user defined signal 2",
    [SIGPIPE] = "broken pipe",
    [SIGALRM] = "alarm clock",
    [SIGTERM] = "terminated",
};

/* --- Start ------------------------------------------------------------------------------------ */

static int env_add(struct buf *env, const char *name, const char *value, struct err *err)
{
    if (*name == '\0' || strchr(name, '=') || !value)
        return err_set(err, ERR_INVALID, "'%.80s' is no variable of an environment", name);
    if (buf_add_str(env, name) < 0 || buf_add(env, "=", 1) < 0 ||
        buf_add(env, value, strlen(value) + 1) < 0)
        return err_set(err, ERR_INVALID, "the environment is longer than %d bytes",
                       PROCESS_ARGS_BYTES_MAX);
    return 0;
}

/* The environment of all processes of the sandbox, which its metadata has. */
static int env_add_metadata(struct buf *env, const json_t *object, struct err *err)
{
    const char *name;
    json_t *value;
    int r = 0;

    json_object_foreach((json_t *)(uintptr_t)object, name, value) {
        const char *text = json_string_value(value);

        r = env_add(env, name, text && strlen(text) == json_string_length(value) ? text : NULL,
                    err);
        if (r < 0)
            break;
    }
    return r;
}

/* In this order: of two of the same name the host takes the later. */
static int env_fill(const struct envd_process_config *process,
                    const struct e2b_surroundings *around, struct buf *env, struct err *err)
{
    int r = env_add(env, "E2B_SANDBOX", "true", err);

    if (r == 0)
        r = env_add(env, "E2B_SANDBOX_ID", around->sandbox_id, err);
    if (r == 0 && around->template_name)
        r = env_add(env, "E2B_TEMPLATE_ID", around->template_name, err);
    if (r == 0)
        r = env_add_metadata(env, around->env, err);
    for (size_t i = 0; r == 0 && i < process->envs_count; i++)
        r = env_add(env, process->envs[i].key, process->envs[i].value, err);
    return r;
}

static size_t count_texts(const struct buf *texts)
{
    size_t count = 0;

    for (size_t i = 0; i < texts->len; i++)
        count += texts->data[i] == '\0';
    return count;
}

static void words_fill(const struct envd_process_config *process, struct e2b_start *ret)
{
    size_t at = 0;

    ret->words = xcalloc(1 + process->args_count + 1 + count_texts(&ret->env) + 1, sizeof(char *));
    ret->words[at++] = (char *)(uintptr_t)process->cmd;
    for (size_t i = 0; i < process->args_count; i++)
        ret->words[at++] = (char *)(uintptr_t)process->args[i];
    ret->spec.args = ret->words;
    ret->spec.env = ret->words + ++at;
    for (size_t place = 0; place < ret->env.len; place += strlen(ret->env.data + place) + 1)
        ret->words[at++] = ret->env.data + place;
}

int e2b_start_parse(const struct envd_start_request *message, const struct e2b_surroundings *around,
                    struct e2b_start *ret, struct err *err)
{
    const struct envd_process_config *process = message->process;
    const struct envd_pty_size *size = message->pty ? message->pty->size : NULL;
    int r;

    *ret = (struct e2b_start){
        .env = BUF_INIT(PROCESS_ARGS_BYTES_MAX),
        .spec = {
            .user = around->user,
            .timeout_ms = around->timeout_ms,
            .waits_for_writers = true,
            .has_stdin = !message->has_stdin || message->stdin, /* old clients do not send it */
            .cwd = process->cwd && *process->cwd ? process->cwd : around->cwd,
            .tag = message->tag,
            .has_terminal = message->pty != NULL,
            .rows = size ? (uint16_t)size->rows : 0,
            .columns = size ? (uint16_t)size->cols : 0,
        },
    };
    r = env_fill(process, around, &ret->env, err);
    if (r == 0)
        words_fill(process, ret);
    return r;
}

void e2b_start_done(struct e2b_start *start)
{
    buf_done(&start->env);
    free(start->words);
    start->words = NULL;
}

/* --- the others ------------------------------------------------------------------------------- */

int e2b_selector_check(const struct envd_process_selector *selector, struct err *err)
{
    if (selector && (selector->pid != 0 || selector->tag))
        return 0;
    return err_set(err, ERR_INVALID, "field 'process' must have a pid or a tag");
}

int e2b_signal_parse(const struct envd_send_signal_request *message, int *ret, struct err *err)
{
    if (message->signal == ENVD_SIGNAL_SIGKILL)
        *ret = SIGKILL;
    else if (message->signal == ENVD_SIGNAL_SIGTERM)
        *ret = SIGTERM;
    else
        return err_set(err, ERR_INVALID, "field 'signal' must be SIGNAL_SIGKILL or SIGNAL_SIGTERM");
    return 0;
}

int e2b_input_parse(const struct envd_send_input_request *message, struct span *ret,
                    bool *ret_is_pty, struct err *err)
{
    const struct envd_process_input *input = message->input;

    if (!input || (!input->pty.data && !input->stdin.data))
        return err_set(err, ERR_INVALID, "field 'input' must have stdin or pty");
    *ret_is_pty = input->pty.data != NULL;
    *ret = *ret_is_pty ? input->pty : input->stdin;
    return 0;
}

/* --- List ------------------------------------------------------------------------------------- */

/* Adds a variable or replaces its value: the host takes the last of a name, too. */
static int pair_put(struct pair *pairs, size_t *count, const char *variable, struct arena *arena)
{
    size_t len = strcspn(variable, "="), i = 0;
    char *name;

    if (variable[len] != '=')
        return 0;
    while (i < *count && (strncmp(pairs[i].key, variable, len) != 0 || pairs[i].key[len]))
        i++;
    if (i == *count) {
        name = arena_alloc(arena, len + 1, 1);
        if (!name)
            return -ENOMEM;
        memcpy(name, variable, len);
        pairs[(*count)++].key = name;
    }
    pairs[i].value = variable + len + 1;
    return 0;
}

static int envs_fill(char *const *env, struct envd_process_config *ret, struct arena *arena)
{
    size_t count = 0;
    struct pair *pairs;
    int r = 0;

    while (env && env[count])
        count++;
    pairs = arena_alloc(arena, count, sizeof(*pairs));
    if (!pairs)
        return -ENOMEM;
    for (size_t i = 0; r == 0 && i < count; i++)
        r = pair_put(pairs, &ret->envs_count, env[i], arena);
    ret->envs = pairs;
    return r;
}

int e2b_process_add(struct list_encoder *list, const struct record_info *info)
{
    cleanup_with(arena_done) struct arena arena = ARENA_INIT(MESSAGE_BYTES_MAX);
    const struct process_spec *spec = info->spec;
    struct envd_process_config config = { .cmd = "", .cwd = spec->cwd };
    int r = envs_fill(spec->env, &config, &arena);

    if (spec->args && spec->args[0]) {
        config.cmd = spec->args[0];
        config.args = (const char *const *)spec->args + 1;
        while (config.args[config.args_count])
            config.args_count++;
    }
    if (r < 0)
        return r;
    return list_encoder_add(list, &(const struct envd_process_info){
                                      .config = &config, .pid = info->pid, .tag = spec->tag });
}

/* --- events ----------------------------------------------------------------------------------- */

/* Messages of Connect are the same as those of Start. */
static int event_add(struct buf *out, const struct envd_process_event *event)
{
    return message_add(out, MESSAGE(envd_start_response, .event = event));
}

int e2b_event_start(struct buf *out, uint32_t pid)
{
    const struct envd_process_event_start_event start = { .pid = pid };

    return event_add(out, &(const struct envd_process_event){ .start = &start });
}

int e2b_event_keepalive(struct buf *out)
{
    static const struct envd_process_event_keep_alive keepalive;

    return event_add(out, &(const struct envd_process_event){ .keepalive = &keepalive });
}

int e2b_event_data(struct buf *out, const struct envd_process_event_data_event *data)
{
    return event_add(out, &(const struct envd_process_event){ .data = data });
}

int e2b_event_end(struct buf *out, const struct process_end *end)
{
    bool is_exit = end->outcome == OUTCOME_EXITED;
    int signal = end->signal > 0 ? end->signal : SIGKILL;
    const char *name = signal < (int)ARRAY_SIZE(signal_names) && signal_names[signal]
                           ? signal_names[signal]
                           : NULL;
    struct envd_process_event_end_event message = { .exit_code = is_exit ? end->exit_code : -1,
                                                    .exited = is_exit };
    char status[64];

    if (is_exit)
        (void)snprintf(status, sizeof(status), "exit status %d", end->exit_code);
    else if (name)
        (void)snprintf(status, sizeof(status), "signal: %s", name);
    else
        (void)snprintf(status, sizeof(status), "signal: signal %d", signal);
    message.status = status;
    message.error = is_exit && end->exit_code == 0 ? NULL : status;
    return event_add(out, &(const struct envd_process_event){ .end = &message });
}
