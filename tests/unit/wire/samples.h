/* One valid frame of each type, for the tests of the wire and the corpus of the fuzzer. */
#pragma once

#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "wire/message.h"

enum { SAMPLES_MAX = 4096 };

static inline int put_boot_sample(struct buf *out)
{
    return message_put_boot(out, &(struct message_boot){ .builds_root = true,
                                                         .filter = "filter\0!",
                                                         .filter_len = 8,
                                                         .capabilities = 0xa80425fb });
}

static inline int put_root_sample(struct buf *out)
{
    return message_put_root(out, &(struct message_root){ .hostname = "sb-0123456789ab",
                                                         .targets = { "/", "/usr", "/opt" },
                                                         .mount_count = 3,
                                                         .volume_count = 1 });
}

static inline int put_spawn_sample(struct buf *out)
{
    static struct message_spawn spawn;

    spawn = (struct message_spawn){
        .args = (const char *const[]){ "sh", "-c", "echo hi", "", NULL },
        .arg_count = 4,
        .env = { "PATH=/bin", "A=" },
        .env_count = 2,
        .cwd = "/workspace",
        .uid = 1000,
        .gid = 1001,
        .groups = { 5, 7, 9 },
        .group_count = 3,
        .rlimits = { { 7, 1024, 4096 }, { 4, 0, UINT64_MAX } },
        .rlimit_count = 2,
        .has_stdin = true,
        .has_terminal = true,
        .rows = 24,
        .columns = 80,
        .shell = SHELL_BASH,
    };
    return message_put_spawn(out, 3, 1, &spawn);
}

static inline int put_failed_sample(struct buf *out)
{
    return message_put_failed(
        out, 3,
        &(struct message_failed){ .step = FAILED_EXEC, .errnum = 2, .text = "No such file" });
}

static inline int put_cell_sample(struct buf *out)
{
    return message_put_cell(out, &(struct message_cell){ .platform = "ptrace" });
}

static inline int put_enter_sample(struct buf *out)
{
    return message_put_enter(out, "holt");
}

static inline int put_cell_spawn_sample(struct buf *out)
{
    static struct message_spawn spawn;

    spawn = (struct message_spawn){ .args = (const char *const[]){ "true", NULL },
                                    .arg_count = 1,
                                    .cwd = "/" };
    return message_put_cell_spawn(out, 3, &spawn);
}

static inline int put_exited_sample(struct buf *out)
{
    return message_put_exited(out, 3,
                              &(struct message_exited){ .status = 0x0700,
                                                        .cpu_us = 1234567,
                                                        .peak_bytes = 7654321,
                                                        .end = { 100, 0x100000000 } });
}

static inline int put_state_sample(struct buf *out)
{
    return message_put_state(out, 3,
                             &(struct message_state){ .pid = 17,
                                                      .has_terminal = true,
                                                      .is_exited = false,
                                                      .is_input_open = true,
                                                      .input = 6,
                                                      .input_taken = 5,
                                                      .acked = { 1, 2 },
                                                      .produced = { 3, 4 },
                                                      .age_ms = 0x100000001,
                                                      .is_shell = true,
                                                      .is_shell_busy = true,
                                                      .shell_command = 0x200000002,
                                                      .shell_output = { 8, 9 } });
}

static inline int put_shell_run_sample(struct buf *out)
{
    return message_put_shell_run(
        out, 3,
        &(struct message_shell_run){
            .command = 0x300000003, .is_hidden = true, .text = "echo\n'hi'", .text_len = 9 });
}

static inline int put_shell_done_sample(struct buf *out)
{
    return message_put_shell_done(out, 3,
                                  &(struct message_shell_done){ .command = 0x300000003,
                                                                .how = SHELL_INTERRUPTED,
                                                                .status = 130,
                                                                .end = { 100, 0x100000000 } });
}

static inline int put_output_sample(struct buf *out)
{
    return message_put_stream(out, 3, STREAM_STDERR, 0x1122334455667788, "out\0put", 7);
}

static inline int put_input_sample(struct buf *out)
{
    return message_put_input(out, 3, 0x8877665544332211, "in\0put", 6);
}

static inline int put_conn_data_sample(struct buf *out)
{
    return message_put_conn_data(out, 3, 0x8877665544332211, "by\0tes", 6);
}

