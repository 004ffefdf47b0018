// SPDX-License-Identifier: Apache-2.0
/* Output, input and reconnects: no byte is lost or delivered twice. */
#include "kernel/guest/guest_again.h"

/* 10 MiB, with a reader that acknowledges a little at a time. */
static void output_waits_for_its_acknowledgement(void)
{
    enum { STEP = 50000 };
    struct guest guest = start();
    struct sequence sequence = { 0 };
    uint64_t received = 0, acked = 0, total = 0;
    bool is_ended = false;
    struct frame frame;

    spawn(&guest, 1, "seq 1500000; exit 4");
    while (!is_ended) {
        int r = receive_for(&guest,
                            received - acked == FRAME_WINDOW && acked == 0 ? QUIET_MS : PATIENCE_MS,
                            &frame);

        if (r == -EAGAIN) {
            CHECK(received == FRAME_WINDOW, "(%lu bytes without an acknowledgement)",
                  (unsigned long)received);
            acked = STEP;
            send_numbers(&guest, FRAME_ACK, 1, STREAM_STDOUT, acked);
            continue;
        }
        CHECK(r == 1);
        if (frame.type == FRAME_OUTPUT) {
            enum frame_stream stream;
            const char *data;
            uint64_t offset;
            size_t len;

            CHECK(message_get_stream(&frame, &stream, &offset, &data, &len));
            CHECK(stream == STREAM_STDOUT && offset == received);
            check_sequence(&sequence, data, len);
            received += len;
            CHECK(received - acked <= FRAME_WINDOW, "(the window is overrun)");
            if (acked > 0 && received - acked > STEP) {
                acked += STEP;
                send_numbers(&guest, FRAME_ACK, 1, STREAM_STDOUT, acked);
                CHECK(rss_kib(&guest) < RSS_MAX_KIB, "(%ld KiB)", rss_kib(&guest));
            }
        } else {
            struct message_exited exited;

            CHECK(frame.type == FRAME_EXITED && message_get_exited(&frame, &exited));
            CHECK(WEXITSTATUS(exited.status) == 4);
            total = exited.end[STREAM_STDOUT];
            is_ended = true;
        }
    }
    CHECK(total == received && sequence.number == 1500000 && sequence.at == sequence.len);
    end(&guest);
}

/* The whole output, less than a window, arrives without an acknowledgement. */
static void a_window_of_output_needs_no_acknowledgement(void)
{
    cleanup_with(seen_done) struct seen seen = SEEN_INIT;
    struct guest guest = start();

    spawn(&guest, 1, "head -c 100000 /dev/zero >&2; head -c 200000 /dev/zero; exec sleep 1000");
    while (offset_of(&seen, STREAM_STDOUT) < 200000 || offset_of(&seen, STREAM_STDERR) < 100000) {
        struct frame frame;
        int r = receive_for(&guest, STALLED_MS, &frame);

        CHECK(r == 1, "(stalled after %lu bytes of stdout and %lu of stderr)",
              (unsigned long)offset_of(&seen, STREAM_STDOUT),
              (unsigned long)offset_of(&seen, STREAM_STDERR));
        seen_add(&seen, &frame);
    }
    end(&guest);
}

/* Starts a process while another may be writing. */
static void spawn_beside(struct guest *guest, uint32_t id, const char *text, bool has_stdin)
{
    struct message_spawn *spec = SHELL(text);
    struct frame frame;

    spec->has_stdin = has_stdin;
    spawn_spec(guest, id, spec);
    do {
        frame = receive(guest);
        CHECK(frame.process != id || frame.type == FRAME_STARTED);
    } while (frame.process != id);
}

static void check_heard(uint32_t talker, uint32_t loud)
{
    cleanup_with(seen_done) struct seen seen = SEEN_INIT;
    struct guest guest = start();
    struct frame frame;

    for (uint32_t id = 1; id <= 2; id++)
        spawn_beside(&guest, id, id == talker ? "exec cat" : "exec yes", id == talker);
    while (receive_for(&guest, QUIET_MS, &frame) == 1)
        CHECK(frame.process == loud);
    send_input(&guest, talker, 0, "hello", 5);
    while (offset_of(&seen, STREAM_STDOUT) < 5) {
        CHECK(receive_for(&guest, STALLED_MS, &frame) == 1, "(nothing comes)");
        if (frame.process == talker)
            seen_add(&seen, &frame);
    }
    check_text(&seen, STREAM_STDOUT, "hello");
    end(&guest);
}

