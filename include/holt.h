/* libholt: the C API of Holt, a host of sandboxes for agents. libholt(3) is its short form.
 *
 *   struct holt_error error;
 *   struct holt *holt;
 *   struct holt_env *env;
 *   struct holt_result *result;
 *   const char *const words[] = { "uname", "-a", NULL };
 *   struct holt_command command = HOLT_INIT(holt_command);
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
 * Returns: 0, or -1 with a struct holt_error filled in. Outputs (ret) are written on success only.
 *
 * Deadlines: every call has one, a moment on the monotonic clock that holt_after(ms) makes;
 * HOLT_NO_DEADLINE is none. It bounds all that the call does, connecting and the handshake of TLS
 * included, and the daemon is told of it. A call that is late fails with "deadline_exceeded"; what
 * it asked for may have happened all the same.
 *
 * Threads: a struct holt may be used by any number of threads at once, and so may a struct
 * holt_env; each call or stream has a connection of its own. Streams, uploads, inputs and a struct
 * holt_process are for one thread at a time. There is no global state, no signal is raised and none
 * is handled; a thread is started for the input of a command and for nothing else.
 *
 * Repeats: nothing is sent twice, with one exception. Where the daemon is "unavailable", calls that
 * change nothing, and those that carry an idempotency key, are tried again, with pauses that grow
 * and vary, within their deadline. holt_call and streams are never tried again.
 *
 * Ownership: what comes back by pointer belongs to the caller and goes with holt_free, its texts
 * and lists included; what has a function of its own to close or free it has that next to it. Texts
 * that are absent are "", never NULL. Texts that go in are UTF-8 and are not kept.
 *
 * Growth: options begin with their size, which HOLT_INIT sets; results are made by the library and
 * reached by pointer, also in lists. Both only ever grow at their end, so a program keeps working
 * with a newer library. Never copy a result, and never make one. */
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

/* Options that say nothing: struct holt_command command = HOLT_INIT(holt_command). */
#define HOLT_INIT(type)                                                                            \
    {                                                                                              \
        .size = sizeof(struct type)                                                                \
    }

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

/* --- the daemon ------------------------------------------------------------------------------- */

struct holt_health {
    const char *status;  /* "ok", "degraded" or "unhealthy" */
    const char *version; /* of the daemon */
    const char *runtime;
    uint64_t uptime_ms;
    uint32_t sandboxes;
    uint32_t pool_ready; /* warm sandboxes that wait */
    const char *storage; /* "btrfs", "dir" or "zfs" */
    uint64_t storage_used_bytes;
    uint64_t storage_available_bytes;
    const char *storage_state; /* "ONLINE", "DEGRADED", or what says that it cannot be used */
    const char *const *errors; /* why the status is not "ok"; ends with NULL */
    uint32_t processes;
    uint32_t pool_size; /* how many are to wait */
};

HOLT_API int holt_health(struct holt *holt, int64_t deadline, struct holt_health **ret,
                         struct holt_error *error);

/* What a host and its sandboxes can do. Whatever is false is refused. */
struct holt_capabilities {
    bool snapshots;
    bool rollback;
    bool fork;
    bool atomic_snapshots; /* of one moment; else processes stand still meanwhile */
    bool quota;
    bool pause;
    bool deep_pause;
    bool launch;
    bool streaming_progress;
    bool tier_routing;
    bool memory_limit;
    bool cpu_limit;
    bool pids_limit;
    uint32_t max_sandboxes;
    uint64_t max_sandbox_duration_ms; /* 0: no limit, here and below */
    uint32_t max_snapshots;
    uint32_t max_forks;
    uint64_t default_quota_bytes;
    uint32_t max_message_bytes;
    const char *storage;
    const char *default_runtime;
};

HOLT_API int holt_capabilities(struct holt *holt, int64_t deadline, struct holt_capabilities **ret,
                               struct holt_error *error);

/* What one sandbox uses now. */
struct holt_stats {
    const char *sandbox_id;
    const char *sandbox_name;
    const char *state;
    uint64_t age_ms;
    uint64_t cpu_us; /* since its machine was started */
    uint32_t cpu_limit_millis;
    uint64_t memory_bytes; /* without cache_bytes */
    uint64_t cache_bytes;
    uint64_t memory_limit_bytes;
    uint32_t pids;
    uint32_t pids_limit;
    uint32_t processes; /* that clients have started */
    uint64_t space_used_bytes;
    uint64_t quota_bytes;
};

