// SPDX-License-Identifier: Apache-2.0
/* What a sandbox may do to the workers in it, and what a worker may say, if it could be made to. */
#include <pthread.h>
#include <sys/socket.h>

#include "host/machine/machine_internal.h"
#include "host/sandbox/sandbox_internal.h"
#include "kernel/fds.h"
#include "kernel/host/file_world.h"

static struct sandbox *box;

/* --- what happens to workers ------------------------------------------------------------------ */

static void a_worker_that_is_killed_ends_its_call_alone(void)
{
    const struct file_request write = { .type = FILE_WRITE, .path = "w", .flags = FILE_ATOMIC };
    struct file_call *call = call_open(box);
    struct file_answer answer;
    struct err err = { 0 };
    int r;

    CHECK_OK(file_call_send_request(call, &write, &err), &err);
    CHECK(world_sh(box, "busybox killall -9 holt-files", NULL) == 0);
    r = file_call_send_data(call, "x", 1, &err);
    if (r == 0)
        r = file_call_send_end(call, &err);
    if (r == 0)
        r = file_call_next(call, &answer, &err);
    CHECK(r < 0 && err.kind == ERR_BUSY, "(%s)", err.msg);
    file_call_close(call);
    CHECK_DONE(ask_path(box, FILE_STAT, "/", 0));
}

/* One that is stopped sees nothing, so it is killed. */
static void a_worker_that_is_stopped_goes_with_its_call(void)
{
    const struct file_request stat = { .type = FILE_STAT, .path = "/" };
    struct file_call *call = call_open(box);
    struct err err = { 0 };
    int before = world_running(box, "holt-files");

    CHECK(world_sh(box, "busybox killall -STOP holt-files", NULL) == 0);
    CHECK_OK(file_call_send_request(call, &stat, &err), &err);
    file_call_close(call);
    EVENTUALLY(world_running(box, "holt-files") < before);
    CHECK(world_sh(box, "busybox killall -9 holt-files; true", NULL) == 0);
}

static void a_stopped_idle_worker_holds_up_no_call(void)
{
    CHECK_DONE(ask_path(box, FILE_STAT, "/", 0));
    CHECK(world_sh(box, "busybox killall -STOP holt-files", NULL) == 0);
    CHECK_DONE(ask_path(box, FILE_STAT, "/", 0));
}

static void nobody_inside_looks_into_a_worker(void)
{
    CHECK_DONE(ask_path(box, FILE_STAT, "/", 0));
    CHECK(world_sh(box,
                   "for p in $(busybox pidof holt-files); do "
                   "cat /proc/$p/environ /proc/$p/maps /proc/$p/mem && exit 1; "
                   "ls /proc/$p/fd && exit 1; busybox readlink /proc/$p/exe && exit 1; "
                   "busybox readlink /proc/$p/root && exit 1; done 2>/dev/null; true",
                   NULL) == 0);
}

