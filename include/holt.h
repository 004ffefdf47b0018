/* libholt: the C API over a Holt daemon.
 *
 * A struct holt is one connection and may be used by one thread at a time; open several for several
 * threads. No call touches global state. Every failing call fills a struct holt_error.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HOLT_API __attribute__((visibility("default")))

struct holt;
struct holt_input;
struct holt_stream;

struct holt_error {
    char code[32];     /* a Connect code: "not_found", "invalid_argument", "unavailable", ... */
    char cause[32];    /* of refusals that programs tell apart: "SessionNotFound"; "": none */
    char message[480]; /* what went wrong: one line for a person */
    char remedy[256];  /* what a person can do about it: one sentence; "": nothing is known */
    bool is_retryable; /* the same call may succeed later although nobody changes anything */
};

/* host: "unix:///path/holt.sock" or "http://host:port"; NULL: $HOLT_HOST, else holt.sock in
 * $HOLT_RUN, else /run/holt/holt.sock. token: NULL: $HOLT_TOKEN. Connects at once. 0, or -1 with
 * code "unavailable" when nobody answers and "permission_denied" when the socket's mode forbids it.
 */
HOLT_API int holt_open(const char *host, const char *token, struct holt **ret,
                       struct holt_error *error);
HOLT_API void holt_close(struct holt *holt);

/* One unary call, JSON in and out: method is "holt.v1.HostService/Health". The caller frees
 * *ret_reply with free(). */
HOLT_API int holt_call(struct holt *holt, const char *method, const char *request, char **ret_reply,
                       struct holt_error *error);

/* A call that answers with a stream of JSON messages. Returns once the request is sent: what the
 * daemon thinks of it comes with holt_stream_next. The connection is busy until the stream is
 * closed. */
HOLT_API int holt_stream_open(struct holt *holt, const char *method, const char *request,
                              struct holt_stream **ret, struct holt_error *error);

/* The next message, valid until the next call and not NUL-terminated: 1, or 0 at the good end, or
 * -1. */
HOLT_API int holt_stream_next(struct holt_stream *stream, const char **ret_message, size_t *ret_len,
                              struct holt_error *error);

/* As holt_stream_open, for holt.v1.ProcessService/Exec and holt.v1.SandboxService/Run, and asks the
 * daemon to pass the process's bytes as they are, which is far faster than in JSON. A daemon that
 * cannot do that answers with messages all the same. Its messages come with holt_stream_next_raw.
 */
HOLT_API int holt_stream_open_raw(struct holt *holt, const char *method, const char *request,
                                  struct holt_stream **ret, struct holt_error *error);

enum holt_piece_kind {
    HOLT_EVENT,  /* a message as from holt_stream_next; of output only if there is no other way */
    HOLT_STDOUT, /* bytes that the process has written, cut anywhere */
    HOLT_STDERR,
};

struct holt_piece {
    enum holt_piece_kind kind;
    const char *data; /* valid until the next call, not NUL-terminated */
    size_t len;
};

/* What comes next of a stream that was opened raw: 1, or 0 at the good end, or -1. */
HOLT_API int holt_stream_next_raw(struct holt_stream *stream, struct holt_piece *ret,
                                  struct holt_error *error);

/* The stdin of the process of a raw stream, once its first piece is here. It may be used by another
 * thread than the stream, and closed before or after it. -1 with code "unimplemented" where the
 * daemon passes no raw bytes: then ProcessService/SendInput is the way. */
HOLT_API int holt_input_open(const struct holt_stream *stream, struct holt_input **ret,
                             struct holt_error *error);

/* Waits until the process has room; with is_eof, stdin is closed behind the bytes. What the process
 * takes no more is dropped. 0, or -1 when the stream is over. */
HOLT_API int holt_input_send(struct holt_input *input, const void *data, size_t len, bool is_eof,
                             struct holt_error *error);
HOLT_API void holt_input_close(struct holt_input *input);

/* For event loops: the descriptor to poll for POLLIN before holt_stream_next or
 * holt_stream_next_raw, or -1 when that would not wait at all. */
HOLT_API int holt_stream_fd(const struct holt_stream *stream);

/* Leaving a stream before its end closes the connection, which the daemon notices. */
HOLT_API void holt_stream_close(struct holt_stream *stream);

#ifdef __cplusplus
}
#endif
