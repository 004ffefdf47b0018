// SPDX-License-Identifier: Apache-2.0
/* A real holt-init behind a real wall, driven over the wire without the daemon. */
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/tree.h"
#include "base/xalloc.h"
#include "kernel/cgroup.h"
#include "kernel/harness.h"
#include "runtime/runtime.h"
#include "store/store.h"
#include "store/template.h"
#include "store/volume.h"
#include "wire/message.h"

enum {
    FIRST_UID = 0x70000000, /* far from what a daemon on this machine may use */
    QUIET_MS = 300,         /* how long silence is listened to */
    STALLED_MS = 20 * 1000, /* silence that means for ever */
    ROOTS_MAX = 3,
    RSS_MAX_KIB = 4096,
    WORDS_MAX = 8,
};

/* What all tests have in common. */
static struct {
    char dir[64];
    struct cgroup_root *cgroups;
    struct runtime *runtime;
    struct store *store;
    unsigned last_guest, last_volume;
} world;

struct guest {
    struct runtime_guest started;
    int fd; /* the present connection */
    struct buf in;
    size_t used; /* of `in`, by the frame that was handed out last */
    struct volume *volumes[ROOTS_MAX];
    size_t volume_count;
    int listener;
    struct sockaddr_un address;
};

#define CHECK_OK(call, err) CHECK((call) >= 0, "(%s)", (err)->msg)

/* --- the world ------------------------------------------------------------------------------- */

/* Beside the directory of tests: build/tests/kernel/guest_test, build/holt-init. */
static void find_init(char *path, size_t size)
{
    char self[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

    CHECK(len > 0);
    self[len] = '\0';
    for (int i = 0; i < 3; i++)
        *strrchr(self, '/') = '\0';
    CHECK((size_t)snprintf(path, size, "%s/holt-init", self) < size);
}

static void world_open(void)
{
    struct err err = { 0 };
    char label[32], init[PATH_MAX];

    (void)snprintf(world.dir, sizeof(world.dir), "/tmp/holt-guest-test-XXXXXX");
    CHECK(mkdtemp(world.dir));
    (void)snprintf(label, sizeof(label), "holt-guest-test-%d", (int)getpid());
    find_init(init, sizeof(init));
    CHECK_OK(cgroup_root_open(label, &world.cgroups, &err), &err);
    CHECK_OK(runtime_open(world.cgroups, init, &world.runtime, &err), &err);
    CHECK_OK(store_open(&(struct store_options){ .state_dir = world.dir,
                                                 .template_bytes_max = UINT64_MAX,
                                                 .template_files_max = UINT64_MAX,
                                                 .storage = "dir" },
                        &world.store, &err),
             &err);
}

/* After a broken claim: guests that listen would outlive us. */
static void world_abandon(void)
{
    struct err err;

    if (!world.cgroups)
        return;
    (void)cgroup_root_sweep(world.cgroups, &err);
    cgroup_root_close(world.cgroups);
    (void)tree_remove_at(AT_FDCWD, world.dir);
}

static void world_close(void)
{
    store_close(world.store);
    runtime_close(world.runtime);
    cgroup_root_close(TAKE_PTR(world.cgroups));
    CHECK(tree_remove_at(AT_FDCWD, world.dir) == 0);
}

/* --- frames ---------------------------------------------------------------------------------- */

static void send_bytes(struct guest *guest, const void *data, size_t len, const int *fds,
                       size_t count)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(FRAME_FDS_MAX * sizeof(int))] = { 0 };
    struct iovec part = { .iov_base = (void *)(uintptr_t)data, .iov_len = len };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

    if (count > 0) {
        struct cmsghdr *header;

        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        header = CMSG_FIRSTHDR(&message);
        *header = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
                                    .cmsg_type = SCM_RIGHTS,
                                    .cmsg_len = CMSG_LEN(count * sizeof(int)) };
        memcpy(CMSG_DATA(header), fds, count * sizeof(int));
    }
    while (part.iov_len > 0) {
        ssize_t n = sendmsg(guest->fd, &message, MSG_NOSIGNAL);

        CHECK(n > 0, "(send: %s)", strerror(errno));
        part.iov_base = (char *)part.iov_base + n;
        part.iov_len -= (size_t)n;
        message.msg_control = NULL;
        message.msg_controllen = 0;
    }
}

static void send_buf(struct guest *guest, struct buf *out)
{
    send_bytes(guest, out->data, out->len, NULL, 0);
    buf_done(out);
}

static void send_numbers(struct guest *guest, enum frame_type type, uint32_t process,
                         uint64_t first, uint64_t second)
{
    struct buf out = BUF_INIT(64);

    CHECK(message_put_numbers(&out, type, process, first, second) == 0);
    send_buf(guest, &out);
}

/* The next frame, which is valid until the next call: 1; 0 when the connection has ended; -EAGAIN
 * when nothing comes for so long. */
static int receive_for(struct guest *guest, int ms, struct frame *ret)
{
    buf_consume(&guest->in, guest->used);
    guest->used = 0;
    for (;;) {
        long used = frame_parse(guest->in.data, guest->in.len, FRAME_FROM_GUEST_MAX, ret);
        struct pollfd wait = { .fd = guest->fd, .events = POLLIN };
        ssize_t n;

        CHECK(used >= 0, "(holt-init sent what is no frame)");
        if (used > 0) {
            guest->used = (size_t)used;
            return 1;
        }
        if (poll(&wait, 1, ms) == 0)
            return -EAGAIN;
        CHECK(buf_reserve(&guest->in, FRAME_FROM_GUEST_MAX) == 0);
        n = read(guest->fd, guest->in.data + guest->in.len, FRAME_FROM_GUEST_MAX);
        if (n <= 0)
            return 0;
        guest->in.len += (size_t)n;
    }
}