static void a_sandbox_without_room_for_a_worker_says_so(void)
{
    struct sandbox_spec spec = {
        .caller = &caller_root, .name = "narrow", .template = "small", .limits = { .pids = 2 }
    };
    struct sandbox *narrow = NULL;
    struct file_call *call = NULL;
    struct process *process = NULL;
    char *args[] = { (char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-c",
                     (char *)(uintptr_t) "sleep 1000 & wait", NULL };
    const struct process_spec command = { .args = args };
    struct err err = { 0 };
    int r;

    CHECK_OK(sandbox_create(world.host, &spec, &narrow, &err), &err);
    CHECK_OK(sandbox_exec(narrow, &command, &process, &err), &err);
    do {
        r = file_call_open(narrow, -1, false, &call, &err);
        if (r == 0) {
            file_call_close(call); /* the shell has not started its child yet */
            machine_end_processes(narrow->machine, KILLER_USER);
            process_abandon(process);
            CHECK_OK(sandbox_exec(narrow, &command, &process, &err), &err);
            pause_ms(100);
        }
    } while (r == 0);
    CHECK(err.kind == ERR_EXHAUSTED, "(%s)", err.msg);
    process_abandon(process);
    world_destroy(narrow);
}

/* --- what happens to files ------------------------------------------------------------------- */

/* Names change what they are while they are looked at; nothing else is touched, nothing hangs. */
static void names_that_change_lead_nowhere(void)
{
    char *args[] = { (char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-c",
                     (char *)(uintptr_t) "mkdir -p /evil/a /kept/d && echo x > /kept/f; cd /evil; "
                                         "while :; do mkdir s; touch s/f; mv s t; ln -s /kept s; "
                                         "rm s; busybox mkfifo s; rm s; rm -r t; done",
                     NULL };
    const struct process_spec command = { .args = args, .is_detached = true };
    const struct file_request pull = { .type = FILE_PULL, .path = "/evil" };
    const struct file_request list = {
        .type = FILE_LIST, .path = "/evil", .depth = 9, .limit = 99
    };
    struct process *process = NULL;
    struct err err = { 0 };

    CHECK_OK(sandbox_exec(box, &command, &process, &err), &err);
    EVENTUALLY(ask_path(box, FILE_STAT, "/kept/f", 0).entry.size == 2);
    for (int i = 0; i < 150; i++) {
        CHECK_DONE(ask(box, &pull, NULL));
        CHECK_DONE(ask(box, &list, NULL));
        (void)file_put_text(box, "/evil/s/f", "bad", i % 2 ? FILE_ATOMIC : 0);
        (void)ask_path(box, FILE_READ, "/evil/s", 0);
        (void)ask_path(box, FILE_REMOVE, "/evil/s", FILE_RECURSIVE);
    }
    process_kill(process, KILLER_USER);
    process_abandon(process);
    CHECK(ask_path(box, FILE_STAT, "/kept/d", 0).entry.type == ENTRY_DIRECTORY);
}

/* --- what callers may do to each other -------------------------------------------------------- */

/* Calls of read-only tokens that never end leave workers for others. */
static void who_may_only_look_leaves_room_for_others(void)
{
    struct file_call *calls[FILE_READ_ONLY_MAX], *call = NULL;
    struct err err = { 0 };
    int client[2];

    for (int i = 0; i < FILE_READ_ONLY_MAX; i++)
        CHECK_OK(file_call_open(box, -1, true, &calls[i], &err), &err);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, client) == 0);
    (void)close(client[1]);
    CHECK(file_call_open(box, client[0], true, &call, &err) == -ECANCELED); /* it would wait */
    CHECK_DONE(ask_path(box, FILE_STAT, "/", 0));
    for (int i = 0; i < FILE_READ_ONLY_MAX; i++)
        file_call_close(calls[i]);
    CHECK_OK(file_call_open(box, client[0], true, &call, &err), &err);
    file_call_close(call);
    (void)close(client[0]);
}

/* --- what a worker may say ------------------------------------------------------------------- */

/* A worker of our own in the place of all others; what it says is in its socket already. */
static int false_worker(void)
{
    struct file_pool *pool = &box->machine->files;
    struct file_worker worker = { .pidfd = -EBADF };
    int fds[2];

    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    worker.fd = fds[0];
    file_pool_close(pool);
    pool->is_closed = false;
    pool->count++;
    file_pool_give(pool, &worker, true);
    return fds[1];
}

/* What becomes of a call whose worker says this, and then nothing. */
static struct outcome_of_file hear(enum file_message_type type, const void *data, size_t len)
{
    const struct file_request request = { .type = type, .path = "/", .to = "/x", .limit = 1 };
    struct outcome_of_file outcome = { .r = 0 };
    int fd = false_worker();
    struct file_call *call = call_open(box);
    struct file_answer answer;
    struct pollfd hung_up = { .fd = fd }; /* as such a worker is not reused */

    outcome.r = file_call_send_request(call, &request, &outcome.err);
    CHECK(outcome.r == 0);
    CHECK(send(fd, data, len, MSG_NOSIGNAL) == (ssize_t)len);
    CHECK(shutdown(fd, SHUT_WR) == 0);
    do
        outcome.r = file_call_next(call, &answer, &outcome.err);
    while (outcome.r > 0);
    file_call_close(call);
    CHECK(poll(&hung_up, 1, PATIENCE_MS) == 1, "(the worker is kept)");
    (void)close(fd);
    return outcome;
}

static struct outcome_of_file hear_message(enum file_message_type type,
                                           enum file_message_type answer, const void *payload,
                                           size_t len)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(1 << 20);
    char header[FILE_HEADER_SIZE];

    file_header(header, answer, len);
    CHECK(buf_add(&out, header, sizeof(header)) == 0 && buf_add(&out, payload, len) == 0);
    return hear(type, out.data, out.len);
}

