// SPDX-License-Identifier: Apache-2.0
#include "e2b/envd/process_message.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/base64.h"
#include "base/xalloc.h"
#include "host/process/record.h"
#include "http/stream.h"

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

/* Text without a NUL inside, or NULL. */
static const char *plain_text(const json_t *value)
{
    const char *text = json_string_value(value);

    return text && strlen(text) == json_string_length(value) ? text : NULL;
}

static int field_plain(const json_t *object, const char *name, const char **ret, struct err *err)
{
    const json_t *value = json_field(object, name);

    if (!value)
        return 0;
    *ret = plain_text(value);
    return *ret ? 0 : err_set(err, ERR_INVALID, "field '%s' must be text", name);
}

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

static int env_add_all(struct buf *env, const json_t *object, struct err *err)
{
    const char *name;
    json_t *value;
    int r = 0;

    json_object_foreach((json_t *)(uintptr_t)object, name, value)
    {
        r = env_add(env, name, plain_text(value), err);
        if (r < 0)
            break;
    }
    return r;
}

/* In this order: of two of the same name the host takes the later. */
static int env_fill(const json_t *process, const struct e2b_surroundings *around, struct buf *env,
                    struct err *err)
{
    const json_t *own = NULL;
    int r = json_get_object(process, "envs", &own, err);

    if (r == 0)
        r = env_add(env, "E2B_SANDBOX", "true", err);
    if (r == 0)
        r = env_add(env, "E2B_SANDBOX_ID", around->sandbox_id, err);
    if (r == 0 && around->template_name)
        r = env_add(env, "E2B_TEMPLATE_ID", around->template_name, err);
    if (r == 0)
        r = env_add_all(env, around->env, err);
    return r == 0 ? env_add_all(env, own, err) : r;
}

static size_t count_texts(const struct buf *texts)
{
    size_t count = 0;

    for (size_t i = 0; i < texts->len; i++)
        count += texts->data[i] == '\0';
    return count;
}

static int words_fill(const json_t *process, struct e2b_start *ret, struct err *err)
{
    const char *command = NULL;
    const json_t *args = NULL, *arg;
    size_t i, at = 0;
    int r = field_plain(process, "cmd", &command, err);

    if (r == 0)
        r = json_get_array(process, "args", &args, err);
    if (r == 0 && (!command || !*command))
        r = err_set(err, ERR_INVALID, "field 'cmd' must name a command");
    if (r < 0)
        return r;
    ret->words =
        xcalloc(1 + json_array_size(args) + 1 + count_texts(&ret->env) + 1, sizeof(char *));
    ret->words[at++] = (char *)(uintptr_t)command;
    json_array_foreach(args, i, arg)
    {
        const char *text = plain_text(arg);

        if (!text)
            return err_set(err, ERR_INVALID, "field 'args' must be a list of text");
        ret->words[at++] = (char *)(uintptr_t)text;
    }
    ret->spec.args = ret->words;
    ret->spec.env = ret->words + ++at;
    for (size_t place = 0; place < ret->env.len; place += strlen(ret->env.data + place) + 1)
        ret->words[at++] = ret->env.data + place;
    return 0;
}

int e2b_start_parse(const json_t *message, const struct e2b_surroundings *around,
                    struct e2b_start *ret, struct err *err)
{
    struct process_spec *spec = &ret->spec;
    const json_t *process = NULL;
    int r = json_get_object(message, "process", &process, err);

    *ret = (struct e2b_start){ .env = BUF_INIT(PROCESS_ARGS_BYTES_MAX) };
    if (r == 0 && !process)
        r = err_set(err, ERR_INVALID, "field 'process' is missing");
    if (r < 0)
        return r;
    spec->user = around->user;
    spec->timeout_ms = around->timeout_ms;
    spec->waits_for_writers = true;
    spec->has_stdin = true; /* of clients that are older than the field */
    r = env_fill(process, around, &ret->env, err);
    if (r == 0)
        r = words_fill(process, ret, err);
    if (r == 0)
        r = field_plain(process, "cwd", &spec->cwd, err);
    if (r == 0)
        r = field_plain(message, "tag", &spec->tag, err);
    if (r == 0)
        r = json_get_bool(message, "stdin", &spec->has_stdin, err);
    if (r == 0)
        r = e2b_pty_parse(message, &spec->has_terminal, &spec->rows, &spec->columns, err);
    if (r == 0 && spec->tag && strlen(spec->tag) > PROCESS_TAG_MAX)
        r = err_set(err, ERR_INVALID, "field 'tag' is longer than %d bytes", PROCESS_TAG_MAX);
    if (!spec->cwd || !*spec->cwd)
        spec->cwd = around->cwd;
    return r;
}

void e2b_start_done(struct e2b_start *start)
{
    buf_done(&start->env);
    free(start->words);
    start->words = NULL;
}

/* --- the others ------------------------------------------------------------------------------- */

int e2b_selector_parse(const json_t *message, struct e2b_selector *ret, struct err *err)
{
    const json_t *process = NULL;
    int r = json_get_object(message, "process", &process, err);

    *ret = (struct e2b_selector){ .pid = 0 };
    if (r == 0)
        r = json_get_u32(process, "pid", &ret->pid, err);
    if (r == 0)
        r = field_plain(process, "tag", &ret->tag, err);
    if (r == 0 && ret->pid == 0 && !ret->tag)
        r = err_set(err, ERR_INVALID, "field 'process' must have a pid or a tag");
    return r;
}

