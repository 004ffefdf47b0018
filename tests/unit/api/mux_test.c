// SPDX-License-Identifier: Apache-2.0
/* Frames of the multiplexed stream, and one channel of it against a server that the test plays. */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "api/mux/channel.h"
#include "api/mux/frame.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "check.h"
#include "wire/envelope.h"

/* --- frames ----------------------------------------------------------------------------------- */

static int parse(const char *text, struct mux_frame *ret)
{
    struct err err = { 0 };
    int r = mux_frame_parse(text, strlen(text), ret, &err);

    CHECK(r == 0 || err.kind == ERR_INVALID, "%s", text);
    return r;
}

static void frames_are_read(void)
{
    struct mux_frame frame;

    CHECK(parse("{\"id\":7,\"call\":\"holt.v1.A/B\",\"message\":{\"a\":1},\"credit\":9}", &frame) ==
          0);
    CHECK(frame.id == 7 && frame.has_credit && frame.credit == 9 && !frame.is_end);
    CHECK(strcmp(frame.call, "holt.v1.A/B") == 0 && json_object_size(frame.message) == 1);
    mux_frame_done(&frame);
    CHECK(parse("{\"id\":9007199254740991,\"end\":true,\"cancel\":false}", &frame) == 0);
    CHECK(frame.id == MUX_ID_MAX && frame.is_end && !frame.is_cancel && !frame.has_credit);
    mux_frame_done(&frame);
    CHECK(parse("{\"ping\":0}", &frame) == 0 && frame.is_ping && frame.id == 0);
    mux_frame_done(&frame);
    CHECK(parse("{\"key\":\"k\"}", &frame) == 0 && strcmp(frame.key, "k") == 0);
    mux_frame_done(&frame);
}

static void other_frames_are_refused(void)
{
    static const char *const cases[] = {
        "",
        "{}",
        "[]",
        "{\"id\":1}",
        "{\"id\":0,\"end\":true}",
        "{\"end\":true}",
        "{\"id\":9007199254740992,\"end\":true}",
        "{\"id\":1,\"end\":1}",
        "{\"id\":1,\"message\":1}",
        "{\"id\":1,\"credit\":-1}",
        "{\"id\":1,\"ping\":1,\"end\":true}",
        "{\"key\":\"k\",\"ping\":1}",
        "{\"key\":1}",
        "{\"id\":1,\"end\":true,\"more\":1}",
        "{\"id\":1,\"call\":\"x\",\"timeoutMs\":4294967296}",
    };
    struct mux_frame frame;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        CHECK(parse(cases[i], &frame) < 0, "(%s)", cases[i]);
}