static void a_process_is_heard_beside_an_older_loud_one(void)
{
    check_heard(2, 1);
}

static void a_process_is_heard_beside_a_newer_loud_one(void)
{
    check_heard(1, 2);
}

enum { HEIR_TRIES = 100 };

/* Its child writes for ever, and acknowledgements are slow. */
static void a_busy_heir_of_the_pipe_does_not_hold_the_end(void)
{
    cleanup_with(seen_done) struct seen seen = SEEN_INIT;
    struct guest guest = start();

    spawn(&guest, 1, "yes & yes & yes & sleep 0.2; exit 5");
    /* The pipe cannot have held 32 MiB; but the children may have written that much before the
     * process exited, so there are several tries. */
    for (int i = 0; i < HEIR_TRIES && !seen.is_ended; i++) {
        pause_ms(QUIET_MS);
        while (!seen.is_ended && seen.text[STREAM_STDOUT].len < 32 << 20) {
            struct frame frame = receive(&guest);

            seen_add(&seen, &frame);
            if (offset_of(&seen, STREAM_STDOUT) % (64 << 10) == 0)
                send_numbers(&guest, FRAME_ACK, 1, STREAM_STDOUT, offset_of(&seen, STREAM_STDOUT));
        }
        seen.begin[STREAM_STDOUT] += seen.text[STREAM_STDOUT].len;
        buf_clear(&seen.text[STREAM_STDOUT]);
    }
    CHECK(seen.is_ended && WEXITSTATUS(seen.exited.status) == 5);
    end(&guest);
}

static void input_comes_back_through_cat(void)
{
    enum { TOTAL = 4 << 20, CHUNK = 30011 };
    cleanup_with(seen_done) struct seen seen = SEEN_INIT;
    cleanup_free char *data = xcalloc(1, TOTAL);
    struct guest guest = start();
    uint64_t sent = 0;

    for (size_t i = 0; i < TOTAL; i++)
        data[i] = (char)(i * 2654435761u >> 13);
    spawn_with_stdin(&guest, 1, "exec cat");
    while (!seen.is_ended) {
        struct frame frame;
        size_t len = TOTAL - sent < CHUNK ? (size_t)(TOTAL - sent) : CHUNK;

        if (sent < TOTAL && sent + len - seen.input_acked <= FRAME_WINDOW) {
            send_input(&guest, 1, sent, data + sent, len);
            sent += len;
            if (sent == TOTAL)
                send_numbers(&guest, FRAME_INPUT_EOF, 1, sent, 0);
            continue;
        }
        frame = receive(&guest);
        seen_add(&seen, &frame);
        CHECK(seen.input_acked <= sent);
        send_numbers(&guest, FRAME_ACK, 1, STREAM_STDOUT, offset_of(&seen, STREAM_STDOUT));
    }
    CHECK(seen.text[0].len == TOTAL && memcmp(seen.text[0].data, data, TOTAL) == 0);
    CHECK(seen.input_acked == TOTAL);
    end(&guest);
}

static void input_that_is_not_read_is_not_acknowledged(void)
{
    cleanup_free char *data = xcalloc(1, FRAME_WINDOW);
    cleanup_with(seen_done) struct seen seen = SEEN_INIT;
    struct guest guest = start();
    struct frame frame;

    spawn_with_stdin(&guest, 1, "exec sleep 1000");
    send_input(&guest, 1, 0, data, FRAME_WINDOW);
    while (receive_for(&guest, QUIET_MS, &frame) == 1)
        seen_add(&seen, &frame);
    CHECK(seen.input_acked < FRAME_WINDOW, "(taken by nobody, and acknowledged)");
    send_numbers(&guest, FRAME_SIGNAL, 1, SIGKILL, 0);
    read_to_end(&guest, 1, &seen);
    end(&guest);
}

static void input_that_nobody_will_ever_read_is_acknowledged(void)
{
    cleanup_free char *data = xcalloc(1, FRAME_WINDOW);
    cleanup_with(seen_done) struct seen seen = SEEN_INIT;
    struct guest guest = start();

    spawn_with_stdin(&guest, 1, "exec <&-; echo closed; exec sleep 1000");
    read_until(&guest, 1, &seen, "closed\n");
    for (int i = 0; i < 4; i++) {
        uint64_t offset = (uint64_t)i * FRAME_WINDOW;

        send_input(&guest, 1, offset, data, FRAME_WINDOW);
        while (seen.input_acked < offset + FRAME_WINDOW) {
            struct frame frame = receive(&guest);

            seen_add(&seen, &frame);
        }
    }
    end(&guest);
}