struct holt_stats_list {
    size_t count;
    const struct holt_stats *const *items;
};

/* Of these sandboxes (ends with NULL), or of all where sandboxes is NULL. */
HOLT_API int holt_stats(struct holt *holt, const char *const *sandboxes, int64_t deadline,
                        struct holt_stats_list **ret, struct holt_error *error);

/* Something that happened. */
struct holt_event {
    uint64_t seq; /* one more than that of the event before */
    int64_t time_ms;
    const char *type; /* docs/events.md has all of them; "": nothing but lost */
    const char *sandbox_id;
    const char *sandbox_name;
    const char *fields; /* what else there is to say: a JSON object */
    uint64_t lost;      /* so many events before this one are gone */
};

/* Gets one event at a time, valid during the call. Anything but 0 leaves; the call then fails with
 * "canceled". */
typedef int (*holt_event_fn)(void *context, const struct holt_event *event);

struct holt_event_options {
    size_t size;
    bool has_since; /* else only what happens from now on */
    uint64_t since; /* begin behind this number; 0: with all that are remembered */
    const char *sandbox;
    const char *const *types; /* patterns as of a shell, "sandbox.*", ends with NULL */
    bool ends;                /* when there is nothing more to tell now */
    holt_event_fn on_event;
    void *context;
};

/* Tells what happens until the deadline, the end of the daemon, or the caller leaves. */
HOLT_API int holt_event_watch(struct holt *holt, const struct holt_event_options *options,
                              int64_t deadline, struct holt_error *error);

/* A secret that lets clients in over TCP. */
struct holt_token {
    const char *id;
    const char *label;
    bool is_read_only;
    int64_t created_ms;
    int64_t expires_ms;
    int64_t last_used_ms;
    const char *secret; /* from holt_token_create alone, and nowhere else ever */
};

struct holt_token_list {
    size_t count;
    const struct holt_token *const *items;
};

struct holt_token_options {
    size_t size;
    const char *label;
    bool is_read_only;
    uint64_t ttl_ms; /* 0: for ever */
};

/* options may be NULL. */
HOLT_API int holt_token_create(struct holt *holt, const struct holt_token_options *options,
                               int64_t deadline, struct holt_token **ret, struct holt_error *error);
HOLT_API int holt_token_list(struct holt *holt, int64_t deadline, struct holt_token_list **ret,
                             struct holt_error *error);
HOLT_API int holt_token_remove(struct holt *holt, const char *id, int64_t deadline,
                               struct holt_error *error);

/* --- sandboxes -------------------------------------------------------------------------------- */

enum holt_state {
    HOLT_STATE_UNKNOWN, /* a newer daemon's */
    HOLT_STATE_CREATING,
    HOLT_STATE_ACTIVE,
    HOLT_STATE_PAUSING,
    HOLT_STATE_PAUSED,
    HOLT_STATE_STOPPED, /* its files are there, its processes are not */
    HOLT_STATE_ROLLING_BACK,
    HOLT_STATE_DESTROYING,
    HOLT_STATE_DESTROYED,
    HOLT_STATE_FAILED,
};

/* "active", ...; as the daemon spells it. */
HOLT_API const char *holt_state_name(enum holt_state state);

/* Its size never changes. */
struct holt_label {
    const char *key;
    const char *value;
};

/* A volume in a sandbox, by id. Its size never changes. */
struct holt_mount {
    const char *volume;
    const char *path;
};

/* Times are milliseconds since 1970; 0: none. */
struct holt_sandbox {
    const char *id;
    const char *name; /* "": it has none */
    enum holt_state state;
    const char *reason; /* why it has failed, or has stopped by itself */
    const char *template_name;
    const char *runtime;
    int64_t created_ms;
    const struct holt_label *labels;
    size_t label_count;
    uint64_t memory_bytes;
    uint32_t cpu_millis; /* thousandths of a CPU */
    uint32_t pids;
    uint64_t quota_bytes; /* 0: none */
    uint32_t turns;       /* the number of the last one */
    uint32_t snapshots;
    uint32_t max_snapshots;
    const char *base;          /* the snapshot that its files go back to; "": the template */
    uint64_t space_used_bytes; /* only from holt_sandbox_get */
    int64_t expires_ms;
    const char *expire_action;
    uint64_t idle_timeout_ms;
    const char *idle_action;
    int64_t last_active_ms;
    const struct holt_mount *mounts;
    size_t mount_count;
};

