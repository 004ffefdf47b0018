// SPDX-License-Identifier: Apache-2.0
/* A hostile sandbox: attacks on its tool workers, and malformed replies of a worker. */
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

#include "host/machine/machine_internal.h"
#include "host/sandbox/sandbox_internal.h"
#include "kernel/fds.h"
#include "kernel/toolbox/world.h"

static struct sandbox *box;

/* Ends all workers; new ones can start. */
static void empty_pool(void)
{
    file_pool_close(&box->machine->tools);
    box->machine->tools.is_closed = false;
}

static struct outcome_of_tool read_until(uint64_t deadline_ms, int watch_fd)
{
    const struct tool_value values[] = { TEXT_VALUE("/etc/origin"), NUMBER_VALUE(0),
                                         NUMBER_VALUE(0) };
    const struct tool_worker_job job = { .tool = WORKER_READ_FILE,
                                         .values = values,
                                         .count = 3,
                                         .watch_fd = watch_fd,
                                         .deadline_ms = deadline_ms };
    struct outcome_of_tool outcome = { .r = 0 };

    outcome.r = tool_worker_run(box, &job, &outcome.reply, &outcome.err);
    return outcome;
}

/* Leaves one idle worker, which is stopped. */
static void stop_the_worker(void)
{
    empty_pool();
    CHECK_SAYS(tool_read(box, "/etc/origin"), false, "template");
    CHECK(world_sh(box, "busybox killall -STOP holt-tools", NULL) == 0);
}

/* --- attacks on workers ----------------------------------------------------------------------- */

static void processes_of_the_sandbox_cannot_inspect_a_worker(void)
{
    CHECK_SAYS(tool_read(box, "/etc/origin"), false, "template");
    CHECK(world_running(box, "holt-tools") > 0);
    CHECK(world_sh(box,
                   "for p in $(busybox pidof holt-tools); do "
                   "cat /proc/$p/environ && exit 1; cat /proc/$p/maps && exit 1; "
                   "cat /proc/$p/mem && exit 1; cat /proc/$p/exe && exit 1; "
                   "ls /proc/$p/fd && exit 1; busybox readlink /proc/$p/exe && exit 1; "
                   "/proc/$p/exe && exit 1; echo x > /proc/$p/exe && exit 1; "
                   "busybox readlink /proc/$p/root && exit 1; done 2>/dev/null; true",
                   NULL) == 0);
}

static void a_worker_has_the_privileges_of_a_process_of_the_sandbox(void)
{
    CHECK_SAYS(tool_read(box, "/etc/origin"), false, "template");
    CHECK(world_sh(box,
                   "what() { busybox grep -E "
                   "'^(Uid|Gid|Groups|Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs|Seccomp):' "
                   "/proc/$1/status; }; "
                   "what $$ > /mine; set -- $(busybox pidof holt-tools); what $1 > /its; "
                   "test -s /its && busybox cmp /mine /its",
                   NULL) == 0);
}

static void *read_in_thread(void *outcome)
{
    *(struct outcome_of_tool *)outcome = read_until(0, -1);
    return NULL;
}

static void a_killed_worker_ends_only_its_call(void)
{
    struct outcome_of_tool outcome = { .r = 0 };
    pthread_t thread;

    stop_the_worker();
    CHECK(pthread_create(&thread, NULL, read_in_thread, &outcome) == 0);
    EVENTUALLY(tool_idle_workers(box) == 0);
    CHECK(world_sh(box, "busybox killall -9 holt-tools", NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_TOOL_REFUSED(outcome, ERR_BUSY);
    CHECK_SAYS(tool_read(box, "/etc/origin"), false, "template");
}

static void a_killed_idle_worker_is_replaced(void)
{
    CHECK_SAYS(tool_read(box, "/etc/origin"), false, "template");
    CHECK(world_sh(box, "busybox killall -9 holt-tools", NULL) == 0);
    EVENTUALLY(world_running(box, "holt-tools") == 0);
    CHECK_SAYS(tool_read(box, "/etc/origin"), false, "template");
}

static void a_stopped_worker_is_killed_at_the_deadline(void)
{
    struct outcome_of_tool outcome;

    stop_the_worker();
    outcome = read_until(clock_ms() + 100, -1);
    CHECK(outcome.r == -ETIMEDOUT, "(%d)", outcome.r);
    CHECK_TOOL_REFUSED(outcome, ERR_DEADLINE);
    EVENTUALLY(world_running(box, "holt-tools") == 0);
    CHECK_SAYS(tool_read(box, "/etc/origin"), false, "template");
}

static void a_stopped_worker_is_killed_when_the_client_disconnects(void)
{
    int client[2];

    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, client) == 0);
    (void)close(client[1]);
    stop_the_worker();
    CHECK(read_until(0, client[0]).r == -ECANCELED);
    EVENTUALLY(world_running(box, "holt-tools") == 0);
    (void)close(client[0]);
}