static void processes_go_on_without_a_connection(void)
{
    struct guest guest = start();
    struct message_state states[8];

    send_listener(&guest);
    spawn_with_stdin(&guest, 1, "exec sleep 1000");
    spawn(&guest, 2, "sleep 0.1; echo late; exit 6");
    disconnect(&guest);
    pause_ms(QUIET_MS);
    CHECK(!has_ended(&guest));
    CHECK(reconnect(&guest, states, ARRAY_SIZE(states)) == 2);
    CHECK(states[1].pid > 1 && !states[1].is_exited);
    {
        cleanup_with(seen_done) struct seen seen = SEEN_INIT;

        read_to_end(&guest, 2, &seen);
        check_text(&seen, STREAM_STDOUT, "late\n");
        CHECK(seen.begin[0] == 0 && WEXITSTATUS(seen.exited.status) == 6);
    }
    check_run(&guest, 3, "echo new", "new\n");
    end(&guest);
}

static void output_continues_at_the_acknowledged_offset(void)
{
    struct guest guest = start();
    struct sequence sequence = { 0 };
    uint64_t received = 0, acked = 0;
    bool is_ended = false;

    send_listener(&guest);
    spawn(&guest, 1, "seq 700000; exit 4");
    for (unsigned round = 0; !is_ended; round++) {
        struct sequence at_ack = sequence;
        struct message_state states[2];

        /* Reads a part, acknowledges some of it and disconnects with more in flight. */
        for (int i = 0; !is_ended && i < 12; i++) {
            struct frame frame = receive(&guest);
            enum frame_stream stream;
            const char *data;
            uint64_t offset;
            size_t len;

            is_ended = frame.type == FRAME_EXITED;
            if (is_ended)
                break;
            CHECK(message_get_stream(&frame, &stream, &offset, &data, &len) && offset == received);
            check_sequence(&sequence, data, len);
            received += len;
            if (i % 3 == 2 || round > 6) {
                acked = received;
                at_ack = sequence;
                send_numbers(&guest, FRAME_ACK, 1, STREAM_STDOUT, acked);
            }
        }
        if (is_ended || round > 6)
            continue;
        CHECK(reconnect(&guest, states, ARRAY_SIZE(states)) == 1);
        /* Only the last acknowledgement may be lost with the connection. */
        CHECK(states[1].acked[0] <= acked && states[1].produced[0] >= states[1].acked[0]);
        CHECK(states[1].acked[0] == acked, "(acknowledged %lu, the guest knows %lu)",
              (unsigned long)acked, (unsigned long)states[1].acked[0]);
        received = acked;
        sequence = at_ack;
    }
    CHECK(sequence.number == 700000 && sequence.at == sequence.len);
    end(&guest);
}

/* A daemon cannot interpret offsets before it has received the states. */
static void nothing_is_sent_before_the_hello(void)
{
    struct guest guest = start();
    struct frame frame;

    send_listener(&guest);
    spawn(&guest, 1, "exec yes");
    while (receive_for(&guest, QUIET_MS, &frame) == 1)
        continue;
    disconnect(&guest);
    pause_ms(QUIET_MS);
    guest.fd = connect_to(&guest);
    CHECK(receive_for(&guest, QUIET_MS, &frame) == -EAGAIN, "(a frame of type %d)",
          (int)frame.type);
    end(&guest);
}

/* A daemon that read the output but died before it acknowledged it does so after it reconnects. */
static void what_an_earlier_connection_read_can_be_acknowledged(void)
{
    cleanup_with(seen_done) struct seen seen = SEEN_INIT;
    struct buf out = BUF_INIT(256);
    struct guest guest = start();
    struct frame frame;
    uint64_t received = 0;

    send_listener(&guest);
    spawn(&guest, 1, "seq 300000; exit 4");
    while (received < FRAME_WINDOW)
        received += expect(&guest, FRAME_OUTPUT, 1).size - 13; /* minus stream, offset and length */
    CHECK(received == FRAME_WINDOW && receive_for(&guest, QUIET_MS, &frame) == -EAGAIN);
    reconnect_silently(&guest);
    CHECK(message_put_numbers(&out, FRAME_HELLO, 0, WIRE_VERSION, 0) == 0);
    CHECK(message_put_numbers(&out, FRAME_ACK, 1, STREAM_STDOUT, received) == 0);
    send_buf(&guest, &out);
    (void)expect(&guest, FRAME_STATE, 1);
    (void)expect(&guest, FRAME_READY, 0);
    while (!seen.is_ended) {
        int r = receive_for(&guest, STALLED_MS, &frame);

        CHECK(r == 1, "(the output has stopped for ever)");
        seen_add(&seen, &frame);
        if (frame.type == FRAME_OUTPUT)
            send_numbers(&guest, FRAME_ACK, 1, STREAM_STDOUT, offset_of(&seen, 0));
    }
    CHECK(seen.begin[0] == received && WEXITSTATUS(seen.exited.status) == 4);
    end(&guest);
}

