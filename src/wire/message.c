// SPDX-License-Identifier: Apache-2.0
#include "wire/message.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

/* Width in bytes of the one or two numbers of a small payload. */
static const struct {
    uint8_t first, second;
} numbers[FRAME_TYPES] = {
    [FRAME_HELLO] = { 4, 0 },           [FRAME_INPUT_EOF] = { 8, 0 }, [FRAME_ACK] = { 1, 8 },
    [FRAME_SIGNAL] = { 4, 0 },          [FRAME_RESIZE] = { 2, 2 },    [FRAME_READY] = { 4, 4 },
    [FRAME_STARTED] = { 4, 0 },         [FRAME_INPUT_ACK] = { 8, 0 }, [FRAME_CONNECT] = { 2, 0 },
    [FRAME_CONN_EOF] = { 8, 0 },        [FRAME_CONN_ACK] = { 8, 0 },  [FRAME_CONN_END] = { 4, 0 },
    [FRAME_SHELL_INTERRUPT] = { 8, 0 },
};

static bool put_number(struct buf *out, uint8_t width, uint64_t value)
{
    switch (width) {
    case 0:
        return true;
    case 1:
        return put_u8(out, (uint8_t)value);
    case 2:
        return put_u16(out, (uint16_t)value);
    case 4:
        return put_u32(out, (uint32_t)value);
    default:
        return put_u64(out, value);
    }
}

static uint64_t get_number(struct reader *reader, uint8_t width)
{
    switch (width) {
    case 0:
        return 0;
    case 1:
        return get_u8(reader);
    case 2:
        return get_u16(reader);
    case 4:
        return get_u32(reader);
    default:
        return get_u64(reader);
    }
}

int message_put_numbers(struct buf *out, enum frame_type type, uint32_t process, uint64_t first,
                        uint64_t second)
{
    uint16_t fds = type == FRAME_LISTEN || type == FRAME_AGENT ? 1 : 0;
    size_t start = frame_begin(out, type, process, fds);

    return frame_end(out, start,
                     put_number(out, numbers[type].first, first) &&
                         put_number(out, numbers[type].second, second));
}

bool message_get_numbers(const struct frame *frame, uint64_t *ret_first, uint64_t *ret_second)
{
    struct reader reader = reader_of(frame);

    *ret_first = get_number(&reader, numbers[frame->type].first);
    *ret_second = get_number(&reader, numbers[frame->type].second);
    return reader_is_done(&reader);
}

int message_put_boot(struct buf *out, const struct message_boot *boot)
{
    size_t start = frame_begin(out, FRAME_BOOT, 0, 0);

    return frame_end(out, start,
                     put_u8(out, boot->builds_root) && put_u64(out, boot->capabilities) &&
                         put_bytes(out, boot->filter, boot->filter_len));
}

bool message_get_boot(const struct frame *frame, struct message_boot *ret)
{
    struct reader reader = reader_of(frame);

    ret->builds_root = get_u8(&reader);
    ret->capabilities = get_u64(&reader);
    ret->filter = get_bytes(&reader, &ret->filter_len);
    return reader_is_done(&reader);
}

int message_put_root(struct buf *out, const struct message_root *root)
{
    size_t start = frame_begin(out, FRAME_ROOT, 0, (uint16_t)root->mount_count);
    bool ok = put_text(out, root->hostname) && put_u8(out, root->allows_setuid) &&
              put_u32(out, (uint32_t)root->mount_count) &&
              put_u32(out, (uint32_t)root->volume_count);

    for (size_t i = 0; i < root->mount_count; i++)
        ok = ok && put_text(out, root->targets[i]);
    if (root->ca && *root->ca) /* an earlier holt-init expects nothing here */
        ok = ok && put_text(out, root->ca) && put_text(out, root->ca_hash);
    return frame_end(out, start, ok);
}