struct holt_sandbox_list {
    size_t count;
    const struct holt_sandbox *const *items;
};

/* Absent numbers and texts (0, NULL) leave it to the daemon. */
struct holt_sandbox_options {
    size_t size;
    const char *name; /* unique */
    const char *template_name;
    const char *runtime;
    uint64_t memory_bytes;
    uint32_t cpu_millis;
    uint32_t pids;
    uint64_t quota_bytes;
    const char *const *labels; /* "key=value", ends with NULL */
    uint32_t max_snapshots;
    uint64_t ttl_ms;           /* what becomes of it then: */
    const char *expire_action; /* "kill", "pause" or "stop" */
    uint64_t idle_timeout_ms;
    const char *idle_action;
    /* A second create with the same key joins the first, also while that is going on. */
    const char *idempotency_key;
    unsigned needs;             /* of holt_env_create: HOLT_NEEDS_..., or'ed */
    const char *const *volumes; /* "name:/path", by name or id, ends with NULL */
};

/* Wherever a sandbox is asked for, its id or its name will do. options may be NULL. */
HOLT_API int holt_sandbox_create(struct holt *holt, const struct holt_sandbox_options *options,
                                 int64_t deadline, struct holt_sandbox **ret,
                                 struct holt_error *error);
HOLT_API int holt_sandbox_get(struct holt *holt, const char *sandbox, int64_t deadline,
                              struct holt_sandbox **ret, struct holt_error *error);

/* Oldest first; only those that have all of these labels ("key=value", ends with NULL; NULL: all).
 */
HOLT_API int holt_sandbox_list(struct holt *holt, const char *const *labels, int64_t deadline,
                               struct holt_sandbox_list **ret, struct holt_error *error);

/* Freezes all processes where they are, and lets them go on. ret may be NULL, here and below. */
HOLT_API int holt_sandbox_pause(struct holt *holt, const char *sandbox, int64_t deadline,
                                struct holt_sandbox **ret, struct holt_error *error);
HOLT_API int holt_sandbox_resume(struct holt *holt, const char *sandbox, int64_t deadline,
                                 struct holt_sandbox **ret, struct holt_error *error);

/* Ends all processes and keeps the files; starts anew on these files. */
HOLT_API int holt_sandbox_stop(struct holt *holt, const char *sandbox, int64_t deadline,
                               struct holt_sandbox **ret, struct holt_error *error);
HOLT_API int holt_sandbox_start(struct holt *holt, const char *sandbox, int64_t deadline,
                                struct holt_sandbox **ret, struct holt_error *error);

/* Removes it with all its snapshots, whatever its state. */
HOLT_API int holt_sandbox_destroy(struct holt *holt, const char *sandbox, int64_t deadline,
                                  struct holt_error *error);

struct holt_fork_options {
    size_t size;
    const char *from; /* a snapshot; NULL: the files as they are now */
    uint32_t count;   /* 0: one */
};

/* New sandboxes with the files of this one, all or none. options may be NULL. */
HOLT_API int holt_sandbox_fork(struct holt *holt, const char *sandbox,
                               const struct holt_fork_options *options, int64_t deadline,
                               struct holt_sandbox_list **ret, struct holt_error *error);

/* --- commands --------------------------------------------------------------------------------- */

/* Gets output as it comes: kind is HOLT_STDOUT or HOLT_STDERR. Anything but 0 leaves, which ends
 * the command, and the call fails with "canceled". */
typedef int (*holt_output_fn)(void *context, enum holt_piece_kind kind, const char *data,
                              size_t len);

struct holt_command {
    size_t size;
    const char *const *args; /* the command and its arguments, ends with NULL */
    const char *const *env;  /* "NAME=value", ends with NULL; NULL: none but the usual */
    const char *cwd;         /* NULL: /workspace */
    uint64_t timeout_ms;     /* the daemon ends it then, and all that it started; 0: never */
    const char *tag;
    /* A second call with the same key starts nothing, but joins the process of the first. Not of
     * holt_run, which has no sandbox that could remember it. */
    const char *idempotency_key;
    /* A terminal of this size in the place of pipes; 0: none. */
    uint32_t rows;
    uint32_t columns;
    bool has_stdin; /* of holt_process_...: stdin stays open; of holt_exec it is input, or empty */
    /* Of holt_exec, holt_run and holt_env_exec: */
    const void *input; /* all of its stdin. Who has some gets a thread until the end of the call. */
    size_t input_len;
    holt_output_fn on_output; /* NULL: output is gathered in the result */
    void *context;
    size_t output_max; /* bytes of each stream that are gathered; 0: 16 MiB. The rest is dropped. */
};