static void answers_that_cannot_be_meant_end_the_worker(void)
{
    static const char zeros[512];
    static const unsigned char huge[] = { 255, 255, 255, 255, FILE_ENTRY, 0, 0, 0 };
    static const unsigned char unknown[] = { 0, 0, 0, 0, 99, 0, 0, 0 };
    static const unsigned char hello[] = { 4, 0, 0, 0, FILE_HELLO, 0, 0, 0, 0, 0, 0, 0 };
    static const unsigned char end[] = { 4, 0, 0, 0, FILE_END, 0, 0, 0, 0, 0, 0, 0 };
    static const unsigned char failed[] = { 14, 0, 0, 0, FILE_FAILED, 0, 0, 0, 0, 0, 0,
                                            0,  1, 0, 0, 0,           0, 1, 0, 0, 0, 0 };

    CHECK_REFUSED(hear(FILE_STAT, "", 0), ERR_BUSY);
    CHECK_REFUSED(hear(FILE_STAT, "abc", 3), ERR_BUSY);
    CHECK_REFUSED(hear(FILE_STAT, zeros, sizeof(zeros)), ERR_INTERNAL);
    CHECK_REFUSED(hear(FILE_STAT, huge, sizeof(huge)), ERR_INTERNAL);
    CHECK_REFUSED(hear(FILE_STAT, unknown, sizeof(unknown)), ERR_INTERNAL);
    CHECK_REFUSED(hear(FILE_STAT, hello, sizeof(hello)), ERR_INTERNAL);
    CHECK_REFUSED(hear(FILE_STAT, end, sizeof(end)), ERR_INTERNAL);
    CHECK_REFUSED(hear(FILE_READ, failed, sizeof(failed)), ERR_INTERNAL); /* with errno 0 */
    CHECK_REFUSED(hear_message(FILE_STAT, FILE_ENTRY, zeros, sizeof(zeros)), ERR_INTERNAL);
    CHECK_REFUSED(hear_message(FILE_REMOVE, FILE_DATA, zeros, 10), ERR_INTERNAL);
    CHECK_REFUSED(hear_message(FILE_LIST, FILE_EVENT, zeros, 10), ERR_INTERNAL);
    CHECK_REFUSED(hear_message(FILE_WATCH, FILE_EVENT, zeros, 10), ERR_INTERNAL);
    CHECK_REFUSED(hear_message(FILE_PULL, FILE_TROUBLE, zeros, 10), ERR_INTERNAL);
}

/* One surplus message, and the worker is not reused; hear() then sees the hang-up. */
static void a_worker_that_says_more_than_it_was_asked_is_ended(void)
{
    static const unsigned char twice[] = { 4, 0, 0, 0, FILE_END, 0, 0, 0, 0, 0, 0, 0,
                                           4, 0, 0, 0, FILE_END, 0, 0, 0, 0, 0, 0, 0 };

    CHECK_DONE(hear(FILE_REMOVE, twice, sizeof(twice)));
    CHECK_DONE(ask_path(box, FILE_STAT, "/", 0));
}

static void a_listing_is_no_longer_than_was_asked_for(void)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(1 << 16);
    const struct file_entry entry = { .type = ENTRY_FILE,
                                      .path = "",
                                      .target = "",
                                      .same_as = "",
                                      .user_name = "",
                                      .group_name = "" };

    for (int i = 0; i < 2; i++)
        CHECK(file_put_entry(&out, &entry) == 0);
    CHECK(file_put_number(&out, FILE_END, 0) == 0);
    CHECK_REFUSED(hear(FILE_LIST, out.data, out.len), ERR_INTERNAL);
}

/* A call that sends until its client disconnects, since the worker takes only what fits. */
static struct file_call *send_until_gone(const struct file_request *request)
{
    static const char zeros[FILE_DATA_MAX];
    struct file_call *call = NULL;
    struct err err = { 0 };
    int client[2], r = 0;

    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, client) == 0);
    CHECK_OK(file_call_open(box, client[0], false, &call, &err), &err);
    CHECK_OK(file_call_send_request(call, request, &err), &err);
    (void)close(client[1]);
    while (r == 0)
        r = file_call_send_data(call, zeros, sizeof(zeros), &err);
    CHECK(r == -ECANCELED);
    (void)close(client[0]);
    return call;
}

static void nobody_waits_for_a_worker_that_does_not_read(void)
{
    const struct file_request write = { .type = FILE_WRITE, .path = "w", .flags = FILE_ATOMIC };
    int fd = false_worker();

    file_call_close(send_until_gone(&write));
    (void)close(fd);
}

