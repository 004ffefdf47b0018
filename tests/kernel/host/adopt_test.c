// SPDX-License-Identifier: Apache-2.0
/* Tests that kill a daemon at any moment and adopt its guests in the next one. */
#include <sys/mman.h>

#include "kernel/cgroup/cgroup_internal.h"
#include "kernel/guest/guest_again.h"

enum { ROUNDS = 20, LINES = 200000, KILL_AFTER_MS_MAX = 60 };

/* Processes of the first daemon. */
enum { COUNTER = 1, TERMINAL, CAT, ENDED, FORGOTTEN, LAST = FORGOTTEN, STATES };

/* What the first daemon stores for the next one. */
struct notes {
    char id[RUNTIME_ID_MAX], limits_group[RUNTIME_ID_MAX];
    struct sockaddr_un address;
    volatile bool is_listening; /* the sandbox outlives the daemon */
    volatile bool is_settled;   /* all processes were started */
    volatile uint64_t acking, acked;
};

static struct notes *notes; /* shared with the next daemon */

static bool keeps_stored(const char *name, void *context)
{
    const struct notes *kept = context;

    return strcmp(name, kept->id) == 0 || strcmp(name, kept->limits_group) == 0;
}

/* --- the first daemon ------------------------------------------------------------------------ */

/* Ignores frames of other processes, which loses nothing, since nothing is acknowledged. */
static struct frame await_frame(struct guest *guest, enum frame_type type, uint32_t process)
{
    for (;;) {
        struct frame frame = receive(guest);

        if (frame.type == type && frame.process == process)
            return frame;
        CHECK(frame.process != 0 && frame.type != FRAME_FAILED);
    }
}

static void send_spawn(struct guest *guest, uint32_t id, struct message_spawn *spec)
{
    spawn_spec(guest, id, spec);
    (void)await_frame(guest, FRAME_STARTED, id);
}

static void start_processes(struct guest *guest)
{
    struct message_spawn *spec;

    send_spawn(guest, FORGOTTEN, SHELL("exit 5"));
    (void)await_frame(guest, FRAME_EXITED, FORGOTTEN);
    send_numbers(guest, FRAME_FORGET, FORGOTTEN, 0, 0);
    send_spawn(guest, ENDED, SHELL("echo gone; exit 3"));
    (void)await_frame(guest, FRAME_EXITED, ENDED);
    spec = SHELL("exec sleep 1000");
    spec->has_stdin = spec->has_terminal = true;
    send_spawn(guest, TERMINAL, spec);
    spec = SHELL("exec cat");
    spec->has_stdin = true;
    send_spawn(guest, CAT, spec);
    send_input(guest, CAT, 0, "abc", 3);
    (void)await_frame(guest, FRAME_OUTPUT, CAT);
    send_spawn(guest, COUNTER, spec_of(WORDS("seq", "200000")));
}

/* Reads output, acknowledges it at intervals, and never returns. */
static void serve_forever(struct guest *guest)
{
    uint64_t received = 0;

    for (unsigned i = 0;; i++) {
        struct frame frame = receive(guest);
        enum frame_stream stream;
        const char *data;
        uint64_t offset;
        size_t len;

        if (frame.process != COUNTER || frame.type != FRAME_OUTPUT)
            continue;
        CHECK(message_get_stream(&frame, &stream, &offset, &data, &len) && offset == received);
        received += len;
        if (i % 3 != 0)
            continue;
        notes->acking = received;
        send_numbers(guest, FRAME_ACK, COUNTER, STREAM_STDOUT, received);
        notes->acked = received;
        pause_ms(1);
    }
}

static void run_first_daemon(const struct runtime_ops *ops)
{
    struct guest guest;

    world_start(NULL, NULL);
    guest = start_with(ops);
    memcpy(notes->id, guest.started.id, sizeof(notes->id));
    memcpy(notes->limits_group, guest.started.limits_group, sizeof(notes->limits_group));
    send_listener(&guest);
    notes->address = guest.address;
    notes->is_listening = true;
    start_processes(&guest);
    notes->is_settled = true;
    serve_forever(&guest);
}