static struct frame receive(struct guest *guest)
{
    struct frame frame = { 0 };
    int r = receive_for(guest, PATIENCE_MS, &frame);

    CHECK(r != -EAGAIN, "(nothing comes)");
    CHECK(r == 1, "(the connection ended)");
    return frame;
}

static struct frame expect(struct guest *guest, enum frame_type type, uint32_t process)
{
    struct frame frame = receive(guest);

    CHECK(frame.type == type && frame.process == process,
          "(got type %d of process %u, wanted %d of %u)", (int)frame.type, frame.process, (int)type,
          process);
    return frame;
}

static void expect_end(struct guest *guest)
{
    struct frame frame;
    int r;

    while ((r = receive_for(guest, PATIENCE_MS, &frame)) == 1)
        continue;
    CHECK(r == 0, "(the connection goes on)");
}

/* --- guests ---------------------------------------------------------------------------------- */

static struct guest start_blank(const struct runtime_ops *ops)
{
    struct guest guest = { .in = BUF_INIT(4 * FRAME_FROM_GUEST_MAX), .listener = -1 };
    struct err err = { 0 };
    char id[RUNTIME_ID_MAX];
    uint64_t version, none;
    struct frame frame;

    (void)snprintf(id, sizeof(id), "guest-%u", ++world.last_guest);
    CHECK_OK(ops->probe(&err), &err);
    CHECK_OK(runtime_start(world.runtime, ops, id, FIRST_UID, &guest.started, &err), &err);
    guest.fd = TAKE_FD(guest.started.stream_fd);
    frame = expect(&guest, FRAME_READY, 0);
    CHECK(message_get_numbers(&frame, &version, &none) && version == WIRE_VERSION);
    return guest;
}

/* Hands over a new root and does not wait for the answer. */
static void send_root(struct guest *guest)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(4096);
    cleanup_with(volume_mounts_done) struct volume_mounts mounts = { .count = 0 };
    struct message_root root = { .hostname = "guest-test" };
    struct template *template;
    struct volume *volume;
    struct err err = { 0 };
    char id[32];

    (void)snprintf(id, sizeof(id), "sb-%012x", ++world.last_volume);
    CHECK_OK(template_open(world.store, "host", &template, &err), &err);
    CHECK_OK(volume_create(world.store, id, template, &volume, &err), &err);
    CHECK(guest->volume_count < ROOTS_MAX);
    guest->volumes[guest->volume_count++] = volume;
    CHECK_OK(volume_mount(volume, guest->started.userns_fd, FIRST_UID, &mounts, &err), &err);
    root.mount_count = mounts.count;
    memcpy(root.targets, mounts.targets, sizeof(mounts.targets[0]) * mounts.count);
    CHECK(message_put_root(&out, &root) == 0);
    send_bytes(guest, out.data, out.len, mounts.fds, mounts.count);
}

static struct guest start_with(const struct runtime_ops *ops)
{
    struct guest guest = start_blank(ops);

    send_root(&guest);
    (void)expect(&guest, FRAME_ROOTED, 0);
    return guest;
}

static struct guest start(void)
{
    return start_with(&runtime_native);
}

static void end(struct guest *guest)
{
    CHECK(runtime_guest_done(&guest->started) == 0);
    for (size_t i = 0; i < guest->volume_count; i++)
        CHECK(volume_destroy(guest->volumes[i]) == 0);
    guest->fd = fd_close(guest->fd);
    guest->listener = fd_close(guest->listener);
    if (guest->address.sun_path[0])
        (void)unlink(guest->address.sun_path);
    buf_done(&guest->in);
}

static pid_t pid_of(const struct guest *guest)
{
    char path[64], line[128];
    FILE *file;
    int pid = -1;

    (void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", guest->started.pidfd);
    file = fopen(path, "re");
    CHECK(file);
    while (fgets(line, sizeof(line), file))
        (void)sscanf(line, "Pid: %d", &pid);
    (void)fclose(file);
    return pid;
}

static bool has_ended(const struct guest *guest)
{
    struct pollfd wait = { .fd = guest->started.pidfd, .events = POLLIN };

    return poll(&wait, 1, 0) == 1;
}

static size_t fds_of(const struct guest *guest)
{
    char path[32];

    (void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid_of(guest));
    return count_entries(path);
}

static long rss_kib(const struct guest *guest)
{
    char path[32], line[128];
    long kib = -1;
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid_of(guest));
    file = fopen(path, "re");
    CHECK(file);
    while (fgets(line, sizeof(line), file))
        (void)sscanf(line, "VmRSS: %ld", &kib);
    (void)fclose(file);
    CHECK(kib > 0);
    return kib;
}

/* --- processes ------------------------------------------------------------------------------- */

static void spawn_spec(struct guest *guest, uint32_t id, const struct message_spawn *spec)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(FRAME_FROM_DAEMON_MAX);
    cleanup_close int cgroup_fd = -EBADF;
    struct err err = { 0 };
    char name[16];

    (void)snprintf(name, sizeof(name), "p%u", id);
    CHECK_OK(cgroup_open_child(world.cgroups, guest->started.id, name, FIRST_UID, &cgroup_fd, &err),
             &err);
    CHECK(message_put_spawn(&out, id, 1, spec) == 0);
    send_bytes(guest, out.data, out.len, &cgroup_fd, 1);
}