enum holt_outcome {
    HOLT_OUTCOME_UNKNOWN,
    HOLT_EXITED,      /* exit_code is its own */
    HOLT_SIGNALED,    /* signal says by which; exit_code is 128 + signal */
    HOLT_TIMED_OUT,   /* exit_code is 124 */
    HOLT_OOM,         /* the sandbox had no memory left; exit_code is 137 */
    HOLT_KILLED,      /* Holt ended it; killed_by and reason say on whose behalf */
    HOLT_LOST,        /* its end was not seen; reason says why */
    HOLT_NOT_STARTED, /* exit_code is 127 when there is no such command, 126 when it cannot run */
};

struct holt_end {
    enum holt_outcome outcome;
    int exit_code;
    int signal;
    const char *reason;
    const char
        *killed_by; /* "USER", "CLIENT", "ROLLBACK", "STOP", "DESTROY", "QUOTA"; "": nobody */
    uint64_t duration_ms;
    uint64_t cpu_ms;
    uint64_t memory_peak_bytes; /* of the whole sandbox */
    uint64_t stdout_bytes;      /* that it has written */
    uint64_t stderr_bytes;
    bool is_truncated; /* the daemon has not kept all of that */
};

struct holt_result {
    const char *sandbox_id;
    const char *process_id;
    bool is_joined; /* the key was known: the process is that of an earlier call */
    const struct holt_end *end;
    const char *stdout_data; /* what was gathered; a NUL stands behind it */
    size_t stdout_len;
    const char *stderr_data;
    size_t stderr_len;
    bool is_cut;         /* there was more than output_max */
    bool is_shell_ended; /* of holt_shell_run: the shell is gone, as after "exit" */
};

/* Runs a command in a sandbox and waits for its end. A command that fails is no error: look at
 * end. When the deadline passes, or the caller goes away, it is killed with all that it started. */
HOLT_API int holt_exec(struct holt *holt, const char *sandbox, const struct holt_command *command,
                       int64_t deadline, struct holt_result **ret, struct holt_error *error);

/* The same in a sandbox that is made for it and thrown away; of options (NULL: none) the template,
 * the runtime and the limits count. */
HOLT_API int holt_run(struct holt *holt, const struct holt_sandbox_options *options,
                      const struct holt_command *command, int64_t deadline,
                      struct holt_result **ret, struct holt_error *error);

/* --- processes -------------------------------------------------------------------------------- */

/* A process that we follow: one that runs for us, or one that somebody has started. */
struct holt_process;

enum holt_process_event_kind {
    HOLT_PROCESS_STARTED, /* always the first */
    HOLT_PROCESS_STDOUT,
    HOLT_PROCESS_STDERR,
    HOLT_PROCESS_GAP,   /* output that is not kept: missing bytes of stream, from offset on */
    HOLT_PROCESS_ENDED, /* the last */
};

struct holt_process_event {
    enum holt_process_event_kind kind;
    const char *data; /* of output; not NUL-terminated */
    size_t len;
    enum holt_piece_kind stream; /* of a gap */
    uint64_t offset;
    uint64_t missing;
    const struct holt_end *end;
};

/* Starts a process that lives as long as the handle, at most; has_stdin, rows and columns count.
 * What the daemon thinks of it comes with the first event. */
HOLT_API int holt_process_open(struct holt *holt, const char *sandbox,
                               const struct holt_command *command, int64_t deadline,
                               struct holt_process **ret, struct holt_error *error);

struct holt_attach_options {
    size_t size;
    const char *sandbox;
    const char *process_id;
    uint64_t stdout_offset; /* where to begin */
    uint64_t stderr_offset;
    uint64_t replay_bytes; /* in their place: this many before the end, if replays */
    bool replays;
    bool follows; /* wait for what is yet to come, up to the end of the process */
    bool holds;   /* the process waits for this reader, who so misses nothing */
};

/* Follows a process that is there; leaving changes nothing for it. Where options say nothing more,
 * that is the whole output from its beginning, without waiting for more. */
