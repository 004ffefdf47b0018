/* Payloads of the frames that carry more than one or two numbers. Strings point into the frame. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/frame.h"
#include "wire/shell.h"

struct buf;

enum {
    MESSAGE_ENV_MAX = 4096, /* variables of a spawn; its arguments have no limit but the frame's */
    MESSAGE_MOUNTS_MAX = 20,
    MESSAGE_RLIMITS_MAX = 16,
    MESSAGE_GROUPS_MAX = 64,
    MESSAGE_USER_MAX = 64,
    MESSAGE_STATE_SIZE = 89, /* bytes of payload */
    MESSAGE_SHELL_TEXT_MAX = 3 * 512 * 1024,
};

/* Boot parameters of holt-init, before it can enter a root. */
struct message_boot {
    bool builds_root;   /* mounts /proc, /dev and /sys itself; otherwise the runtime has done it */
    const char *filter; /* seccomp program of every process: an array of struct sock_filter */
    size_t filter_len;
    uint64_t capabilities; /* upper limit for processes, as a bit set */
};

/* A root to enter: mounts[0] is "/", the others are attached below it in order. The last
 * volume_count of them are volumes, whose paths clients chose. */
/* Where programs of a sandbox find its ssh-agent. */
#define SSH_AGENT_DIRECTORY "/dev/holt"
#define SSH_AGENT_SOCKET "ssh-agent.sock"

struct message_root {
    const char *hostname;
    bool allows_setuid; /* programs may become the sandbox's root by their set-user-ID bit */
    const char *targets[MESSAGE_MOUNTS_MAX];
    size_t mount_count;
    size_t volume_count; /* volumes among these */
    const char *ca;      /* PEM of an authority to trust, and the hash of its name; "": none */
    const char *ca_hash;
};

/* How to start the gVisor container. */
struct message_cell {
    const char *platform; /* of gVisor */
};

/* Counters of the sandbox's control group, as descriptors of their files. */
enum size_counter {
    SIZE_MEMORY_CURRENT, /* bytes */
    SIZE_MEMORY_STAT,    /* memory.stat of cgroup v1 or v2 */
    SIZE_CPU_STAT,       /* cpu.stat of cgroup v2 */
    SIZE_PIDS_CURRENT,
    SIZE_MEMORY_EVENTS, /* memory.events of cgroup v2, memory.oom_control of v1 */
    SIZE_COUNTERS
};

/* The limits of the sandbox; 0: none. */
struct message_size {
    uint64_t memory_bytes;
    uint32_t cpu_millis;
    uint32_t pids;
    uint8_t counters; /* bit set of enum size_counter: these are attached, in order */
};

struct message_rlimit {
    uint32_t resource;
    uint64_t soft, hard;
};

struct message_spawn {
    const char *const *args; /* NULL-terminated */
    const char *env[MESSAGE_ENV_MAX + 1];
    size_t arg_count, env_count;
    const char *cwd;
    /* User name or number that the sandbox's own files define (see guest/process/names.h). It
     * determines the ids below, the home that relative working directories start at, and HOME,
     * USER and LOGNAME if env lacks them. "": the ids are used as given. */
    const char *user;
    const char *group; /* name or number: the only group, instead of those of the user; "": unset */
    uint32_t uid, gid;
    uint32_t groups[MESSAGE_GROUPS_MAX];
    size_t group_count;
    struct message_rlimit rlimits[MESSAGE_RLIMITS_MAX];
    size_t rlimit_count;
    bool has_stdin;
    bool has_terminal;
    uint16_t rows, columns;
    enum shell_kind shell;  /* kind of shell; requires has_terminal */
    bool waits_for_writers; /* it ends only when no process can write to its output any more, or
                               after SIGKILL or SIGTERM */
    const char **args_room; /* memory of args, in a parsed message */
};

/* The step of a start that failed, because "no such file" has another meaning in each. */
enum failed_step { FAILED_SETUP, FAILED_CWD, FAILED_EXEC, FAILED_USER, FAILED_STEPS };

struct message_failed {
    enum failed_step step;
    uint32_t errnum;
    const char *text;
};

struct message_exited {
    uint32_t status; /* as from waitpid */
    uint64_t cpu_us;
    uint64_t peak_bytes;        /* peak memory of it or of a child that it waited for */
    uint64_t end[STREAM_COUNT]; /* offset after the last byte written before the end */
};

/* Everything that a daemon needs to take over a process that another daemon started. For a process
 * that has ended, the rest of its output and its EXITED follow READY. */