static void an_end_that_was_not_heard_is_said_again(void)
{
    struct guest guest = start();
    struct message_state states[4];

    send_listener(&guest);
    spawn(&guest, 1, "echo text; exit 9");
    for (int i = 0; i < 3; i++) {
        cleanup_with(seen_done) struct seen seen = SEEN_INIT;

        while (!seen.is_ended) {
            struct frame frame = receive(&guest);

            seen_add(&seen, &frame);
        }
        check_text(&seen, STREAM_STDOUT, "text\n");
        CHECK(WEXITSTATUS(seen.exited.status) == 9);
        CHECK(reconnect(&guest, states, ARRAY_SIZE(states)) == 1);
        CHECK(states[1].is_exited && states[1].produced[0] == 5 && states[1].acked[0] == 0);
    }
    send_numbers(&guest, FRAME_FORGET, 1, 0, 0);
    CHECK(reconnect(&guest, states, ARRAY_SIZE(states)) <= 1);
    EVENTUALLY(reconnect(&guest, states, ARRAY_SIZE(states)) == 0);
    end(&guest);
}

static void input_that_was_sent_twice_is_taken_once(void)
{
    cleanup_with(seen_done) struct seen seen = SEEN_INIT;
    struct message_state states[4];
    struct guest guest = start();

    send_listener(&guest);
    spawn_with_stdin(&guest, 1, "exec cat");
    send_input(&guest, 1, 0, "abcdef", 6);
    read_until(&guest, 1, &seen, "abcdef");
    CHECK(reconnect(&guest, states, ARRAY_SIZE(states)) == 1 && states[1].input == 6);
    seen_done(&seen);
    seen = (struct seen)SEEN_INIT;
    send_input(&guest, 1, 0, "abcdef", 6);
    send_input(&guest, 1, 3, "defghi", 6);
    send_numbers(&guest, FRAME_INPUT_EOF, 1, 9, 0);
    read_to_end(&guest, 1, &seen);
    check_text(&seen, STREAM_STDOUT, "abcdefghi");
    end(&guest);
}

static void the_newest_connection_wins(void)
{
    struct guest guest = start();
    cleanup_close int old_fd = -EBADF;
    struct message_state states[4];
    char byte;

    send_listener(&guest);
    spawn(&guest, 1, "exec sleep 1000");
    old_fd = TAKE_FD(guest.fd);
    CHECK(reconnect(&guest, states, ARRAY_SIZE(states)) == 1);
    CHECK(read(old_fd, &byte, 1) == 0, "(the old one is still open)");
    check_run(&guest, 2, "echo hi", "hi\n");
    end(&guest);
}

static void many_connections_leave_no_descriptors(void)
{
    struct guest guest = start();
    struct message_state states[4];
    size_t fds;

    send_listener(&guest);
    spawn(&guest, 1, "exec sleep 1000");
    fds = fds_of(&guest);
    for (int i = 0; i < 100; i++)
        CHECK(reconnect(&guest, states, ARRAY_SIZE(states)) == 1);
    CHECK(fds_of(&guest) == fds, "(%zu, then %zu)", fds, fds_of(&guest));
    end(&guest);
}

enum { PROCESSES_MAX = 4096 /* GUEST_PROCESSES_MAX */ };

/* Returns the id of the process that has ended. */
static uint32_t await_end(struct guest *guest)
{
    for (;;) {
        struct frame frame = receive(guest);

        if (frame.type == FRAME_EXITED)
            return frame.process;
    }
}

/* Creating thousands of cgroups would be slow. */
static void run_without_group(struct guest *guest, uint32_t id, bool is_forgotten)
{
    struct buf out = BUF_INIT(FRAME_FROM_DAEMON_MAX);

    CHECK(message_put_spawn(&out, id, 0, spec_of(WORDS("echo", "hi"))) == 0);
    send_buf(guest, &out);
    CHECK(await_end(guest) == id);
    if (is_forgotten)
        send_numbers(guest, FRAME_FORGET, id, 0, 0);
}