/* A static one, because it is large. The words end with NULL. */
static struct message_spawn *spec_of(const char *const *words)
{
    static struct message_spawn spec;

    memset(&spec, 0, sizeof(spec));
    for (; words[spec.arg_count]; spec.arg_count++)
        spec.args[spec.arg_count] = words[spec.arg_count];
    spec.env[spec.env_count++] = "PATH=/usr/bin:/bin";
    spec.cwd = "/workspace";
    spec.rows = 24;
    spec.columns = 80;
    return &spec;
}

#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define SHELL(text) spec_of(WORDS("sh", "-c", text))

static void spawn(struct guest *guest, uint32_t id, const char *text)
{
    spawn_spec(guest, id, SHELL(text));
    (void)expect(guest, FRAME_STARTED, id);
}

static void spawn_with_stdin(struct guest *guest, uint32_t id, const char *text)
{
    struct message_spawn *spec = SHELL(text);

    spec->has_stdin = true;
    spawn_spec(guest, id, spec);
    (void)expect(guest, FRAME_STARTED, id);
}

static void spawn_on_terminal(struct guest *guest, uint32_t id, const char *text)
{
    struct message_spawn *spec = SHELL(text);

    spec->has_stdin = spec->has_terminal = true;
    spawn_spec(guest, id, spec);
    (void)expect(guest, FRAME_STARTED, id);
}

static void send_input(struct guest *guest, uint32_t id, uint64_t offset, const void *data,
                       size_t len)
{
    struct buf out = BUF_INIT(FRAME_FROM_DAEMON_MAX);

    CHECK(message_put_input(&out, id, offset, data, len) == 0);
    send_buf(guest, &out);
}

/* What came of one process. */
struct seen {
    struct buf text[STREAM_COUNT];
    uint64_t begin[STREAM_COUNT]; /* offset of the first byte in text */
    uint64_t input_acked;
    bool is_ended;
    struct message_exited exited;
};

static void seen_done(struct seen *seen)
{
    for (int i = 0; i < STREAM_COUNT; i++)
        buf_done(&seen->text[i]);
}

#define SEEN_INIT                                                                                  \
    {                                                                                              \
        .text = { BUF_INIT(64 << 20), BUF_INIT(64 << 20) }                                         \
    }

static uint64_t offset_of(const struct seen *seen, int stream)
{
    return seen->begin[stream] + seen->text[stream].len;
}

/* Notes a frame about the process. Offsets have no gap and no overlap. */
static void note(struct seen *seen, const struct frame *frame)
{
    enum frame_stream stream;
    uint64_t offset, none;
    const char *data;
    size_t len;

    if (frame->type == FRAME_OUTPUT) {
        CHECK(message_get_stream(frame, &stream, &offset, &data, &len));
        CHECK(len > 0 && len <= FRAME_DATA_MAX);
        if (seen->text[stream].len == 0)
            seen->begin[stream] = offset;
        CHECK(offset == offset_of(seen, stream), "(offset %lu, not %lu)", (unsigned long)offset,
              (unsigned long)offset_of(seen, stream));
        CHECK(buf_add(&seen->text[stream], data, len) == 0);
    } else if (frame->type == FRAME_EXITED) {
        CHECK(message_get_exited(frame, &seen->exited) && !seen->is_ended);
        seen->is_ended = true;
    } else if (frame->type == FRAME_INPUT_ACK) {
        CHECK(message_get_numbers(frame, &offset, &none) && offset >= seen->input_acked);
        seen->input_acked = offset;
    } else {
        CHECK(false, "(unexpected type %d)", (int)frame->type);
    }
}

/* Reads and acknowledges until the process has ended. */
static void read_to_end(struct guest *guest, uint32_t id, struct seen *seen)
{
    while (!seen->is_ended) {
        struct frame frame = receive(guest);
        enum frame_type type = frame.type;
        enum frame_stream stream = STREAM_STDOUT;

        CHECK(frame.process == id);
        if (type == FRAME_OUTPUT)
            stream = (enum frame_stream)frame.payload[0];
        note(seen, &frame);
        if (type == FRAME_OUTPUT)
            send_numbers(guest, FRAME_ACK, id, (uint64_t)stream, offset_of(seen, (int)stream));
    }
}

static void read_until(struct guest *guest, uint32_t id, struct seen *seen, const char *text)
{
    while (!seen->text[0].data ||
           !memmem(seen->text[0].data, seen->text[0].len, text, strlen(text))) {
        struct frame frame = receive(guest);

        CHECK(frame.process == id && !seen->is_ended);
        note(seen, &frame);
    }
}

static void check_text(const struct seen *seen, int stream, const char *wanted)
{
    size_t len = strlen(wanted);

    CHECK(seen->text[stream].len == len && memcmp(seen->text[stream].data, wanted, len) == 0,
          "(got '%.*s', wanted '%s')", (int)seen->text[stream].len,
          seen->text[stream].data ? seen->text[stream].data : "", wanted);
}