static void a_stopped_idle_worker_holds_up_no_call(void)
{
    stop_the_worker();
    CHECK(read_until(0, -1).r == 0);
    CHECK_SAYS(tool_read(box, "/etc/origin"), false, "template");
}

/* A call that meets a worker which is stopped again and again ends, with or without a result. */
static void a_worker_that_is_stopped_constantly_delays_a_call_for_seconds(void)
{
    char *args[] = { (char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-c",
                     (char *)(uintptr_t) "while :; do busybox killall -STOP holt-tools; done",
                     NULL };
    const struct process_spec command = { .args = args, .is_detached = true };
    struct process *process = NULL;
    struct err err = { 0 };

    stop_the_worker();
    CHECK_OK(sandbox_exec(box, &command, &process, &err), &err);
    for (int i = 0; i < 2; i++) {
        struct outcome_of_tool outcome = read_until(0, -1);

        CHECK(outcome.r == 0 || outcome.err.kind == ERR_BUSY, "(%s)", outcome.err.msg);
        if (outcome.r == 0)
            tool_worker_reply_done(&outcome.reply);
    }
    process_kill(process, KILLER_USER);
    process_abandon(process);
    CHECK_SAYS(tool_read(box, "/etc/origin"), false, "template");
}

/* The deadline also applies while all workers are in use. */
static void the_deadline_includes_the_wait_for_a_worker(void)
{
    struct file_pool *pool = &box->machine->tools;

    empty_pool();
    lock_take(&pool->lock);
    pool->count = FILE_WORKERS_MAX;
    lock_release(&pool->lock);
    CHECK_TOOL_REFUSED(read_until(clock_ms() + 100, -1), ERR_DEADLINE);
    lock_take(&pool->lock);
    pool->count = 0;
    lock_release(&pool->lock);
    CHECK_SAYS(tool_read(box, "/etc/origin"), false, "template");
}

/* --- attacks with files ----------------------------------------------------------------------- */

/* A path of the host names a file of the sandbox, and the file of the host is not touched. */
static void links_stay_inside_the_sandbox(void)
{
    char outside[128], command[512];
    FILE *secret;

    (void)snprintf(outside, sizeof(outside), "%.64s/secret", world.dir);
    secret = fopen(outside, "we");
    CHECK(secret && fputs("secret", secret) >= 0 && fclose(secret) == 0);
    (void)snprintf(command, sizeof(command),
                   "mkdir -p /workspace; cd /workspace; ln -s %s out; ln -s ../../../../..%s up; "
                   "ln -s /proc/1/root%s proc; ln -s /etc etc",
                   outside, outside, outside);
    CHECK(world_sh(box, command, NULL) == 0);
    CHECK_SAYS(tool_read(box, outside), true, "does not exist");
    CHECK_SAYS(tool_read(box, "out"), true, "'out' does not exist.");
    CHECK_SAYS(tool_read(box, "up"), true, "'up' does not exist.");
    CHECK_SAYS(tool_read(box, "proc"), true, "proc");
    CHECK_SAYS(tool_read(box, "../../../../../../etc/origin"), false, "template");
    CHECK_SAYS(tool_write(box, outside, "evil", true), false, "Created");
    CHECK_SAYS(tool_write(box, "out", "evil", true), false, "out");
    CHECK_SAYS(tool_edit(box, "up", "evil", "worse"), false, "Replaced 1");
    CHECK_SAYS(tool_write(box, "etc/origin", "mine", false), false, "Wrote");
    CHECK_TEXT(world_cat(box, "/etc/origin"), "mine");
    CHECK_SAYS(tool_write(box, "/etc/origin", "template\n", false), false, "Wrote");
    secret = fopen(outside, "re");
    CHECK(secret && fread(command, 1, sizeof(command), secret) == 6 && fclose(secret) == 0);
    CHECK(memcmp(command, "secret", 6) == 0);
}

/* Files change their type while tools use them: nothing hangs, and only files of the sandbox are
 * written. */
static void files_that_change_their_type_stay_inside_the_sandbox(void)
{
    char *args[] = {
        (char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-c",
        (char *)(uintptr_t) "mkdir -p /evil /kept && echo x > /kept/f; cd /evil; "
                            "while :; do mkdir s; echo y > s/f; mv s t; ln -s /kept s; "
                            "rm s; ln -s s s; rm s; busybox mkfifo s; rm s; rm -r t; "
                            "busybox mkfifo f; rm f; mkdir f; busybox rmdir f; done",
        NULL
    };
    const struct process_spec command = { .args = args, .is_detached = true };
    struct process *process = NULL;
    struct err err = { 0 };

    CHECK_OK(sandbox_exec(box, &command, &process, &err), &err);
    EVENTUALLY(world_cat(box, "/kept/f")[0] == 'x');
    for (int i = 0; i < 200; i++) {
        struct outcome_of_tool done[] = {
            tool_write(box, "/evil/s/f", "bad", i % 2),
            tool_write(box, "/evil/f", "bad", false),
            tool_edit(box, "/evil/s/f", "bad", "worse"),
            tool_read(box, "/evil/s/f"),
            tool_read(box, "/evil/s"),
        };

        for (size_t k = 0; k < ARRAY_SIZE(done); k++) {
            CHECK(done[k].r == 0, "(%s)", done[k].err.msg);
            outcome_done(&done[k]);
        }
    }
    process_kill(process, KILLER_USER);
    process_abandon(process);
    CHECK(world_sh(box, "test -d /kept && busybox grep -qxE 'x|bad|worse' /kept/f", NULL) == 0);
    CHECK(world_sh(box, "test -z \"$(ls -A /kept | busybox grep holt)\"", NULL) == 0);
}

/* --- isolation of callers --------------------------------------------------------------------- */

static void *hold_a_worker(void *fd)
{
    const struct tool_value values[] = { TEXT_VALUE("/"), NUMBER_VALUE(1), NUMBER_VALUE(1) };
    const struct tool_worker_job job = { .tool = WORKER_LIST_DIR,
                                         .values = values,
                                         .count = 3,
                                         .watch_fd = *(int *)fd,
                                         .is_read_only = true };
    struct tool_worker_reply reply = { .change_count = 0 };
    struct err err = { 0 };
    int r = tool_worker_run(box, &job, &reply, &err);

    /* A caller that gets a worker late may get a reply before it sees the hang-up. */
    CHECK(r == -ECANCELED || r == 0, "(%s)", err.msg);
    if (r == 0)
        tool_worker_reply_done(&reply);
    return NULL;
}

static unsigned read_only_workers(void)
{
    struct file_pool *pool = &box->machine->tools;
    unsigned count;

    lock_take(&pool->lock);
    count = pool->read_only_count;
    lock_release(&pool->lock);
    return count;
}

/* Endless calls of read-only clients leave workers to other clients. */
static void read_only_clients_leave_workers_to_others(void)
{
    enum { LOOKERS = FILE_READ_ONLY_MAX + 2 };
    struct file_pool *pool = &box->machine->tools;
    pthread_t threads[LOOKERS];
    int client[2], silent[FILE_READ_ONLY_MAX][2];

    empty_pool();
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, client) == 0);
    for (int i = 0; i < FILE_READ_ONLY_MAX; i++) {
        struct file_worker worker = { .pidfd = -EBADF };

        CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, silent[i]) == 0);
        worker.fd = silent[i][0];
        pool->count++;
        file_pool_give(pool, &worker, true);
    }
    for (int i = 0; i < LOOKERS; i++)
        CHECK(pthread_create(&threads[i], NULL, hold_a_worker, &client[0]) == 0);
    EVENTUALLY(read_only_workers() == FILE_READ_ONLY_MAX);
    CHECK_SAYS(tool_write(box, "meanwhile", "x", true), false, "Created");
    (void)close(client[1]);
    for (int i = 0; i < LOOKERS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(read_only_workers() == 0);
    (void)close(client[0]);
    for (int i = 0; i < FILE_READ_ONLY_MAX; i++)
        (void)close(silent[i][1]);
}