/* Ids increase; memory and descriptors do not. */
static void five_thousand_processes_leave_nothing_behind(void)
{
    enum { COUNT = 5000, WARM = 200, GROWTH_MAX_KIB = 32 };
    struct guest guest = start();
    long rss = 0;
    size_t fds = 0;

    for (uint32_t id = 1; id <= COUNT; id++) {
        run_without_group(&guest, id, true);
        if (id == WARM) {
            rss = rss_kib(&guest);
            fds = fds_of(&guest);
        }
    }
    CHECK(rss_kib(&guest) <= rss + GROWTH_MAX_KIB, "(%ld KiB, then %ld)", rss, rss_kib(&guest));
    CHECK(fds_of(&guest) == fds, "(%zu descriptors, then %zu)", fds, fds_of(&guest));
    end(&guest);
}

/* The limit counts processes until FRAME_FORGET, and all of them are announced. */
static void there_is_a_limit_to_what_is_remembered(void)
{
    static struct message_state states[PROCESSES_MAX + 1];
    struct guest guest = start();

    send_listener(&guest);
    for (uint32_t id = 1; id <= PROCESSES_MAX; id++)
        run_without_group(&guest, id, false);
    spawn_spec(&guest, PROCESSES_MAX + 1, spec_of(WORDS("true")));
    (void)expect(&guest, FRAME_FAILED, PROCESSES_MAX + 1);
    CHECK(reconnect(&guest, states, ARRAY_SIZE(states)) == PROCESSES_MAX);
    for (int i = 0; i < PROCESSES_MAX; i++) {
        uint32_t id = await_end(&guest);

        CHECK(states[id].is_exited);
        send_numbers(&guest, FRAME_FORGET, id, 0, 0);
    }
    check_run(&guest, PROCESSES_MAX + 1, "echo room", "room\n");
    CHECK(reconnect(&guest, states, ARRAY_SIZE(states)) == 0);
    end(&guest);
}

static void a_state_says_what_became_of_stdin(void)
{
    struct message_state states[4];
    struct guest guest = start();

    send_listener(&guest);
    spawn_with_stdin(&guest, 1, "exec sleep 1000");
    send_input(&guest, 1, 0, "abc", 3);
    CHECK(reconnect(&guest, states, ARRAY_SIZE(states)) == 1);
    CHECK(states[1].is_input_open && states[1].input == 3);
    send_numbers(&guest, FRAME_INPUT_EOF, 1, 3, 0);
    CHECK(reconnect(&guest, states, ARRAY_SIZE(states)) == 1);
    CHECK(!states[1].is_input_open && states[1].input == 3);
    end(&guest);
}

static void all(void)
{
    world_begin();
    RUN_CLEAN(output_waits_for_its_acknowledgement);
    RUN_CLEAN(input_comes_back_through_cat);
    RUN_CLEAN(input_that_is_not_read_is_not_acknowledged);
    RUN_CLEAN(input_that_nobody_will_ever_read_is_acknowledged);
    RUN_CLEAN(processes_go_on_without_a_connection);
    RUN_CLEAN(output_continues_at_the_acknowledged_offset);
    RUN_CLEAN(an_end_that_was_not_heard_is_said_again);
    RUN_CLEAN(input_that_was_sent_twice_is_taken_once);
    RUN_CLEAN(the_newest_connection_wins);
    RUN_CLEAN(many_connections_leave_no_descriptors);
    RUN_CLEAN(nothing_is_sent_before_the_hello);
    RUN_CLEAN(a_window_of_output_needs_no_acknowledgement);
    RUN_CLEAN(a_process_is_heard_beside_an_older_loud_one);
    RUN_CLEAN(a_process_is_heard_beside_a_newer_loud_one);
    RUN_CLEAN(a_busy_heir_of_the_pipe_does_not_hold_the_end);
    RUN_CLEAN(what_an_earlier_connection_read_can_be_acknowledged);
    RUN_CLEAN(a_state_says_what_became_of_stdin);
    RUN_CLEAN(five_thousand_processes_leave_nothing_behind);
    RUN_CLEAN(there_is_a_limit_to_what_is_remembered);
    world_close();
}

int main(void)
{
    RUN(all);
    return 0;
}
