/* libholt: the C API of Holt, a sandbox host for AI agents. libholt(3) is a summary.
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
 * Common rules:
 *
 * Return values: functions return 0, or -1 with a struct holt_error filled in. Outputs (ret) are
 * written only on success.
 *
 * Deadlines: every call has a deadline, a time on the monotonic clock that holt_after(ms) computes;
 * HOLT_NO_DEADLINE means none. It includes connecting and the TLS handshake, and is passed on to
 * the daemon. A late call fails with "deadline_exceeded"; the operation may still have taken place.
 *
 * Threads: any number of threads can use a struct holt or a struct holt_env at the same time; each
 * call or stream has its own connection. A stream, an upload, an input or a struct holt_process is
 * for one thread at a time. The library has no global state, raises and handles no signals, and
 * starts a thread only for the input of a command.
 *
 * Retries: while the daemon is "unavailable", the library retries read-only calls and calls with an
 * idempotency key within their deadline, with exponential backoff and jitter. No other call is sent
 * twice. holt_call and streams are never retried.
 *
 * Ownership: the caller owns every returned pointer and frees it with holt_free, which includes its
 * strings and lists. Types with their own close or free function declare it next to them. Absent
 * strings are "", never NULL. Input strings are UTF-8; the library keeps no reference to them.
 *
 * Compatibility: option structures start with their size, which HOLT_INIT sets; the library
 * allocates results and returns pointers to them, also in lists. Both only grow at their end, so a
 * program keeps working with a newer library. Never copy or allocate a result. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HOLT_API __attribute__((visibility("default")))

/* --- errors and deadlines --------------------------------------------------------------------- */

/* The size of this structure is fixed. */
struct holt_error {
    char code[32];     /* a Connect code: "not_found", "invalid_argument", "unavailable", ... */
    char cause[32];    /* for programs: "SessionNotFound"; "": none */
    char message[480]; /* for people: one line */
    char remedy[256];  /* for people: how to correct the error, one sentence; "": unknown */
    bool is_retryable; /* the same call may succeed later without a change */
    char reserved[223];
};

#define HOLT_NO_DEADLINE INT64_MAX

/* Default options: struct holt_command command = HOLT_INIT(holt_command). */
#define HOLT_INIT(type)                                                                            \
    {                                                                                              \
        .size = sizeof(struct type)                                                                \
    }

/* Returns the deadline that many milliseconds from now. */
HOLT_API int64_t holt_after(int64_t ms);

/* Frees a result of any type, or NULL. */
HOLT_API void holt_free(void *result);

/* Returns the message of the daemon that a result was read from, as one line of JSON, valid as long
 * as the result; "" if the result was collected from several messages. Also for the structures that
 * the callbacks receive. */
HOLT_API const char *holt_result_json(const void *result);

/* --- the handle ------------------------------------------------------------------------------- */

/* A handle of a daemon, with a pool of connections to it. */
struct holt;

struct holt_options {
    size_t size;
    /* "unix:///path/holt.sock", "http://host:port" or "https://host:port"; NULL: $HOLT_HOST, else
     * holt.sock in $HOLT_RUN, else /run/holt/holt.sock. */
    const char *host;
    const char *token; /* NULL: $HOLT_TOKEN, else none */
    /* For https: a PEM file with the certificates to trust; NULL: $HOLT_CACERT, else those that the
     * system trusts. The certificate and the host name are always verified. */
    const char *ca_file;
    unsigned idle_max; /* maximum number of idle connections; 0: 8 */
    unsigned attempts; /* of calls that can be retried, including the first; 0: 4 */
};

/* Connects to a daemon. options may be NULL. Fails with code "unavailable" if no daemon responds,
 * "permission_denied" if the mode of the socket forbids it, "unauthenticated" if the certificate of
 * the daemon is not trusted. */
HOLT_API int holt_open(const struct holt_options *options, int64_t deadline, struct holt **ret,
                       struct holt_error *error);

/* Closes a handle. Close everything that was opened with it first. */
HOLT_API void holt_close(struct holt *holt);

/* --- any method of proto/holt/v1, with JSON --------------------------------------------------- */

/* Makes a unary call; method is for example "holt.v1.HostService/Health". The caller frees
 * *ret_reply with free(). */
HOLT_API int holt_call(struct holt *holt, const char *method, const char *request, int64_t deadline,
                       char **ret_reply, struct holt_error *error);

struct holt_stream;
struct holt_input;
struct holt_upload;

/* Opens a call that returns a stream of JSON messages. Returns when the request is sent;
 * holt_stream_next reports errors of the daemon. The deadline applies to the whole stream. */
HOLT_API int holt_stream_open(struct holt *holt, const char *method, const char *request,
                              int64_t deadline, struct holt_stream **ret, struct holt_error *error);

/* Returns 1 and the next message, valid until the next call and not NUL-terminated; 0 at the end of
 * a successful stream; or -1. */
HOLT_API int holt_stream_next(struct holt_stream *stream, const char **ret_message, size_t *ret_len,
                              struct holt_error *error);

