// SPDX-License-Identifier: Apache-2.0
#include "api/message/process_request.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "api/message/fields.h"
#include "api/message/terminal_size.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/xalloc.h"

/* Appends one word with its NUL. JSON text cannot hold a NUL: the parser refuses \u0000. */
static int word_add(struct buf *text, const char *name, const char *value, struct err *err)
{
    int r = 0;

    if (name) {
        r = buf_add_str(text, name);
        if (r == 0)
            r = buf_add(text, "=", 1);
    }
    if (r == 0)
        r = buf_add(text, value, strlen(value) + 1);
    if (r < 0)
        return err_set(err, ERR_EXHAUSTED, "arguments and environment are longer than %d bytes",
                       PROCESS_ARGS_BYTES_MAX);
    return 0;
}

static int args_add(const json_t *args, struct buf *text, struct err *err)
{
    const json_t *arg;
    size_t i;

    if (json_array_size(args) == 0)
        return err_set(err, ERR_INVALID, "field 'args' must name a command");
    if (json_array_size(args) > PROCESS_ARGS_MAX)
        return err_set(err, ERR_EXHAUSTED, "more than %d arguments", PROCESS_ARGS_MAX);
    json_array_foreach(args, i, arg)
    {
        int r;

        if (!json_is_string(arg))
            return err_set(err, ERR_INVALID, "field 'args' must be a list of text");
        if (i == 0 && json_string_length(arg) == 0)
            return err_set(err, ERR_INVALID, "the command is empty");
        r = word_add(text, NULL, json_string_value(arg), err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int env_add(const json_t *env, struct buf *text, struct err *err)
{
    const char *name;
    json_t *value;

    if (json_object_size(env) > PROCESS_ARGS_MAX)
        return err_set(err, ERR_EXHAUSTED, "more than %d variables", PROCESS_ARGS_MAX);
    json_object_foreach((json_t *)(uintptr_t)env, name, value)
    {
        int r;

        if (*name == '\0' || strchr(name, '='))
            return err_set(err, ERR_INVALID, "'%.100s' cannot name a variable", name);
        if (!json_is_string(value))
            return err_set(err, ERR_INVALID, "variable '%.100s' must be text", name);
        r = word_add(text, name, json_string_value(value), err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Points count words at the texts that follow each other from text on; returns what is behind. */
static char *words_fill(char **words, size_t count, char *text)
{
    for (size_t i = 0; i < count; i++) {
        words[i] = text;
        text += strlen(text) + 1;
    }
    return text;
}

static int words_parse(const json_t *object, struct process_request *ret, struct err *err)
{
    const json_t *args = NULL, *env = NULL;
    size_t arg_count, env_count;
    char *text;
    int r = json_get_array(object, "args", &args, err);

    if (r == 0)
        r = json_get_object(object, "env", &env, err);
    if (r == 0)
        r = args_add(args, &ret->text, err);
    if (r == 0)
        r = env_add(env, &ret->text, err);
    if (r < 0)
        return r;
    assert(ret->text.data); /* there is a command, so there is text */
    arg_count = json_array_size(args);
    env_count = json_object_size(env);
    ret->words = xcalloc(arg_count + env_count + 2, sizeof(*ret->words));
    text = words_fill(ret->words, arg_count, ret->text.data);
    (void)words_fill(ret->words + arg_count + 1, env_count, text);
    ret->spec.args = ret->words;
    ret->spec.env = ret->words + arg_count + 1;
    return 0;
}

static int terminal_parse(const json_t *object, struct process_spec *ret, struct err *err)
{
    struct terminal_size size = { 0 };
    const json_t *terminal = NULL;
    int r = json_get_object(object, "terminal", &terminal, err);

    if (r < 0 || !terminal)
        return r;
    r = terminal_size_parse(terminal, &size, err);
    if (r < 0)
        return r;
    ret->has_terminal = true;
    ret->rows = size.rows;
    ret->columns = size.columns;
    return 0;
}

static int cwd_get(const json_t *object, const char **ret, struct err *err)
{
    int r = field_text(object, "cwd", ret, err);

    if (r == 0 && *ret && (**ret != '/' || strlen(*ret) >= PATH_MAX))
        return err_set(err, ERR_INVALID, "field 'cwd' must be an absolute path");
    return r;
}

static int spec_parse(const json_t *object, struct process_request *ret, struct err *err)
{
    static const char *const fields[] = { "args",      "env", "cwd",  "stdin", "terminal",
                                          "timeoutMs", "tag", "user", NULL };
    struct process_spec *spec = &ret->spec;
    int r = json_only_fields(object, fields, err);

    if (r == 0)
        r = words_parse(object, ret, err);
    if (r == 0)
        r = cwd_get(object, &spec->cwd, err);
    if (r == 0)
        r = json_get_bool(object, "stdin", &spec->has_stdin, err);
    if (r == 0)
        r = terminal_parse(object, spec, err);
    if (r == 0)
        r = field_duration(object, "timeoutMs", &spec->timeout_ms, err);
    if (r == 0)
        r = field_word(object, "tag", PROCESS_TAG_MAX, &spec->tag, err);
    if (r == 0)
        r = field_word(object, "user", PROCESS_USER_MAX, &spec->user, err);
    return r;
}

int process_request_parse(const json_t *object, struct process_request *ret, struct err *err)
{
    cleanup_with(process_request_done) struct process_request request = { 0 };
    const json_t *process = NULL;
    int r = json_get_object(object, "process", &process, err);

    request.text.max = PROCESS_ARGS_BYTES_MAX;
    if (r == 0 && !process)
        r = err_set(err, ERR_INVALID, "field 'process' is missing");
    if (r == 0)
        r = spec_parse(process, &request, err);
    if (r < 0)
        return r;
    *ret = request;
    request = (struct process_request){ 0 };
    return 0;
}

void process_request_done(struct process_request *request)
{
    buf_done(&request->text);
    free(request->words);
    request->words = NULL;
}

int start_fields_parse(const json_t *object, struct start_request *ret, struct err *err)
{
    const char *key = NULL;
    int r = field_sandbox(object, &ret->sandbox, err);

    if (r == 0)
        r = field_word(object, "idempotencyKey", PROCESS_TAG_MAX, &key, err);
    if (r == 0)
        r = process_request_parse(object, &ret->process, err);
    if (r == 0)
        ret->process.spec.key = key;
    return r;
}

int start_request_parse(const json_t *object, struct start_request *ret, struct err *err)
{
    static const char *const fields[] = { "sandboxId", "process", "idempotencyKey", NULL };
    int r = json_only_fields(object, fields, err);

    return r < 0 ? r : start_fields_parse(object, ret, err);
}

void start_request_done(struct start_request *request)
{
    process_request_done(&request->process);
}

int process_name_parse(const json_t *object, struct process_name *ret, struct err *err)
{
    int r = field_sandbox(object, &ret->sandbox, err);

    return r < 0 ? r : field_needed(object, "processId", &ret->process, err);
}

/* Absent is not 0 here: that stands for "nothing but what is new". */
static int replay_parse(const json_t *object, struct attach_request *ret, struct err *err)
{
    ret->has_replay = json_field(object, "replayBytes");
    if (ret->has_replay &&
        (json_field(object, "stdoutOffset") || json_field(object, "stderrOffset")))
        return err_set(err, ERR_INVALID, "field 'replayBytes' takes the place of offsets");
    return json_get_u64(object, "replayBytes", &ret->replay_bytes, err);
}

int attach_request_parse(const json_t *object, struct attach_request *ret, struct err *err)
{
    static const char *const fields[] = { "sandboxId",    "processId", "stdoutOffset",
                                          "stderrOffset", "follow",    "replayBytes",
                                          "flow",         NULL };
    struct reader_spec *reader = &ret->reader;
    int r = json_only_fields(object, fields, err);

    if (r == 0)
        r = process_name_parse(object, &ret->name, err);
    if (r == 0)
        r = json_get_u64(object, "stdoutOffset", &reader->from[PROCESS_OUT], err);
    if (r == 0)
        r = json_get_u64(object, "stderrOffset", &reader->from[PROCESS_ERR], err);
    if (r == 0)
        r = replay_parse(object, ret, err);
    if (r == 0)
        r = json_get_bool(object, "follow", &reader->follows, err);
    if (r == 0)
        r = json_get_bool(object, "flow", &reader->is_flow, err);
    return r;
}

int wait_request_parse(const json_t *object, struct wait_request *ret, struct err *err)
{
    static const char *const fields[] = { "sandboxId", "processId", "timeoutMs", NULL };
    int r = json_only_fields(object, fields, err);

    if (r == 0)
        r = process_name_parse(object, &ret->name, err);
    if (r == 0)
        r = field_duration(object, "timeoutMs", &ret->timeout_ms, err);
    return r;
}

int list_request_parse(const json_t *object, struct list_request *ret, struct err *err)
{
    static const char *const fields[] = { "sandboxId", "tag", NULL };
    int r = json_only_fields(object, fields, err);

    if (r == 0)
        r = field_sandbox(object, &ret->sandbox, err);
    return r < 0 ? r : field_word(object, "tag", PROCESS_TAG_MAX, &ret->tag, err);
}
