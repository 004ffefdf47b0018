/* libholt: the C API of Holt, a host of sandboxes for agents. libholt(3) is its short form.
 *
 *   struct holt_error error;
 *   struct holt *holt;
 *   struct holt_env *env;
 *   struct holt_result *result;
 *   const char *const words[] = { "uname", "-a", NULL };
 *   struct holt_command command = HOLT_COMMAND_INIT;
 *
 *   command.args = words;
 *   if (holt_open(NULL, holt_after(5000), &holt, &error) < 0 ||
 *       holt_env_create(holt, NULL, holt_after(30000), &env, &error) < 0 ||
 *       holt_env_exec(env, &command, holt_after(60000), &result, &error) < 0)
 *       errx(1, "%s", error.message);
 *   fwrite(result->stdout_data, 1, result->stdout_len, stdout);
 *
 * Rules that hold for all of it:
 *
 * - A function returns 0, or -1 with a struct holt_error filled in. Outputs (ret_...) are written
 * on success only.
 * - Every call has a deadline, a moment on the monotonic clock: holt_after(ms) makes one, and
 *   HOLT_NO_DEADLINE is none. It bounds all that the call does, the connection and the handshake of
 *   TLS included, and the daemon is told of it. A call that is late fails with "deadline_exceeded";
 *   what it asked for may have happened all the same.
 * - Threads: a struct holt may be used by any number of threads at once, and so may a struct
 *   holt_env; each call or stream has a connection of its own. Streams, uploads, inputs and struct
 *   holt_process are for one thread at a time. There is no global state, no thread is started, no
 *   signal is raised and none is handled.
 * - Nothing is sent twice, with one exception: where the daemon is "unavailable", calls that change
 *   nothing, and those that carry an idempotency key, are tried again, with pauses that grow and
 *   vary, within their deadline. (holt_call and streams are never tried again.)
 * - Ownership: what comes back by pointer belongs to the caller and goes with holt_free, its texts
 *   and lists included; what has a function of its own to close or free it says so. Texts that are
 *   absent are "", never NULL. Texts that go in are UTF-8 and are not kept.
 * - Growth: options begin with their size, and the _INIT macros set it; results are made by the
 *   library and reached by pointer, also in lists. Both only ever grow at their end, so a program
 *   keeps working with a newer library. Never copy a result, and never make one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HOLT_API __attribute__((visibility("default")))

/* --- errors and deadlines --------------------------------------------------------------------- */

/* Its size never changes. */
struct holt_error {
    char code[32];     /* a Connect code: "not_found", "invalid_argument", "unavailable", ... */
    char cause[32];    /* of refusals that programs tell apart: "SessionNotFound"; "": none */
    char message[480]; /* what went wrong: one line for a person */
    char remedy[256];  /* what a person can do about it: one sentence; "": nothing is known */
    bool is_retryable; /* the same call may succeed later although nobody changes anything */
    char reserved[223];
};

#define HOLT_NO_DEADLINE INT64_MAX

/* The moment that many milliseconds from now. */
HOLT_API int64_t holt_after(int64_t ms);

/* Frees a result, whatever its type; NULL is fine. */
HOLT_API void holt_free(void *result);

/* --- the handle ------------------------------------------------------------------------------- */

/* A daemon, and a pool of connections to it. */
struct holt;

struct holt_options {
    size_t size;
    /* "unix:///path/holt.sock", "http://host:port" or "https://host:port"; NULL: $HOLT_HOST, else
     * holt.sock in $HOLT_RUN, else /run/holt/holt.sock. */
    const char *host;
    const char *token; /* NULL: $HOLT_TOKEN, else none */
    /* Of https: the certificates to trust, PEM; NULL: $HOLT_CACERT, else those that the system
     * trusts. They are always checked, and so is the name. */
    const char *ca_file;
    unsigned idle_max; /* connections to keep while nobody uses them; 0: 8 */
    unsigned attempts; /* for calls that may be tried again, the first included; 0: 4 */
};

#define HOLT_OPTIONS_INIT                                                                          \
    {                                                                                              \
        .size = sizeof(struct holt_options)                                                        \
    }

/* Connects at once. options may be NULL. -1 with code "unavailable" when nobody answers,
 * "permission_denied" when the socket's mode forbids it, "unauthenticated" when the daemon's
 * certificate is not trusted. */
HOLT_API int holt_open(const struct holt_options *options, int64_t deadline, struct holt **ret,
                       struct holt_error *error);

/* Everything that was opened with the handle must be closed before it. */
HOLT_API void holt_close(struct holt *holt);