HOLT_API int holt_process_attach(struct holt *holt, const struct holt_attach_options *options,
                                 int64_t deadline, struct holt_process **ret,
                                 struct holt_error *error);

/* The next event, valid until the next call: 1, or 0 at the end, or -1. */
HOLT_API int holt_process_next(struct holt_process *process, const struct holt_process_event **ret,
                               struct holt_error *error);

/* As holt_stream_fd. */
HOLT_API int holt_process_fd(const struct holt_process *process);

/* Known once it has started; "" before. */
HOLT_API const char *holt_process_id(const struct holt_process *process);

/* Input, window size and signals, once it has started. The first waits until the process has room;
 * with is_eof stdin is closed behind the bytes. */
HOLT_API int holt_process_send(struct holt_process *process, const void *data, size_t len,
                               bool is_eof, int64_t deadline, struct holt_error *error);
HOLT_API int holt_process_resize(struct holt_process *process, uint32_t rows, uint32_t columns,
                                 int64_t deadline, struct holt_error *error);
HOLT_API int holt_process_kill(struct holt_process *process, int signal, int64_t deadline,
                               struct holt_error *error);

/* Ends a process that was started with holt_process_open, if it still runs. */
HOLT_API void holt_process_close(struct holt_process *process);

/* What is known of a process, for a time also after its end. */
struct holt_process_info {
    const char *id;
    const char *const *args; /* ends with NULL */
    const char *cwd;
    const char *tag;
    bool has_stdin;
    bool has_terminal;
    bool is_running;
    uint32_t pid; /* inside the sandbox; 0: not known */
    int64_t started_ms;
    int64_t ended_ms;
    const struct holt_end *end; /* NULL while it runs */
    uint32_t port;              /* of a service: inside the sandbox */
    const char *address;        /* where that is reached: "HOST:PORT" */
    uint32_t restarts;
    bool is_joined; /* the key was known; of holt_process_start and holt_process_launch */
    bool is_ready;  /* it answers on its port; of holt_process_launch */
};

struct holt_process_list {
    size_t count;
    const struct holt_process_info *const *items;
};

/* Starts a process that belongs to nobody and never waits for a reader. */
HOLT_API int holt_process_start(struct holt *holt, const char *sandbox,
                                const struct holt_command *command, int64_t deadline,
                                struct holt_process_info **ret, struct holt_error *error);

enum holt_restart { HOLT_RESTART_NO, HOLT_RESTART_ON_FAILURE, HOLT_RESTART_ALWAYS };

struct holt_service {
    size_t size;
    const struct holt_command *command;
    uint32_t port; /* where it will listen: forwarded to the host; 0: nowhere */
    enum holt_restart restart;
    bool waits;                /* until it answers on its port */
    const char *ready_path;    /* with a GET of this; NULL: by taking connections */
    uint64_t ready_timeout_ms; /* 0: 30 s */
};

/* Starts a service: a process that outlives its caller, is started again, and has a port. */
HOLT_API int holt_process_launch(struct holt *holt, const char *sandbox,
                                 const struct holt_service *service, int64_t deadline,
                                 struct holt_process_info **ret, struct holt_error *error);

HOLT_API int holt_process_get(struct holt *holt, const char *sandbox, const char *process_id,
                              int64_t deadline, struct holt_process_info **ret,
                              struct holt_error *error);

/* Oldest first; only those with this tag, if it is not NULL. */
HOLT_API int holt_process_list(struct holt *holt, const char *sandbox, const char *tag,
                               int64_t deadline, struct holt_process_list **ret,
                               struct holt_error *error);

/* Waits for the end of a process. */
HOLT_API int holt_process_wait(struct holt *holt, const char *sandbox, const char *process_id,
                               int64_t deadline, struct holt_end **ret, struct holt_error *error);

/* Sends a signal to a process, or to it and all that it started. */
HOLT_API int holt_process_signal(struct holt *holt, const char *sandbox, const char *process_id,
                                 int signal, int64_t deadline, struct holt_error *error);
HOLT_API int holt_process_signal_tree(struct holt *holt, const char *sandbox,
                                      const char *process_id, int signal, int64_t deadline,
                                      struct holt_error *error);

/* --- shells ----------------------------------------------------------------------------------- */

