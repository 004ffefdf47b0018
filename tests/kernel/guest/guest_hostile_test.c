// SPDX-License-Identifier: Apache-2.0
/* Frames that holtd never sends. */
#include "kernel/guest/guest_again.h"

static void add_raw(struct buf *out, enum frame_type type, uint32_t process, uint16_t fds,
                    const void *payload, size_t len)
{
    size_t start = frame_begin(out, type, process, fds);

    CHECK(frame_end(out, start, buf_add(out, payload, len) == 0) == 0);
}

static void put_unknown_type(struct buf *out)
{
    add_raw(out, FRAME_SIGNAL, 1, 0, "", 0);
    out->data[4] = 99;
}

static void put_oversize(struct buf *out)
{
    const uint32_t size = FRAME_FROM_DAEMON_MAX + 1;

    add_raw(out, FRAME_INPUT, 1, 0, "", 0);
    memcpy(out->data, &size, sizeof(size));
}

static void put_short_signal(struct buf *out)
{
    add_raw(out, FRAME_SIGNAL, 1, 0, "\x0f", 1);
}

static void put_long_signal(struct buf *out)
{
    add_raw(out, FRAME_SIGNAL, 1, 0, "\x0f\0\0\0\0", 5);
}

static void put_early_ack(struct buf *out)
{
    CHECK(message_put_numbers(out, FRAME_ACK, 1, STREAM_STDOUT, 1 << 20) == 0);
}

static void put_ack_of_no_stream(struct buf *out)
{
    CHECK(message_put_numbers(out, FRAME_ACK, 1, STREAM_COUNT, 0) == 0);
}

static void put_input_with_a_gap(struct buf *out)
{
    CHECK(message_put_input(out, 1, 1000, "x", 1) == 0);
}

static void put_frame_of_a_guest(struct buf *out)
{
    CHECK(message_put_numbers(out, FRAME_READY, 0, WIRE_VERSION, 0) == 0);
}

static void put_wrong_version(struct buf *out)
{
    CHECK(message_put_numbers(out, FRAME_HELLO, 0, WIRE_VERSION + 1, 0) == 0);
}

static void put_boot(struct buf *out)
{
    CHECK(message_put_boot(out, &(struct message_boot){ .builds_root = true }) == 0);
}

static void put_root_without_descriptors(struct buf *out)
{
    CHECK(message_put_root(out, &(struct message_root){
                                    .hostname = "h", .targets = { "/" }, .mount_count = 1 }) == 0);
}

static void put_listen_without_descriptor(struct buf *out)
{
    add_raw(out, FRAME_LISTEN, 0, 0, "", 0);
}

static void put_spawn_without_its_descriptor(struct buf *out)
{
    CHECK(message_put_spawn(out, 2, 1, SHELL("true")) == 0);
}

/* A connection to a port that refuses it: it exists until the daemon has sent its last frame. */
static void put_connect(struct buf *out, uint32_t number)
{
    CHECK(message_put_numbers(out, FRAME_CONNECT, number, 9, 0) == 0);
}

static void put_connect_without_number(struct buf *out)
{
    put_connect(out, 0);
}

static void put_connect_in_a_taken_slot(struct buf *out)
{
    put_connect(out, 5);
    put_connect(out, 5 + FRAME_CONNECTIONS_MAX);
}

static void put_data_of_no_connection(struct buf *out)
{
    put_connect(out, 5);
    CHECK(message_put_conn_data(out, 5 + FRAME_CONNECTIONS_MAX, 0, "x", 1) == 0);
}

static void put_data_with_a_gap(struct buf *out)
{
    put_connect(out, 5);
    CHECK(message_put_conn_data(out, 5, 1, "x", 1) == 0);
}

static void put_data_behind_the_end(struct buf *out)
{
    put_connect(out, 5);
    CHECK(message_put_numbers(out, FRAME_CONN_EOF, 5, 0, 0) == 0);
    CHECK(message_put_conn_data(out, 5, 0, "x", 1) == 0);
}

static void put_ack_of_what_was_not_sent(struct buf *out)
{
    put_connect(out, 5);
    CHECK(message_put_numbers(out, FRAME_CONN_ACK, 5, 1, 0) == 0);
}

static void put_word_behind_the_last(struct buf *out)
{
    put_connect(out, 5);
    CHECK(message_put_numbers(out, FRAME_CONN_END, 5, 0, 0) == 0);
    CHECK(message_put_numbers(out, FRAME_CONN_END, 5, 0, 0) == 0);
}

static void put_connected(struct buf *out)
{
    put_connect(out, 5);
    CHECK(message_put_numbers(out, FRAME_CONNECTED, 5, 0, 0) == 0);
}