struct message_state {
    uint32_t pid;
    bool has_terminal;
    bool is_exited;
    bool is_input_open;   /* stdin exists and its end has not been sent */
    uint64_t input;       /* offset of stdin to continue from */
    uint64_t input_taken; /* the current value of INPUT_ACK */
    uint64_t acked[STREAM_COUNT];
    uint64_t produced[STREAM_COUNT];
    uint64_t age_ms; /* from its start until now, or until its end */
    bool is_shell;
    bool is_shell_busy;                               /* running shell_command */
    uint64_t shell_command;                           /* its latest command; 0: none */
    uint64_t shell_output[STREAM_ALL - STREAM_COUNT]; /* offsets to continue from */
};

/* One command of a shell. The numbers of a shell's commands increase. */
struct message_shell_run {
    uint64_t command;
    bool is_hidden;   /* leaves $? unchanged */
    const char *text; /* at most MESSAGE_SHELL_TEXT_MAX bytes */
    size_t text_len;
};

enum shell_end {
    SHELL_FINISHED,
    SHELL_INTERRUPTED, /* requested, or typed at the shell's terminal */
    SHELL_NOT_RUN,     /* the shell was busy with another command or at its terminal */
    SHELL_ENDS
};

struct message_shell_done {
    uint64_t command;
    enum shell_end how;
    uint8_t status;  /* $? */
    uint64_t end[2]; /* offsets after its stdout and stderr */
};

/* Append one whole frame or nothing. Return 0 or -ENOBUFS. */
int message_put_boot(struct buf *out, const struct message_boot *boot);
int message_put_root(struct buf *out, const struct message_root *root);
int message_put_size(struct buf *out, const struct message_size *size);
int message_put_cell(struct buf *out, const struct message_cell *cell);
int message_put_enter(struct buf *out, const char *hostname);
int message_put_cell_spawn(struct buf *out, uint32_t process, const struct message_spawn *spawn);
int message_put_spawn(struct buf *out, uint32_t process, uint16_t fds,
                      const struct message_spawn *spawn);
int message_put_failed(struct buf *out, uint32_t process, const struct message_failed *failed);
int message_put_exited(struct buf *out, uint32_t process, const struct message_exited *exited);
int message_put_state(struct buf *out, uint32_t process, const struct message_state *state);
int message_put_shell_run(struct buf *out, uint32_t process, const struct message_shell_run *run);
int message_put_shell_done(struct buf *out, uint32_t process,
                           const struct message_shell_done *done);
int message_put_stream(struct buf *out, uint32_t process, enum frame_stream stream, uint64_t offset,
                       const void *data, size_t len);
int message_put_input(struct buf *out, uint32_t process, uint64_t offset, const void *data,
                      size_t len);
int message_put_conn_data(struct buf *out, uint32_t connection, uint64_t offset, const void *data,
                          size_t len);

/* Appends a frame with up to two small numbers, e.g. ACK, RESIZE, SIGNAL: see the table in
 * message.c. */
int message_put_numbers(struct buf *out, enum frame_type type, uint32_t process, uint64_t first,
                        uint64_t second);

/* Parse a payload. Return whether it is exactly such a message. */
bool message_get_boot(const struct frame *frame, struct message_boot *ret);
bool message_get_cell(const struct frame *frame, struct message_cell *ret);
bool message_get_enter(const struct frame *frame, const char **ret_hostname);
bool message_get_size(const struct frame *frame, struct message_size *ret);
bool message_get_root(const struct frame *frame, struct message_root *ret);
bool message_get_spawn(const struct frame *frame, struct message_spawn *ret);

/* Frees the memory of a parsed spawn, also of one that was not valid. */
void message_spawn_done(struct message_spawn *spawn);

bool message_get_failed(const struct frame *frame, struct message_failed *ret);
bool message_get_exited(const struct frame *frame, struct message_exited *ret);
bool message_get_state(const struct frame *frame, struct message_state *ret);
bool message_get_shell_run(const struct frame *frame, struct message_shell_run *ret);
bool message_get_shell_done(const struct frame *frame, struct message_shell_done *ret);
bool message_get_stream(const struct frame *frame, enum frame_stream *ret_stream,
                        uint64_t *ret_offset, const char **ret_data, size_t *ret_len);
bool message_get_input(const struct frame *frame, uint64_t *ret_offset, const char **ret_data,
                       size_t *ret_len); /* also for CONN_DATA */
bool message_get_numbers(const struct frame *frame, uint64_t *ret_first, uint64_t *ret_second);
