/* Fixture of the guest tests: a real holt-init in real isolation, driven over the wire without the
 * daemon. */
#pragma once

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
#include "base/files/tree.h"
#include "base/io.h"
#include "base/xalloc.h"
#include "kernel/cgroup/cgroup.h"
#include "kernel/harness.h"
#include "runtime/runtime.h"
#include "store/store.h"
#include "store/template/template.h"
#include "store/volume/volume.h"
#include "wire/message.h"

enum {
    FIRST_UID = 0x70000000,  /* far from the ids that a daemon on this machine may use */
    QUIET_MS = 300,          /* how long to wait for frames that must not come */
    STALLED_MS = 120 * 1000, /* silence that counts as a hang */
    ROOTS_MAX = 3,
    RSS_MAX_KIB = 4096,
    WORDS_MAX = 8,
};

/* State shared by all tests. */
static struct {
    char dir[64], home_file[96], label[32];
    struct cgroup_root *cgroups;
    struct runtime *runtime;
    struct store *store;
    unsigned last_guest, last_volume;
} world;

struct guest {
    struct runtime_guest started;
    int fd; /* the current connection */
    struct buf in;
    size_t used; /* bytes of `in` that belong to the frame returned last */
    struct volume *volumes[ROOTS_MAX];
    size_t volume_count;
    int listener;
    struct sockaddr_un address;
};

#define CHECK_OK(call, err) CHECK((call) >= 0, "(%s)", (err)->msg)

/* --- fixture -------------------------------------------------------------------------------- */

/* Creates what survives a daemon: its directory and its label. */
static inline void world_make(void)
{
    struct err err = { 0 };

    (void)snprintf(world.dir, sizeof(world.dir), "/tmp/holt-guest-test-XXXXXX");
    CHECK(mkdtemp(world.dir));
    (void)snprintf(world.home_file, sizeof(world.home_file), "%s/groups", world.dir);
    (void)snprintf(world.label, sizeof(world.label), "holt-guest-test-%d", (int)getpid());
    CHECK_OK(store_open(&(struct store_options){ .state_dir = world.dir,
                                                 .template_bytes_max = UINT64_MAX,
                                                 .template_files_max = UINT64_MAX,
                                                 .storage = "dir" },
                        &world.store, &err),
             &err);
}

/* Does what a daemon does at startup. */
static inline void world_start(cgroup_keep_fn keep, void *context)
{
    struct err err = { 0 };

    CHECK_OK(cgroup_root_open_at(world.label, world.home_file, &world.cgroups, &err), &err);
    CHECK_OK(cgroup_root_sweep(world.cgroups, keep, context, &err), &err);
    CHECK_OK(runtime_open(world.cgroups, build_path("holt-init"), &world.runtime, &err), &err);
}

static inline void world_stop(void)
{
    runtime_close(TAKE_PTR(world.runtime));
    cgroup_root_close(TAKE_PTR(world.cgroups));
}

/* After a failed check: guests with a listener would outlive the test. */
static inline void world_abandon(void)
{
    struct err err;

    if (!world.store)
        return;
    if (world.cgroups ||
        cgroup_root_open_at(world.label, world.home_file, &world.cgroups, &err) == 0)
        (void)cgroup_root_sweep(world.cgroups, NULL, NULL, &err);
    cgroup_root_close(world.cgroups);
    (void)tree_remove_at(AT_FDCWD, world.dir);
}

static inline void world_unmake(void)
{
    store_close(TAKE_PTR(world.store));
    CHECK(groups_with(world.label) == 0, "(%zu control groups are left)", groups_with(world.label));
    CHECK(tree_remove_at(AT_FDCWD, world.dir) == 0);
}

static inline void world_close(void)
{
    world_stop();
    world_unmake();
}

/* --- frames ---------------------------------------------------------------------------------- */