/* Runs a command to its end: its exit status as from waitpid, its stdout in text. */
static uint32_t run(struct guest *guest, uint32_t id, const char *command, char *text, size_t size)
{
    cleanup_with(seen_done) struct seen seen = SEEN_INIT;

    spawn(guest, id, command);
    read_to_end(guest, id, &seen);
    CHECK(seen.text[0].len < size);
    memcpy(text, seen.text[0].data ? seen.text[0].data : "", seen.text[0].len);
    text[seen.text[0].len] = '\0';
    send_numbers(guest, FRAME_FORGET, id, 0, 0);
    return seen.exited.status;
}

static void check_run(struct guest *guest, uint32_t id, const char *command, const char *wanted)
{
    char text[4096];

    CHECK(run(guest, id, command, text, sizeof(text)) == 0);
    CHECK_TEXT(text, wanted);
}

/* --- connecting again ------------------------------------------------------------------------ */

static void give_listener(struct guest *guest)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(64);

    guest->address.sun_family = AF_UNIX;
    (void)snprintf(guest->address.sun_path, sizeof(guest->address.sun_path), "%s/%s.sock",
                   world.dir, guest->started.id);
    guest->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(guest->listener, (struct sockaddr *)&guest->address, sizeof(guest->address)) == 0);
    CHECK(listen(guest->listener, 8) == 0);
    CHECK(message_put_numbers(&out, FRAME_LISTEN, 0, 0, 0) == 0);
    send_bytes(guest, out.data, out.len, &guest->listener, 1);
}

static int connect_to(const struct guest *guest)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK(connect(fd, (const struct sockaddr *)&guest->address, sizeof(guest->address)) == 0);
    return fd;
}

static void disconnect(struct guest *guest)
{
    guest->fd = fd_close(guest->fd);
    buf_clear(&guest->in);
    guest->used = 0;
}

/* A new connection, before its first word. */
static void reconnect_silently(struct guest *guest)
{
    disconnect(guest);
    guest->fd = connect_to(guest);
}

/* Connects again and says hello. The states that come before READY go into the array, by id. */
static size_t reconnect(struct guest *guest, struct message_state *states, size_t max)
{
    size_t count = 0;

    reconnect_silently(guest);
    send_numbers(guest, FRAME_HELLO, 0, WIRE_VERSION, 0);
    for (;;) {
        struct frame frame = receive(guest);

        if (frame.type == FRAME_READY)
            return count;
        CHECK(frame.type == FRAME_STATE, "(type %d before READY)", (int)frame.type);
        CHECK(frame.process < max && message_get_state(&frame, &states[frame.process]));
        count++;
    }
}

/* --- blanks and roots ------------------------------------------------------------------------ */

static void check_boots(const struct runtime_ops *ops)
{
    struct guest guest = start_blank(ops);

    CHECK(!has_ended(&guest));
    end(&guest);
}

static void a_blank_boots_natively(void)
{
    check_boots(&runtime_native);
}

static void a_blank_boots_in_bubblewrap(void)
{
    check_boots(&runtime_bwrap);
}

static void a_blank_ends_with_its_connection(void)
{
    struct guest guest = start_blank(&runtime_native);

    disconnect(&guest);
    EVENTUALLY(has_ended(&guest));
    end(&guest);
}

static void a_blank_in_bubblewrap_ends_with_its_connection(void)
{
    struct guest guest = start_blank(&runtime_bwrap);

    disconnect(&guest);
    EVENTUALLY(has_ended(&guest));
    end(&guest);
}

static void without_a_listener_a_sandbox_ends_with_its_connection(void)
{
    struct guest guest = start();

    spawn(&guest, 1, "sleep 1000");
    disconnect(&guest);
    EVENTUALLY(has_ended(&guest));
    end(&guest);
}

static void nothing_runs_without_a_root(void)
{
    struct guest guest = start_blank(&runtime_native);

    spawn_spec(&guest, 1, SHELL("true"));
    expect_end(&guest);
    end(&guest);
}

static void a_second_boot_is_refused(void)
{
    struct guest guest = start_blank(&runtime_native);
    struct buf out = BUF_INIT(256);

    CHECK(message_put_boot(&out, &(struct message_boot){ .builds_root = true }) == 0);
    send_buf(&guest, &out);
    expect_end(&guest);
    end(&guest);
}

static void a_root_names_the_host(void)
{
    struct guest guest = start();

    check_run(&guest, 1, "hostname; pwd; ls -A", "guest-test\n/workspace\n");
    end(&guest);
}

static void a_spawn_right_behind_the_root_is_served(void)
{
    cleanup_with(seen_done) struct seen seen = SEEN_INIT;
    struct guest guest = start_blank(&runtime_native);

    send_root(&guest);
    spawn_spec(&guest, 1, SHELL("echo hi"));
    (void)expect(&guest, FRAME_ROOTED, 0);
    (void)expect(&guest, FRAME_STARTED, 1);
    read_to_end(&guest, 1, &seen);
    check_text(&seen, STREAM_STDOUT, "hi\n");
    end(&guest);
}

/* The door of rollback: the shell keeps running and sees the new files by absolute path. */
static void a_second_root_is_seen_by_what_runs(void)
{
    static const char first[] = "cat /workspace/file\n",
                      second[] = "cat /workspace/file; echo end\n";
    cleanup_with(seen_done) struct seen seen = SEEN_INIT;
    struct guest guest = start();

    spawn_with_stdin(&guest, 1,
                     "variable=kept; echo text >/workspace/file; echo ready; "
                     "while read -r line; do eval \"$line\" 2>&1; echo $variable; done");
    read_until(&guest, 1, &seen, "ready\n");
    send_input(&guest, 1, 0, first, strlen(first));
    read_until(&guest, 1, &seen, "text\nkept\n");
    send_root(&guest);
    for (bool is_rooted = false; !is_rooted;) {
        struct frame frame = receive(&guest);

        is_rooted = frame.type == FRAME_ROOTED;
        if (!is_rooted)
            note(&seen, &frame);
    }
    send_input(&guest, 1, strlen(first), second, strlen(second));
    read_until(&guest, 1, &seen, "end\nkept\n");
    CHECK(memmem(seen.text[0].data, seen.text[0].len, "No such file", 12));
    end(&guest);
}