/* Like holt_stream_open, for holt.v1.ProcessService/Exec and holt.v1.SandboxService/Run, but asks
 * the daemon to send the output of the process unencoded, which is much faster than JSON. A daemon
 * without this feature sends messages instead. Read the stream with holt_stream_next_raw. */
HOLT_API int holt_stream_open_raw(struct holt *holt, const char *method, const char *request,
                                  int64_t deadline, struct holt_stream **ret,
                                  struct holt_error *error);

enum holt_piece_kind {
    HOLT_EVENT,  /* a message as from holt_stream_next */
    HOLT_STDOUT, /* output of the process, split at any byte */
    HOLT_STDERR,
};

/* Allocated by the caller; the size of this structure is fixed. */
struct holt_piece {
    enum holt_piece_kind kind;
    const char *data; /* valid until the next call, not NUL-terminated */
    size_t len;
};

/* Returns 1 and the next piece of a raw stream; 0 at the end of a successful stream; or -1. */
HOLT_API int holt_stream_next_raw(struct holt_stream *stream, struct holt_piece *ret,
                                  struct holt_error *error);

/* For event loops: returns the descriptor to poll for POLLIN before holt_stream_next or
 * holt_stream_next_raw, or -1 if these would not block. */
HOLT_API int holt_stream_fd(const struct holt_stream *stream);

/* Closes a stream. Before its end, this closes the connection, which cancels the call. */
HOLT_API void holt_stream_close(struct holt_stream *stream);

/* Opens the stdin of the process of a raw stream, after its first piece has arrived. Another thread
 * than that of the stream can use it, and it can be closed before or after the stream. Fails with
 * code "unimplemented" if the daemon sends no raw bytes; use ProcessService/SendInput then. */
HOLT_API int holt_input_open(const struct holt_stream *stream, struct holt_input **ret,
                             struct holt_error *error);

/* Sends bytes, and blocks while the process does not read; is_eof closes stdin after them. Bytes
 * that the process no longer accepts are discarded. Returns -1 if the stream has ended. After an
 * expired deadline the input cannot be used any more. */
HOLT_API int holt_input_send(struct holt_input *input, const void *data, size_t len, bool is_eof,
                             int64_t deadline, struct holt_error *error);
HOLT_API void holt_input_close(struct holt_input *input);

/* Sends a message of a raw client stream. holt_stream_open_raw can also open the client streams
 * FileService/Write and Push: request is their first message. After the first piece, an empty
 * event, send bytes with holt_input_send and messages without bytes with this function; is_eof ends
 * the stream. The next event is the reply. */
HOLT_API int holt_input_message(struct holt_input *input, const char *message, int64_t deadline,
                                struct holt_error *error);

/* Opens a call that takes a stream of messages and returns one. The deadline is that of it all. */
HOLT_API int holt_upload_open(struct holt *holt, const char *method, int64_t deadline,
                              struct holt_upload **ret, struct holt_error *error);

/* Sends one JSON message; blocks while the daemon does not read. If the daemon has already replied,
 * nothing is sent, and holt_upload_finish returns the reply or the error. */
HOLT_API int holt_upload_send(struct holt_upload *upload, const char *message, size_t len,
                              struct holt_error *error);

/* Ends the request and waits for the reply, which the caller frees with free(). */
HOLT_API int holt_upload_finish(struct holt_upload *upload, char **ret_reply,
                                struct holt_error *error);

/* Closes an upload. The daemon undoes it unless holt_upload_finish was called. */
HOLT_API void holt_upload_close(struct holt_upload *upload);

/* --- sandboxes -------------------------------------------------------------------------------- */

enum holt_state {
    HOLT_STATE_UNKNOWN, /* a state of a newer daemon */
    HOLT_STATE_CREATING,
    HOLT_STATE_ACTIVE,
    HOLT_STATE_PAUSING,
    HOLT_STATE_PAUSED,
    HOLT_STATE_STOPPED, /* has files, but no processes */
    HOLT_STATE_ROLLING_BACK,
    HOLT_STATE_DESTROYING,
    HOLT_STATE_DESTROYED,
    HOLT_STATE_FAILED,
    HOLT_STATE_DEEP_PAUSED, /* its files are in object storage */
};

/* Returns the name of a state as the API spells it: "active", ... */
HOLT_API const char *holt_state_name(enum holt_state state);

/* The size of this structure is fixed. */
struct holt_label {
    const char *key;
    const char *value;
};

/* A volume in a sandbox, by id. The size of this structure is fixed. */
struct holt_mount {
    const char *volume;
    const char *path;
};

/* Times are milliseconds since 1970; 0: none. */
struct holt_sandbox {
    const char *id;
    const char *name; /* "": none */
    enum holt_state state;
    const char *reason; /* why it failed or stopped by itself */
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
    const char *base;          /* the snapshot that its files are based on; "": template */
    uint64_t space_used_bytes; /* only from holt_sandbox_get */
    int64_t expires_ms;
    const char *expire_action;
    uint64_t idle_timeout_ms;
    const char *idle_action;
    int64_t last_active_ms;
    const struct holt_mount *mounts;
    size_t mount_count;
    bool is_joined; /* the key was known; from holt_sandbox_create */
    uint32_t files; /* descriptors of one process */