static inline void send_bytes(struct guest *guest, const void *data, size_t len, const int *fds,
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

static inline void send_buf(struct guest *guest, struct buf *out)
{
    send_bytes(guest, out->data, out->len, NULL, 0);
    buf_done(out);
}

static inline void send_numbers(struct guest *guest, enum frame_type type, uint32_t process,
                                uint64_t first, uint64_t second)
{
    struct buf out = BUF_INIT(64);

    CHECK(message_put_numbers(&out, type, process, first, second) == 0);
    send_buf(guest, &out);
}

/* Receives the next frame, valid until the next call. Returns 1, 0 if the connection has ended, or
 * -EAGAIN after ms milliseconds of silence. */
static inline int receive_for(struct guest *guest, int ms, struct frame *ret)
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

static inline struct frame receive(struct guest *guest)
{
    struct frame frame = { 0 };
    int r = receive_for(guest, PATIENCE_MS, &frame);

    CHECK(r != -EAGAIN, "(nothing comes)");
    CHECK(r == 1, "(the connection ended)");
    return frame;
}

static inline struct frame expect(struct guest *guest, enum frame_type type, uint32_t process)
{
    struct frame frame = receive(guest);

    CHECK(frame.type == type && frame.process == process,
          "(got type %d of process %u, wanted %d of %u)", (int)frame.type, frame.process, (int)type,
          process);
    return frame;
}

static inline void expect_end(struct guest *guest)
{
    struct frame frame;
    int r;

    while ((r = receive_for(guest, PATIENCE_MS, &frame)) == 1)
        continue;
    CHECK(r == 0, "(the connection goes on)");
}

/* --- guests ---------------------------------------------------------------------------------- */

static inline struct guest start_blank(const struct runtime_ops *ops)
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

/* Sends a new root without waiting for the reply. */
static inline void send_root(struct guest *guest)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(4096);
    cleanup_with(volume_mounts_done) struct volume_mounts mounts = { .count = 0 };
    struct message_root root = { .hostname = "guest-test" };
    struct template *template;
    struct volume *volume;
    struct err err = { 0 };
    cleanup_close int userns_fd = runtime_guest_open_userns(&guest->started, &err);
    char id[32];

    CHECK(userns_fd >= 0, "(%s)", err.msg);
    (void)snprintf(id, sizeof(id), "sb-%012x", ++world.last_volume);
    CHECK_OK(template_open(world.store, "host", &template, &err), &err);
    CHECK_OK(volume_create_scratch(world.store, id, template, &volume, &err), &err);
    CHECK(guest->volume_count < ROOTS_MAX);
    guest->volumes[guest->volume_count++] = volume;
    CHECK_OK(volume_mount(volume, userns_fd, FIRST_UID, &mounts, &err), &err);
    root.mount_count = mounts.count;
    memcpy(root.targets, mounts.targets, sizeof(mounts.targets[0]) * mounts.count);
    CHECK(message_put_root(&out, &root) == 0);
    send_bytes(guest, out.data, out.len, mounts.fds, mounts.count);
}

static inline struct guest start_with(const struct runtime_ops *ops)
{
    struct guest guest = start_blank(ops);

    send_root(&guest);
    (void)expect(&guest, FRAME_ROOTED, 0);
    return guest;
}

static inline struct guest start(void)
{
    return start_with(&runtime_native);
}

static inline void end(struct guest *guest)
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

static inline pid_t pid_of(const struct guest *guest)
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

static inline bool has_ended(const struct guest *guest)
{
    struct pollfd wait = { .fd = guest->started.pidfd, .events = POLLIN };

    return poll(&wait, 1, 0) == 1;
}

static inline size_t fds_of(const struct guest *guest)
{
    char path[32];

    (void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid_of(guest));
    return count_entries(path);
}

static inline long rss_kib(const struct guest *guest)
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

static inline void spawn_spec(struct guest *guest, uint32_t id, const struct message_spawn *spec)
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

/* Returns a static one, because it is large. The words end with NULL and must stay valid. */
static inline struct message_spawn *spec_of(const char *const *words)
{
    static struct message_spawn spec;

    memset(&spec, 0, sizeof(spec));
    spec.args = words;
    while (words[spec.arg_count])
        spec.arg_count++;
    spec.env[spec.env_count++] = "PATH=/usr/bin:/bin";
    spec.cwd = "/workspace";
    spec.rows = 24;
    spec.columns = 80;
    return &spec;
}

#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define SHELL(text) spec_of(WORDS("sh", "-c", text))

static inline void spawn(struct guest *guest, uint32_t id, const char *text)
{
    spawn_spec(guest, id, SHELL(text));
    (void)expect(guest, FRAME_STARTED, id);
}

