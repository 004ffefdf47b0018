// SPDX-License-Identifier: Apache-2.0
#include "client/typed/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/base64.h"
#include "base/xalloc.h"
#include "client/client_internal.h"
#include "client/error.h"
#include "client/message/request.h"
#include "client/typed/process_info.h"
#include "holt.h"
#include "wire/envelope.h"

enum { INPUT_PART = MSG_SEND_INPUT_REQUEST_DATA_MAX_BYTES }; /* of one SendInput */

struct holt_process {
    struct holt *holt;
    struct holt_stream *stream;
    struct holt_input *input; /* NULL: the stream has none, input is sent with SendInput */
    char *sandbox_id;
    char *id;
    bool is_joined;
    uint64_t viewer;                   /* our number among those that show its terminal; 0: none */
    struct buf decoded;                /* output of a message */
    struct holt_process_event bytes;   /* the event of output */
    struct holt_process_event *latest; /* a result: any other event */
};

/* --- opening and closing ---------------------------------------------------------------------- */

/* Sends the request of a method whose stream is like that of Attach. */
static int process_open(struct holt *holt, const struct client_method *method, const void *request,
                        int64_t deadline, struct holt_process **ret, struct holt_error *error)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(REQUEST_BYTES_MAX);
    bool is_raw = method != &method_process_service_attach;
    struct holt_process *process;
    struct holt_stream *stream;

    if (request_encode(method->request, request, &text, error) < 0 ||
        (is_raw ? holt_stream_open_raw : holt_stream_open)(holt, method->path, text.data, deadline,
                                                           &stream, error) < 0)
        return -1;
    process = xcalloc(1, sizeof(*process));
    process->holt = holt;
    process->stream = stream;
    process->decoded.max = ENVELOPE_LARGE_MAX;
    *ret = process;
    return 0;
}

int holt_process_open(struct holt *holt, const char *sandbox, const struct holt_command *command,
                      int64_t deadline, struct holt_process **ret, struct holt_error *error)
{
    cleanup_with(arena_done) struct arena arena = ARENA_INIT(REQUEST_BYTES_MAX);
    struct holt_command given = HOLT_INIT(holt_command);
    struct request_process process;
    struct msg_exec_request request;

    if (options_take(&given, sizeof(given), command, error) < 0 ||
        request_process_set(&process, &given, given.has_stdin, &arena, error) < 0)
        return -1;
    request = (struct msg_exec_request){
        .sandbox_id = sandbox,
        .process = &process.spec,
        .idempotency_key = given.idempotency_key,
    };
    return process_open(holt, &method_process_service_exec, &request, deadline, ret, error);
}

int holt_process_run(struct holt *holt, const struct holt_sandbox_options *options,
                     const struct holt_command *command, int64_t deadline,
                     struct holt_process **ret, struct holt_error *error)
{
    cleanup_with(arena_done) struct arena arena = ARENA_INIT(REQUEST_BYTES_MAX);
    struct holt_sandbox_options given_sandbox = HOLT_INIT(holt_sandbox_options);
    struct holt_command given = HOLT_INIT(holt_command);
    struct request_process process;
    struct msg_sandbox_spec sandbox;
    struct msg_run_request request;
    struct msg_network_policy network;
    struct msg_limits limits;

    if (options_take(&given_sandbox, sizeof(given_sandbox), options, error) < 0 ||
        options_take(&given, sizeof(given), command, error) < 0 ||
        request_process_set(&process, &given, given.has_stdin, &arena, error) < 0)
        return -1;
    limits = request_limits(&given_sandbox);
    sandbox = (struct msg_sandbox_spec){
        .template = given_sandbox.template_name,
        .runtime = given_sandbox.runtime,
        .limits = &limits,
        .quota_bytes = given_sandbox.quota_bytes,
        .network = request_network(given_sandbox.network, given_sandbox.proxy, given_sandbox.models,
                                   &network),
    };
    request = (struct msg_run_request){ .sandbox = &sandbox, .process = &process.spec };
    return process_open(holt, &method_sandbox_service_run, &request, deadline, ret, error);
}