    /* From holt_sandbox_create: where its HTTP ports are served, with "<port>" for the number:
     * "<port>-sb0123.localhost:7070"; "": nowhere. */
    const char *address;
    const bool *mounts_read_only; /* for each of mounts: whether it cannot be written to */
    const char *owner;
    const char *network;  /* what it may reach: "none", "open" or "allow" */
    const char *codebase; /* its id; "": none */
    const char *codebase_path;
    uint32_t codebase_version;  /* that it was created with */
    uint32_t codebase_base;     /* that its changes are compared with */
    const char *const *secrets; /* names of its secrets, see holt_secret.h */
    size_t secret_count;
    const struct holt_agent *agent; /* from holt_sandbox_create with a type, see holt_agent.h */
    uint64_t transfer_done_bytes;   /* while its files move to or from object storage */
    uint64_t transfer_total_bytes;  /* 0: they do not */
};

struct holt_sandbox_list {
    size_t count;
    const struct holt_sandbox *const *items;
};

/* 0 and NULL mean the default of the daemon. */
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
    uint64_t ttl_ms;           /* after this time: */
    const char *expire_action; /* "kill", "pause", "stop" or "deep-pause" */
    uint64_t idle_timeout_ms;
    const char *idle_action;
    /* A second create with the same key returns the sandbox of the first, and waits for it if it is
     * in progress. */
    const char *idempotency_key;
    unsigned needs;             /* for holt_env_create: HOLT_NEEDS_... flags */
    const char *const *volumes; /* "name:/path" or "name:/path:ro", by name or id; ends with NULL */
    uint32_t files;             /* descriptors of one process */
    const struct holt_network_rules *network; /* what it may reach, see holt_network.h */
    const char *proxy;          /* URL of the proxy of its connections, see holt_network.h */
    const char *codebase;       /* "name" or "name:/path", by name or id; see holt_codebase.h */
    const char *const *secrets; /* names of secrets, see holt_secret.h; ends with NULL */
    const char *const *models;  /* that it may use at llm.holt, see holt_model.h; ends with NULL */
    const char *type;           /* of the agent in it, see holt_agent.h */
    const struct holt_agent_settings *agent;         /* with a type */
    const struct holt_permission_rules *permissions; /* with a codebase, see holt_permission.h */
};

/* Creates a sandbox. options may be NULL. All functions accept the id or the name of a sandbox. */
HOLT_API int holt_sandbox_create(struct holt *holt, const struct holt_sandbox_options *options,
                                 int64_t deadline, struct holt_sandbox **ret,
                                 struct holt_error *error);
HOLT_API int holt_sandbox_get(struct holt *holt, const char *sandbox, int64_t deadline,
                              struct holt_sandbox **ret, struct holt_error *error);

/* Lists the sandboxes that have all given labels ("key=value", ends with NULL; NULL: all
 * sandboxes), oldest first. */
HOLT_API int holt_sandbox_list(struct holt *holt, const char *const *labels, int64_t deadline,
                               struct holt_sandbox_list **ret, struct holt_error *error);

/* Freezes or continues all processes. ret may be NULL, here and below. */
HOLT_API int holt_sandbox_pause(struct holt *holt, const char *sandbox, int64_t deadline,
                                struct holt_sandbox **ret, struct holt_error *error);
HOLT_API int holt_sandbox_resume(struct holt *holt, const char *sandbox, int64_t deadline,
                                 struct holt_sandbox **ret, struct holt_error *error);

/* Ends all processes and moves the files to object storage; holt_sandbox_resume and
 * holt_sandbox_start bring them back, holt_sandbox_resume also on another host. */
HOLT_API int holt_sandbox_deep_pause(struct holt *holt, const char *sandbox, int64_t deadline,
                                     struct holt_sandbox **ret, struct holt_error *error);

/* Ends all processes and keeps the files, or starts a stopped sandbox with its files. */
HOLT_API int holt_sandbox_stop(struct holt *holt, const char *sandbox, int64_t deadline,
                               struct holt_sandbox **ret, struct holt_error *error);
HOLT_API int holt_sandbox_start(struct holt *holt, const char *sandbox, int64_t deadline,
                                struct holt_sandbox **ret, struct holt_error *error);

/* Removes a sandbox in any state, with all its snapshots. */
HOLT_API int holt_sandbox_destroy(struct holt *holt, const char *sandbox, int64_t deadline,
                                  struct holt_error *error);