static void put_noise(struct buf *out)
{
    for (int i = 0; i < 1000; i++)
        CHECK(buf_add(out, &(char){ (char)(i * 2654435761u >> 11) }, 1) == 0);
}

static void malformed_frames_end_the_connection_and_nothing_else(void)
{
    static void (*const puts[])(struct buf * out) = {
        put_unknown_type,
        put_oversize,
        put_short_signal,
        put_long_signal,
        put_early_ack,
        put_ack_of_no_stream,
        put_input_with_a_gap,
        put_frame_of_a_guest,
        put_wrong_version,
        put_boot,
        put_root_without_descriptors,
        put_listen_without_descriptor,
        put_spawn_without_its_descriptor,
        put_connect_without_number,
        put_connect_in_a_taken_slot,
        put_data_of_no_connection,
        put_data_with_a_gap,
        put_data_behind_the_end,
        put_ack_of_what_was_not_sent,
        put_word_behind_the_last,
        put_connected,
        put_noise,
    };
    cleanup_with(seen_done) struct seen seen = SEEN_INIT;
    struct guest guest = start();
    struct message_state states[4];
    size_t fds;

    send_listener(&guest);
    spawn_with_stdin(&guest, 1, "exec cat");
    fds = fds_of(&guest);
    for (size_t i = 0; i < ARRAY_SIZE(puts); i++) {
        struct buf out = BUF_INIT(1 << 16);

        puts[i](&out);
        send_buf(&guest, &out);
        expect_end(&guest);
        CHECK(reconnect(&guest, states, ARRAY_SIZE(states)) == 1, "(after number %zu)", i);
        CHECK(!states[1].is_exited && states[1].input == 0);
        CHECK(fds_of(&guest) == fds, "(after number %zu: %zu, then %zu)", i, fds, fds_of(&guest));
    }
    send_input(&guest, 1, 0, "still", 5);
    send_numbers(&guest, FRAME_INPUT_EOF, 1, 5, 0);
    read_to_end(&guest, 1, &seen);
    check_text(&seen, STREAM_STDOUT, "still");
    end(&guest);
}

static void input_beyond_the_window_ends_the_connection(void)
{
    cleanup_free char *data = xcalloc(1, FRAME_WINDOW);
    struct guest guest = start();
    struct message_state states[4];

    send_listener(&guest);
    spawn_with_stdin(&guest, 1, "exec sleep 1000");
    send_input(&guest, 1, 0, data, FRAME_WINDOW);
    send_input(&guest, 1, FRAME_WINDOW, data, FRAME_WINDOW);
    expect_end(&guest);
    CHECK(reconnect(&guest, states, ARRAY_SIZE(states)) == 1);
    CHECK(rss_kib(&guest) < RSS_MAX_KIB);
    end(&guest);
}

static void a_malformed_spawn_starts_nothing(void)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(1 << 16);
    struct guest guest = start();
    struct message_state states[4];
    struct frame frame;
    int r;

    send_listener(&guest);
    add_raw(&out, FRAME_SPAWN, 1, 0, "\xff\xff\xff\xff", 4);
    send_bytes(&guest, out.data, out.len, NULL, 0);
    r = receive_for(&guest, PATIENCE_MS, &frame);
    CHECK(r == 0 || (r == 1 && frame.type == FRAME_FAILED));
    CHECK(reconnect(&guest, states, ARRAY_SIZE(states)) == 0);
    end(&guest);
}

static void frames_may_come_byte_by_byte(void)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(FRAME_FROM_DAEMON_MAX);
    cleanup_with(seen_done) struct seen seen = SEEN_INIT;
    struct guest guest = start();

    CHECK(message_put_spawn(&out, 1, 0, SHELL("echo hi")) == 0);
    for (size_t i = 0; i < out.len; i++)
        send_bytes(&guest, out.data + i, 1, NULL, 0);
    (void)expect(&guest, FRAME_STARTED, 1);
    read_to_end(&guest, 1, &seen);
    check_text(&seen, STREAM_STDOUT, "hi\n");
    end(&guest);
}

static void write_group(int group_fd, const char *name, const char *text)
{
    cleanup_close int fd = openat(group_fd, name, O_WRONLY | O_CLOEXEC);

    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), "(%s: %s)", name,
          strerror(errno));
}

/* Waits for the first process of the group. */
static pid_t process_of_group(int group_fd)
{
    char text[64];
    ssize_t n = 0;

    while (n == 0) {
        cleanup_close int fd = openat(group_fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);

        CHECK(fd >= 0, "(%s)", strerror(errno));
        n = read(fd, text, sizeof(text) - 1);
        CHECK(n >= 0);
    }
    text[n] = '\0';
    return (pid_t)strtol(text, NULL, 10);
}