static void a_second_root_starts_clean(void)
{
    struct guest guest = start();

    check_run(&guest, 1, "touch /workspace/file /usr/file /etc/file; ls -A", "file\n");
    send_root(&guest);
    (void)expect(&guest, FRAME_ROOTED, 0);
    check_run(&guest, 2, "ls -A; ls /usr/file /etc/file 2>/dev/null; true", "");
    check_run(&guest, 3,
              "ls /proc/self/status /dev/null; test -d /sys/class && echo sys; mount | "
              "grep -c ' /proc '",
              "/dev/null\n/proc/self/status\nsys\n1\n");
    end(&guest);
}

static void a_root_that_fails_leaves_the_old_one(void)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(256);
    struct message_root root = { .hostname = "h", .targets = { "/" }, .mount_count = 1 };
    struct guest guest = start();
    cleanup_close int not_a_mount = open("/dev/null", O_RDONLY | O_CLOEXEC);

    check_run(&guest, 1, "touch file; ls", "file\n");
    CHECK(message_put_root(&out, &root) == 0);
    send_bytes(&guest, out.data, out.len, &not_a_mount, 1);
    (void)expect(&guest, FRAME_FAILED, 0);
    check_run(&guest, 2, "ls; hostname", "file\nguest-test\n");
    end(&guest);
}

/* --- processes ------------------------------------------------------------------------------- */

static void check_process(const struct runtime_ops *ops)
{
    cleanup_with(seen_done) struct seen seen = SEEN_INIT;
    struct guest guest = start_with(ops);

    spawn(&guest, 1, "printf abc; printf defg >&2; exit 7");
    read_to_end(&guest, 1, &seen);
    check_text(&seen, STREAM_STDOUT, "abc");
    check_text(&seen, STREAM_STDERR, "defg");
    CHECK(seen.begin[0] == 0 && seen.begin[1] == 0);
    CHECK(WIFEXITED(seen.exited.status) && WEXITSTATUS(seen.exited.status) == 7);
    CHECK(seen.exited.end[STREAM_STDOUT] == 3 && seen.exited.end[STREAM_STDERR] == 4);
    end(&guest);
}

static void a_process_has_output_with_offsets_and_an_end(void)
{
    check_process(&runtime_native);
}

static void the_same_in_bubblewrap(void)
{
    check_process(&runtime_bwrap);
}

static void a_process_needs_no_group_of_its_own(void)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(FRAME_FROM_DAEMON_MAX);
    cleanup_with(seen_done) struct seen seen = SEEN_INIT;
    struct guest guest = start();

    CHECK(message_put_spawn(&out, 1, 0, SHELL("echo hi")) == 0);
    send_bytes(&guest, out.data, out.len, NULL, 0);
    (void)expect(&guest, FRAME_STARTED, 1);
    read_to_end(&guest, 1, &seen);
    check_text(&seen, STREAM_STDOUT, "hi\n");
    end(&guest);
}

static void credentials_and_limits_are_as_asked(void)
{
    cleanup_with(seen_done) struct seen seen = SEEN_INIT;
    struct guest guest = start();
    struct message_spawn *spec = SHELL("id -u; id -g; id -G; ulimit -Sn; ulimit -Hn; pwd; echo $A; "
                                       "grep CapEff /proc/self/status | cut -f2");

    spec->uid = 1234;
    spec->gid = 2345;
    spec->groups[spec->group_count++] = 7;
    spec->groups[spec->group_count++] = 9;
    spec->rlimits[spec->rlimit_count++] =
        (struct message_rlimit){ .resource = 7 /* RLIMIT_NOFILE */, .soft = 100, .hard = 200 };
    spec->cwd = "/usr/lib";
    spec->env[spec->env_count++] = "A=1 2";
    spawn_spec(&guest, 1, spec);
    (void)expect(&guest, FRAME_STARTED, 1);
    read_to_end(&guest, 1, &seen);
    check_text(&seen, STREAM_STDOUT,
               "1234\n2345\n2345 7 9\n100\n200\n/usr/lib\n1 2\n0000000000000000\n");
    end(&guest);
}

static void check_failed(struct guest *guest, uint32_t id, enum failed_step step, uint32_t errnum)
{
    struct frame frame = expect(guest, FRAME_FAILED, id);
    struct message_failed failed;

    CHECK(message_get_failed(&frame, &failed));
    CHECK(failed.step == step && failed.errnum == errnum, "(step %d, error %u: %s)",
          (int)failed.step, failed.errnum, failed.text);
    CHECK(strlen(failed.text) > 0);
}