/* What is NULL, 0 or false stays as it is. */
struct holt_update_options {
    size_t size;
    const char *name;                 /* "": no name */
    const char *const *labels;        /* "key=value" to set, ends with NULL */
    const char *const *remove_labels; /* keys, ends with NULL */
    uint64_t memory_bytes;            /* limits of memory, CPU and pids apply at once */
    uint32_t cpu_millis;
    uint32_t pids;
    uint32_t files;
    bool sets_ttl;
    uint64_t ttl_ms;           /* from now; 0: it does not expire */
    const char *expire_action; /* "kill", "pause", "stop" or "deep-pause" */
    bool sets_idle_timeout;
    uint64_t idle_timeout_ms;
    const char *idle_action;
    bool sets_max_snapshots;
    uint32_t max_snapshots;
    bool sets_volumes;
    const char *const *volumes; /* replace all of a stopped sandbox, as in holt_sandbox_options */
    uint64_t quota_bytes;       /* at least what is in use */
};

/* Changes properties of a sandbox: all that are given, or none. */
HOLT_API int holt_sandbox_update(struct holt *holt, const char *sandbox,
                                 const struct holt_update_options *options, int64_t deadline,
                                 struct holt_sandbox **ret, struct holt_error *error);

struct holt_fork_options {
    size_t size;
    const char *from; /* a snapshot; NULL: the current files */
    uint32_t count;   /* 0: 1 */
    /* Instead of those of the original; several forks are called NAME-1, NAME-2 and so on. */
    const char *name;
    const char *const *labels; /* additional "key=value", ends with NULL */
    bool sets_ttl;
    uint64_t ttl_ms; /* 0: they do not expire */
    const char *expire_action;
    const struct holt_network_rules *network;        /* NULL: as the original, with its proxy */
    const char *proxy;                               /* with other rules; NULL: none */
    const struct holt_permission_rules *permissions; /* NULL: as the original */
};

/* Creates new sandboxes with the files of this one, all or none. options may be NULL. */
HOLT_API int holt_sandbox_fork(struct holt *holt, const char *sandbox,
                               const struct holt_fork_options *options, int64_t deadline,
                               struct holt_sandbox_list **ret, struct holt_error *error);

/* --- commands --------------------------------------------------------------------------------- */

/* Receives output; kind is HOLT_STDOUT or HOLT_STDERR. A nonzero return value kills the command,
 * and the call fails with "canceled". */
typedef int (*holt_output_fn)(void *context, enum holt_piece_kind kind, const char *data,
                              size_t len);

struct holt_command {
    size_t size;
    const char *const *args; /* the command and its arguments, ends with NULL */
    const char *const *env;  /* "NAME=value", ends with NULL; NULL: the default */
    const char *cwd;         /* NULL: /workspace */
    uint64_t timeout_ms;     /* the daemon then kills it and all descendants; 0: never */
    const char *tag;
    /* A second call with the same key starts nothing and joins the process of the first. Not for
     * holt_run, whose sandbox is new. */
    const char *idempotency_key;
    /* A terminal of this size instead of pipes; 0: none. */
    uint32_t rows;
    uint32_t columns;
    bool has_stdin; /* holt_process_...: stdin stays open; holt_exec uses input */
    /* For holt_exec, holt_run and holt_env_exec: */
    const void *input; /* the whole stdin; sent by a thread that ends with the call */
    size_t input_len;
    holt_output_fn on_output; /* NULL: output is collected in the result */
    void *context;
    size_t output_max; /* collected bytes of each stream; 0: 16 MiB. The rest is discarded. */
    const char *user;  /* USER or USER:GROUP, names or numbers inside the sandbox; NULL: root */
    /* The runtime to run in: that of the sandbox or a stronger one; NULL: that of the sandbox. Not
     * for holt_run and holt_process_launch. */
    const char *tier;
};

enum holt_outcome {
    HOLT_OUTCOME_UNKNOWN,
    HOLT_EXITED,      /* exit_code is that of the process */
    HOLT_SIGNALED,    /* by signal; exit_code is 128 + signal */
    HOLT_TIMED_OUT,   /* exit_code is 124 */
    HOLT_OOM,         /* the sandbox was out of memory; exit_code is 137 */
    HOLT_KILLED,      /* Holt killed it; see killed_by and reason */
    HOLT_LOST,        /* its end was not observed; see reason */
    HOLT_NOT_STARTED, /* exit_code is 127 if the command does not exist, 126 if it cannot run */
};

struct holt_end {
    enum holt_outcome outcome;
    int exit_code;
    int signal;
    const char *reason;
    /* "user", "client", "rollback", "stop", "destroy", "quota", as in the API; "": not killed.
     * These words were in upper case before. */
    const char *killed_by;
    uint64_t duration_ms;
    uint64_t cpu_ms;
    uint64_t memory_peak_bytes; /* of the whole sandbox */
    uint64_t stdout_bytes;      /* written by the process */
    uint64_t stderr_bytes;
    bool is_truncated; /* the daemon has not kept all output */
};

struct holt_result {
    const char *sandbox_id;
    const char *process_id;
    bool is_joined; /* the key was known: this is the process of an earlier call */
    const struct holt_end *end;
    const char *stdout_data; /* collected output, NUL-terminated */
    size_t stdout_len;
    const char *stderr_data;
    size_t stderr_len;
    bool is_cut;         /* the output was longer than output_max */
    bool is_shell_ended; /* holt_shell_run: the shell has ended, as after "exit" */
};