/* --- replies of a worker ---------------------------------------------------------------------- */

/* Replaces all workers by a socket of the test. */
static int fake_worker(void)
{
    struct file_pool *pool = &box->machine->tools;
    struct file_worker worker = { .pidfd = -EBADF };
    int fds[2];

    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    worker.fd = fds[0];
    empty_pool();
    pool->count++;
    file_pool_give(pool, &worker, true);
    return fds[1];
}

struct raw_reply {
    int fd;
    const void *data;
    size_t len;
};

/* Sends the data when the request arrives, then ends. */
static void *send_reply(void *argument)
{
    const struct raw_reply *reply = argument;
    char request[4096];

    CHECK(recv(reply->fd, request, sizeof(request), 0) > 0);
    CHECK(send(reply->fd, reply->data, reply->len, MSG_NOSIGNAL) == (ssize_t)reply->len);
    CHECK(shutdown(reply->fd, SHUT_WR) == 0);
    return NULL;
}

static struct outcome_of_tool receive(const void *data, size_t len, bool is_kept)
{
    struct raw_reply reply = { .fd = fake_worker(), .data = data, .len = len };
    struct pollfd hung_up = { .fd = reply.fd };
    struct outcome_of_tool outcome;
    pthread_t thread;

    CHECK(pthread_create(&thread, NULL, send_reply, &reply) == 0);
    outcome = read_until(0, -1);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(poll(&hung_up, 1, 0) == !is_kept, "(whether the worker is kept)");
    (void)close(reply.fd);
    return outcome;
}