static void what_cannot_start_says_which_step_failed(void)
{
    struct guest guest = start();
    struct message_spawn *spec;
    size_t fds = fds_of(&guest);

    spawn_spec(&guest, 1, spec_of(WORDS("no-such-command")));
    check_failed(&guest, 1, FAILED_EXEC, ENOENT);
    spawn_spec(&guest, 1, spec_of(WORDS("/etc/passwd")));
    check_failed(&guest, 1, FAILED_EXEC, EACCES);
    spec = SHELL("true");
    spec->cwd = "/no/such/directory";
    spawn_spec(&guest, 1, spec);
    check_failed(&guest, 1, FAILED_CWD, ENOENT);
    spec = SHELL("true");
    spec->rlimits[spec->rlimit_count++] = (struct message_rlimit){ .resource = 999 };
    spawn_spec(&guest, 1, spec);
    check_failed(&guest, 1, FAILED_SETUP, EINVAL);
    spec = SHELL("true");
    spec->uid = 70000; /* has no meaning in a range of 65,536 */
    spawn_spec(&guest, 1, spec);
    check_failed(&guest, 1, FAILED_SETUP, EINVAL);
    CHECK(fds_of(&guest) == fds);
    check_run(&guest, 1, "echo hi", "hi\n");
    end(&guest);
}

static void an_id_that_is_taken_is_refused(void)
{
    struct guest guest = start();

    spawn(&guest, 1, "sleep 1000");
    spawn_spec(&guest, 1, SHELL("true"));
    check_failed(&guest, 1, FAILED_SETUP, EEXIST);
    end(&guest);
}

static void signals_arrive(void)
{
    static const int numbers[] = { SIGTERM, SIGINT, SIGKILL, SIGUSR1, 34, 64 };
    struct guest guest = start();

    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
        cleanup_with(seen_done) struct seen seen = SEEN_INIT;

        spawn(&guest, 1, "echo ready; exec sleep 1000");
        read_until(&guest, 1, &seen, "ready\n");
        send_numbers(&guest, FRAME_SIGNAL, 1, (uint64_t)numbers[i], 0);
        read_to_end(&guest, 1, &seen);
        CHECK(WIFSIGNALED(seen.exited.status) && (int)WTERMSIG(seen.exited.status) == numbers[i]);
        send_numbers(&guest, FRAME_FORGET, 1, 0, 0);
    }
    end(&guest);
}

static void a_signal_to_what_has_ended_hits_nobody(void)
{
    cleanup_with(seen_done) struct seen seen = SEEN_INIT;
    struct guest guest = start();

    spawn(&guest, 1, "true");
    read_to_end(&guest, 1, &seen);
    send_numbers(&guest, FRAME_SIGNAL, 1, SIGKILL, 0);
    send_numbers(&guest, FRAME_SIGNAL, 99, SIGKILL, 0);
    check_run(&guest, 2, "echo alive", "alive\n");
    end(&guest);
}

static void a_terminal_is_resized(void)
{
    cleanup_with(seen_done) struct seen seen = SEEN_INIT;
    struct guest guest = start();

    spawn_on_terminal(&guest, 1,
                      "stty -echo; stty size; trap 'stty size; exit 3' WINCH; echo ready; while "
                      ":; do sleep 0.05; done");
    read_until(&guest, 1, &seen, "24 80\r\nready\r\n");
    send_numbers(&guest, FRAME_RESIZE, 1, 50, 132);
    read_to_end(&guest, 1, &seen);
    CHECK(memmem(seen.text[0].data, seen.text[0].len, "50 132", 6));
    CHECK(WEXITSTATUS(seen.exited.status) == 3);
    end(&guest);
}

static void the_end_of_input_ends_a_terminals_reader(void)
{
    cleanup_with(seen_done) struct seen seen = SEEN_INIT;
    struct guest guest = start();

    spawn_on_terminal(&guest, 1, "stty -echo; echo ready; cat; echo end");
    read_until(&guest, 1, &seen, "ready\r\n");
    send_input(&guest, 1, 0, "text\n", 5);
    send_numbers(&guest, FRAME_INPUT_EOF, 1, 5, 0);
    read_to_end(&guest, 1, &seen);
    CHECK(memmem(seen.text[0].data, seen.text[0].len, "text\r\nend\r\n", 11));
    end(&guest);
}

static void a_hundred_processes_run_at_once(void)
{
    enum { COUNT = 100 };
    struct guest guest = start();
    size_t fds = fds_of(&guest), ended = 0;

    for (uint32_t id = 1; id <= COUNT; id++) {
        char text[64];

        (void)snprintf(text, sizeof(text), "read -r line; echo %u; exit %u", id, id);
        struct message_spawn *spec = SHELL(text);

        spec->has_stdin = true;
        spawn_spec(&guest, id, spec);
        (void)expect(&guest, FRAME_STARTED, id);
    }
    for (uint32_t id = 1; id <= COUNT; id++)
        send_input(&guest, id, 0, "go\n", 3);
    while (ended < COUNT) {
        struct frame frame = receive(&guest);
        struct message_exited exited;

        if (frame.type != FRAME_EXITED)
            continue;
        CHECK(message_get_exited(&frame, &exited));
        CHECK(WEXITSTATUS(exited.status) == frame.process, "(process %u)", frame.process);
        CHECK(exited.end[STREAM_STDOUT] == (frame.process < 10    ? 2u
                                            : frame.process < 100 ? 3u
                                                                  : 4u));
        ended++;
    }
    for (uint32_t id = 1; id <= COUNT; id++)
        send_numbers(&guest, FRAME_FORGET, id, 0, 0);
    EVENTUALLY(fds_of(&guest) == fds);
    end(&guest);
}