bool message_get_root(const struct frame *frame, struct message_root *ret)
{
    struct reader reader = reader_of(frame);

    ret->hostname = get_text(&reader);
    ret->allows_setuid = get_u8(&reader);
    ret->mount_count = get_u32(&reader);
    ret->volume_count = get_u32(&reader);
    if (ret->mount_count == 0 || ret->mount_count > MESSAGE_MOUNTS_MAX ||
        ret->mount_count != frame->fds || ret->volume_count >= ret->mount_count)
        return false;
    for (size_t i = 0; i < ret->mount_count; i++)
        ret->targets[i] = get_text(&reader);
    ret->ca = ret->ca_hash = "";
    if (!reader_is_done(&reader)) {
        ret->ca = get_text(&reader);
        ret->ca_hash = get_text(&reader);
        if (!*ret->ca)
            return false;
    }
    return reader_is_done(&reader);
}

int message_put_size(struct buf *out, const struct message_size *size)
{
    size_t start = frame_begin(out, FRAME_RESIZE, 0, (uint16_t)__builtin_popcount(size->counters));

    return frame_end(out, start,
                     put_u64(out, size->memory_bytes) && put_u32(out, size->cpu_millis) &&
                         put_u32(out, size->pids) && put_u8(out, size->counters));
}

bool message_get_size(const struct frame *frame, struct message_size *ret)
{
    struct reader reader = reader_of(frame);

    ret->memory_bytes = get_u64(&reader);
    ret->cpu_millis = get_u32(&reader);
    ret->pids = get_u32(&reader);
    ret->counters = get_u8(&reader);
    return reader_is_done(&reader) && ret->counters < 1U << SIZE_COUNTERS &&
           __builtin_popcount(ret->counters) == frame->fds;
}

static bool put_words(struct buf *out, const char *const *words, size_t count)
{
    bool ok = put_u32(out, (uint32_t)count);

    for (size_t i = 0; ok && i < count; i++)
        ok = put_text(out, words[i]);
    return ok;
}

/* Reads a count of words, each of which must be there: they cannot need more memory than a few
 * times the frame. */
static size_t get_word_count(struct reader *reader)
{
    enum { WORD_BYTES_MIN = 5 }; /* a length and a NUL */
    size_t count = get_u32(reader);

    if (count > reader->left / WORD_BYTES_MIN)
        reader->ok = false;
    return reader->ok ? count : 0;
}

static void get_args(struct reader *reader, struct message_spawn *ret)
{
    static const char *const none[] = { NULL };
    size_t count = get_word_count(reader);

    ret->args = none;
    ret->args_room = calloc(count + 1, sizeof(*ret->args_room));
    if (!ret->args_room) {
        reader->ok = false;
        count = 0;
    }
    for (size_t i = 0; i < count; i++)
        ret->args_room[i] = get_text(reader);
    if (ret->args_room)
        ret->args = ret->args_room;
    ret->arg_count = count;
}

static void get_env(struct reader *reader, struct message_spawn *ret)
{
    size_t count = get_word_count(reader);

    if (count > MESSAGE_ENV_MAX) {
        reader->ok = false;
        count = 0;
    }
    for (size_t i = 0; i < count; i++)
        ret->env[i] = get_text(reader);
    ret->env[count] = NULL;
    ret->env_count = count;
}

static bool put_credentials(struct buf *out, const struct message_spawn *spawn)
{
    bool ok = put_u32(out, spawn->uid) && put_u32(out, spawn->gid) &&
              put_u32(out, (uint32_t)spawn->group_count);

    for (size_t i = 0; ok && i < spawn->group_count; i++)
        ok = put_u32(out, spawn->groups[i]);
    ok = ok && put_u32(out, (uint32_t)spawn->rlimit_count);
    for (size_t i = 0; ok && i < spawn->rlimit_count; i++)
        ok = put_u32(out, spawn->rlimits[i].resource) && put_u64(out, spawn->rlimits[i].soft) &&
             put_u64(out, spawn->rlimits[i].hard);
    return ok;
}