/* Runs a command in a sandbox and waits for its end. A command that fails is not an error: see end.
 * If the deadline expires or the caller disconnects, it is killed with all its descendants. */
HOLT_API int holt_exec(struct holt *holt, const char *sandbox, const struct holt_command *command,
                       int64_t deadline, struct holt_result **ret, struct holt_error *error);

/* Runs a command in a throw-away sandbox, with template, runtime, limits of options (or NULL). */
HOLT_API int holt_run(struct holt *holt, const struct holt_sandbox_options *options,
                      const struct holt_command *command, int64_t deadline,
                      struct holt_result **ret, struct holt_error *error);

/* --- processes -------------------------------------------------------------------------------- */

/* A process that the caller has started or attached to. */
struct holt_process;

enum holt_process_event_kind {
    HOLT_PROCESS_STARTED, /* always the first */
    HOLT_PROCESS_STDOUT,
    HOLT_PROCESS_STDERR,
    HOLT_PROCESS_GAP,   /* output that was not kept: missing bytes of stream at offset */
    HOLT_PROCESS_ENDED, /* the last */
};

struct holt_process_event {
    enum holt_process_event_kind kind;
    const char *data; /* output; not NUL-terminated */
    size_t len;
    enum holt_piece_kind stream; /* for a gap */
    uint64_t offset;
    uint64_t missing;
    const struct holt_end *end;
};

/* Starts an attached process, which is killed when the handle is closed. has_stdin, rows and
 * columns are used. The first event reports errors of the daemon. */
HOLT_API int holt_process_open(struct holt *holt, const char *sandbox,
                               const struct holt_command *command, int64_t deadline,
                               struct holt_process **ret, struct holt_error *error);

/* Like holt_process_open, in a throw-away sandbox as of holt_run. */
HOLT_API int holt_process_run(struct holt *holt, const struct holt_sandbox_options *options,
                              const struct holt_command *command, int64_t deadline,
                              struct holt_process **ret, struct holt_error *error);

struct holt_attach_options {
    size_t size;
    const char *sandbox;
    const char *process_id;
    uint64_t stdout_offset; /* where to start */
    uint64_t stderr_offset;
    uint64_t replay_bytes; /* if replays: start this many bytes before the end instead */
    bool replays;
    bool follows; /* continue until the end of the process */
    bool holds;   /* the process waits for this reader, which then misses no output */
    /* Of the caller's terminal: that of the process gets the smallest size of all that are
     * attached. 0: the caller shows none. */
    uint32_t rows, columns;
};

/* Attaches to an existing process; detaching does not affect it. By default, returns the output so
 * far from its beginning. */
HOLT_API int holt_process_attach(struct holt *holt, const struct holt_attach_options *options,
                                 int64_t deadline, struct holt_process **ret,
                                 struct holt_error *error);

/* Returns 1 and the next event, valid until the next call; 0 at the end; or -1. */
HOLT_API int holt_process_next(struct holt_process *process, const struct holt_process_event **ret,
                               struct holt_error *error);

/* Like holt_stream_fd. */
HOLT_API int holt_process_fd(const struct holt_process *process);

/* Return the ids of the process and its sandbox, or "" before it has started. */
HOLT_API const char *holt_process_id(const struct holt_process *process);
HOLT_API const char *holt_process_sandbox_id(const struct holt_process *process);

/* Returns whether the key was known: the process is that of an earlier call. */
HOLT_API bool holt_process_is_joined(const struct holt_process *process);

/* Send input, a terminal size or a signal to a started process. holt_process_send blocks while the
 * process does not read; is_eof closes stdin after the bytes. Another thread than that of the
 * events can send input. */
HOLT_API int holt_process_send(struct holt_process *process, const void *data, size_t len,
                               bool is_eof, int64_t deadline, struct holt_error *error);
HOLT_API int holt_process_resize(struct holt_process *process, uint32_t rows, uint32_t columns,
                                 int64_t deadline, struct holt_error *error);
HOLT_API int holt_process_kill(struct holt_process *process, int signal, int64_t deadline,
                               struct holt_error *error);

/* Closes the handle, and kills a process that was started with holt_process_open. */
HOLT_API void holt_process_close(struct holt_process *process);

/* The record of a process, which the daemon keeps for some time after its end. */
/* Output from this offset on, up to the next mark, came at this time or soon after. */
struct holt_output_mark {
    uint64_t offset;
    int64_t time_ms;
};

struct holt_process_info {
    const char *id;
    const char *const *args; /* ends with NULL */
    const char *cwd;
    const char *tag;
    bool has_stdin;
    bool has_terminal;
    bool is_running;
    uint32_t pid; /* inside the sandbox; 0: unknown */
    int64_t started_ms;
    int64_t ended_ms;
    const struct holt_end *end; /* NULL while it runs */
    uint32_t port;              /* of a service, inside the sandbox */
    const char *address;        /* address of the forwarded port: "HOST:PORT" */
    uint32_t restarts;
    bool is_joined;         /* the key was known; from holt_process_start and holt_process_launch */
    bool is_ready;          /* the service is ready; from holt_process_launch */
    bool has_ended_unready; /* it ended before that; from holt_process_launch */
    bool is_args_truncated; /* args are incomplete; from holt_process_list */
    const char *unready_reason; /* "": ready, or not waited for; from holt_process_launch */
    uint64_t stdout_total;      /* bytes written so far */
    uint64_t stderr_total;

