// SPDX-License-Identifier: Apache-2.0
/* What a guest must not say about a connection: each of these ends the machine's channel. */
#include <sys/pidfd.h>

#include "host/machine/machine_internal.h"
#include "host/port/port_internal.h"
#include "kernel/host/port_world.h"
#include "wire/message.h"

enum { BOUND = 256 * 1024 * 1024 };

static struct machine *machine;
static uint32_t number; /* of a connection whose server is silent */

/* Whether the daemon accepts the frame. */
static bool say(struct buf *out)
{
    struct frame frame;
    long used = frame_parse(out->data, out->len, FRAME_FROM_GUEST_MAX, &frame);
    bool is_ok;

    CHECK(used == (long)out->len);
    is_ok = port_frame(machine, &frame);
    buf_done(out);
    return is_ok;
}

static bool say_numbers(enum frame_type type, uint32_t of, uint64_t value)
{
    struct buf out = BUF_INIT(64);

    CHECK(message_put_numbers(&out, type, of, value, 0) == 0);
    return say(&out);
}

static bool say_data(uint32_t of, uint64_t offset, const void *data, size_t len)
{
    struct buf out = BUF_INIT(FRAME_FROM_GUEST_MAX);

    CHECK(message_put_conn_data(&out, of, offset, data, len) == 0);
    return say(&out);
}

static bool say_short(enum frame_type type)
{
    struct buf out = BUF_INIT(64);
    size_t start = frame_begin(&out, type, number, 0);

    CHECK(frame_end(&out, start, put_u8(&out, 1)) == 0);
    return say(&out);
}

static void numbers_of_no_connection_are_refused(void)
{
    CHECK(!say_data(0, 0, "x", 1));
    CHECK(!say_data(number + 1, 0, "x", 1));
    CHECK(!say_data(number + FRAME_CONNECTIONS_MAX, 0, "x", 1));
    CHECK(!say_numbers(FRAME_CONN_END, number + 1, ECONNRESET));
}

static void frames_out_of_order_are_refused(void)
{
    CHECK(!say_numbers(FRAME_CONNECTED, number, 0));
    CHECK(!say_numbers(FRAME_CONNECT, number, 80));
    CHECK(!say_data(number, 1, "x", 1));
    CHECK(!say_data(number, 0, "", 0));
    CHECK(!say_numbers(FRAME_CONN_EOF, number, 7));
    CHECK(!say_numbers(FRAME_CONN_ACK, number, 2)); /* one byte was sent */
    CHECK(!say_numbers(FRAME_CONN_ACK, number, 0));
    CHECK(!say_numbers(FRAME_CONN_END, number, 0)); /* no direction is over */
    CHECK(!say_numbers(FRAME_CONN_END, number, 4096));
}

static void payloads_of_the_wrong_size_are_refused(void)
{
    CHECK(!say_short(FRAME_CONNECTED));
    CHECK(!say_short(FRAME_CONN_DATA));
    CHECK(!say_short(FRAME_CONN_ACK));
    CHECK(!say_short(FRAME_CONN_END));
}

/* The client does not read, so that at some time nothing more may be sent. The true holt-init must
 * not see the answers to what it did not say. */
static void more_than_the_window_is_refused(void)
{
    static char data[FRAME_DATA_MAX];
    long before = rss_kib_of(getpid());
    uint64_t sent = 0;

    CHECK(pidfd_send_signal(machine->guest.pidfd, SIGSTOP, NULL, 0) == 0);
    while (say_data(number, sent, data, sizeof(data))) {
        sent += sizeof(data);
        CHECK(sent < BOUND);
    }
    CHECK(sent >= FRAME_CONN_WINDOW);
    CHECK(rss_kib_of(getpid()) < before + 8 * 1024);
}

static uint32_t find_number(void)
{
    for (unsigned i = 0; i < FRAME_CONNECTIONS_MAX; i++)
        if (machine->ports.slots[i])
            return i; /* the first life of the slot */
    return 0;
}

/* Whether the daemon has heard from the guest that the server took the connection. */
static bool is_connected(void)
{
    struct port_connection *connection = machine->ports.slots[number];
    bool is;

    lock_take(&connection->ports->lock);
    is = connection->is_connected;
    lock_release(&connection->ports->lock);
    return is;
}

static void all(void)
{
    struct host_counts before = host_count();
    struct port_forward *forwarded;
    struct sandbox *sandbox;
    int fd;

    must_be_root();
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    world_open("auto");
    world_add_server();
    world_import("small");
    sandbox = world_create(NULL);
    machine = sandbox->machine;
    serve_on(sandbox, "127.0.0.1", SERVER_PORT);
    forwarded = forward(sandbox, SERVER_PORT);
    check_echo(forwarded);
    EVENTUALLY(machine->ports.used == 0);
    fd = client_of(forwarded);
    put(fd, "q", 1);
    EVENTUALLY(world_sh(sandbox, "/bin/busybox grep -q ':1B58 .* 01 ' /proc/net/tcp", NULL) == 0);
    number = find_number();
    EVENTUALLY(is_connected());
    RUN(numbers_of_no_connection_are_refused);
    RUN(payloads_of_the_wrong_size_are_refused);
    RUN(frames_out_of_order_are_refused);
    RUN(more_than_the_window_is_refused);
    (void)close(fd);
    port_forward_close(forwarded);
    world_destroy(sandbox);
    world_close();
    CHECK(host_count().fds == before.fds);
}

int main(void)
{
    RUN(all);
    return 0;
}
