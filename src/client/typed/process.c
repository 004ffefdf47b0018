// SPDX-License-Identifier: Apache-2.0
#include "client/typed/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/text/base64.h"
#include "base/xalloc.h"
#include "client/client_internal.h"
#include "client/error.h"
#include "client/typed/process_info.h"
#include "client/typed/request.h"
#include "holt.h"
#include "wire/envelope.h"

enum {
    INPUT_PART = 64 * 1024,                     /* of one SendInput */
    INPUT_TEXT_MAX = INPUT_PART / 3 * 4 + 1024, /* the same in base64, with the rest */
};

struct holt_process {
    struct holt *holt;
    struct holt_stream *stream;
    struct holt_input *input; /* NULL: the stream carries none, and the daemon is called */
    char *sandbox_id;
    char *id;
    bool is_joined;
    struct buf decoded;                /* output of a message */
    struct holt_process_event bytes;   /* an event that is only bytes */
    struct holt_process_event *latest; /* a result: any other */
};

int process_open(struct holt *holt, const struct process_call *call, struct holt_process **ret,
                 struct holt_error *error)
{
    cleanup_json json_t *request = call->request;
    cleanup_free char *text = request ? json_dumps(request, JSON_COMPACT) : NULL;
    struct holt_process *process;
    struct holt_stream *stream;
    int r;

    if (!text)
        return error_set(error, "invalid_argument", "an argument is missing or not UTF-8");
    r = call->is_raw
            ? holt_stream_open_raw(holt, call->method, text, call->deadline, &stream, error)
            : holt_stream_open(holt, call->method, text, call->deadline, &stream, error);
    if (r < 0)
        return -1;
    process = xcalloc(1, sizeof(*process));
    process->holt = holt;
    process->stream = stream;
    process->decoded.max = ENVELOPE_LARGE_MAX;
    *ret = process;
    return 0;
}

struct process_call process_exec_call(const char *sandbox, const struct holt_command *command,
                                      bool has_stdin, int64_t deadline)
{
    json_t *request =
        request_value(request_for(sandbox), "process", request_process(command, has_stdin));

    return (struct process_call){
        .method = "holt.v1.ProcessService/Exec",
        .request = request_text(request, "idempotencyKey", command->idempotency_key),
        .is_raw = true,
        .deadline = deadline,
    };
}

int holt_process_open(struct holt *holt, const char *sandbox, const struct holt_command *command,
                      int64_t deadline, struct holt_process **ret, struct holt_error *error)
{
    struct holt_command given = HOLT_INIT(holt_command);
    struct process_call call;

    if (options_take(&given, sizeof(given), command, error) < 0)
        return -1;
    call = process_exec_call(sandbox, &given, given.has_stdin, deadline);
    return process_open(holt, &call, ret, error);
}

struct process_call process_run_call(const struct holt_sandbox_options *options,
                                     const struct holt_command *command, bool has_stdin,
                                     int64_t deadline)
{
    json_t *request =
        request_value(json_object(), "sandbox", request_sandbox(json_object(), options));

    return (struct process_call){
        .method = "holt.v1.SandboxService/Run",
        .request = request_value(request, "process", request_process(command, has_stdin)),
        .is_raw = true,
        .deadline = deadline,
    };
}

int holt_process_run(struct holt *holt, const struct holt_sandbox_options *options,
                     const struct holt_command *command, int64_t deadline,
                     struct holt_process **ret, struct holt_error *error)
{
    struct holt_sandbox_options sandbox = HOLT_INIT(holt_sandbox_options);
    struct holt_command given = HOLT_INIT(holt_command);
    struct process_call call;

    if (options_take(&sandbox, sizeof(sandbox), options, error) < 0 ||
        options_take(&given, sizeof(given), command, error) < 0)
        return -1;
    call = process_run_call(&sandbox, &given, given.has_stdin, deadline);
    return process_open(holt, &call, ret, error);
}