static void put_data(struct buf *out, const void *data, size_t len)
{
    char header[FILE_HEADER_SIZE];

    file_header(header, FILE_DATA, len);
    CHECK(buf_add(out, header, sizeof(header)) == 0 && buf_add(out, data, len) == 0);
}

static void put_result(struct buf *out, uint32_t flags, const char *mime)
{
    struct tool_outcome outcome = { .flags = flags };

    (void)snprintf(outcome.mime, sizeof(outcome.mime), "%s", mime);
    CHECK(file_put_outcome(out, &outcome) == 0);
}

static void put_event(struct buf *out, enum file_event_kind kind, const char *path)
{
    const struct file_event event = { .kind = kind, .path = path };

    CHECK(file_put_event(out, &event) == 0);
}

static void invalid_utf8_of_a_worker_is_replaced(void)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(1 << 20);
    struct outcome_of_tool got;

    put_data(&out, "a\xff", 2);
    put_data(&out, "\0b", 2);
    put_result(&out, TOOL_IS_CUT, "");
    got = receive(out.data, out.len, true);
    CHECK(got.r == 0 && got.reply.outcome.flags == TOOL_IS_CUT);
    CHECK_TEXT(got.reply.content.data, "a\xef\xbf\xbd\xef\xbf\xbd"
                                       "b");
    outcome_done(&got);
    buf_clear(&out);
    put_data(&out, "a\xff\0", 3); /* not in an image */
    put_result(&out, TOOL_IS_IMAGE, "image/png");
    got = receive(out.data, out.len, true);
    CHECK(got.r == 0 && got.reply.content.len == 3);
    CHECK_TEXT(got.reply.outcome.mime, "image/png");
    outcome_done(&got);
}

static void malformed_replies_end_the_worker(void)
{
    static const unsigned char huge[] = { 255, 255, 255, 255, FILE_DATA, 0, 0, 0 };
    static const unsigned char end[] = { 4, 0, 0, 0, FILE_END, 0, 0, 0, 0, 0, 0, 0 };
    cleanup_with(buf_done) struct buf out = BUF_INIT(1 << 20);

    CHECK_TOOL_REFUSED(receive("abc", 3, false), ERR_BUSY);
    CHECK_TOOL_REFUSED(receive(huge, sizeof(huge), false), ERR_INTERNAL);
    CHECK_TOOL_REFUSED(receive(end, sizeof(end), false), ERR_INTERNAL);
    put_data(&out, "", 0);
    put_result(&out, 0, "");
    CHECK_TOOL_REFUSED(receive(out.data, out.len, false), ERR_INTERNAL);
    buf_clear(&out);
    put_event(&out, FILE_EVENT_CREATE, "relative");
    CHECK_TOOL_REFUSED(receive(out.data, out.len, false), ERR_INTERNAL);
    buf_clear(&out);
    put_event(&out, FILE_EVENT_WRITE, "/a/../b");
    CHECK_TOOL_REFUSED(receive(out.data, out.len, false), ERR_INTERNAL);
    buf_clear(&out);
    put_event(&out, FILE_EVENT_REMOVE, "/a");
    CHECK_TOOL_REFUSED(receive(out.data, out.len, false), ERR_INTERNAL);
    buf_clear(&out);
    for (int i = 0; i <= TOOL_EVENTS_MAX; i++)
        put_event(&out, FILE_EVENT_WRITE, "/a");
    CHECK_TOOL_REFUSED(receive(out.data, out.len, false), ERR_INTERNAL);
    buf_clear(&out);
    put_result(&out, TOOL_IS_IMAGE, "text/html");
    CHECK_TOOL_REFUSED(receive(out.data, out.len, false), ERR_INTERNAL);
    buf_clear(&out);
    put_result(&out, 0, "");
    put_result(&out, 0, "");
    CHECK_TOOL_REFUSED(receive(out.data, out.len, false), ERR_INTERNAL);
}