static bool has_died(pid_t pid)
{
    siginfo_t info = { 0 };

    CHECK(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0);
    return info.si_pid == pid;
}

/* Runs a daemon and kills it some time after its processes were started, or (any_time) at any
 * time. */
static void run_and_kill(const struct runtime_ops *ops, bool any_time, long after_ms)
{
    int status;
    pid_t pid;

    *notes = (struct notes){ 0 };
    world.last_guest = 0; /* as in a daemon's first start */
    (void)fflush(stdout);
    pid = fork();
    if (pid == 0) {
        run_first_daemon(ops);
        _exit(1);
    }
    world.last_volume++; /* the child's */
    if (!any_time)
        EVENTUALLY(notes->is_settled || has_died(pid));
    pause_ms(after_ms);
    CHECK(kill(pid, SIGKILL) == 0);
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFSIGNALED(status), "(the first daemon has failed)");
}

/* --- the next daemon ------------------------------------------------------------------------- */

static struct guest adopt(const struct runtime_ops *ops)
{
    struct guest guest = { .in = BUF_INIT(4 * FRAME_FROM_GUEST_MAX),
                           .fd = -1,
                           .listener = -1,
                           .address = notes->address };
    struct err err = { 0 };
    int fd = connect_to(&guest);
    const struct runtime_adoption adoption = { .id = notes->id,
                                               .limits_group = notes->limits_group,
                                               .first_uid = FIRST_UID,
                                               .stream_fd = fd };

    CHECK_OK(runtime_adopt(world.runtime, ops, &adoption, &guest.started, &err), &err);
    guest.fd = TAKE_FD(guest.started.stream_fd);
    CHECK(guest.fd == fd && !guest.started.zygote);
    CHECK(runtime_guest_own_processes(&guest.started) == ops->own_processes);
    return guest;
}

static struct sequence sequence_from(uint64_t offset)
{
    struct sequence sequence = { 0 };

    while (offset > 0) {
        sequence.len =
            (size_t)snprintf(sequence.line, sizeof(sequence.line), "%lu\n", ++sequence.number);
        sequence.at = offset < sequence.len ? (size_t)offset : sequence.len;
        offset -= sequence.at;
    }
    return sequence;
}

static void check_states(const struct message_state *states)
{
    CHECK(states[COUNTER].acked[0] >= notes->acked && states[COUNTER].acked[0] <= notes->acking);
    CHECK(!states[COUNTER].has_terminal && !states[COUNTER].is_input_open);
    CHECK(states[TERMINAL].has_terminal && states[TERMINAL].is_input_open);
    CHECK(!states[TERMINAL].is_exited && states[TERMINAL].pid > 1);
    CHECK(!states[CAT].has_terminal && states[CAT].is_input_open && !states[CAT].is_exited);
    CHECK(states[CAT].input == 3 && states[CAT].input_taken == 3 && states[CAT].produced[0] == 3);
    CHECK(states[ENDED].is_exited && states[ENDED].produced[0] == 5 && !states[ENDED].acked[0]);
    CHECK(states[ENDED].age_ms < PATIENCE_MS && states[TERMINAL].age_ms < PATIENCE_MS);
}

/* Reads from the acknowledged offset to the end of the counter, and all output of the other
 * processes. */
static void read_on(struct guest *guest, const struct message_state *states)
{
    struct sequence sequence = sequence_from(states[COUNTER].acked[0]);
    cleanup_with(seen_done) struct seen ended = SEEN_INIT, cat = SEEN_INIT, counter = SEEN_INIT;

    send_input(guest, CAT, states[CAT].input, "def", 3);
    while (!ended.is_ended || !counter.is_ended || offset_of(&cat, STREAM_STDOUT) < 6) {
        struct frame frame = receive(guest);
        size_t had = counter.text[0].len;

        if (frame.process == COUNTER) {
            seen_add(&counter, &frame);
            check_sequence(&sequence, counter.text[0].data + had, counter.text[0].len - had);
            if (counter.text[0].len > had)
                send_numbers(guest, FRAME_ACK, COUNTER, STREAM_STDOUT, offset_of(&counter, 0));
        } else {
            CHECK(frame.process == ENDED || frame.process == CAT);
            seen_add(frame.process == ENDED ? &ended : &cat, &frame);
        }
    }
    CHECK(sequence.number == LINES && sequence.at == sequence.len);
    CHECK(counter.text[0].len == 0 || counter.begin[0] == states[COUNTER].acked[0]);
    CHECK(WEXITSTATUS(ended.exited.status) == 3);
    check_text(&ended, STREAM_STDOUT, "gone\n");
    check_text(&cat, STREAM_STDOUT, "abcdef");
}