static inline void spawn_with_stdin(struct guest *guest, uint32_t id, const char *text)
{
    struct message_spawn *spec = SHELL(text);

    spec->has_stdin = true;
    spawn_spec(guest, id, spec);
    (void)expect(guest, FRAME_STARTED, id);
}

static inline void spawn_on_terminal(struct guest *guest, uint32_t id, const char *text)
{
    struct message_spawn *spec = SHELL(text);

    spec->has_stdin = spec->has_terminal = true;
    spawn_spec(guest, id, spec);
    (void)expect(guest, FRAME_STARTED, id);
}

static inline void send_input(struct guest *guest, uint32_t id, uint64_t offset, const void *data,
                              size_t len)
{
    struct buf out = BUF_INIT(FRAME_FROM_DAEMON_MAX);

    CHECK(message_put_input(&out, id, offset, data, len) == 0);
    send_buf(guest, &out);
}

/* The frames received about one process. */
struct seen {
    struct buf text[STREAM_COUNT];
    uint64_t begin[STREAM_COUNT]; /* offset of the first byte in text */
    uint64_t input_acked;
    bool is_ended;
    struct message_exited exited;
};

static inline void seen_done(struct seen *seen)
{
    for (int i = 0; i < STREAM_COUNT; i++)
        buf_done(&seen->text[i]);
}

#define SEEN_INIT                                                                                  \
    {                                                                                              \
        .text = { BUF_INIT(64 << 20), BUF_INIT(64 << 20) }                                         \
    }

static inline uint64_t offset_of(const struct seen *seen, int stream)
{
    return seen->begin[stream] + seen->text[stream].len;
}

/* Records a frame about the process. Checks that offsets have no gap and no overlap. */
static inline void seen_add(struct seen *seen, const struct frame *frame)
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
static inline void read_to_end(struct guest *guest, uint32_t id, struct seen *seen)
{
    while (!seen->is_ended) {
        struct frame frame = receive(guest);
        enum frame_type type = frame.type;
        enum frame_stream stream = STREAM_STDOUT;

        CHECK(frame.process == id);
        if (type == FRAME_OUTPUT)
            stream = (enum frame_stream)frame.payload[0];
        seen_add(seen, &frame);
        if (type == FRAME_OUTPUT)
            send_numbers(guest, FRAME_ACK, id, (uint64_t)stream, offset_of(seen, (int)stream));
    }
}

static inline void read_until(struct guest *guest, uint32_t id, struct seen *seen, const char *text)
{
    while (!seen->text[0].data ||
           !memmem(seen->text[0].data, seen->text[0].len, text, strlen(text))) {
        struct frame frame = receive(guest);

        CHECK(frame.process == id && !seen->is_ended);
        seen_add(seen, &frame);
    }
}

static inline void check_text(const struct seen *seen, int stream, const char *wanted)
{
    size_t len = strlen(wanted);

    CHECK(seen->text[stream].len == len && memcmp(seen->text[stream].data, wanted, len) == 0,
          "(got '%.*s', wanted '%s')", (int)seen->text[stream].len,
          seen->text[stream].data ? seen->text[stream].data : "", wanted);
}

/* Runs a command to its end. Returns its status as from waitpid and its stdout in text. */
static inline uint32_t run(struct guest *guest, uint32_t id, const char *command, char *text,
                           size_t size)
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

static inline void check_run(struct guest *guest, uint32_t id, const char *command,
                             const char *wanted)
{
    char text[4096];

    CHECK(run(guest, id, command, text, sizeof(text)) == 0);
    CHECK_TEXT(text, wanted);
}

static inline void check_boots(const struct runtime_ops *ops)
{
    struct guest guest = start_blank(ops);

    CHECK(!has_ended(&guest));
    end(&guest);
}

/* Called first by every main. The first boot may create persistent files. */
static inline void world_begin(void)
{
    must_be_root();
    (void)signal(SIGPIPE, SIG_IGN);
    CHECK(atexit(world_abandon) == 0);
    world_make();
    world_start(NULL, NULL);
    check_boots(&runtime_native);
    check_boots(&runtime_bwrap);
}