struct holt_shell_command {
    size_t size;
    const char *shell; /* its name; made if it is not there */
    const char *text;  /* whatever the shell understands */
    uint64_t timeout_ms;
    holt_output_fn on_output; /* as in struct holt_command */
    void *context;
    size_t output_max;
};

/* Runs one command in a shell that stays: directory, variables and jobs are there for the next one.
 * end->outcome is HOLT_EXITED or HOLT_TIMED_OUT. */
HOLT_API int holt_shell_run(struct holt *holt, const char *sandbox,
                            const struct holt_shell_command *command, int64_t deadline,
                            struct holt_result **ret, struct holt_error *error);

struct holt_shell {
    const char *name;
    const char *kind;       /* "bash" or "sh"; "": not used yet */
    const char *process_id; /* "": it has none now */
    bool is_busy;
    uint32_t waiting; /* commands behind the one that runs */
};

struct holt_shell_list {
    size_t count;
    const struct holt_shell *const *items;
};

/* Makes sure that the shell is there and runs; its terminal is that of process_id. */
HOLT_API int holt_shell_open(struct holt *holt, const char *sandbox, const char *shell,
                             int64_t deadline, struct holt_shell **ret, struct holt_error *error);
HOLT_API int holt_shell_list(struct holt *holt, const char *sandbox, int64_t deadline,
                             struct holt_shell_list **ret, struct holt_error *error);
HOLT_API int holt_shell_remove(struct holt *holt, const char *sandbox, const char *shell,
                               int64_t deadline, struct holt_error *error);

/* --- turns, snapshots and what changed ----------------------------------------------------------
 */

struct holt_snapshot {
    const char *name;
    const char *kind; /* "turn", "named" or "tool" */
    uint32_t turn;    /* its number */
    const char *parent;
    int64_t created_ms;
    uint64_t space_used_bytes;
};

struct holt_snapshot_list {
    size_t count;
    const struct holt_snapshot *const *items;
    const char *base; /* the one that the files go back to; "": the template */
};

/* The end of an agent's turn: keeps the files as they are now. ret may be NULL. */
HOLT_API int holt_turn(struct holt *holt, const char *sandbox, int64_t deadline,
                       struct holt_snapshot **ret, struct holt_error *error);

/* Keeps the files as they are now under a name. ret may be NULL. */
HOLT_API int holt_snapshot_create(struct holt *holt, const char *sandbox, const char *name,
                                  int64_t deadline, struct holt_snapshot **ret,
                                  struct holt_error *error);
HOLT_API int holt_snapshot_list(struct holt *holt, const char *sandbox, int64_t deadline,
                                struct holt_snapshot_list **ret, struct holt_error *error);
HOLT_API int holt_snapshot_remove(struct holt *holt, const char *sandbox, const char *snapshot,
                                  int64_t deadline, struct holt_error *error);

/* Makes the files those of a snapshot again and ends all processes. Newer snapshots stay, unless
 * they are to be pruned. */
HOLT_API int holt_rollback(struct holt *holt, const char *sandbox, const char *snapshot,
                           bool prunes_newer, int64_t deadline, struct holt_error *error);

/* Paths are bytes, as the sandbox has them. */
struct holt_change {
    const char *kind; /* "added", "modified", "deleted" or "renamed"; "": more of a patch */
    const char *path;
    const char *old_path; /* of what was renamed */
    const char *type;     /* "file", "directory", "link", ... */
    uint64_t size_bytes;
    uint64_t old_size_bytes;
    bool is_binary;
    uint64_t added_lines;
    uint64_t deleted_lines;
    const char *patch; /* a unified diff, or a piece of one; not NUL-terminated */
    size_t patch_len;
};

/* Gets one change at a time, valid during the call. Anything but 0 leaves; the call then fails with
 * "canceled". */
typedef int (*holt_change_fn)(void *context, const struct holt_change *change);

struct holt_diff_options {
    size_t size;
    const char *from; /* a snapshot or "template"; NULL: what the files go back to */
    const char *to;   /* NULL: the files as they are now */
    bool counts_lines;
    bool has_patch;
    holt_change_fn on_change;
    void *context;
};

/* What differs between two states, in the order of paths. */
HOLT_API int holt_diff(struct holt *holt, const char *sandbox,
                       const struct holt_diff_options *options, int64_t deadline,
                       struct holt_error *error);

/* --- templates -------------------------------------------------------------------------------- */