    /* When the output of stdout (0) and stderr (1) came; from holt_process_get. */
    const struct holt_output_mark *marks[2];
    size_t mark_counts[2];
};

struct holt_process_list {
    size_t count;
    const struct holt_process_info *const *items;
};

/* Starts a detached process, which never blocks on a reader. */
HOLT_API int holt_process_start(struct holt *holt, const char *sandbox,
                                const struct holt_command *command, int64_t deadline,
                                struct holt_process_info **ret, struct holt_error *error);

/* Resumes a paused sandbox, and starts such a process in it. */
HOLT_API int holt_sandbox_resume_with(struct holt *holt, const char *sandbox,
                                      const struct holt_command *command, int64_t deadline,
                                      struct holt_process_info **ret, struct holt_error *error);

enum holt_restart { HOLT_RESTART_NO, HOLT_RESTART_ON_FAILURE, HOLT_RESTART_ALWAYS };

struct holt_service {
    size_t size;
    const struct holt_command *command;
    uint32_t port; /* inside the sandbox, forwarded to the host; 0: none */
    enum holt_restart restart;
    bool waits;             /* wait until it is ready */
    const char *ready_path; /* ready when a GET of it succeeds; NULL: when it accepts connections */
    uint64_t ready_timeout_ms; /* 0: 30 s */
    uint32_t host_port;        /* the port on the host that port is forwarded to; 0: any */
};

/* Starts a service: a detached process with a forwarded port and a restart policy. */
HOLT_API int holt_process_launch(struct holt *holt, const char *sandbox,
                                 const struct holt_service *service, int64_t deadline,
                                 struct holt_process_info **ret, struct holt_error *error);

HOLT_API int holt_process_get(struct holt *holt, const char *sandbox, const char *process_id,
                              int64_t deadline, struct holt_process_info **ret,
                              struct holt_error *error);

/* Lists the processes of a sandbox, oldest first; if tag is not NULL, only those with this tag. */
HOLT_API int holt_process_list(struct holt *holt, const char *sandbox, const char *tag,
                               int64_t deadline, struct holt_process_list **ret,
                               struct holt_error *error);

/* Waits for the end of a process. */
HOLT_API int holt_process_wait(struct holt *holt, const char *sandbox, const char *process_id,
                               int64_t deadline, struct holt_end **ret, struct holt_error *error);

/* Like holt_process_wait; *ret is NULL if the process still runs after timeout_ms (0: no limit). */
HOLT_API int holt_process_wait_for(struct holt *holt, const char *sandbox, const char *process_id,
                                   uint64_t timeout_ms, int64_t deadline, struct holt_end **ret,
                                   struct holt_error *error);

/* Sends a signal (0: SIGTERM) to a process, or to a process and all its descendants. */
HOLT_API int holt_process_signal(struct holt *holt, const char *sandbox, const char *process_id,
                                 int signal, int64_t deadline, struct holt_error *error);
HOLT_API int holt_process_signal_tree(struct holt *holt, const char *sandbox,
                                      const char *process_id, int signal, int64_t deadline,
                                      struct holt_error *error);

/* --- shells ----------------------------------------------------------------------------------- */

struct holt_shell_command {
    size_t size;
    const char *shell; /* its name; created if it does not exist */
    const char *text;  /* any text that the shell accepts */
    uint64_t timeout_ms;
    holt_output_fn on_output; /* as in struct holt_command */
    void *context;
    size_t output_max;
    const char *user;       /* of a new shell; refused if it has another one. NULL: any, or root */
    const char *const *env; /* "NAME=value" to export in the shell before, ends with NULL */
    const char *cwd;        /* the directory to enter before; NULL: where it is */
    const char *tier;       /* of a new shell, as in struct holt_command; refused like user */
};

/* Runs one command in a persistent shell, which keeps its directory, variables and jobs.
 * end->outcome is HOLT_EXITED or HOLT_TIMED_OUT. */
HOLT_API int holt_shell_run(struct holt *holt, const char *sandbox,
                            const struct holt_shell_command *command, int64_t deadline,
                            struct holt_result **ret, struct holt_error *error);

struct holt_shell {
    const char *name;
    const char *kind;       /* "bash" or "sh"; "": not used yet */
    const char *process_id; /* "": not running */
    bool is_busy;
    uint32_t waiting; /* queued commands */
    const char *user; /* "": root */
    const char *tier; /* "": the runtime of the sandbox */
};

struct holt_shell_list {
    size_t count;
    const struct holt_shell *const *items;
};

