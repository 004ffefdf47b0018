// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/xalloc.h"
#include "check.h"
#include "unit/wire/samples.h"
#include "wire/message.h"

/* Returns the only frame in the buffer. */
static struct frame only_frame(const struct buf *out)
{
    struct frame frame = { 0 };

    CHECK(frame_parse(out->data, out->len, FRAME_FROM_DAEMON_MAX, &frame) == (long)out->len);
    return frame;
}

static struct frame sample(struct buf *out, enum frame_type type)
{
    struct frame frame;

    buf_clear(out);
    CHECK(samples[type](out) == 0);
    frame = only_frame(out);
    CHECK(frame.type == type, "(got %d, wanted %d)", (int)frame.type, (int)type);
    return frame;
}

static void every_type_has_a_message_that_is_accepted(void)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(SAMPLES_MAX);

    for (int type = FRAME_NONE + 1; type < FRAME_TYPES; type++) {
        struct frame frame = sample(&out, (enum frame_type)type);

        CHECK(is_message(&frame), "(type %d)", type);
    }
}

static void every_truncation_of_every_message_is_refused(void)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(SAMPLES_MAX);

    for (int type = FRAME_NONE + 1; type < FRAME_TYPES; type++) {
        struct frame frame = sample(&out, (enum frame_type)type);
        size_t whole = frame.size;

        for (size_t size = 0; size < whole; size++) {
            /* A copy of exactly this size, so that a sanitizer detects a read beyond it. */
            cleanup_free char *cut = xcalloc(1, size > 0 ? size : 1);

            memcpy(cut, frame.payload, size);
            frame.size = size;
            CHECK(!is_message(&(struct frame){ .type = frame.type,
                                               .process = frame.process,
                                               .fds = frame.fds,
                                               .payload = cut,
                                               .size = size }),
                  "(type %d, %zu of %zu bytes)", type, size, whole);
        }
    }
}

static void a_byte_too_many_is_refused(void)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(SAMPLES_MAX);

    for (int type = FRAME_NONE + 1; type < FRAME_TYPES; type++) {
        struct frame frame = sample(&out, (enum frame_type)type);
        size_t size = frame.size;

        CHECK(buf_add(&out, "", 1) == 0);
        frame.payload = out.data + FRAME_HEADER_SIZE;
        frame.size = size + 1;
        CHECK(!is_message(&frame), "(type %d)", type);
    }
}

static void a_boot_comes_back(void)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(SAMPLES_MAX);
    struct frame frame = sample(&out, FRAME_BOOT);
    struct message_boot boot;

    CHECK(message_get_boot(&frame, &boot));
    CHECK(boot.builds_root && boot.capabilities == 0xa80425fb && boot.filter_len == 8);
    CHECK(memcmp(boot.filter, "filter\0!", 8) == 0);
}

static void a_boot_without_a_filter_comes_back(void)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(SAMPLES_MAX);
    struct message_boot boot = { .builds_root = false };
    struct frame frame;

    CHECK(message_put_boot(&out, &boot) == 0);
    frame = only_frame(&out);
    CHECK(message_get_boot(&frame, &boot));
    CHECK(!boot.builds_root && boot.filter_len == 0);
}

static void a_root_comes_back(void)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(SAMPLES_MAX);
    struct frame frame = sample(&out, FRAME_ROOT);
    struct message_root root;

    CHECK(message_get_root(&frame, &root));
    CHECK(frame.fds == 3 && root.mount_count == 3 && root.volume_count == 1);
    CHECK_TEXT(root.hostname, "sb-0123456789ab");
    CHECK_TEXT(root.targets[0], "/");
    CHECK_TEXT(root.targets[2], "/opt");
}

static void a_root_may_have_an_authority(void)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(SAMPLES_MAX);
    struct message_root sent = { .hostname = "h", .targets = { "/" }, .mount_count = 1 }, root;
    struct frame frame;

    sent.ca = "PEM";
    sent.ca_hash = "01234567";
    CHECK(message_put_root(&out, &sent) == 0);
    frame = only_frame(&out);
    CHECK(message_get_root(&frame, &root));
    CHECK_TEXT(root.ca, "PEM");
    CHECK_TEXT(root.ca_hash, "01234567");
    buf_clear(&out);
    sent.ca = "";
    CHECK(message_put_root(&out, &sent) == 0);
    frame = only_frame(&out);
    CHECK(message_get_root(&frame, &root));
    CHECK_TEXT(root.ca, "");
}