int holt_process_attach(struct holt *holt, const struct holt_attach_options *options,
                        int64_t deadline, struct holt_process **ret, struct holt_error *error)
{
    struct holt_attach_options given = HOLT_INIT(holt_attach_options);
    struct msg_attach_request request;
    struct msg_terminal_size size;

    if (options_take(&given, sizeof(given), options, error) < 0)
        return -1;
    size = (struct msg_terminal_size){ .rows = given.rows, .columns = given.columns };
    request = (struct msg_attach_request){
        .sandbox_id = given.sandbox,
        .process_id = given.process_id,
        .has_stdout_offset = given.stdout_offset > 0,
        .stdout_offset = given.stdout_offset,
        .has_stderr_offset = given.stderr_offset > 0,
        .stderr_offset = given.stderr_offset,
        .has_replay_bytes = given.replays,
        .replay_bytes = given.replay_bytes,
        .follow = given.follows,
        .flow = given.holds,
        .size = given.rows > 0 && given.columns > 0 ? &size : NULL,
    };
    return process_open(holt, &method_process_service_attach, &request, deadline, ret, error);
}

const char *holt_process_id(const struct holt_process *process)
{
    return process->id ? process->id : "";
}

const char *holt_process_sandbox_id(const struct holt_process *process)
{
    return process->sandbox_id ? process->sandbox_id : "";
}

bool holt_process_is_joined(const struct holt_process *process)
{
    return process->is_joined;
}

int holt_process_fd(const struct holt_process *process)
{
    return holt_stream_fd(process->stream);
}

void process_hang_up(struct holt_process *process)
{
    holt_stream_close(TAKE_PTR(process->stream));
}

void holt_process_close(struct holt_process *process)
{
    if (!process)
        return;
    process_hang_up(process);
    holt_input_close(process->input);
    holt_free(process->latest);
    buf_done(&process->decoded);
    free(process->sandbox_id);
    free(process->id);
    free(process);
}

/* --- events ----------------------------------------------------------------------------------- */

static void started_take(struct holt_process *process, const struct msg_started *started)
{
    struct holt_error ignored;

    process->latest->kind = HOLT_PROCESS_STARTED;
    if (process->id)
        return;
    process->sandbox_id = xstrdup(started->sandbox_id);
    process->id = xstrdup(started->process_id);
    process->is_joined = started->joined;
    process->viewer = started->viewer;
    if (holt_input_open(process->stream, &process->input, &ignored) < 0)
        process->input = NULL;
}

static void ended_take(struct holt_process_event *event, const struct msg_ended *ended)
{
    struct holt_end *end = result_part(event, 1, sizeof(*end));

    end_fill(end, ended);
    event->kind = HOLT_PROCESS_ENDED;
    event->end = end;
}

static void gap_take(struct holt_process_event *event, const struct msg_gap *gap)
{
    event->kind = HOLT_PROCESS_GAP;
    event->offset = gap->offset;
    event->missing = gap->missing;
    event->stream = gap->stream == MSG_STREAM_STDERR ? HOLT_STDERR : HOLT_STDOUT;
}

static void output_take(struct holt_process_event *event, const struct msg_attach_response *message)
{
    const struct span *bytes = message->stdout.data ? &message->stdout : &message->stderr;

    event->kind = message->stdout.data ? HOLT_PROCESS_STDOUT : HOLT_PROCESS_STDERR;
    event->offset = message->offset;
    event->data = bytes->data ? bytes->data : "";
    event->len = bytes->len;
}

static int message_read(struct holt_process *process, const struct holt_piece *piece,
                        const struct holt_process_event **ret, struct holt_error *error)
{
    const struct msg_attach_response *message;
    struct holt_process_event *event;
    json_t *json;
    struct err err;

    if (json_parse_object(piece->data, piece->len, &json, &err) < 0)
        return error_set(error, "internal", "cannot read the reply of the daemon: %s", err.msg);
    event = process->latest = result_new(sizeof(*event), json);
    event->data = "";
    /* The messages of Exec and Run are those of Attach without some fields. */
    message = result_decode(event, &msg_attach_response_schema, json, error);
    if (!message)
        return -1;
    if (message->started)
        started_take(process, message->started);
    else if (message->ended)
        ended_take(event, message->ended);
    else if (message->gap)
        gap_take(event, message->gap);
    else
        output_take(event, message);
    *ret = event;
    return 1;
}

/* Returns the length of {"offset":"123", at the start of a message, with the number, or of the
 * brace alone. */
static size_t offset_skip(const char *message, size_t len, uint64_t *ret_offset)
{
    static const char start[] = "{\"offset\":\"";
    size_t at = strlen(start);

    *ret_offset = 0;
    if (len < at || memcmp(message, start, at) != 0)
        return 1;
    for (; at < len && message[at] >= '0' && message[at] <= '9'; at++)
        *ret_offset = *ret_offset * 10 + (uint64_t)(message[at] - '0');
    return at + 2 < len && memcmp(message + at, "\",", 2) == 0 ? at + 2 : 1;
}