#define NUMBERS_SAMPLE(type, first, second)                                                        \
    static inline int put_##type##_sample(struct buf *out)                                         \
    {                                                                                              \
        return message_put_numbers(out, FRAME_##type, 3, first, second);                           \
    }
NUMBERS_SAMPLE(LISTEN, 0, 0)
NUMBERS_SAMPLE(AGENT, 0, 0)
NUMBERS_SAMPLE(FILES, 0, 0)
NUMBERS_SAMPLE(HELLO, WIRE_VERSION, 0)
NUMBERS_SAMPLE(INPUT_EOF, 0x0102030405060708, 0)
NUMBERS_SAMPLE(ACK, STREAM_STDERR, 0x0102030405060708)
NUMBERS_SAMPLE(SIGNAL, 15, 0)
NUMBERS_SAMPLE(RESIZE, 24, 0x1234)
NUMBERS_SAMPLE(FORGET, 0, 0)
NUMBERS_SAMPLE(SHELL_INTERRUPT, 0x0102030405060708, 0)
NUMBERS_SAMPLE(READY, WIRE_VERSION, 4711)
NUMBERS_SAMPLE(ROOTED, 0, 0)
NUMBERS_SAMPLE(STARTED, 17, 0)
NUMBERS_SAMPLE(INPUT_ACK, 0x0102030405060708, 0)
NUMBERS_SAMPLE(CONNECT, 8080, 0)
NUMBERS_SAMPLE(CONNECTED, 0, 0)
NUMBERS_SAMPLE(CONN_EOF, 0x0102030405060708, 0)
NUMBERS_SAMPLE(CONN_ACK, 0x0102030405060708, 0)
NUMBERS_SAMPLE(CONN_END, 111, 0)

/* By type; NULL: no sample. */
static int (*const samples[FRAME_TYPES])(struct buf *out) = {
    [FRAME_BOOT] = put_boot_sample,
    [FRAME_ROOT] = put_root_sample,
    [FRAME_LISTEN] = put_LISTEN_sample,
    [FRAME_AGENT] = put_AGENT_sample,
    [FRAME_FILES] = put_FILES_sample,
    [FRAME_HELLO] = put_HELLO_sample,
    [FRAME_SPAWN] = put_spawn_sample,
    [FRAME_CELL] = put_cell_sample,
    [FRAME_CELL_SPAWN] = put_cell_spawn_sample,
    [FRAME_CELL_ENTER] = put_enter_sample,
    [FRAME_INPUT] = put_input_sample,
    [FRAME_INPUT_EOF] = put_INPUT_EOF_sample,
    [FRAME_ACK] = put_ACK_sample,
    [FRAME_SIGNAL] = put_SIGNAL_sample,
    [FRAME_RESIZE] = put_RESIZE_sample,
    [FRAME_FORGET] = put_FORGET_sample,
    [FRAME_READY] = put_READY_sample,
    [FRAME_ROOTED] = put_ROOTED_sample,
    [FRAME_STARTED] = put_STARTED_sample,
    [FRAME_FAILED] = put_failed_sample,
    [FRAME_OUTPUT] = put_output_sample,
    [FRAME_INPUT_ACK] = put_INPUT_ACK_sample,
    [FRAME_EXITED] = put_exited_sample,
    [FRAME_STATE] = put_state_sample,
    [FRAME_CONNECT] = put_CONNECT_sample,
    [FRAME_CONNECTED] = put_CONNECTED_sample,
    [FRAME_CONN_DATA] = put_conn_data_sample,
    [FRAME_CONN_EOF] = put_CONN_EOF_sample,
    [FRAME_CONN_ACK] = put_CONN_ACK_sample,
    [FRAME_CONN_END] = put_CONN_END_sample,
    [FRAME_SHELL_RUN] = put_shell_run_sample,
    [FRAME_SHELL_INTERRUPT] = put_SHELL_INTERRUPT_sample,
    [FRAME_SHELL_DONE] = put_shell_done_sample,
};

/* Returns whether the frame's payload is valid for its type. */
static inline bool is_message(const struct frame *frame)
{
    static struct message_spawn spawn;
    bool is_valid;
    struct message_boot boot;
    struct message_root root;
    struct message_cell cell;
    struct message_failed failed;
    struct message_exited exited;
    struct message_state state;
    struct message_shell_run run;
    struct message_shell_done done;
    enum frame_stream stream;
    uint64_t first, second;
    const char *data;
    size_t len;

    switch (frame->type) {
    case FRAME_BOOT:
        return message_get_boot(frame, &boot);
    case FRAME_ROOT:
        return message_get_root(frame, &root);
    case FRAME_CELL:
        return message_get_cell(frame, &cell);
    case FRAME_CELL_ENTER:
        return message_get_enter(frame, &data);
    case FRAME_SPAWN:
    case FRAME_CELL_SPAWN:
        is_valid = message_get_spawn(frame, &spawn);
        message_spawn_done(&spawn);
        return is_valid;
    case FRAME_FAILED:
        return message_get_failed(frame, &failed);
    case FRAME_EXITED:
        return message_get_exited(frame, &exited);
    case FRAME_STATE:
        return message_get_state(frame, &state);
    case FRAME_SHELL_RUN:
        return message_get_shell_run(frame, &run);
    case FRAME_SHELL_DONE:
        return message_get_shell_done(frame, &done);
    case FRAME_OUTPUT:
        return message_get_stream(frame, &stream, &first, &data, &len);
    case FRAME_INPUT:
    case FRAME_CONN_DATA:
        return message_get_input(frame, &first, &data, &len);
    case FRAME_NONE:
    case FRAME_TYPES:
        return false;
    case FRAME_LISTEN:
    case FRAME_AGENT:
    case FRAME_FILES:
    case FRAME_HELLO:
    case FRAME_INPUT_EOF:
    case FRAME_ACK:
    case FRAME_SIGNAL:
    case FRAME_RESIZE:
    case FRAME_FORGET:
    case FRAME_SHELL_INTERRUPT:
    case FRAME_READY:
    case FRAME_ROOTED:
    case FRAME_STARTED:
    case FRAME_INPUT_ACK:
    case FRAME_CONNECT:
    case FRAME_CONNECTED:
    case FRAME_CONN_EOF:
    case FRAME_CONN_ACK:
    case FRAME_CONN_END:
        return message_get_numbers(frame, &first, &second);
    }
    return false;
}
