// SPDX-License-Identifier: Apache-2.0
/* Frames that the daemon receives from a hostile guest, and every message in them. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "wire/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t sum; /* so that no read is optimised away */

static void touch(const void *data, size_t len)
{
    for (size_t i = 0; i < len; i++)
        sum ^= ((const uint8_t *)data)[i];
}

static void touch_text(const char *text)
{
    touch(text, strlen(text) + 1);
}

/* Each reads all fields of a message. Returns false if the payload is invalid. */
static bool read_boot(const struct frame *frame, struct buf *again)
{
    struct message_boot boot;

    if (!message_get_boot(frame, &boot))
        return false;
    touch(boot.filter, boot.filter_len);
    return message_put_boot(again, &boot) == 0;
}

static bool read_root(const struct frame *frame, struct buf *again)
{
    struct message_root root;

    if (!message_get_root(frame, &root))
        return false;
    touch_text(root.hostname);
    for (size_t i = 0; i < root.mount_count; i++)
        touch_text(root.targets[i]);
    return message_put_root(again, &root) == 0;
}

static bool read_spawn(const struct frame *frame, struct buf *again)
{
    static struct message_spawn spawn;

    message_spawn_done(&spawn); /* of the one before */
    if (!message_get_spawn(frame, &spawn))
        return false;
    for (size_t i = 0; i < spawn.arg_count; i++)
        touch_text(spawn.args[i]);
    for (size_t i = 0; i < spawn.env_count; i++)
        touch_text(spawn.env[i]);
    touch_text(spawn.cwd);
    touch(spawn.groups, spawn.group_count * sizeof(spawn.groups[0]));
    touch(spawn.rlimits, spawn.rlimit_count * sizeof(spawn.rlimits[0]));
    if (spawn.args[spawn.arg_count] || spawn.env[spawn.env_count])
        abort();
    return message_put_spawn(again, frame->process, frame->fds, &spawn) == 0;
}

static bool read_failed(const struct frame *frame, struct buf *again)
{
    struct message_failed failed;

    if (!message_get_failed(frame, &failed))
        return false;
    touch_text(failed.text);
    if (failed.step >= FAILED_STEPS)
        abort();
    return message_put_failed(again, frame->process, &failed) == 0;
}

static bool read_exited(const struct frame *frame, struct buf *again)
{
    struct message_exited exited;

    return message_get_exited(frame, &exited) &&
           message_put_exited(again, frame->process, &exited) == 0;
}

static bool read_state(const struct frame *frame, struct buf *again)
{
    struct message_state state;

    return message_get_state(frame, &state) &&
           message_put_state(again, frame->process, &state) == 0;
}

static bool read_shell_run(const struct frame *frame, struct buf *again)
{
    struct message_shell_run run;

    if (!message_get_shell_run(frame, &run))
        return false;
    touch(run.text, run.text_len);
    return message_put_shell_run(again, frame->process, &run) == 0;
}

static bool read_shell_done(const struct frame *frame, struct buf *again)
{
    struct message_shell_done done;

    if (!message_get_shell_done(frame, &done))
        return false;
    if (done.how >= SHELL_ENDS)
        abort();
    return message_put_shell_done(again, frame->process, &done) == 0;
}

static bool read_output(const struct frame *frame, struct buf *again)
{
    enum frame_stream stream;
    const char *data;
    uint64_t offset;
    size_t len;

    if (!message_get_stream(frame, &stream, &offset, &data, &len))
        return false;
    if (stream >= STREAM_ALL)
        abort();
    touch(data, len);
    return message_put_stream(again, frame->process, stream, offset, data, len) == 0;
}

static bool read_input(const struct frame *frame, struct buf *again)
{
    const char *data;
    uint64_t offset;
    size_t len;

    if (!message_get_input(frame, &offset, &data, &len))
        return false;
    touch(data, len);
    return message_put_input(again, frame->process, offset, data, len) == 0;
}

static bool read_conn_data(const struct frame *frame, struct buf *again)
{
    const char *data;
    uint64_t offset;
    size_t len;

    if (!message_get_input(frame, &offset, &data, &len))
        return false;
    touch(data, len);
    return message_put_conn_data(again, frame->process, offset, data, len) == 0;
}

static bool read_numbers(const struct frame *frame, struct buf *again)
{
    uint64_t first, second;

    return message_get_numbers(frame, &first, &second) &&
           message_put_numbers(again, frame->type, frame->process, first, second) == 0;
}

static bool (*const readers[FRAME_TYPES])(const struct frame *frame, struct buf *again) = {
    [FRAME_BOOT] = read_boot,
    [FRAME_ROOT] = read_root,
    [FRAME_SPAWN] = read_spawn,
    [FRAME_FAILED] = read_failed,
    [FRAME_EXITED] = read_exited,
    [FRAME_STATE] = read_state,
    [FRAME_OUTPUT] = read_output,
    [FRAME_INPUT] = read_input,
    [FRAME_CONN_DATA] = read_conn_data,
    [FRAME_SHELL_RUN] = read_shell_run,
    [FRAME_SHELL_DONE] = read_shell_done,
};

/* A valid frame that is encoded again has the same length: nothing was skipped. */
static void check_frame(const struct frame *frame)
{
    cleanup_with(buf_done) struct buf again = BUF_INIT(FRAME_HEADER_SIZE + FRAME_FROM_DAEMON_MAX);
    bool is_accepted = (readers[frame->type] ? readers[frame->type] : read_numbers)(frame, &again);

    if (is_accepted && again.len != FRAME_HEADER_SIZE + frame->size)
        abort();
    /* A parser must also survive a frame of another type. */
    for (int type = 0; type < FRAME_TYPES; type++) {
        buf_clear(&again);
        if (readers[type])
            (void)readers[type](frame, &again);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct frame frame;
    long used;

    while ((used = frame_parse(data, size, FRAME_FROM_GUEST_MAX, &frame)) > 0) {
        if ((size_t)used > size || (size_t)used != FRAME_HEADER_SIZE + frame.size)
            abort();
        check_frame(&frame);
        data += used;
        size -= (size_t)used;
    }
    return 0;
}