/* Every process in "init" is in the same user namespace, so ids mapped by it are right. */
static void check_user_namespace(const struct guest *guest)
{
    cleanup_with(buf_done) struct buf pids = BUF_INIT(4096);
    cleanup_close int init_fd = -EBADF;
    struct stat adopted, found;
    struct err err = { 0 };
    cleanup_close int userns_fd = runtime_guest_open_userns(&guest->started, &err);
    unsigned count = 0;
    char path[48], *save = NULL;

    CHECK_OK(cgroup_open_child(world.cgroups, guest->started.id, "init", 0, &init_fd, &err), &err);
    CHECK(file_read_at(init_fd, "cgroup.procs", &pids) == 0);
    CHECK(fstat(userns_fd, &adopted) == 0);
    for (char *line = strtok_r(pids.data, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        (void)snprintf(path, sizeof(path), "/proc/%s/ns/user", line);
        CHECK(stat(path, &found) == 0 && found.st_ino == adopted.st_ino, "(%s)", path);
        count++;
    }
    CHECK(count == guest->started.ops->own_processes, "(%u processes)", count);
}

static void check_works(struct guest *guest, uint32_t last)
{
    struct message_state states[STATES + 4];
    uint64_t none;

    check_run(guest, last + 1, "echo new", "new\n");
    /* A connection may be lost and opened again while the processes are frozen. */
    CHECK(cgroup_freeze(world.cgroups, guest->started.id, true) == 0);
    disconnect(guest);
    guest->fd = connect_to(guest);
    CHECK(send_hello(guest, states, ARRAY_SIZE(states), &none) >= 3);
    CHECK(cgroup_freeze(world.cgroups, guest->started.id, false) == 0);
    CHECK(cgroup_kill_processes(world.cgroups, guest->started.id) == 0);
    for (uint32_t id = 1; id <= last; id++)
        send_numbers(guest, FRAME_FORGET, id, 0, 0);
    disconnect(guest);
    guest->fd = connect_to(guest);
    CHECK(send_hello(guest, states, ARRAY_SIZE(states), &none) == 0 && none == last + 1);

    send_root(guest);
    (void)expect(guest, FRAME_ROOTED, 0);
    check_run(guest, last + 2,
              "echo text >/workspace/f; chown 7 /workspace/f; "
              "stat -c '%u %g' /workspace /workspace/f; cat /workspace/f",
              "0 0\n7 0\ntext\n");
}

/* A new guest must not get the cgroups of the adopted one. */
static void check_neighbour(const struct guest *adopted, const struct runtime_ops *ops)
{
    struct guest guest;

    world.last_guest++;
    guest = start_with(ops);
    CHECK(strcmp(guest.started.limits_group, adopted->started.limits_group) != 0);
    check_run(&guest, 1, "echo neighbour", "neighbour\n");
    end(&guest);
}

static void take_over(const struct runtime_ops *ops, bool is_whole)
{
    struct message_state states[STATES];
    struct guest guest;
    uint64_t last;
    size_t count;

    world_start(keeps_stored, notes);
    guest = adopt(ops);
    count = send_hello(&guest, states, ARRAY_SIZE(states), &last);
    if (is_whole) {
        CHECK(count == 4 && last == LAST);
        check_states(states);
        check_user_namespace(&guest);
        read_on(&guest, states);
        check_neighbour(&guest, ops);
        check_works(&guest, LAST);
    }
    end(&guest);
    world_stop();
}

static void check_nothing_is_left(void)
{
    CHECK(groups_with(world.label) == 0, "(%zu control groups are left)", groups_with(world.label));
}

static void check_adoption(const struct runtime_ops *ops)
{
    for (int i = 0; i < ROUNDS; i++) {
        run_and_kill(ops, false, random() % KILL_AFTER_MS_MAX);
        take_over(ops, true);
        check_nothing_is_left();
    }
}

static void a_native_guest_is_adopted(void)
{
    check_adoption(&runtime_native);
}

static void a_guest_in_bubblewrap_is_adopted(void)
{
    check_adoption(&runtime_bwrap);
}

/* A guest that could not outlive the daemon is removed; any other can be adopted. */
static void check_any_moment(const struct runtime_ops *ops)
{
    for (int i = 0; i < ROUNDS; i++) {
        run_and_kill(ops, true, random() % KILL_AFTER_MS_MAX);
        if (notes->is_listening) {
            take_over(ops, false);
        } else {
            world_start(NULL, NULL);
            world_stop();
        }
        (void)unlink(notes->address.sun_path);
        check_nothing_is_left();
    }
}

static void a_daemon_may_die_at_any_moment(void)
{
    check_any_moment(&runtime_native);
    check_any_moment(&runtime_bwrap);
}

/* Adopts twice; the daemon between does nothing. */
static void a_guest_is_adopted_again_and_again(void)
{
    run_and_kill(&runtime_native, false, 0);
    for (int i = 0; i < 3; i++) {
        pid_t pid = fork();
        int status;

        if (pid == 0) {
            world_start(keeps_stored, notes);
            (void)adopt(&runtime_native);
            _exit(0);
        }
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    }
    take_over(&runtime_native, true);
    check_nothing_is_left();
}

static void guests_that_nothing_adopts_are_removed(void)
{
    run_and_kill(&runtime_bwrap, false, 0);
    world_start(keeps_stored, notes);
    CHECK(runtime_bury(world.runtime, notes->id, notes->limits_group) == 0);
    CHECK(runtime_bury(world.runtime, notes->id, notes->limits_group) == 0, "(it is gone)");
    world_stop();
    check_nothing_is_left();
    CHECK(unlink(notes->address.sun_path) == 0);
}

static void ended_or_foreign_guests_are_not_adopted(void)
{
    struct runtime_adoption adoption = { .id = notes->id,
                                         .limits_group = notes->limits_group,
                                         .first_uid = FIRST_UID + 1,
                                         .stream_fd = -1 };
    struct runtime_guest guest;
    struct err err = { 0 };

    run_and_kill(&runtime_native, false, 0);
    world_start(keeps_stored, notes);
    CHECK(runtime_adopt(world.runtime, &runtime_native, &adoption, &guest, &err) < 0);
    CHECK(err.kind == ERR_INVALID, "(%s)", err.msg);
    adoption.first_uid = FIRST_UID;
    CHECK(cgroup_kill(world.cgroups, notes->id, NULL) == 0);
    CHECK(cgroup_wait_empty(world.cgroups, notes->id, NULL) == 0);
    CHECK(runtime_adopt(world.runtime, &runtime_native, &adoption, &guest, &err) < 0);
    CHECK(err.kind == ERR_NOT_FOUND, "(%s)", err.msg);
    CHECK(runtime_bury(world.runtime, notes->id, notes->limits_group) == 0);
    world_stop();
    check_nothing_is_left();
    CHECK(unlink(notes->address.sun_path) == 0);
}

static void all(void)
{
    world_begin();
    world_stop();
    notes = mmap(NULL, sizeof(*notes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(notes != MAP_FAILED);
    RUN_CLEAN(a_native_guest_is_adopted);
    RUN_CLEAN(a_guest_in_bubblewrap_is_adopted);
    RUN_CLEAN(a_daemon_may_die_at_any_moment);
    RUN_CLEAN(a_guest_is_adopted_again_and_again);
    RUN_CLEAN(guests_that_nothing_adopts_are_removed);
    RUN_CLEAN(ended_or_foreign_guests_are_not_adopted);
    world_unmake();
}

int main(void)
{
    RUN(all);
    return 0;
}