static void a_root_needs_a_descriptor_for_each_mount(void)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(SAMPLES_MAX);
    struct frame frame = sample(&out, FRAME_ROOT);
    struct message_root root;

    frame.fds = 2;
    CHECK(!message_get_root(&frame, &root));
    frame.fds = 4;
    CHECK(!message_get_root(&frame, &root));
}

static void volumes_are_not_all_of_a_root(void)
{
    for (size_t count = 0; count <= 3; count++) {
        cleanup_with(buf_done) struct buf out = BUF_INIT(SAMPLES_MAX);
        struct message_root root = {
            .hostname = "h", .targets = { "/", "/a" }, .mount_count = 2, .volume_count = count
        };
        struct frame frame;

        CHECK(message_put_root(&out, &root) == 0);
        frame = only_frame(&out);
        CHECK(message_get_root(&frame, &root) == (count < 2));
    }
}

static void a_root_has_as_many_mounts_as_there_is_room_for(void)
{
    for (size_t count = 0; count <= MESSAGE_MOUNTS_MAX; count++) {
        cleanup_with(buf_done) struct buf out = BUF_INIT(SAMPLES_MAX);
        struct message_root root = { .hostname = "h", .mount_count = count };
        struct frame frame;

        for (size_t i = 0; i < count; i++)
            root.targets[i] = "/x";
        CHECK(message_put_root(&out, &root) == 0);
        frame = only_frame(&out);
        CHECK(message_get_root(&frame, &root) == (count > 0));
        if (count < MESSAGE_MOUNTS_MAX)
            continue;
        /* One more than the limit, in the count and in the descriptors. */
        out.data[FRAME_HEADER_SIZE + 7] = MESSAGE_MOUNTS_MAX + 1;
        frame.fds = MESSAGE_MOUNTS_MAX + 1;
        CHECK(!message_get_root(&frame, &root));
    }
}

/* An older guest ignores this frame, because it has no process 0. */
static void a_size_comes_back_with_a_descriptor_for_each_counter(void)
{
    const struct message_size sent = { .memory_bytes = UINT64_C(1) << 40,
                                       .cpu_millis = 1500,
                                       .pids = 7,
                                       .counters = 1U << SIZE_CPU_STAT | 1U << SIZE_PIDS_CURRENT };
    cleanup_with(buf_done) struct buf out = BUF_INIT(SAMPLES_MAX);
    struct message_size size = { 0 };
    struct frame frame;

    CHECK(message_put_size(&out, &sent) == 0);
    frame = only_frame(&out);
    CHECK(frame.type == FRAME_RESIZE && frame.process == 0 && frame.fds == 2);
    CHECK(message_get_size(&frame, &size));
    CHECK(size.memory_bytes == sent.memory_bytes && size.cpu_millis == 1500 && size.pids == 7 &&
          size.counters == sent.counters);
    frame.fds = 1;
    CHECK(!message_get_size(&frame, &size));
    frame.fds = 2;
    out.data[out.len - 1] = (char)(1U << SIZE_COUNTERS | 1U);
    CHECK(!message_get_size(&frame, &size));
}

static void a_spawn_comes_back(void)
{
    static struct message_spawn spawn;
    cleanup_with(buf_done) struct buf out = BUF_INIT(SAMPLES_MAX);
    struct frame frame = sample(&out, FRAME_SPAWN);

    CHECK(message_get_spawn(&frame, &spawn));
    CHECK(frame.process == 3 && frame.fds == 1);
    CHECK(spawn.arg_count == 4 && !spawn.args[4] && spawn.env_count == 2 && !spawn.env[2]);
    CHECK_TEXT(spawn.args[2], "echo hi");
    CHECK_TEXT(spawn.args[3], "");
    CHECK_TEXT(spawn.env[1], "A=");
    CHECK_TEXT(spawn.cwd, "/workspace");
    CHECK(spawn.uid == 1000 && spawn.gid == 1001);
    CHECK(spawn.group_count == 3 && spawn.groups[2] == 9 && spawn.rlimit_count == 2);
    CHECK(spawn.rlimits[0].resource == 7 && spawn.rlimits[0].soft == 1024);
    CHECK(spawn.rlimits[1].hard == UINT64_MAX);
    CHECK(spawn.has_stdin && spawn.has_terminal && spawn.rows == 24 && spawn.columns == 80);
    CHECK_TEXT(spawn.user, "");
    CHECK_TEXT(spawn.group, "");
    CHECK(!spawn.waits_for_writers);
    message_spawn_done(&spawn);
}