static void get_credentials(struct reader *reader, struct message_spawn *ret)
{
    ret->uid = get_u32(reader);
    ret->gid = get_u32(reader);
    ret->group_count = get_u32(reader);
    if (ret->group_count > MESSAGE_GROUPS_MAX) {
        reader->ok = false;
        ret->group_count = 0;
    }
    for (size_t i = 0; i < ret->group_count; i++)
        ret->groups[i] = get_u32(reader);
    ret->rlimit_count = get_u32(reader);
    if (ret->rlimit_count > MESSAGE_RLIMITS_MAX) {
        reader->ok = false;
        ret->rlimit_count = 0;
    }
    for (size_t i = 0; i < ret->rlimit_count; i++) {
        ret->rlimits[i].resource = get_u32(reader);
        ret->rlimits[i].soft = get_u64(reader);
        ret->rlimits[i].hard = get_u64(reader);
    }
}

/* Omitted if unused, so that older guests accept the spawn. */
static bool put_optional(struct buf *out, const struct message_spawn *spawn)
{
    const char *user = spawn->user ? spawn->user : "";
    const char *group = spawn->group ? spawn->group : "";

    if (user[0] == '\0' && !spawn->waits_for_writers && group[0] == '\0')
        return true;
    return put_text(out, user) && put_u8(out, spawn->waits_for_writers) &&
           (group[0] == '\0' || put_text(out, group));
}

int message_put_enter(struct buf *out, const char *hostname)
{
    size_t start = frame_begin(out, FRAME_CELL_ENTER, 0, 0);

    return frame_end(out, start, put_text(out, hostname));
}

bool message_get_enter(const struct frame *frame, const char **ret_hostname)
{
    struct reader reader = reader_of(frame);

    *ret_hostname = get_text(&reader);
    return reader_is_done(&reader);
}

int message_put_cell(struct buf *out, const struct message_cell *cell)
{
    size_t start = frame_begin(out, FRAME_CELL, 0, CELL_FDS);

    return frame_end(out, start, put_text(out, cell->platform));
}

bool message_get_cell(const struct frame *frame, struct message_cell *ret)
{
    struct reader reader = reader_of(frame);

    ret->platform = get_text(&reader);
    return reader_is_done(&reader);
}

static int put_any_spawn(struct buf *out, enum frame_type type, uint32_t process, uint16_t fds,
                         const struct message_spawn *spawn)
{
    size_t start = frame_begin(out, type, process, fds);

    return frame_end(out, start,
                     put_words(out, spawn->args, spawn->arg_count) &&
                         put_words(out, spawn->env, spawn->env_count) &&
                         put_text(out, spawn->cwd) && put_credentials(out, spawn) &&
                         put_u8(out, spawn->has_stdin) && put_u8(out, spawn->has_terminal) &&
                         put_u16(out, spawn->rows) && put_u16(out, spawn->columns) &&
                         put_u8(out, (uint8_t)spawn->shell) && put_optional(out, spawn));
}

int message_put_spawn(struct buf *out, uint32_t process, uint16_t fds,
                      const struct message_spawn *spawn)
{
    return put_any_spawn(out, FRAME_SPAWN, process, fds, spawn);
}

int message_put_cell_spawn(struct buf *out, uint32_t process, const struct message_spawn *spawn)
{
    return put_any_spawn(out, FRAME_CELL_SPAWN, process, 1, spawn);
}