/* Starts the shell unless it runs; its terminal is that of process_id. */
HOLT_API int holt_shell_open(struct holt *holt, const char *sandbox, const char *shell,
                             int64_t deadline, struct holt_shell **ret, struct holt_error *error);
/* The same with shell, user, env and cwd of a command. */
HOLT_API int holt_shell_open_with(struct holt *holt, const char *sandbox,
                                  const struct holt_shell_command *command, int64_t deadline,
                                  struct holt_shell **ret, struct holt_error *error);
/* Returns a shell, and starts nothing. */
HOLT_API int holt_shell_get(struct holt *holt, const char *sandbox, const char *shell,
                            int64_t deadline, struct holt_shell **ret, struct holt_error *error);
HOLT_API int holt_shell_list(struct holt *holt, const char *sandbox, int64_t deadline,
                             struct holt_shell_list **ret, struct holt_error *error);
HOLT_API int holt_shell_remove(struct holt *holt, const char *sandbox, const char *shell,
                               int64_t deadline, struct holt_error *error);

/* --- turns, snapshots and diffs --------------------------------------------------------------- */

struct holt_snapshot {
    const char *name;
    const char *kind; /* "turn", "named" or "tool" */
    uint32_t turn;    /* its number */
    const char *parent;
    int64_t created_ms;
    uint64_t space_used_bytes;
    const char *note; /* what people call it; "": nothing */
};

struct holt_snapshot_list {
    size_t count;
    const struct holt_snapshot *const *items;
    const char *base; /* the snapshot that the files are based on; "": the template */
};

/* Ends a turn: takes a snapshot of the files. ret may be NULL. */
HOLT_API int holt_turn(struct holt *holt, const char *sandbox, int64_t deadline,
                       struct holt_snapshot **ret, struct holt_error *error);

/* Takes a named snapshot of the files. ret may be NULL. */
HOLT_API int holt_snapshot_create(struct holt *holt, const char *sandbox, const char *name,
                                  int64_t deadline, struct holt_snapshot **ret,
                                  struct holt_error *error);
HOLT_API int holt_snapshot_list(struct holt *holt, const char *sandbox, int64_t deadline,
                                struct holt_snapshot_list **ret, struct holt_error *error);
HOLT_API int holt_snapshot_remove(struct holt *holt, const char *sandbox, const char *snapshot,
                                  int64_t deadline, struct holt_error *error);
/* Sets the note of a snapshot, at most 255 bytes; "" removes it. */
HOLT_API int holt_snapshot_update(struct holt *holt, const char *sandbox, const char *snapshot,
                                  const char *note, int64_t deadline, struct holt_error *error);

/* Restores the files of a snapshot and ends all processes. Removes newer ones if prunes_newer. */
HOLT_API int holt_rollback(struct holt *holt, const char *sandbox, const char *snapshot,
                           bool prunes_newer, int64_t deadline, struct holt_error *error);

/* Paths are bytes, as in the sandbox. */
struct holt_change {
    const char *kind; /* "added", "modified", "deleted" or "renamed"; "": the patch continues */
    const char *path;
    const char *old_path; /* if renamed */
    const char *type;     /* "file", "directory", "link", ... */
    uint64_t size_bytes;
    uint64_t old_size_bytes;
    bool is_binary;
    uint64_t added_lines;
    uint64_t deleted_lines;
    const char *patch; /* a unified diff, or a piece of one; not NUL-terminated */
    size_t patch_len;
};

/* Receives one change, valid during the call. A nonzero return value ends the diff, and the call
 * fails with "canceled". */
typedef int (*holt_change_fn)(void *context, const struct holt_change *change);

struct holt_diff_options {
    size_t size;
    const char *from; /* a snapshot or "template"; NULL: the base of the current files, or with
                         to_sandbox the current files */
    const char *to;   /* NULL: the current files */
    bool counts_lines;
    bool has_patch;
    holt_change_fn on_change;
    void *context;
    const char *to_sandbox; /* that `to` belongs to, with the same template; NULL: the same */
    const char *path;       /* absolute: only this path and the paths below it; NULL: all */
    bool is_from_codebase;  /* compare with the version of the codebase that it derives from */
};

/* Compares two snapshots, or one with the current files; reports changes sorted by path. */
HOLT_API int holt_diff(struct holt *holt, const char *sandbox,
                       const struct holt_diff_options *options, int64_t deadline,
                       struct holt_error *error);

/* --- files ------------------------------------------------------------------------------------ */