static void characters_are_counted(void)
{
    static const char text[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80";

    CHECK(mux_count_characters(text, strlen(text)) == 4);
    CHECK(mux_count_characters("", 0) == 0);
}

/* --- a channel -------------------------------------------------------------------------------- */

static struct {
    struct mux_channel channel;
    int server_fd;
    char frames[16][512]; /* that were passed on */
    size_t count;
} world;

static int frame_keep(void *context, const struct buf *frame)
{
    (void)context;
    CHECK(world.count < ARRAY_SIZE(world.frames));
    (void)snprintf(world.frames[world.count++], sizeof(world.frames[0]), "%s", frame->data);
    return 0;
}

static const struct mux_sink sink = { frame_keep, NULL };

static void start(enum connect_shape shape, int64_t credit)
{
    const struct mux_request request = { "holt.v1.A/B", NULL, 0 };
    struct err err;
    int pair[2];

    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
    world.channel = (struct mux_channel){ .id = 7, .shape = shape, .fd = pair[0] };
    world.server_fd = pair[1];
    CHECK(mux_channel_init(&world.channel, &request, &err) == 0);
    world.channel.credit = credit;
}

static void stop(void)
{
    (void)fd_close(world.channel.fd);
    (void)fd_close(world.server_fd);
    mux_channel_done(&world.channel);
}

/* What poll(2) would report if all of it were ready. */
static void turn(void)
{
    mux_channel_transfer(&world.channel, mux_channel_events(&world.channel));
    CHECK(mux_channel_pass(&world.channel, &sink) == 0);
}

static void serve(const char *text, size_t len)
{
    CHECK(send(world.server_fd, text, len, MSG_NOSIGNAL) == (ssize_t)len);
}

static void serve_head(void)
{
    static const char head[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

    serve(head, strlen(head));
}

static void serve_message(const char *json, bool is_end)
{
    cleanup_with(buf_done) struct buf envelope = BUF_INIT(4096), chunk = BUF_INIT(4096);

    CHECK(envelope_add(&envelope, json, strlen(json)) == 0);
    envelope.data[0] = is_end ? 2 : 0;
    CHECK(buf_printf(&chunk, "%zx\r\n", envelope.len) == 0);
    CHECK(buf_add(&chunk, envelope.data, envelope.len) == 0 && buf_add_str(&chunk, "\r\n") == 0);
    serve(chunk.data, chunk.len);
}

static void a_request_is_written_whole(void)
{
    char text[1024];
    ssize_t n;

    start(CONNECT_UNARY, 100);
    CHECK(mux_channel_events(&world.channel) == (POLLIN | POLLOUT));
    turn();
    n = recv(world.server_fd, text, sizeof(text) - 1, 0);
    CHECK(n > 0);
    text[n] = '\0';
    CHECK(strncmp(text, "POST /holt.v1.A/B HTTP/1.1\r\n", 28) == 0, "%s", text);
    CHECK(strstr(text, "Content-Length: 2\r\n\r\n{}"), "%s", text);
    CHECK(mux_channel_events(&world.channel) == POLLIN);
    stop();
}

static void a_unary_reply_is_a_message_and_an_end(void)
{
    static const char reply[] = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n{\"a\":1}";

    start(CONNECT_UNARY, 0);
    serve(reply, strlen(reply));
    turn();
    CHECK(world.count == 0 && !world.channel.is_over, "without credit");
    mux_channel_grant(&world.channel, 1);
    turn();
    CHECK(world.count == 2 && world.channel.is_over);
    CHECK(strcmp(world.frames[0], "{\"id\":7,\"message\":{\"a\":1}}") == 0, "%s", world.frames[0]);
    CHECK(strcmp(world.frames[1], "{\"id\":7,\"end\":{}}") == 0, "%s", world.frames[1]);
    stop();
}

static void a_refusal_is_the_error(void)
{
    static const char reply[] =
        "HTTP/1.1 404 Not Found\r\nContent-Length: 15\r\n\r\n{\"code\":\"none\"}";

    start(CONNECT_STREAM, 0);
    serve(reply, strlen(reply));
    turn();
    CHECK(world.count == 1 && world.channel.is_over);
    CHECK(strcmp(world.frames[0], "{\"id\":7,\"end\":{\"error\":{\"code\":\"none\"}}}") == 0, "%s",
          world.frames[0]);
    stop();
}

/* The message that exceeds the credit is sent, the next one is not; an end needs none. */
static void credit_holds_messages_back(void)
{
    start(CONNECT_STREAM, 10);
    serve_head();
    serve_message("{\"n\":1}", false);
    serve_message("{\"n\":2}", false);
    serve_message("{}", true);
    turn();
    CHECK(world.count == 1 && world.channel.credit < 0);
    CHECK(strcmp(world.frames[0], "{\"id\":7,\"message\":{\"n\":1}}") == 0, "%s", world.frames[0]);
    mux_channel_grant(&world.channel, (uint64_t)-world.channel.credit);
    turn();
    CHECK(world.count == 1 && world.channel.credit == 0);
    mux_channel_grant(&world.channel, 1);
    turn();
    CHECK(world.count == 3 && world.channel.is_over);
    CHECK(strcmp(world.frames[2], "{\"id\":7,\"end\":{}}") == 0, "%s", world.frames[2]);
    stop();
}

static void a_channel_without_credit_stops_reading(void)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(4096);
    char filler[1500];

    memset(filler, 'x', sizeof(filler));
    CHECK(buf_printf(&text, "{\"a\":\"%.*s\"}", (int)sizeof(filler), filler) == 0);
    start(CONNECT_STREAM, 0);
    turn();
    serve_head();
    for (int i = 0; i < 20; i++) {
        serve_message(text.data, false);
        turn();
    }
    CHECK(world.count == 0);
    CHECK(!(mux_channel_events(&world.channel) & POLLIN) && world.channel.in.len < 16384);
    mux_channel_grant(&world.channel, UINT64_MAX);
    CHECK(world.channel.credit == MUX_CREDIT_MAX && (mux_channel_events(&world.channel) & POLLIN));
    stop();
}

static void what_ends_too_early_is_an_error(void)
{
    start(CONNECT_STREAM, 1000);
    serve_head();
    serve_message("{}", false);
    world.server_fd = fd_close(world.server_fd);
    turn();
    turn();
    CHECK(world.count == 2 && world.channel.is_over);
    CHECK(strstr(world.frames[1], "\"code\":\"unavailable\""), "%s", world.frames[1]);
    stop();
}

static void garbage_is_an_error(void)
{
    start(CONNECT_STREAM, 1000);
    serve("garbage\r\n\r\n", 11);
    turn();
    CHECK(world.count == 1 && world.channel.is_over);
    stop();
}

static void an_upload_has_credit(void)
{
    cleanup_json json_t *message = json_object();
    char text[1024];
    struct err err = { 0 };

    start(CONNECT_UPLOAD, 1000);
    turn();
    CHECK(recv(world.server_fd, text, sizeof(text), 0) > 0);
    CHECK(mux_channel_add(&world.channel, message, MUX_UPLOAD_CREDIT / 2, &err) == 0);
    turn();
    CHECK(world.count == 1, "half of the window is granted again");
    CHECK(strcmp(world.frames[0], "{\"id\":7,\"credit\":524288}") == 0, "%s", world.frames[0]);
    CHECK(mux_channel_add(&world.channel, message, MUX_UPLOAD_CREDIT, &err) == 0);
    CHECK(mux_channel_add(&world.channel, message, 1, &err) < 0 && err.kind == ERR_EXHAUSTED);
    CHECK(mux_channel_end(&world.channel, &err) == 0 && world.channel.is_request_ended);
    CHECK(mux_channel_add(&world.channel, message, 1, &err) < 0 && err.kind == ERR_INVALID);
    stop();
}

int main(void)
{
    RUN(frames_are_read);
    RUN(other_frames_are_refused);
    RUN(characters_are_counted);
    RUN(a_request_is_written_whole);
    RUN(a_unary_reply_is_a_message_and_an_end);
    RUN(a_refusal_is_the_error);
    RUN(credit_holds_messages_back);
    RUN(a_channel_without_credit_stops_reading);
    RUN(what_ends_too_early_is_an_error);
    RUN(garbage_is_an_error);
    RUN(an_upload_has_credit);
}