/* Sends a spawn whose child is frozen as soon as it exists, and returns its pid. */
static pid_t spawn_frozen(struct guest *guest, uint32_t id, const char *text, int *ret_group_fd)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(FRAME_FROM_DAEMON_MAX);
    struct err err = { 0 };
    char name[16];

    (void)snprintf(name, sizeof(name), "p%u", id);
    CHECK_OK(
        cgroup_open_child(world.cgroups, guest->started.id, name, FIRST_UID, ret_group_fd, &err),
        &err);
    write_group(*ret_group_fd, "cgroup.freeze", "1");
    CHECK(message_put_spawn(&out, id, 1, SHELL(text)) == 0);
    send_bytes(guest, out.data, out.len, ret_group_fd, 1);
    return process_of_group(*ret_group_fd);
}

/* Every process in a sandbox can send the signal at this moment. */
static void a_child_that_is_stopped_before_its_exec_goes_on(void)
{
    cleanup_with(seen_done) struct seen seen = SEEN_INIT;
    cleanup_close int group_fd = -EBADF;
    struct guest guest = start();
    pid_t pid = spawn_frozen(&guest, 1, "echo went on", &group_fd);

    CHECK(kill(pid, SIGSTOP) == 0);
    write_group(group_fd, "cgroup.freeze", "0");
    (void)expect(&guest, FRAME_STARTED, 1);
    read_to_end(&guest, 1, &seen);
    check_text(&seen, STREAM_STDOUT, "went on\n");
    end(&guest);
}

enum { STOP_TRIES = 40, CONTINUE_MS = 2000 };

/* Returns the letter of ps; 'X' when there is no such process. */
static char state_of(pid_t pid)
{
    char path[32], state = 'X';
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    if (!file)
        return 'X';
    if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
        state = 'X'; /* it ended meanwhile */
    (void)fclose(file);
    return state;
}

/* Stops the child again whenever holt-init continues it. It is frozen in between, so that it comes
 * no further; but holt-init may continue it in the moment before it is frozen. */
static void stop_always(pid_t pid, int group_fd)
{
    while (kill(pid, SIGSTOP) == 0 && state_of(pid) != 'X') {
        write_group(group_fd, "cgroup.freeze", "0");
        while (state_of(pid) != 'T' && state_of(pid) != 'X')
            continue;
        write_group(group_fd, "cgroup.freeze", "1");
        for (int ms = 0; state_of(pid) == 'T'; ms++) {
            if (ms == CONTINUE_MS) { /* it has executed its command */
                write_group(group_fd, "cgroup.freeze", "0");
                return;
            }
            (void)usleep(1000);
        }
    }
}

static void a_child_that_is_always_stopped_holds_up_nothing(void)
{
    bool is_failed = false;

    for (int i = 0; i < STOP_TRIES && !is_failed; i++) {
        cleanup_close int group_fd = -EBADF;
        struct guest guest = start();
        struct message_failed failed;
        struct frame frame;
        pid_t pid = spawn_frozen(&guest, 1, "true", &group_fd);

        stop_always(pid, group_fd);
        frame = receive(&guest);
        is_failed = frame.type == FRAME_FAILED;
        if (is_failed) {
            CHECK(message_get_failed(&frame, &failed));
            CHECK(failed.step == FAILED_SETUP && failed.errnum == EINTR, "(%s)", failed.text);
            check_run(&guest, 2, "echo alive", "alive\n");
        }
        end(&guest);
    }
    CHECK(is_failed);
}

static void an_idle_guest_is_small(void)
{
    struct guest guest = start();

    check_run(&guest, 1, "seq 100000 | tail -n 1", "100000\n");
    CHECK(rss_kib(&guest) < 1024, "(%ld KiB)", rss_kib(&guest));
    end(&guest);
}

static void all(void)
{
    world_begin();
    RUN_CLEAN(malformed_frames_end_the_connection_and_nothing_else);
    RUN_CLEAN(input_beyond_the_window_ends_the_connection);
    RUN_CLEAN(a_malformed_spawn_starts_nothing);
    RUN_CLEAN(frames_may_come_byte_by_byte);
    RUN_CLEAN(a_child_that_is_stopped_before_its_exec_goes_on);
    RUN_CLEAN(a_child_that_is_always_stopped_holds_up_nothing);
    RUN_CLEAN(an_idle_guest_is_small);
    world_close();
}

int main(void)
{
    RUN(all);
    return 0;
}