int holt_process_attach(struct holt *holt, const struct holt_attach_options *options,
                        int64_t deadline, struct holt_process **ret, struct holt_error *error)
{
    struct holt_attach_options given = HOLT_INIT(holt_attach_options);
    struct process_call call = { .method = "holt.v1.ProcessService/Attach", .deadline = deadline };

    if (options_take(&given, sizeof(given), options, error) < 0)
        return -1;
    call.request = request_value(request_for(given.sandbox), "processId",
                                 given.process_id ? json_string(given.process_id) : NULL);
    if (given.replays)
        call.request = request_value(call.request, "replayBytes", json_u64(given.replay_bytes));
    call.request = request_u64(call.request, "stdoutOffset", given.stdout_offset);
    call.request = request_u64(call.request, "stderrOffset", given.stderr_offset);
    call.request = request_true(call.request, "follow", given.follows);
    call.request = request_true(call.request, "flow", given.holds);
    return process_open(holt, &call, ret, error);
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

void process_leave(struct holt_process *process)
{
    holt_stream_close(TAKE_PTR(process->stream));
}

void holt_process_close(struct holt_process *process)
{
    if (!process)
        return;
    process_leave(process);
    holt_input_close(process->input);
    holt_free(process->latest);
    buf_done(&process->decoded);
    free(process->sandbox_id);
    free(process->id);
    free(process);
}

static void started_read(struct holt_process *process, struct reading *reading,
                         const json_t *started)
{
    struct holt_error ignored;

    process->latest->kind = HOLT_PROCESS_STARTED;
    if (process->id)
        return;
    process->sandbox_id = xstrdup(read_text(reading, started, "sandboxId"));
    process->id = xstrdup(read_text(reading, started, "processId"));
    process->is_joined = read_bool(reading, started, "joined");
    if (holt_input_open(process->stream, &process->input, &ignored) < 0)
        process->input = NULL;
}

static void gap_read(struct holt_process_event *event, struct reading *reading, const json_t *gap)
{
    event->kind = HOLT_PROCESS_GAP;
    event->offset = read_u64(reading, gap, "offset");
    event->missing = read_u64(reading, gap, "missing");
    event->stream =
        strcmp(read_text(reading, gap, "stream"), "STREAM_STDERR") == 0 ? HOLT_STDERR : HOLT_STDOUT;
}

static void output_read(struct holt_process_event *event, struct reading *reading,
                        const json_t *message)
{
    bool is_stdout = json_object_get(message, "stdout") != NULL;

    event->kind = is_stdout ? HOLT_PROCESS_STDOUT : HOLT_PROCESS_STDERR;
    event->offset = read_u64(reading, message, "offset");
    event->data = read_bytes(reading, message, is_stdout ? "stdout" : "stderr", &event->len);
}

static int message_read(struct holt_process *process, const struct holt_piece *piece,
                        const struct holt_process_event **ret, struct holt_error *error)
{
    struct reading reading = { .is_wrong = false };
    const json_t *started, *ended, *gap;
    struct holt_process_event *event;
    json_t *message;
    struct err err;

    if (json_parse_object(piece->data, piece->len, &message, &err) < 0)
        return error_set(error, "internal", "the daemon's answer cannot be read: %s", err.msg);
    reading.result = event = process->latest = result_new(sizeof(*event), message);
    event->data = "";
    started = read_object(&reading, message, "started");
    ended = read_object(&reading, message, "ended");
    gap = read_object(&reading, message, "gap");
    if (started) {
        started_read(process, &reading, started);
    } else if (ended) {
        struct holt_end *end = result_part(event, 1, sizeof(*end));

        end_read(&reading, ended, end);
        event->kind = HOLT_PROCESS_ENDED;
        event->end = end;
    } else if (gap) {
        gap_read(event, &reading, gap);
    } else {
        output_read(event, &reading, message);
    }
    if (reading_end(&reading, error) < 0)
        return -1;
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

static int not_started(struct holt_error *error)
{
    return error_set(error, "failed_precondition", "the process has not started yet");
}

static json_t *request_here(const struct holt_process *process)
{
    return request_text(request_for(process->sandbox_id), "processId", process->id);
}

/* The data is written by hand: jansson would look at each of its bytes three times. */
static int call_with_input(struct holt_process *process, const char *data, size_t len, bool is_eof,
                           int64_t deadline, struct holt_error *error)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(INPUT_TEXT_MAX);
    cleanup_json json_t *request = request_true(request_here(process), "eof", is_eof);
    cleanup_free char *rest = json_dumps(request, JSON_COMPACT), *reply = NULL;

    if (!rest || buf_add_str(&text, "{\"data\":\"") < 0 || base64_encode(&text, data, len) < 0 ||
        buf_printf(&text, "\",%s", rest + 1) < 0)
        return error_set(error, "resource_exhausted", "no memory for input");
    return holt_call(process->holt, "holt.v1.ProcessService/SendInput", text.data, deadline, &reply,
                     error);
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
        if (call_with_input(process, bytes, INPUT_PART, false, deadline, error) < 0)
            return -1;
        bytes += INPUT_PART;
        len -= INPUT_PART;
    }
    return call_with_input(process, bytes, len, is_eof, deadline, error);
}

int holt_process_resize(struct holt_process *process, uint32_t rows, uint32_t columns,
                        int64_t deadline, struct holt_error *error)
{
    struct client_call call = { .method = "ProcessService/Resize", .deadline = deadline };

    if (!process->id)
        return not_started(error);
    call.request = request_value(
        request_here(process), "size",
        json_pack("{s:I,s:I}", "rows", (json_int_t)rows, "columns", (json_int_t)columns));
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