/* Paths are bytes and are resolved inside the sandbox; relative ones start at /workspace. */
struct holt_file {
    const char *path;
    const char *name; /* the last component of the path */
    const char *type; /* "file", "directory", "link", "pipe", "socket", "character-device", ... */
    uint64_t size_bytes;
    uint32_t mode; /* permission bits */
    uint32_t uid;
    uint32_t gid;
    const char *owner; /* "": the id has no name in the sandbox */
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

/* Returns the attributes of a file; does not follow a symbolic link. */
HOLT_API int holt_file_stat(struct holt *holt, const char *sandbox, const char *path,
                            int64_t deadline, struct holt_file **ret, struct holt_error *error);

/* Lists a directory, sorted by name. */
HOLT_API int holt_file_list(struct holt *holt, const char *sandbox, const char *path,
                            int64_t deadline, struct holt_file_list **ret,
                            struct holt_error *error);

/* Receives bytes. A nonzero return value ends the call, which fails with "canceled". */
typedef int (*holt_data_fn)(void *context, const char *data, size_t len);

struct holt_read_options {
    size_t size;
    const char *path;
    const char *user; /* the user to act as; NULL: root */
    uint64_t offset;
    uint64_t length;      /* 0: to the end */
    holt_data_fn on_data; /* NULL: collect at most max bytes in the result */
    void *context;
    size_t max; /* 0: 64 MiB; a longer file is an error */
};

struct holt_content {
    const struct holt_file *file;
    const char *data; /* NUL-terminated */
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
    bool has_mode; /* else 0644 for a new file; an existing file keeps its mode */
    uint32_t mode;
    bool makes_parents;
    bool is_atomic;    /* no reader sees a partial file */
    bool is_exclusive; /* fail if the file exists */
    bool appends;
};

/* ret may be NULL. */
HOLT_API int holt_file_write(struct holt *holt, const char *sandbox,
                             const struct holt_write_options *options, int64_t deadline,
                             struct holt_file **ret, struct holt_error *error);

/* Creates a directory and its missing parents; succeeds if it exists. */
HOLT_API int holt_file_mkdir(struct holt *holt, const char *sandbox, const char *path,
                             int64_t deadline, struct holt_error *error);

/* Renames a file; to is the complete new path. Fails if it exists. */
HOLT_API int holt_file_move(struct holt *holt, const char *sandbox, const char *path,
                            const char *to, int64_t deadline, struct holt_error *error);
HOLT_API int holt_file_remove(struct holt *holt, const char *sandbox, const char *path,
                              bool is_recursive, int64_t deadline, struct holt_error *error);

/* Receives changes: type is "create", "write", "remove", "rename", "chmod" or "overflow", path is
 * relative to the watched directory. The first call has two empty strings and means that the watch
 * is active. A nonzero return value ends the watch. */
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

/* An environment is bound to one sandbox and knows its features: an unsupported operation fails
 * with "unimplemented", without a call to the daemon. */
struct holt_env;
struct holt_capabilities;

/* Required features of an environment (needs of struct holt_sandbox_options). */
#define HOLT_NEEDS_SNAPSHOTS 0x1U
#define HOLT_NEEDS_ROLLBACK 0x2U
#define HOLT_NEEDS_FORK 0x4U
#define HOLT_NEEDS_PAUSE 0x8U
#define HOLT_NEEDS_QUOTA 0x10U
#define HOLT_NEEDS_LAUNCH 0x20U
#define HOLT_NEEDS_LIMITS 0x40U /* memory, CPU and processes */

/* Creates a sandbox if the daemon has the required features; fails otherwise. options may be NULL.
 * The handle must stay open until the environment is freed. */
HOLT_API int holt_env_create(struct holt *holt, const struct holt_sandbox_options *options,
                             int64_t deadline, struct holt_env **ret, struct holt_error *error);

/* Creates an environment for an existing sandbox if the daemon has the required features. */
HOLT_API int holt_env_attach(struct holt *holt, const char *sandbox, unsigned needs,
                             int64_t deadline, struct holt_env **ret, struct holt_error *error);

/* Frees the environment; the sandbox continues. */
HOLT_API void holt_env_free(struct holt_env *env);

/* Return the id of the sandbox, for all other functions, and its features. */
HOLT_API const char *holt_env_id(const struct holt_env *env);
HOLT_API const struct holt_capabilities *holt_env_capabilities(const struct holt_env *env);

/* Queries the state of the sandbox. It is HOLT_STATE_DESTROYED after holt_env_destroy, or if
 * another client has destroyed it. Unlike other functions, it writes *ret on an error:
 * HOLT_STATE_FAILED. */
HOLT_API int holt_env_state(struct holt_env *env, int64_t deadline, enum holt_state *ret,
                            struct holt_error *error);

HOLT_API int holt_env_pause(struct holt_env *env, int64_t deadline, struct holt_error *error);
HOLT_API int holt_env_resume(struct holt_env *env, int64_t deadline, struct holt_error *error);

/* Destroys the sandbox; a second call has no effect. */
HOLT_API int holt_env_destroy(struct holt_env *env, int64_t deadline, struct holt_error *error);

/* Like holt_turn, holt_snapshot_create, holt_rollback, holt_exec and holt_tool_execute. */
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

#include "holt_agent.h"
#include "holt_backup.h"
#include "holt_bundle.h"
#include "holt_codebase.h"
#include "holt_host.h"
#include "holt_model.h"
#include "holt_network.h"
#include "holt_permission.h"
#include "holt_registry.h"
#include "holt_secret.h"
#include "holt_template.h"
#include "holt_tool.h"
#include "holt_volume.h"