static void orphans_are_reaped(void)
{
    struct guest guest = start();
    char path[64];

    check_run(&guest, 1, "for i in 1 2 3 4 5; do (sh -c 'sleep 0.05 & exit' &); done; echo done",
              "done\n");
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid_of(&guest),
                   (int)pid_of(&guest));
    for (int waited = 0;; waited += POLL_MS) {
        char pids[256] = "";
        FILE *file = fopen(path, "re");

        CHECK(file && waited < PATIENCE_MS);
        (void)!fread(pids, 1, sizeof(pids) - 1, file);
        (void)fclose(file);
        if (pids[0] == '\0')
            break;
        pause_ms(POLL_MS);
    }
    end(&guest);
}

static void a_forgotten_process_leaves_no_descriptor(void)
{
    struct guest guest = start();
    size_t fds = fds_of(&guest);
    struct message_state states[8];

    give_listener(&guest);
    for (int i = 0; i < 50; i++)
        check_run(&guest, 1, "echo hi", "hi\n");
    spawn_on_terminal(&guest, 2, "sleep 1000");
    spawn_with_stdin(&guest, 3, "sleep 1000");
    send_numbers(&guest, FRAME_FORGET, 2, 0, 0); /* also while it runs */
    send_numbers(&guest, FRAME_FORGET, 3, 0, 0);
    EVENTUALLY(fds_of(&guest) == fds + 1 /* the listener */);
    CHECK(reconnect(&guest, states, ARRAY_SIZE(states)) == 0);
    end(&guest);
}

/* --- flow control ---------------------------------------------------------------------------- */

/* The output of `seq`, as far as it is needed. */
struct sequence {
    unsigned long number;
    char line[24];
    size_t len, at;
};

static void check_sequence(struct sequence *sequence, const char *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (sequence->at == sequence->len) {
            sequence->len = (size_t)snprintf(sequence->line, sizeof(sequence->line), "%lu\n",
                                             ++sequence->number);
            sequence->at = 0;
        }
        CHECK(data[i] == sequence->line[sequence->at++], "(in the line of %lu)", sequence->number);
    }
}

/* 10 MiB with a reader that acknowledges a little at a time. */
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

/* All of it, without a word from us: less than a window. */
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
        note(&seen, &frame);
    }
    end(&guest);
}