/* Sends DATA without end. */
static void *send_endlessly(void *fd)
{
    static char data[FILE_HEADER_SIZE + FILE_DATA_MAX];
    char request[4096];

    CHECK(recv(*(int *)fd, request, sizeof(request), 0) > 0);
    file_header(data, FILE_DATA, FILE_DATA_MAX);
    while (send(*(int *)fd, data, sizeof(data), MSG_NOSIGNAL) > 0)
        continue;
    return NULL;
}

static void an_endless_reply_ends_the_worker(void)
{
    int fd = fake_worker();
    pthread_t thread;

    CHECK(pthread_create(&thread, NULL, send_endlessly, &fd) == 0);
    CHECK_TOOL_REFUSED(read_until(0, -1), ERR_INTERNAL);
    CHECK(pthread_join(thread, NULL) == 0);
    (void)close(fd);
}

/* A guest without tool workers closes the descriptors that it receives. */
static void *hang_up_on_order(void *order_fd)
{
    char order[256];
    int fds[FDS_MAX];
    size_t count = 0;

    do
        CHECK(fds_receive(*(int *)order_fd, order, sizeof(order), 0, fds, &count) > 0);
    while (count == 0);
    CHECK(count == 3);
    for (size_t i = 0; i < count; i++)
        (void)close(fds[i]);
    return NULL;
}

static void an_older_guest_is_named_in_the_error(void)
{
    int to_guest = box->machine->channel.source.fd, guest = fcntl(to_guest, F_DUPFD_CLOEXEC, 0);
    struct outcome_of_tool outcome;
    pthread_t thread;
    int order[2];

    empty_pool();
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, order) == 0);
    CHECK(pthread_create(&thread, NULL, hang_up_on_order, &order[1]) == 0);
    CHECK(guest >= 0 && dup3(order[0], to_guest, O_CLOEXEC) == to_guest);
    outcome = read_until(0, -1);
    CHECK(dup3(guest, to_guest, O_CLOEXEC) == to_guest && close(guest) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_TOOL_REFUSED(outcome, ERR_BUSY);
    CHECK(strstr(err_remedy_of(&outcome.err), "older Holt"));
    (void)close(order[0]);
    (void)close(order[1]);
    CHECK_SAYS(tool_read(box, "/etc/origin"), false, "template");
}

static void all(void)
{
    world_open("dir");
    world_import("small");
    box = world_create("hostile");
    RUN(processes_of_the_sandbox_cannot_inspect_a_worker);
    RUN(a_worker_has_the_privileges_of_a_process_of_the_sandbox);
    RUN(a_killed_worker_ends_only_its_call);
    RUN(a_killed_idle_worker_is_replaced);
    RUN(a_stopped_worker_is_killed_at_the_deadline);
    RUN(a_stopped_worker_is_killed_when_the_client_disconnects);
    RUN(a_stopped_idle_worker_holds_up_no_call);
    RUN(a_worker_that_is_stopped_constantly_delays_a_call_for_seconds);
    RUN(the_deadline_includes_the_wait_for_a_worker);
    RUN(links_stay_inside_the_sandbox);
    RUN(files_that_change_their_type_stay_inside_the_sandbox);
    RUN(read_only_clients_leave_workers_to_others);
    RUN(invalid_utf8_of_a_worker_is_replaced);
    RUN(malformed_replies_end_the_worker);
    RUN(an_endless_reply_ends_the_worker);
    RUN(an_older_guest_is_named_in_the_error);
    world_destroy(box);
    world_close();
}

int main(void)
{
    must_be_root();
    RUN_CLEAN(all);
    return 0;
}