struct holt_template {
    const char *name;
    const char *kind; /* "host" or "imported" */
    uint64_t size_bytes;
    uint64_t files;
    int64_t created_ms;
    const char *owner; /* what it was made for without being asked for; "": nothing */
};

struct holt_template_list {
    size_t count;
    const struct holt_template *const *items;
};

/* How far an import has come; anything but 0 leaves it, and the call fails with "canceled". */
typedef int (*holt_import_fn)(void *context, uint64_t bytes, uint64_t files);

struct holt_import_options {
    size_t size;
    const char *name;
    const char *path; /* absolute, on the daemon's machine */
    holt_import_fn on_progress;
    void *context;
};

/* Those without an owner; and all of them. */
HOLT_API int holt_template_list(struct holt *holt, int64_t deadline,
                                struct holt_template_list **ret, struct holt_error *error);
HOLT_API int holt_template_list_all(struct holt *holt, int64_t deadline,
                                    struct holt_template_list **ret, struct holt_error *error);
HOLT_API int holt_template_import(struct holt *holt, const struct holt_import_options *options,
                                  int64_t deadline, struct holt_template **ret,
                                  struct holt_error *error);

/* A template of a sandbox's files as they are now. ret may be NULL. */
HOLT_API int holt_template_commit(struct holt *holt, const char *sandbox, const char *name,
                                  int64_t deadline, struct holt_template **ret,
                                  struct holt_error *error);
HOLT_API int holt_template_remove(struct holt *holt, const char *name, int64_t deadline,
                                  struct holt_error *error);

/* --- files ------------------------------------------------------------------------------------ */

/* Paths are bytes; relative ones start at /workspace. They are looked up inside the sandbox. */
struct holt_file {
    const char *path;
    const char *name; /* the last part of it */
    const char *type; /* "file", "directory", "link", "pipe", "socket", "character-device", ... */
    uint64_t size_bytes;
    uint32_t mode; /* permission bits */
    uint32_t uid;
    uint32_t gid;
    const char *owner; /* "": it has no name in the sandbox */
    const char *group;
    int64_t modified_ms;
    uint64_t inode;
    uint32_t links;
    const char *target; /* of a symbolic link */
};

struct holt_file_list {
    size_t count;
    const struct holt_file *const *items;
};

/* Of a symbolic link itself. */
HOLT_API int holt_file_stat(struct holt *holt, const char *sandbox, const char *path,
                            int64_t deadline, struct holt_file **ret, struct holt_error *error);

/* All that is in a directory, in the order of names. */
HOLT_API int holt_file_list(struct holt *holt, const char *sandbox, const char *path,
                            int64_t deadline, struct holt_file_list **ret,
                            struct holt_error *error);

/* Gets bytes as they come. Anything but 0 leaves; the call then fails with "canceled". */
typedef int (*holt_data_fn)(void *context, const char *data, size_t len);

struct holt_read_options {
    size_t size;
    const char *path;
    const char *user; /* on whose behalf; NULL: root */
    uint64_t offset;
    uint64_t length;      /* 0: to the end */
    holt_data_fn on_data; /* NULL: bytes are gathered in the result, at most max of them */
    void *context;
    size_t max; /* 0: 64 MiB; a longer file is an error */
};

struct holt_content {
    const struct holt_file *file;
    const char *data; /* a NUL stands behind it */
    size_t len;
};

HOLT_API int holt_file_read(struct holt *holt, const char *sandbox,
                            const struct holt_read_options *options, int64_t deadline,
                            struct holt_content **ret, struct holt_error *error);

struct holt_write_options {
    size_t size;
    const char *path;
    const char *user;
    const void *data;
    size_t len;
    bool has_mode; /* else 0644 for a new file, and what it has for another */
    uint32_t mode;
    bool makes_parents;
    bool is_atomic;    /* nobody ever sees half of it */
    bool is_exclusive; /* there must be nothing of that name yet */
    bool appends;
};

/* ret may be NULL. */
HOLT_API int holt_file_write(struct holt *holt, const char *sandbox,
                             const struct holt_write_options *options, int64_t deadline,
                             struct holt_file **ret, struct holt_error *error);

/* With the missing directories above it; one that is there already is fine. */
HOLT_API int holt_file_mkdir(struct holt *holt, const char *sandbox, const char *path,
                             int64_t deadline, struct holt_error *error);