/* Whether a process that answers is heard while the output of another is not acknowledged. */
static void check_heard(uint32_t talker, uint32_t loud)
{
    cleanup_with(seen_done) struct seen seen = SEEN_INIT;
    struct guest guest = start();
    struct frame frame;

    for (uint32_t id = 1; id <= 2; id++) {
        if (id == talker)
            spawn_with_stdin(&guest, id, "exec cat");
        else
            spawn(&guest, id, "exec yes");
    }
    while (receive_for(&guest, QUIET_MS, &frame) == 1)
        CHECK(frame.process == loud);
    send_input(&guest, talker, 0, "hello", 5);
    while (offset_of(&seen, STREAM_STDOUT) < 5) {
        CHECK(receive_for(&guest, STALLED_MS, &frame) == 1, "(nothing comes)");
        if (frame.process == talker)
            note(&seen, &frame);
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

/* Its child goes on writing for ever, and we are slow to acknowledge. */
static void a_busy_heir_of_the_pipe_does_not_hold_the_end(void)
{
    cleanup_with(seen_done) struct seen seen = SEEN_INIT;
    struct guest guest = start();

    spawn(&guest, 1, "yes & yes & yes & sleep 0.2; exit 5");
    pause_ms(QUIET_MS);
    /* 32 MiB are far more than there can have been in the pipe. */
    while (!seen.is_ended && offset_of(&seen, STREAM_STDOUT) < 32 << 20) {
        struct frame frame = receive(&guest);

        note(&seen, &frame);
        if (offset_of(&seen, STREAM_STDOUT) % (64 << 10) == 0)
            send_numbers(&guest, FRAME_ACK, 1, STREAM_STDOUT, offset_of(&seen, STREAM_STDOUT));
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
        note(&seen, &frame);
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
        note(&seen, &frame);
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

            note(&seen, &frame);
        }
    }
    end(&guest);
}

/* --- connecting again ------------------------------------------------------------------------ */

static void processes_go_on_without_a_connection(void)
{
    struct guest guest = start();
    struct message_state states[8];

    give_listener(&guest);
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

    give_listener(&guest);
    spawn(&guest, 1, "seq 700000; exit 4");
    for (unsigned round = 0; !is_ended; round++) {
        struct sequence at_ack = sequence;
        struct message_state states[2];

        /* Reads a part, acknowledges some of it, and breaks off with more on the way. */
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
        /* The last acknowledgement may have been lost with the connection, but nothing before. */
        CHECK(states[1].acked[0] <= acked && states[1].produced[0] >= states[1].acked[0]);
        CHECK(states[1].acked[0] == acked, "(acknowledged %lu, the guest knows %lu)",
              (unsigned long)acked, (unsigned long)states[1].acked[0]);
        received = acked;
        sequence = at_ack;
    }
    CHECK(sequence.number == 700000 && sequence.at == sequence.len);
    end(&guest);
}

/* Offsets mean nothing to a daemon that has not been told where they begin. */
static void nothing_is_sent_before_the_hello(void)
{
    struct guest guest = start();
    struct frame frame;

    give_listener(&guest);
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

/* Holtd had read it, died before it could acknowledge, and does so first thing in its next life. */
static void what_an_earlier_connection_read_can_be_acknowledged(void)
{
    cleanup_with(seen_done) struct seen seen = SEEN_INIT;
    struct buf out = BUF_INIT(256);
    struct guest guest = start();
    struct frame frame;
    uint64_t received = 0;

    give_listener(&guest);
    spawn(&guest, 1, "seq 100000; exit 4");
    while (receive_for(&guest, QUIET_MS, &frame) == 1)
        received += frame.size - 13; /* less stream, offset and length */
    CHECK(received == FRAME_WINDOW);
    reconnect_silently(&guest);
    CHECK(message_put_numbers(&out, FRAME_HELLO, 0, WIRE_VERSION, 0) == 0);
    CHECK(message_put_numbers(&out, FRAME_ACK, 1, STREAM_STDOUT, received) == 0);
    send_buf(&guest, &out);
    (void)expect(&guest, FRAME_STATE, 1);
    (void)expect(&guest, FRAME_READY, 0);
    while (!seen.is_ended) {
        int r = receive_for(&guest, STALLED_MS, &frame);

        CHECK(r == 1, "(the output has stopped for ever)");
        note(&seen, &frame);
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

    give_listener(&guest);
    spawn(&guest, 1, "echo text; exit 9");
    for (int i = 0; i < 3; i++) {
        cleanup_with(seen_done) struct seen seen = SEEN_INIT;

        while (!seen.is_ended) {
            struct frame frame = receive(&guest);

            note(&seen, &frame);
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

    give_listener(&guest);
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

    give_listener(&guest);
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

    give_listener(&guest);
    spawn(&guest, 1, "exec sleep 1000");
    fds = fds_of(&guest);
    for (int i = 0; i < 100; i++)
        CHECK(reconnect(&guest, states, ARRAY_SIZE(states)) == 1);
    CHECK(fds_of(&guest) == fds, "(%zu, then %zu)", fds, fds_of(&guest));
    end(&guest);
}

/* --- hostile bytes --------------------------------------------------------------------------- */

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
        put_noise,
    };
    cleanup_with(seen_done) struct seen seen = SEEN_INIT;
    struct guest guest = start();
    struct message_state states[4];
    size_t fds;

    give_listener(&guest);
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

    give_listener(&guest);
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

    give_listener(&guest);
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

static void an_idle_guest_is_small(void)
{
    struct guest guest = start();

    check_run(&guest, 1, "seq 100000 | tail -n 1", "100000\n");
    CHECK(rss_kib(&guest) < 1024, "(%ld KiB)", rss_kib(&guest));
    end(&guest);
}

int main(void)
{
    must_be_root();
    (void)signal(SIGPIPE, SIG_IGN);
    CHECK(atexit(world_abandon) == 0);
    world_open();
    check_boots(&runtime_native); /* the first of all may make what stays */
    check_boots(&runtime_bwrap);

    RUN_CLEAN(a_blank_boots_natively);
    RUN_CLEAN(a_blank_boots_in_bubblewrap);
    RUN_CLEAN(a_blank_ends_with_its_connection);
    RUN_CLEAN(a_blank_in_bubblewrap_ends_with_its_connection);
    RUN_CLEAN(without_a_listener_a_sandbox_ends_with_its_connection);
    RUN_CLEAN(nothing_runs_without_a_root);
    RUN_CLEAN(a_second_boot_is_refused);
    RUN_CLEAN(a_root_names_the_host);
    RUN_CLEAN(a_spawn_right_behind_the_root_is_served);
    RUN_CLEAN(a_second_root_is_seen_by_what_runs);
    RUN_CLEAN(a_second_root_starts_clean);

    RUN_CLEAN(a_process_has_output_with_offsets_and_an_end);
    RUN_CLEAN(the_same_in_bubblewrap);
    RUN_CLEAN(a_process_needs_no_group_of_its_own);
    RUN_CLEAN(credentials_and_limits_are_as_asked);
    RUN_CLEAN(what_cannot_start_says_which_step_failed);
    RUN_CLEAN(an_id_that_is_taken_is_refused);
    RUN_CLEAN(signals_arrive);
    RUN_CLEAN(a_signal_to_what_has_ended_hits_nobody);
    RUN_CLEAN(a_terminal_is_resized);
    RUN_CLEAN(the_end_of_input_ends_a_terminals_reader);
    RUN_CLEAN(a_hundred_processes_run_at_once);
    RUN_CLEAN(orphans_are_reaped);
    RUN_CLEAN(a_forgotten_process_leaves_no_descriptor);

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

    RUN_CLEAN(malformed_frames_end_the_connection_and_nothing_else);
    RUN_CLEAN(input_beyond_the_window_ends_the_connection);
    RUN_CLEAN(a_malformed_spawn_starts_nothing);
    RUN_CLEAN(frames_may_come_byte_by_byte);
    RUN_CLEAN(an_idle_guest_is_small);

    RUN_CLEAN(nothing_is_sent_before_the_hello);
    RUN_CLEAN(a_window_of_output_needs_no_acknowledgement);
    RUN_CLEAN(a_process_is_heard_beside_an_older_loud_one);
    RUN_CLEAN(a_process_is_heard_beside_a_newer_loud_one);
    RUN_CLEAN(a_root_that_fails_leaves_the_old_one);
    RUN_CLEAN(a_busy_heir_of_the_pipe_does_not_hold_the_end);
    RUN_CLEAN(what_an_earlier_connection_read_can_be_acknowledged);
    world_close();
    return 0;
}