/* --- the general door: any method of proto/holt/v1, JSON in and out -----------------------------
 */

/* One unary call: method is "holt.v1.HostService/Health". The caller frees *ret_reply with free().
 */
HOLT_API int holt_call(struct holt *holt, const char *method, const char *request, int64_t deadline,
                       char **ret_reply, struct holt_error *error);

struct holt_stream;
struct holt_input;
struct holt_upload;

/* A call that answers with a stream of JSON messages. Returns once the request is sent: what the
 * daemon thinks of it comes with holt_stream_next. The deadline is that of the whole stream. */
HOLT_API int holt_stream_open(struct holt *holt, const char *method, const char *request,
                              int64_t deadline, struct holt_stream **ret, struct holt_error *error);

/* The next message, valid until the next call and not NUL-terminated: 1, or 0 at the good end, or
 * -1. */
HOLT_API int holt_stream_next(struct holt_stream *stream, const char **ret_message, size_t *ret_len,
                              struct holt_error *error);

/* As holt_stream_open, for holt.v1.ProcessService/Exec and holt.v1.SandboxService/Run, and asks the
 * daemon to pass the process's bytes as they are, which is far faster than in JSON. A daemon that
 * cannot do that answers with messages all the same. Its messages come with holt_stream_next_raw.
 */
HOLT_API int holt_stream_open_raw(struct holt *holt, const char *method, const char *request,
                                  int64_t deadline, struct holt_stream **ret,
                                  struct holt_error *error);

enum holt_piece_kind {
    HOLT_EVENT,  /* a message as from holt_stream_next; of output only if there is no other way */
    HOLT_STDOUT, /* bytes that the process has written, cut anywhere */
    HOLT_STDERR,
};

/* Made by the caller; its size never changes. */
struct holt_piece {
    enum holt_piece_kind kind;
    const char *data; /* valid until the next call, not NUL-terminated */
    size_t len;
};

/* What comes next of a stream that was opened raw: 1, or 0 at the good end, or -1. */
HOLT_API int holt_stream_next_raw(struct holt_stream *stream, struct holt_piece *ret,
                                  struct holt_error *error);

/* For event loops: the descriptor to poll for POLLIN before holt_stream_next or
 * holt_stream_next_raw, or -1 when that would not wait at all. */
HOLT_API int holt_stream_fd(const struct holt_stream *stream);

/* Leaving a stream before its end closes the connection, which the daemon notices. */
HOLT_API void holt_stream_close(struct holt_stream *stream);

/* The stdin of the process of a raw stream, once its first piece is here. It may be used by another
 * thread than the stream, and closed before or after it. -1 with code "unimplemented" where the
 * daemon passes no raw bytes: then ProcessService/SendInput is the way. */
HOLT_API int holt_input_open(const struct holt_stream *stream, struct holt_input **ret,
                             struct holt_error *error);

/* Waits until the process has room; with is_eof, stdin is closed behind the bytes. What the process
 * takes no more is dropped. 0, or -1 when the stream is over. After a deadline that has passed the
 * input is of no use any more. */
HOLT_API int holt_input_send(struct holt_input *input, const void *data, size_t len, bool is_eof,
                             int64_t deadline, struct holt_error *error);
HOLT_API void holt_input_close(struct holt_input *input);

/* A client stream, FileService/Write or Push, may be opened with holt_stream_open_raw too: request
 * is its first message. When the first piece is here, an empty event, it goes on with input: bytes
 * by holt_input_send, and this for a message without bytes; is_eof ends it. The next event is the
 * answer. */
HOLT_API int holt_input_message(struct holt_input *input, const char *message, int64_t deadline,
                                struct holt_error *error);

/* A call that takes a stream of messages and answers with one. The deadline is that of all of it.
 */
HOLT_API int holt_upload_open(struct holt *holt, const char *method, int64_t deadline,
                              struct holt_upload **ret, struct holt_error *error);

/* Sends one JSON message; waits while the daemon is behind. A daemon that wants no more is not told
 * more: holt_upload_finish says why. */
HOLT_API int holt_upload_send(struct holt_upload *upload, const char *message, size_t len,
                              struct holt_error *error);

/* Says that this was all, and waits for the answer, which the caller frees with free(). */
HOLT_API int holt_upload_finish(struct holt_upload *upload, char **ret_reply,
                                struct holt_error *error);

/* Without holt_upload_finish before it, the daemon undoes what was begun. */
HOLT_API void holt_upload_close(struct holt_upload *upload);

#ifdef __cplusplus
}
#endif