/* Decodes a message that is {"name":"BASE64"}, with or without an offset before the name, and
 * returns whether it is one. Almost all messages of a process with much output are, and a JSON
 * parser needs more time for them than the rest of the client together. */
static bool output_decode(struct holt_process *process, const char *name,
                          const struct holt_piece *piece)
{
    char start[32];
    size_t start_len = (size_t)snprintf(start, sizeof(start), "\"%s\":\"", name);
    uint64_t offset;
    size_t head = offset_skip(piece->data, piece->len, &offset);
    size_t around = head + start_len + strlen("\"}");

    buf_clear(&process->decoded);
    if (piece->len < around || piece->data[0] != '{' ||
        memcmp(piece->data + head, start, start_len) != 0 ||
        memcmp(piece->data + piece->len - 2, "\"}", 2) != 0 ||
        base64_decode(&process->decoded, piece->data + head + start_len, piece->len - around) < 0)
        return false;
    process->bytes = (struct holt_process_event){
        .data = process->decoded.data ? process->decoded.data : "",
        .len = process->decoded.len,
        .offset = offset,
    };
    return true;
}

static int event_read(struct holt_process *process, const struct holt_piece *piece,
                      const struct holt_process_event **ret, struct holt_error *error)
{
    bool is_stdout = output_decode(process, "stdout", piece);

    if (!is_stdout && !output_decode(process, "stderr", piece))
        return message_read(process, piece, ret, error);
    process->bytes.kind = is_stdout ? HOLT_PROCESS_STDOUT : HOLT_PROCESS_STDERR;
    *ret = &process->bytes;
    return 1;
}

int holt_process_next(struct holt_process *process, const struct holt_process_event **ret,
                      struct holt_error *error)
{
    struct holt_piece piece;
    int r;

    holt_free(TAKE_PTR(process->latest));
    r = holt_stream_next_raw(process->stream, &piece, error);
    if (r <= 0)
        return r;
    if (piece.kind == HOLT_EVENT)
        return event_read(process, &piece, ret, error);
    process->bytes = (struct holt_process_event){
        .kind = piece.kind == HOLT_STDOUT ? HOLT_PROCESS_STDOUT : HOLT_PROCESS_STDERR,
        .data = piece.data,
        .len = piece.len,
    };
    *ret = &process->bytes;
    return 1;
}

/* --- input, size and signals ------------------------------------------------------------------ */

static int not_started(struct holt_error *error)
{
    return error_set(error, "failed_precondition", "the process has not started yet");
}

static int input_call(struct holt_process *process, const char *data, size_t len, bool is_eof,
                      int64_t deadline, struct holt_error *error)
{
    const struct msg_send_input_request request = {
        .sandbox_id = process->sandbox_id,
        .process_id = process->id,
        .data = { len > 0 ? data : "", len },
        .eof = is_eof,
    };
    const struct client_call call = { &method_process_service_send_input, &request, false,
                                      deadline };

    return client_call_void(process->holt, &call, error);
}

int holt_process_send(struct holt_process *process, const void *data, size_t len, bool is_eof,
                      int64_t deadline, struct holt_error *error)
{
    const char *bytes = data;

    if (!process->id)
        return not_started(error);
    if (process->input)
        return holt_input_send(process->input, data, len, is_eof, deadline, error);
    while (len > INPUT_PART) {
        if (input_call(process, bytes, INPUT_PART, false, deadline, error) < 0)
            return -1;
        bytes += INPUT_PART;
        len -= INPUT_PART;
    }
    return input_call(process, bytes, len, is_eof, deadline, error);
}

int holt_process_resize(struct holt_process *process, uint32_t rows, uint32_t columns,
                        int64_t deadline, struct holt_error *error)
{
    const struct msg_terminal_size size = { .rows = rows, .columns = columns };
    const struct msg_resize_request request = {
        .sandbox_id = process->sandbox_id,
        .process_id = process->id,
        .size = &size,
        .viewer = process->viewer,
    };
    const struct client_call call = { &method_process_service_resize, &request, false, deadline };

    if (!process->id)
        return not_started(error);
    return client_call_void(process->holt, &call, error);
}

int holt_process_kill(struct holt_process *process, int signal, int64_t deadline,
                      struct holt_error *error)
{
    if (!process->id)
        return not_started(error);
    return holt_process_signal_tree(process->holt, process->sandbox_id, process->id, signal,
                                    deadline, error);
}