static void a_spawn_may_name_a_user(void)
{
    static struct message_spawn spawn, back;
    char name[MESSAGE_USER_MAX + 2];

    for (size_t len = MESSAGE_USER_MAX; len <= MESSAGE_USER_MAX + 1; len++) {
        cleanup_with(buf_done) struct buf out = BUF_INIT(SAMPLES_MAX);
        struct frame frame;

        memset(name, 'u', len);
        name[len] = '\0';
        spawn = (struct message_spawn){ .args = (const char *const[]){ "a", NULL },
                                        .arg_count = 1,
                                        .cwd = "~",
                                        .user = name,
                                        .group = "staff",
                                        .waits_for_writers = true };
        CHECK(message_put_spawn(&out, 1, 0, &spawn) == 0);
        CHECK(frame_parse(out.data, out.len, SAMPLES_MAX, &frame) == (long)out.len);
        CHECK(message_get_spawn(&frame, &back) == (len == MESSAGE_USER_MAX));
        CHECK_TEXT(back.user, name);
        CHECK_TEXT(back.group, "staff");
        CHECK(back.waits_for_writers);
        message_spawn_done(&back);
    }
}

/* Encodes a spawn with these counts. Returns whether it is accepted. */
static bool is_accepted(size_t args, size_t env, size_t groups, size_t rlimits)
{
    cleanup_free struct message_spawn *spawn = xcalloc(1, sizeof(*spawn));
    cleanup_free const char **words = xcalloc(args + 1, sizeof(*words));
    cleanup_with(buf_done) struct buf out = BUF_INIT(FRAME_FROM_DAEMON_MAX);
    struct frame frame;
    bool is_valid;

    *spawn = (struct message_spawn){ .arg_count = args,
                                     .env_count = env,
                                     .group_count = groups,
                                     .rlimit_count = rlimits,
                                     .cwd = "/" };
    for (size_t i = 0; i < args; i++)
        words[i] = "a";
    spawn->args = words;
    for (size_t i = 0; i < env; i++)
        spawn->env[i] = "E=1";
    CHECK(message_put_spawn(&out, 1, 0, spawn) == 0);
    frame = only_frame(&out);
    is_valid = message_get_spawn(&frame, spawn);
    CHECK(!is_valid || (spawn->arg_count == args && !spawn->args[args]));
    message_spawn_done(spawn);
    return is_valid;
}

static void a_spawn_needs_a_command_and_knows_its_limits(void)
{
    CHECK(is_accepted(1, 0, 0, 0));
    CHECK(!is_accepted(0, 0, 0, 0));
    CHECK(is_accepted(300000, MESSAGE_ENV_MAX, MESSAGE_GROUPS_MAX, MESSAGE_RLIMITS_MAX));
}

/* Overwrites a count in a spawn of one argument without variables, groups or limits. */
static bool is_accepted_with(size_t offset, uint32_t count)
{
    static struct message_spawn spawn;
    cleanup_with(buf_done) struct buf out = BUF_INIT(SAMPLES_MAX);
    struct frame frame;
    bool is_valid;

    spawn = (struct message_spawn){ .args = (const char *const[]){ "a", NULL },
                                    .arg_count = 1,
                                    .cwd = "/" };
    CHECK(message_put_spawn(&out, 1, 0, &spawn) == 0);
    frame = only_frame(&out);
    memcpy(out.data + FRAME_HEADER_SIZE + offset, &count, sizeof(count));
    is_valid = message_get_spawn(&frame, &spawn);
    message_spawn_done(&spawn);
    return is_valid;
}