bool message_get_spawn(const struct frame *frame, struct message_spawn *ret)
{
    struct reader reader = reader_of(frame);
    bool has_optional;
    uint8_t shell;

    get_args(&reader, ret);
    get_env(&reader, ret);
    ret->cwd = get_text(&reader);
    get_credentials(&reader, ret);
    ret->has_stdin = get_u8(&reader);
    ret->has_terminal = get_u8(&reader);
    ret->rows = get_u16(&reader);
    ret->columns = get_u16(&reader);
    shell = get_u8(&reader);
    ret->shell = (enum shell_kind)shell;
    has_optional = reader.left > 0;
    ret->user = has_optional ? get_text(&reader) : "";
    ret->waits_for_writers = has_optional && get_u8(&reader);
    ret->group = reader.left > 0 ? get_text(&reader) : "";
    return reader_is_done(&reader) && strlen(ret->user) <= MESSAGE_USER_MAX &&
           strlen(ret->group) <= MESSAGE_USER_MAX && ret->arg_count > 0 && shell < SHELL_KINDS &&
           (shell == SHELL_NONE || ret->has_terminal);
}

void message_spawn_done(struct message_spawn *spawn)
{
    free(spawn->args_room);
    spawn->args = spawn->args_room = NULL;
}

int message_put_failed(struct buf *out, uint32_t process, const struct message_failed *failed)
{
    size_t start = frame_begin(out, FRAME_FAILED, process, 0);

    return frame_end(out, start,
                     put_u8(out, (uint8_t)failed->step) && put_u32(out, failed->errnum) &&
                         put_text(out, failed->text));
}

bool message_get_failed(const struct frame *frame, struct message_failed *ret)
{
    struct reader reader = reader_of(frame);
    uint8_t step = get_u8(&reader);

    ret->step = (enum failed_step)step;
    ret->errnum = get_u32(&reader);
    ret->text = get_text(&reader);
    return reader_is_done(&reader) && step < FAILED_STEPS;
}

int message_put_exited(struct buf *out, uint32_t process, const struct message_exited *exited)
{
    size_t start = frame_begin(out, FRAME_EXITED, process, 0);

    return frame_end(out, start,
                     put_u32(out, exited->status) && put_u64(out, exited->cpu_us) &&
                         put_u64(out, exited->peak_bytes) &&
                         put_u64(out, exited->end[STREAM_STDOUT]) &&
                         put_u64(out, exited->end[STREAM_STDERR]));
}

bool message_get_exited(const struct frame *frame, struct message_exited *ret)
{
    struct reader reader = reader_of(frame);

    ret->status = get_u32(&reader);
    ret->cpu_us = get_u64(&reader);
    ret->peak_bytes = get_u64(&reader);
    ret->end[STREAM_STDOUT] = get_u64(&reader);
    ret->end[STREAM_STDERR] = get_u64(&reader);
    return reader_is_done(&reader);
}

int message_put_state(struct buf *out, uint32_t process, const struct message_state *state)
{
    size_t start = frame_begin(out, FRAME_STATE, process, 0);
    bool ok = put_u32(out, state->pid) && put_u8(out, state->has_terminal) &&
              put_u8(out, state->is_exited) && put_u8(out, state->is_input_open) &&
              put_u64(out, state->input) && put_u64(out, state->input_taken);

    for (int i = 0; i < STREAM_COUNT; i++)
        ok = ok && put_u64(out, state->acked[i]) && put_u64(out, state->produced[i]);
    return frame_end(out, start,
                     ok && put_u64(out, state->age_ms) && put_u8(out, state->is_shell) &&
                         put_u8(out, state->is_shell_busy) && put_u64(out, state->shell_command) &&
                         put_u64(out, state->shell_output[0]) &&
                         put_u64(out, state->shell_output[1]));
}

bool message_get_state(const struct frame *frame, struct message_state *ret)
{
    struct reader reader = reader_of(frame);

    ret->pid = get_u32(&reader);
    ret->has_terminal = get_u8(&reader);
    ret->is_exited = get_u8(&reader);
    ret->is_input_open = get_u8(&reader);
    ret->input = get_u64(&reader);
    ret->input_taken = get_u64(&reader);
    for (int i = 0; i < STREAM_COUNT; i++) {
        ret->acked[i] = get_u64(&reader);
        ret->produced[i] = get_u64(&reader);
    }
    ret->age_ms = get_u64(&reader);
    ret->is_shell = get_u8(&reader);
    ret->is_shell_busy = get_u8(&reader);
    ret->shell_command = get_u64(&reader);
    ret->shell_output[0] = get_u64(&reader);
    ret->shell_output[1] = get_u64(&reader);
    return reader_is_done(&reader);
}

