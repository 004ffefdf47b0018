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
struct holt_stream;

struct holt_error {
    char code[32];     /* a Connect code: "not_found", "invalid_argument", "unavailable", ... */
    char message[480]; /* one line for a person */
    char cause[32];    /* of refusals that programs tell apart: "SessionNotFound"; "": none */
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

/* For event loops: the descriptor to poll for POLLIN before holt_stream_next, or -1 when that would
 * not wait at all. */
HOLT_API int holt_stream_fd(const struct holt_stream *stream);

/* Leaving a stream before its end closes the connection, which the daemon notices. */
HOLT_API void holt_stream_close(struct holt_stream *stream);

#ifdef __cplusplus
}
#endif