static void counts_beyond_the_limits_are_refused(void)
{
    enum { ARGS = 0, ENV = 10, GROUPS = 28, RLIMITS = 32 };
    static const struct {
        size_t offset;
        uint32_t is, max;
    } counts[] = { { ARGS, 1, 300000 },
                   { ENV, 0, MESSAGE_ENV_MAX },
                   { GROUPS, 0, MESSAGE_GROUPS_MAX },
                   { RLIMITS, 0, MESSAGE_RLIMITS_MAX } };

    for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
        CHECK(is_accepted_with(counts[i].offset, counts[i].is), "(the offset %zu is wrong)",
              counts[i].offset);
        CHECK(!is_accepted_with(counts[i].offset, counts[i].is + 1));
        CHECK(!is_accepted_with(counts[i].offset, counts[i].max + 1));
        CHECK(!is_accepted_with(counts[i].offset, UINT32_MAX));
    }
}

static void a_failure_comes_back(void)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(SAMPLES_MAX);
    struct frame frame = sample(&out, FRAME_FAILED);
    struct message_failed failed;

    CHECK(message_get_failed(&frame, &failed));
    CHECK(failed.step == FAILED_EXEC && failed.errnum == 2);
    CHECK_TEXT(failed.text, "No such file");
    out.data[FRAME_HEADER_SIZE] = FAILED_STEPS;
    CHECK(!message_get_failed(&frame, &failed), "(an unknown step)");
}

static void an_end_comes_back(void)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(SAMPLES_MAX);
    struct frame frame = sample(&out, FRAME_EXITED);
    struct message_exited exited;

    CHECK(message_get_exited(&frame, &exited));
    CHECK(exited.status == 0x0700 && exited.cpu_us == 1234567 && exited.peak_bytes == 7654321);
    CHECK(exited.end[STREAM_STDOUT] == 100 && exited.end[STREAM_STDERR] == 0x100000000);
}

static void a_state_comes_back(void)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(SAMPLES_MAX);
    struct frame frame = sample(&out, FRAME_STATE);
    struct message_state state;

    CHECK(message_get_state(&frame, &state));
    CHECK(frame.size == MESSAGE_STATE_SIZE);
    CHECK(state.pid == 17 && state.has_terminal && !state.is_exited && state.is_input_open);
    CHECK(state.input == 6 && state.input_taken == 5 && state.age_ms == 0x100000001);
    CHECK(state.acked[0] == 1 && state.acked[1] == 2 && state.produced[0] == 3 &&
          state.produced[1] == 4);
    CHECK(state.is_shell && state.is_shell_busy && state.shell_command == 0x200000002);
    CHECK(state.shell_output[0] == 8 && state.shell_output[1] == 9);
}

static void a_shells_command_and_its_end_come_back(void)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(SAMPLES_MAX);
    struct frame frame = sample(&out, FRAME_SHELL_RUN);
    struct message_shell_run run;
    struct message_shell_done done;

    CHECK(message_get_shell_run(&frame, &run));
    CHECK(run.command == 0x300000003 && run.is_hidden && run.text_len == 9);
    CHECK(memcmp(run.text, "echo\n'hi'", 9) == 0);

    frame = sample(&out, FRAME_SHELL_DONE);
    CHECK(message_get_shell_done(&frame, &done));
    CHECK(done.command == 0x300000003 && done.how == SHELL_INTERRUPTED && done.status == 130);
    CHECK(done.end[0] == 100 && done.end[1] == 0x100000000);
    out.data[FRAME_HEADER_SIZE + 8] = SHELL_ENDS;
    CHECK(!message_get_shell_done(&frame, &done), "(an unknown end)");
}

static void a_shell_needs_a_terminal(void)
{
    static struct message_spawn spawn;
    cleanup_with(buf_done) struct buf out = BUF_INIT(SAMPLES_MAX);
    struct frame frame = sample(&out, FRAME_SPAWN);

    CHECK(message_get_spawn(&frame, &spawn) && spawn.shell == SHELL_BASH);
    message_spawn_done(&spawn);
    out.data[out.len - 1] = SHELL_KINDS;
    CHECK(!message_get_spawn(&frame, &spawn), "(an unknown kind)");
    message_spawn_done(&spawn);
    out.data[out.len - 1] = SHELL_SH;
    out.data[out.len - 6] = 0;
    CHECK(!message_get_spawn(&frame, &spawn), "(no terminal)");
    message_spawn_done(&spawn);
}