int message_put_shell_run(struct buf *out, uint32_t process, const struct message_shell_run *run)
{
    size_t start = frame_begin(out, FRAME_SHELL_RUN, process, 0);

    return frame_end(out, start,
                     put_u64(out, run->command) && put_u8(out, run->is_hidden) &&
                         put_bytes(out, run->text, run->text_len));
}

bool message_get_shell_run(const struct frame *frame, struct message_shell_run *ret)
{
    struct reader reader = reader_of(frame);

    ret->command = get_u64(&reader);
    ret->is_hidden = get_u8(&reader);
    ret->text = get_bytes(&reader, &ret->text_len);
    return reader_is_done(&reader) && ret->text_len <= MESSAGE_SHELL_TEXT_MAX;
}

int message_put_shell_done(struct buf *out, uint32_t process, const struct message_shell_done *done)
{
    size_t start = frame_begin(out, FRAME_SHELL_DONE, process, 0);

    return frame_end(out, start,
                     put_u64(out, done->command) && put_u8(out, (uint8_t)done->how) &&
                         put_u8(out, done->status) && put_u64(out, done->end[0]) &&
                         put_u64(out, done->end[1]));
}

bool message_get_shell_done(const struct frame *frame, struct message_shell_done *ret)
{
    struct reader reader = reader_of(frame);
    uint8_t how;

    ret->command = get_u64(&reader);
    how = get_u8(&reader);
    ret->how = (enum shell_end)how;
    ret->status = get_u8(&reader);
    ret->end[0] = get_u64(&reader);
    ret->end[1] = get_u64(&reader);
    return reader_is_done(&reader) && how < SHELL_ENDS;
}

int message_put_stream(struct buf *out, uint32_t process, enum frame_stream stream, uint64_t offset,
                       const void *data, size_t len)
{
    size_t start = frame_begin(out, FRAME_OUTPUT, process, 0);

    return frame_end(out, start,
                     put_u8(out, (uint8_t)stream) && put_u64(out, offset) &&
                         put_bytes(out, data, len));
}

bool message_get_stream(const struct frame *frame, enum frame_stream *ret_stream,
                        uint64_t *ret_offset, const char **ret_data, size_t *ret_len)
{
    struct reader reader = reader_of(frame);
    uint8_t stream = get_u8(&reader);

    *ret_stream = (enum frame_stream)stream;
    *ret_offset = get_u64(&reader);
    *ret_data = get_bytes(&reader, ret_len);
    return reader_is_done(&reader) && stream < STREAM_ALL;
}

int message_put_input(struct buf *out, uint32_t process, uint64_t offset, const void *data,
                      size_t len)
{
    size_t start = frame_begin(out, FRAME_INPUT, process, 0);

    return frame_end(out, start, put_u64(out, offset) && put_bytes(out, data, len));
}

bool message_get_input(const struct frame *frame, uint64_t *ret_offset, const char **ret_data,
                       size_t *ret_len)
{
    struct reader reader = reader_of(frame);

    *ret_offset = get_u64(&reader);
    *ret_data = get_bytes(&reader, ret_len);
    return reader_is_done(&reader);
}

int message_put_conn_data(struct buf *out, uint32_t connection, uint64_t offset, const void *data,
                          size_t len)
{
    size_t start = frame_begin(out, FRAME_CONN_DATA, connection, 0);

    return frame_end(out, start, put_u64(out, offset) && put_bytes(out, data, len));
}