int e2b_pty_parse(const json_t *message, bool *ret_is_there, uint16_t *ret_rows,
                  uint16_t *ret_columns, struct err *err)
{
    const json_t *pty = NULL, *size = NULL;
    uint32_t rows = 0, columns = 0;
    int r = json_get_object(message, "pty", &pty, err);

    *ret_is_there = pty != NULL;
    if (r == 0)
        r = json_get_object(pty, "size", &size, err);
    if (r == 0)
        r = json_get_u32(size, "rows", &rows, err);
    if (r == 0)
        r = json_get_u32(size, "cols", &columns, err);
    if (r == 0 && (rows > UINT16_MAX || columns > UINT16_MAX))
        r = err_set(err, ERR_INVALID, "a terminal of %u by %u is too large", columns, rows);
    if (r < 0)
        return r;
    *ret_rows = (uint16_t)rows;
    *ret_columns = (uint16_t)columns;
    return 0;
}

int e2b_signal_parse(const json_t *message, int *ret, struct err *err)
{
    const json_t *value = json_field(message, "signal");
    const char *name = json_is_string(value) ? json_string_value(value) : "";

    if (strcmp(name, "SIGNAL_SIGKILL") == 0 || json_integer_value(value) == SIGKILL)
        *ret = SIGKILL;
    else if (strcmp(name, "SIGNAL_SIGTERM") == 0 || json_integer_value(value) == SIGTERM)
        *ret = SIGTERM;
    else
        return err_set(err, ERR_INVALID, "field 'signal' must be SIGNAL_SIGKILL or SIGNAL_SIGTERM");
    return 0;
}

int e2b_input_parse(const json_t *message, struct buf *ret, bool *ret_is_pty, struct err *err)
{
    const json_t *input = NULL;
    int r = json_get_object(message, "input", &input, err);

    if (r < 0)
        return r;
    *ret_is_pty = json_field(input, "pty") != NULL;
    if (!*ret_is_pty && !json_field(input, "stdin"))
        return err_set(err, ERR_INVALID, "field 'input' must have stdin or pty");
    return json_get_bytes(input, *ret_is_pty ? "pty" : "stdin", ret, err);
}

static json_t *args_json(char *const *args)
{
    json_t *list = json_array();

    for (; args && *args && args[1]; args++)
        (void)json_array_append_new(list, json_text(args[1]));
    return list;
}

static json_t *env_json(char *const *env)
{
    json_t *object = json_object();

    for (; env && *env; env++) {
        size_t len = strcspn(*env, "=");
        cleanup_free char *name = xasprintf("%.*s", (int)len, *env);

        if ((*env)[len] == '=')
            (void)json_object_set_new(object, name, json_text(*env + len + 1));
    }
    return object;
}

json_t *e2b_process_json(const struct record_info *info)
{
    const struct process_spec *spec = info->spec;
    const char *command = spec->args && spec->args[0] ? spec->args[0] : "";
    json_t *config =
        json_pack("{s:o, s:o, s:o, s:s*}", "cmd", json_text(command), "args", args_json(spec->args),
                  "envs", env_json(spec->env), "cwd", spec->cwd);

    return json_pack("{s:o, s:I, s:s*}", "config", config, "pid", (json_int_t)info->pid, "tag",
                     spec->tag);
}

/* --- events ----------------------------------------------------------------------------------- */

static int event_add(struct buf *out, const char *name, json_t *value)
{
    return message_add_take(out, json_pack("{s:{s:o}}", "event", name, value));
}

int e2b_event_start(struct buf *out, uint32_t pid)
{
    return event_add(out, "start", json_pack("{s:I}", "pid", (json_int_t)pid));
}

int e2b_event_keepalive(struct buf *out)
{
    return event_add(out, "keepalive", json_object());
}

int e2b_event_data(struct buf *out, const char *stream, const void *data, size_t len)
{
    size_t start = out->len;
    int r = message_begin(out);

    if (r == 0)
        r = buf_printf(out, "{\"event\":{\"data\":{\"%s\":\"", stream);
    if (r == 0)
        r = base64_encode(out, data, len);
    if (r == 0)
        r = buf_add_str(out, "\"}}}");
    if (r == 0)
        message_end(out, start);
    return r;
}

int e2b_event_end(struct buf *out, const struct process_end *end)
{
    bool is_exit = end->outcome == OUTCOME_EXITED;
    int signal = end->signal > 0 ? end->signal : SIGKILL;
    const char *name = signal < (int)ARRAY_SIZE(signal_names) && signal_names[signal]
                           ? signal_names[signal]
                           : NULL;
    char status[64];

    if (is_exit)
        (void)snprintf(status, sizeof(status), "exit status %d", end->exit_code);
    else if (name)
        (void)snprintf(status, sizeof(status), "signal: %s", name);
    else
        (void)snprintf(status, sizeof(status), "signal: signal %d", signal);
    return event_add(out, "end",
                     json_pack("{s:i, s:b, s:s, s:s*}", "exitCode", is_exit ? end->exit_code : -1,
                               "exited", is_exit, "status", status, "error",
                               is_exit && end->exit_code == 0 ? NULL : status));
}