/* to is the whole new path; what has that name already is not touched. */
HOLT_API int holt_file_move(struct holt *holt, const char *sandbox, const char *path,
                            const char *to, int64_t deadline, struct holt_error *error);
HOLT_API int holt_file_remove(struct holt *holt, const char *sandbox, const char *path,
                              bool is_recursive, int64_t deadline, struct holt_error *error);

/* Gets changes as they happen: type is "create", "write", "remove", "rename", "chmod" or
 * "overflow", path is from the directory that is watched. "" and "" come first: from then on all is
 * seen. Anything but 0 leaves. */
typedef int (*holt_watch_fn)(void *context, const char *type, const char *path);

struct holt_watch_options {
    size_t size;
    const char *path;
    bool is_recursive;
    holt_watch_fn on_change;
    void *context;
};

HOLT_API int holt_file_watch(struct holt *holt, const char *sandbox,
                             const struct holt_watch_options *options, int64_t deadline,
                             struct holt_error *error);

/* --- environments ----------------------------------------------------------------------------- */

/* An environment is bound to one sandbox and knows what can be done with it: what its daemon cannot
 * do fails with "unimplemented", without a call. */
struct holt_env;

/* What an environment must be able to do (struct holt_sandbox_options). */
#define HOLT_NEEDS_SNAPSHOTS 0x1U
#define HOLT_NEEDS_ROLLBACK 0x2U
#define HOLT_NEEDS_FORK 0x4U
#define HOLT_NEEDS_PAUSE 0x8U
#define HOLT_NEEDS_QUOTA 0x10U
#define HOLT_NEEDS_LAUNCH 0x20U
#define HOLT_NEEDS_LIMITS 0x40U /* of memory, CPU and processes */

/* Makes a sandbox, if the daemon can do what options need; otherwise nothing is made. options may
 * be NULL. The handle must outlive the environment. */
HOLT_API int holt_env_create(struct holt *holt, const struct holt_sandbox_options *options,
                             int64_t deadline, struct holt_env **ret, struct holt_error *error);

/* Binds to a sandbox that is there, if it is, and if the daemon can do what is needed. */
HOLT_API int holt_env_attach(struct holt *holt, const char *sandbox, unsigned needs,
                             int64_t deadline, struct holt_env **ret, struct holt_error *error);

/* Lets go of the environment; the sandbox stays. */
HOLT_API void holt_env_free(struct holt_env *env);

/* Of the sandbox: for all other functions. */
HOLT_API const char *holt_env_id(const struct holt_env *env);
HOLT_API const struct holt_capabilities *holt_env_capabilities(const struct holt_env *env);

/* Asks the daemon; after holt_env_destroy, and where somebody else has destroyed it, it is
 * HOLT_STATE_DESTROYED. On any error *ret is HOLT_STATE_FAILED, as the one exception to the rule.
 */
HOLT_API int holt_env_state(struct holt_env *env, int64_t deadline, enum holt_state *ret,
                            struct holt_error *error);

HOLT_API int holt_env_pause(struct holt_env *env, int64_t deadline, struct holt_error *error);
HOLT_API int holt_env_resume(struct holt_env *env, int64_t deadline, struct holt_error *error);

/* Destroys the sandbox. Again, it does nothing. */
HOLT_API int holt_env_destroy(struct holt_env *env, int64_t deadline, struct holt_error *error);

/* As holt_turn, holt_snapshot_create, holt_rollback, holt_exec and holt_tool_execute. */
HOLT_API int holt_env_turn(struct holt_env *env, int64_t deadline, struct holt_snapshot **ret,
                           struct holt_error *error);
HOLT_API int holt_env_snapshot(struct holt_env *env, const char *name, int64_t deadline,
                               struct holt_snapshot **ret, struct holt_error *error);
HOLT_API int holt_env_rollback(struct holt_env *env, const char *snapshot, int64_t deadline,
                               struct holt_error *error);
HOLT_API int holt_env_exec(struct holt_env *env, const struct holt_command *command,
                           int64_t deadline, struct holt_result **ret, struct holt_error *error);
struct holt_tool_call;
struct holt_tool_result;
HOLT_API int holt_env_execute_tool(struct holt_env *env, const struct holt_tool_call *call,
                                   int64_t deadline, struct holt_tool_result **ret,
                                   struct holt_error *error);

#ifdef __cplusplus
}
#endif

#include "holt_tool.h"
#include "holt_volume.h"
