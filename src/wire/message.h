/* Payloads of the frames that carry more than a number or two. Texts point into the frame. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/frame.h"
#include "wire/shell.h"

struct buf;

enum {
    MESSAGE_ARGS_MAX = 4096, /* words of argv, and as many of the environment */
    MESSAGE_MOUNTS_MAX = 20,
    MESSAGE_RLIMITS_MAX = 16,
    MESSAGE_GROUPS_MAX = 64,
    MESSAGE_USER_MAX = 64,
    MESSAGE_STATE_SIZE = 89, /* payload */
    MESSAGE_SHELL_TEXT_MAX = 3 * 512 * 1024,
};

/* What holt-init has to do before it is a blank, ready to take a root. */
struct message_boot {
    bool builds_root; /* makes its own blank root, /proc, /dev and /sys; otherwise they are there */
    const char *filter; /* seccomp program for every process: an array of struct sock_filter */
    size_t filter_len;
    uint64_t capabilities; /* what processes keep at most, as a bit set */
};

/* A root to move to: mounts[0] is "/", the others are attached below it in order. The last few are
 * not parts of it but volumes, at whatever path somebody wished. */
struct message_root {
    const char *hostname;
    bool allows_setuid; /* programs may become the sandbox's root by their set-user-ID bit */
    const char *targets[MESSAGE_MOUNTS_MAX];
    size_t mount_count;
    size_t volume_count; /* of these */
};

struct message_rlimit {
    uint32_t resource;
    uint64_t soft, hard;
};

struct message_spawn {
    const char *args[MESSAGE_ARGS_MAX + 1]; /* NULL-terminated */
    const char *env[MESSAGE_ARGS_MAX + 1];
    size_t arg_count, env_count;
    const char *cwd;
    /* As whom: a name or number that the sandbox itself knows (see guest/process/names.h), which
     * then stands for all of the ids below, for a home that other working directories than absolute
     * ones begin at, and for HOME, USER and LOGNAME where env has none. "": the ids are given. */
    const char *user;
    uint32_t uid, gid;
    uint32_t groups[MESSAGE_GROUPS_MAX];
    size_t group_count;
    struct message_rlimit rlimits[MESSAGE_RLIMITS_MAX];
    size_t rlimit_count;
    bool has_stdin;
    bool has_terminal;
    uint16_t rows, columns;
    enum shell_kind shell;  /* of a shell; has_terminal is then set */
    bool waits_for_writers; /* it has ended when nobody can write its output any more, or it was
                               sent SIGKILL or SIGTERM */
};

/* Which part of a start failed, because "no such file" means something else in each. */
enum failed_step { FAILED_SETUP, FAILED_CWD, FAILED_EXEC, FAILED_USER, FAILED_STEPS };

struct message_failed {
    enum failed_step step;
    uint32_t errnum;
    const char *text;
};

struct message_exited {
    uint32_t status; /* as from waitpid */
    uint64_t cpu_us;
    uint64_t peak_bytes; /* of memory: the largest that it, or one that it waited for, ever was */
    uint64_t end[STREAM_COUNT]; /* offset behind the last byte written before the end */
};

/* All that a daemon needs to go on with a process that another one has started. Of one that has
 * ended, the rest of its output and its EXITED follow READY. */
struct message_state {
    uint32_t pid;
    bool has_terminal;
    bool is_exited;
    bool is_input_open;   /* stdin is there, and its end has not been sent */
    uint64_t input;       /* offset of stdin to go on from */
    uint64_t input_taken; /* what INPUT_ACK has said, or would say, by now */
    uint64_t acked[STREAM_COUNT];
    uint64_t produced[STREAM_COUNT];
    uint64_t age_ms; /* since its start; of one that has ended, until its end */
    bool is_shell;
    bool is_shell_busy;                               /* with the command below */
    uint64_t shell_command;                           /* the last that it was given; 0: none */
    uint64_t shell_output[STREAM_ALL - STREAM_COUNT]; /* offsets to go on from */
};

/* One command of a shell. Numbers of a shell's commands only grow. */
struct message_shell_run {
    uint64_t command;
    bool is_hidden;   /* $? stays what it was */
    const char *text; /* at most MESSAGE_SHELL_TEXT_MAX bytes */
    size_t text_len;
};

enum shell_end {
    SHELL_FINISHED,
    SHELL_INTERRUPTED, /* it was asked for, or came from the shell's terminal */
    SHELL_NOT_RUN,     /* the shell was busy, with another command or at its terminal */
    SHELL_ENDS
};

struct message_shell_done {
    uint64_t command;
    enum shell_end how;
    uint8_t status;  /* as $? */
    uint64_t end[2]; /* of its stdout and stderr */
};

/* Each appends one whole frame or nothing: 0 or -ENOBUFS. */
int message_put_boot(struct buf *out, const struct message_boot *boot);
int message_put_root(struct buf *out, const struct message_root *root);
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

/* A frame with up to two small numbers, e.g. ACK, RESIZE, SIGNAL: see the table in message.c. */
int message_put_numbers(struct buf *out, enum frame_type type, uint32_t process, uint64_t first,
                        uint64_t second);

/* Each returns whether the payload is exactly such a message. */
bool message_get_boot(const struct frame *frame, struct message_boot *ret);
bool message_get_root(const struct frame *frame, struct message_root *ret);
bool message_get_spawn(const struct frame *frame, struct message_spawn *ret);
bool message_get_failed(const struct frame *frame, struct message_failed *ret);
bool message_get_exited(const struct frame *frame, struct message_exited *ret);
bool message_get_state(const struct frame *frame, struct message_state *ret);
bool message_get_shell_run(const struct frame *frame, struct message_shell_run *ret);
bool message_get_shell_done(const struct frame *frame, struct message_shell_done *ret);
bool message_get_stream(const struct frame *frame, enum frame_stream *ret_stream,
                        uint64_t *ret_offset, const char **ret_data, size_t *ret_len);
bool message_get_input(const struct frame *frame, uint64_t *ret_offset, const char **ret_data,
                       size_t *ret_len); /* of CONN_DATA too */
bool message_get_numbers(const struct frame *frame, uint64_t *ret_first, uint64_t *ret_second);