static void output_and_input_come_back(void)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(SAMPLES_MAX);
    struct frame frame = sample(&out, FRAME_OUTPUT);
    enum frame_stream stream;
    const char *data;
    uint64_t offset;
    size_t len;

    CHECK(message_get_stream(&frame, &stream, &offset, &data, &len));
    CHECK(stream == STREAM_STDERR && offset == 0x1122334455667788 && len == 7);
    CHECK(memcmp(data, "out\0put", 7) == 0);
    out.data[FRAME_HEADER_SIZE] = STREAM_ALL;
    CHECK(!message_get_stream(&frame, &stream, &offset, &data, &len), "(an unknown stream)");

    frame = sample(&out, FRAME_INPUT);
    CHECK(message_get_input(&frame, &offset, &data, &len));
    CHECK(offset == 0x8877665544332211 && len == 6 && memcmp(data, "in\0put", 6) == 0);
}

static void numbers_come_back(void)
{
    static const struct {
        enum frame_type type;
        uint64_t first, second;
    } rows[] = {
        { FRAME_HELLO, WIRE_VERSION, 0 },
        { FRAME_INPUT_EOF, 0x0102030405060708, 0 },
        { FRAME_ACK, STREAM_STDERR, 0x0102030405060708 },
        { FRAME_SIGNAL, 15, 0 },
        { FRAME_RESIZE, 24, 0x1234 },
        { FRAME_READY, WIRE_VERSION, 4711 },
        { FRAME_STARTED, 17, 0 },
        { FRAME_INPUT_ACK, 0x0102030405060708, 0 },
        { FRAME_FORGET, 0, 0 },
        { FRAME_ROOTED, 0, 0 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        cleanup_with(buf_done) struct buf out = BUF_INIT(SAMPLES_MAX);
        struct frame frame = sample(&out, rows[i].type);
        uint64_t first = 99, second = 99;

        CHECK(message_get_numbers(&frame, &first, &second));
        CHECK(first == rows[i].first && second == rows[i].second, "(type %d)", (int)rows[i].type);
        CHECK(frame.process == 3 && frame.fds == 0);
    }
}

static void a_listen_carries_one_descriptor(void)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(SAMPLES_MAX);

    CHECK(sample(&out, FRAME_LISTEN).fds == 1);
}

static void a_message_without_room_is_undone(void)
{
    for (int type = FRAME_NONE + 1; type < FRAME_TYPES; type++) {
        cleanup_with(buf_done) struct buf whole = BUF_INIT(SAMPLES_MAX);
        size_t size;

        (void)sample(&whole, (enum frame_type)type);
        size = whole.len;
        for (size_t room = 0; room < size; room++) {
            cleanup_with(buf_done) struct buf out = BUF_INIT(room + 3);

            CHECK(buf_add(&out, "abc", 3) == 0);
            CHECK(samples[type](&out) == -ENOBUFS, "(type %d, room for %zu of %zu)", type, room,
                  size);
            CHECK(out.len == 3 && memcmp(out.data, "abc", 3) == 0);
        }
    }
}

int main(void)
{
    RUN(every_type_has_a_message_that_is_accepted);
    RUN(every_truncation_of_every_message_is_refused);
    RUN(a_byte_too_many_is_refused);
    RUN(a_boot_comes_back);
    RUN(a_boot_without_a_filter_comes_back);
    RUN(a_root_comes_back);
    RUN(a_root_may_have_an_authority);
    RUN(a_root_needs_a_descriptor_for_each_mount);
    RUN(volumes_are_not_all_of_a_root);
    RUN(a_root_has_as_many_mounts_as_there_is_room_for);
    RUN(a_size_comes_back_with_a_descriptor_for_each_counter);
    RUN(a_spawn_comes_back);
    RUN(a_spawn_may_name_a_user);
    RUN(a_spawn_needs_a_command_and_knows_its_limits);
    RUN(counts_beyond_the_limits_are_refused);
    RUN(a_failure_comes_back);
    RUN(an_end_comes_back);
    RUN(a_state_comes_back);
    RUN(a_shells_command_and_its_end_come_back);
    RUN(a_shell_needs_a_terminal);
    RUN(output_and_input_come_back);
    RUN(numbers_come_back);
    RUN(a_listen_carries_one_descriptor);
    RUN(a_message_without_room_is_undone);
    return 0;
}