static void nobody_waits_for_the_rest_of_a_word(void)
{
    const struct file_request write = { .type = FILE_WRITE, .path = "w", .flags = FILE_ATOMIC };
    int fd = false_worker();
    struct file_call *call = call_open(box);
    struct err err = { 0 };

    CHECK_OK(file_call_send_request(call, &write, &err), &err);
    CHECK(send(fd, "a", 1, MSG_NOSIGNAL) == 1);
    file_call_close(call);
    (void)close(fd);
}

/* The worker is stopped until the client has disconnected, so that the last message is incomplete.
 */
static void a_client_that_goes_away_in_the_middle_of_a_message_leaves_nothing(void)
{
    const struct file_request write = { .type = FILE_WRITE, .path = "w", .flags = FILE_ATOMIC };
    struct file_call *call;

    file_pool_close(&box->machine->files);
    box->machine->files.is_closed = false;
    CHECK_DONE(ask_path(box, FILE_STAT, "/", 0));
    CHECK(world_sh(box, "busybox killall -STOP holt-files", NULL) == 0);
    call = send_until_gone(&write);
    CHECK(world_sh(box, "busybox killall -CONT holt-files", NULL) == 0);
    file_call_close(call);
    CHECK(world_sh(box, "test -z \"$(ls -A /workspace | busybox grep holt)\"", NULL) == 0);
}

/* Greets as a worker does, but with descriptors. */
static void *greet_with_fds(void *argument)
{
    static const unsigned char hello[] = { 4, 0, 0, 0, FILE_HELLO, 0, 0, 0, 0, 0, 0, 0 };
    const int *order_fd = argument;
    char order[256];
    int fds[FDS_MAX];
    size_t count = 0;

    do /* the host may have something else to say first */
        CHECK(fds_receive(*order_fd, order, sizeof(order), 0, fds, &count) > 0);
    while (count == 0);
    CHECK(count == 2);
    CHECK(fds_send(fds[1], hello, sizeof(hello), 0, fds, 2) == sizeof(hello));
    (void)close(fds[0]);
    (void)close(fds[1]);
    return NULL;
}

/* The test ends with as many descriptors as it began. */
static void descriptors_that_come_with_a_greeting_are_closed(void)
{
    int to_guest = box->machine->channel.source.fd, guest = fcntl(to_guest, F_DUPFD_CLOEXEC, 0);
    int order[2];
    struct file_call *call = NULL;
    struct err err = { 0 };
    pthread_t thread;

    file_pool_close(&box->machine->files);
    box->machine->files.is_closed = false;
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, order) == 0);
    CHECK(pthread_create(&thread, NULL, greet_with_fds, &order[1]) == 0);
    CHECK(guest >= 0 && dup3(order[0], to_guest, O_CLOEXEC) == to_guest);
    if (file_call_open(box, -1, false, &call, &err) == 0)
        file_call_close(call);
    CHECK(dup3(guest, to_guest, O_CLOEXEC) == to_guest && close(guest) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    (void)close(order[0]);
    (void)close(order[1]);
    file_pool_close(&box->machine->files);
    box->machine->files.is_closed = false;
}

static void all(void)
{
    world_open("dir");
    world_import("small");
    box = world_create("hostile");
    RUN(a_worker_that_is_killed_ends_its_call_alone);
    RUN(a_worker_that_is_stopped_goes_with_its_call);
    RUN(a_stopped_idle_worker_holds_up_no_call);
    RUN(nobody_inside_looks_into_a_worker);
    RUN(a_sandbox_without_room_for_a_worker_says_so);
    RUN(names_that_change_lead_nowhere);
    RUN(who_may_only_look_leaves_room_for_others);
    RUN(answers_that_cannot_be_meant_end_the_worker);
    RUN(a_worker_that_says_more_than_it_was_asked_is_ended);
    RUN(a_listing_is_no_longer_than_was_asked_for);
    RUN(nobody_waits_for_a_worker_that_does_not_read);
    RUN(nobody_waits_for_the_rest_of_a_word);
    RUN(a_client_that_goes_away_in_the_middle_of_a_message_leaves_nothing);
    RUN(descriptors_that_come_with_a_greeting_are_closed);
    world_destroy(box);
    world_close();
}

int main(void)
{
    must_be_root();
    RUN_CLEAN(all);
    return 0;
}
