// SPDX-License-Identifier: Apache-2.0
/* Tests of process records: output at any offset, and outcomes, while a process runs, after its
 * end, and after a restart of the daemon. */
#include <inttypes.h>
#include <signal.h>
#include <sys/pidfd.h>

#include "host/core/host_internal.h"
#include "host/machine/machine_internal.h"
#include "host/process/process_internal.h"
#include "host/process/record_internal.h"
#include "host/process/writer.h"
#include "kernel/host/host_world.h"
#include "wire/frame.h"
#include "wire/message.h"

enum { DISK_BYTES = 1 << 20, DATA_BYTES = 64 * 1024 };

static struct err err;

/* --- helpers --------------------------------------------------------------------------------- */

static struct process *start(struct sandbox *sandbox, const char *command,
                             const struct process_spec *wanted)
{
    char *args[] = { (char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-c",
                     (char *)(uintptr_t)command, NULL };
    struct process_spec spec = wanted ? *wanted : (struct process_spec){ .is_detached = true };
    struct process *process = NULL;

    spec.args = args;
    CHECK_OK(sandbox_exec(sandbox, &spec, &process, &err), &err);
    return process;
}

/* Starts a detached process and returns its id. */
static const char *start_detached(struct sandbox *sandbox, const char *command)
{
    static char id[16];
    struct process *process = start(sandbox, command, NULL);

    (void)snprintf(id, sizeof(id), "%s", process_id(process));
    process_abandon(process);
    return id;
}

static struct record *find(struct sandbox *sandbox, const char *id)
{
    struct record *record = NULL;

    CHECK_OK(sandbox_find_record(sandbox, id, &record, &err), &err);
    return record;
}

static struct process_end wait_end(struct sandbox *sandbox, const char *id)
{
    struct record *record = find(sandbox, id);
    struct process_end end;

    CHECK(record_wait(record, -1, PATIENCE_MS, &end) == 0);
    record_unref(record);
    return end;
}

/* The result of reading one stream. */
struct stream_output {
    struct buf data;
    uint64_t gap_at, missing;
    struct process_end end;
    enum reader_event_kind last;
};

static void stream_output_done(struct stream_output *heard)
{
    buf_done(&heard->data);
}

static struct stream_output stream_read(struct sandbox *sandbox, const char *id,
                                        enum output_stream stream, const struct reader_spec *spec)
{
    struct record *record = find(sandbox, id);
    struct stream_output heard = { .data = BUF_INIT(64 << 20) };
    struct reader_event event = { 0 };
    struct output_reader *reader;
    static char data[DATA_BYTES];

    CHECK_OK(reader_open(record, spec, &reader, &err), &err);
    do {
        CHECK(reader_next(reader, -1, data, sizeof(data), &event) == 0);
        if (event.kind == READER_DATA && event.stream == stream)
            CHECK(buf_add(&heard.data, data, event.len) == 0);
        if (event.kind == READER_GAP && event.stream == stream) {
            CHECK(heard.missing == 0, "(a second gap)");
            heard.gap_at = event.offset;
            heard.missing = event.missing;
        }
    } while (event.kind == READER_DATA || event.kind == READER_GAP);
    heard.end = event.end;
    heard.last = event.kind;
    reader_close(reader);
    record_unref(record);
    return heard;
}

static const struct reader_spec all = { .follows = true };

static void check_text(struct sandbox *sandbox, const char *id, enum output_stream stream,
                       const char *wanted)
{
    cleanup_with(stream_output_done) struct stream_output heard =
        stream_read(sandbox, id, stream, &all);

    CHECK(heard.data.len == strlen(wanted) &&
              memcmp(heard.data.data ? heard.data.data : "", wanted, heard.data.len) == 0,
          "('%.*s', not '%s')", (int)heard.data.len, heard.data.data ? heard.data.data : "",
          wanted);
    CHECK(heard.missing == 0);
}

static void restart(void)
{
    host_close(TAKE_PTR(world.host));
    world_start();
}

static struct sandbox *find_again(const char *name)
{
    struct sandbox *sandbox = NULL;

    CHECK_OK(sandbox_find(world.host, &caller_root, name, &sandbox, &err), &err);
    return sandbox;
}

/* --- reading --------------------------------------------------------------------------------- */

static void output_is_read_from_any_offset_by_anybody(void)
{
    struct sandbox *sandbox = world_create("reading");
    char id[16];
    struct reader_spec middle = { .from = { 2, 1 }, .follows = true };

    (void)snprintf(id, sizeof(id), "%s",
                   start_detached(sandbox, "echo -n abcdef; echo -n xyz >&2; exit 3"));
    CHECK(wait_end(sandbox, id).exit_code == 3);
    for (int i = 0; i < 2; i++) {
        check_text(sandbox, id, PROCESS_OUT, "abcdef");
        check_text(sandbox, id, PROCESS_ERR, "xyz");
    }
    for (int stream = 0; stream < PROCESS_STREAMS; stream++) {
        cleanup_with(stream_output_done) struct stream_output heard =
            stream_read(sandbox, id, stream, &middle);

        CHECK(heard.last == READER_ENDED && heard.end.exit_code == 3);
        CHECK(heard.data.len == (stream == PROCESS_OUT ? 4 : 2) &&
              memcmp(heard.data.data, stream == PROCESS_OUT ? "cdef" : "yz", heard.data.len) == 0);
    }
    world_destroy(sandbox);
}

static void an_offset_that_was_never_written_is_refused(void)
{
    struct sandbox *sandbox = world_create("beyond");
    struct reader_spec beyond = { .from = { 7, 0 } };
    struct output_reader *reader;
    struct record *record;

    record = find(sandbox, start_detached(sandbox, "echo -n abcdef"));
    CHECK(record_wait(record, -1, PATIENCE_MS, &(struct process_end){ 0 }) == 0);
    CHECK(reader_open(record, &beyond, &reader, &err) < 0 && err.kind == ERR_INVALID);
    record_unref(record);
    CHECK(sandbox_find_record(sandbox, "p77", &record, &err) < 0 &&
          err.cause == CAUSE_PROCESS_NOT_FOUND);
    world_destroy(sandbox);
}

static void a_reader_that_does_not_follow_gets_what_there_is(void)
{
    struct sandbox *sandbox = world_create("present");
    const struct reader_spec now = { .follows = false };
    struct process *process =
        start(sandbox, "echo -n here; read end",
              &(struct process_spec){ .is_detached = true, .has_stdin = true });
    const char *id = process_id(process);

    for (;;) {
        cleanup_with(stream_output_done) struct stream_output heard =
            stream_read(sandbox, id, PROCESS_OUT, &now);

        CHECK(heard.last == READER_UP_TO_DATE);
        if (heard.data.len == 4)
            break;
        pause_ms(POLL_MS);
    }
    CHECK_OK(process_send_input(process, "end\n", 4, true, &err), &err);
    CHECK(wait_end(sandbox, id).exit_code == 0);
    CHECK(process_send_input(process, "x", 1, false, &err) < 0 && err.cause == CAUSE_PROCESS_ENDED);
    CHECK(process_resize(process, 1, 1, &err) < 0 && err.cause == CAUSE_PROCESS_ENDED);
    process_abandon(process);
    CHECK(sandbox_find_process(sandbox, "p1", &process, &err) < 0 &&
          (err.cause == CAUSE_PROCESS_ENDED));
    world_destroy(sandbox);
}

/* Lines "0000000\n", "0000001\n", ...: the offset determines every byte. */
static char byte_at(uint64_t offset)
{
    char line[32];

    (void)snprintf(line, sizeof(line), "%07" PRIu64 "\n", offset / 8);
    return line[offset % 8];
}

static void check_numbers(const char *data, size_t len, uint64_t offset)
{
    for (size_t i = 0; i < len; i++)
        CHECK(data[i] == byte_at(offset + i), "(at offset %" PRIu64 ")", offset + i);
}

#define NUMBERS(count)                                                                             \
    "i=0; while [ $i -lt " #count " ]; do n=000000$i; echo \"${n:$((${#n} - 7))}\"; "              \
    "i=$((i + 1)); done"

static void check_output(struct sandbox *sandbox, const char *id, uint64_t len)
{
    cleanup_with(stream_output_done) struct stream_output heard =
        stream_read(sandbox, id, PROCESS_OUT, &all);

    CHECK(heard.data.len == len && heard.missing == 0);
    check_numbers(heard.data.data, len, 0);
}

/* 5 MiB through 1 MiB of disk. */
static void of_long_output_head_and_tail_are_kept(void)
{
    struct sandbox *sandbox = world_create("long");
    const uint64_t total = 655360 * 8, half = DISK_BYTES / 2;
    char id[16];

    (void)snprintf(id, sizeof(id), "%s", start_detached(sandbox, NUMBERS(655360)));
    CHECK(wait_end(sandbox, id).exit_code == 0);
    for (int i = 0; i < 2; i++) {
        cleanup_with(stream_output_done) struct stream_output heard =
            stream_read(sandbox, id, PROCESS_OUT, &all);
        struct record *record = find(sandbox, id);
        struct record_info info;

        record_get(record, &info);
        record_unref(record);
        CHECK(info.streams[PROCESS_OUT].total == total);
        CHECK(info.streams[PROCESS_OUT].head_end == half);
        CHECK(heard.gap_at == half && heard.missing <= total - 2 * half &&
                  heard.missing > total - 3 * half,
              "(%" PRIu64 " missing at %" PRIu64 ")", heard.missing, heard.gap_at);
        CHECK(heard.data.len == total - heard.missing);
        check_numbers(heard.data.data, half, 0);
        check_numbers(heard.data.data + half, heard.data.len - half, half + heard.missing);
        sandbox_unref(sandbox);
        restart(); /* and a second time */
        sandbox = find_again("long");
    }
    world_destroy(sandbox);
}

static uint64_t written_by(struct process *process)
{
    struct record_info info;

    record_get(process_record(process), &info);
    return info.streams[PROCESS_OUT].total;
}

/* Back-pressure from the client that started the process: no output is missing, however much
 * there is and however little of it is on disk. */
static void a_slow_owner_misses_nothing(void)
{
    struct sandbox *sandbox = world_create("slow");
    const struct process_spec spec = { .timeout_ms = 0 };
    struct process *process = start(sandbox, NUMBERS(655360), &spec);
    struct reader_event event = { 0 };
    static char data[4096];
    uint64_t offset = 0;

    EVENTUALLY(written_by(process) == FRAME_WINDOW); /* it is blocked */
    for (;;) {
        CHECK(process_next(process, -1, data, sizeof(data), &event) == 0);
        if (event.kind == READER_ENDED)
            break;
        CHECK(event.kind == READER_DATA && event.offset == offset);
        check_numbers(data, event.len, offset);
        offset += event.len;
    }
    CHECK(offset == 655360 * 8 && event.end.outcome == OUTCOME_EXITED);
    process_abandon(process);
    world_destroy(sandbox);
}

/* --- outcomes -------------------------------------------------------------------------------- */

static void outcomes_say_who_did_it(void)
{
    struct sandbox *sandbox = world_create("outcomes");
    const struct process_spec soon = { .is_detached = true, .timeout_ms = 100 };
    struct snapshot_info snapshot;
    struct process_end end;
    struct process *process;
    char id[16];

    process = start(sandbox, "sleep 1000 & wait", NULL);
    CHECK_OK(process_signal(process, SIGTERM, false, &err), &err);
    end = wait_end(sandbox, process_id(process));
    CHECK(end.outcome == OUTCOME_KILLED && end.killer == KILLER_USER && end.signal == SIGTERM &&
          end.exit_code == 128 + SIGTERM);
    process_abandon(process);

    end = wait_end(sandbox, start_detached(sandbox, "kill -9 $$"));
    CHECK(end.outcome == OUTCOME_SIGNALED && end.signal == SIGKILL && end.exit_code == 137);

    process = start(sandbox, "sleep 1000", &soon);
    end = wait_end(sandbox, process_id(process));
    CHECK(end.outcome == OUTCOME_TIMED_OUT && end.exit_code == 124);
    process_abandon(process);

    CHECK_OK(sandbox_snapshot(sandbox, "s", SNAPSHOT_NAMED, &snapshot, &err), &err);
    (void)snprintf(id, sizeof(id), "%s", start_detached(sandbox, "sleep 1000"));
    CHECK_OK(sandbox_rollback(sandbox, "s", false, &err), &err);
    end = wait_end(sandbox, id);
    CHECK(end.outcome == OUTCOME_KILLED && end.killer == KILLER_ROLLBACK);

    process = start(sandbox, "sleep 1000", &(struct process_spec){ .timeout_ms = 0 });
    (void)snprintf(id, sizeof(id), "%s", process_id(process));
    sandbox_attach(sandbox);
    sandbox_detach(sandbox, process);
    end = wait_end(sandbox, id);
    CHECK(end.outcome == OUTCOME_KILLED && end.killer == KILLER_CLIENT);

    (void)snprintf(id, sizeof(id), "%s", start_detached(sandbox, "sleep 1000"));
    CHECK_OK(sandbox_stop(sandbox, &err), &err);
    end = wait_end(sandbox, id);
    CHECK(end.outcome == OUTCOME_KILLED && end.killer == KILLER_STOP);
    CHECK_OK(sandbox_start(sandbox, &err), &err);
    CHECK(strcmp(start_detached(sandbox, "true"), id) != 0, "(a number came again)");
    world_destroy(sandbox);
}

/* A process reports its user, and does not start if there is no such user. */
static void a_process_runs_as_a_user_of_its_sandbox(void)
{
    struct sandbox *box = world_create("users");
    const struct process_spec mouse = { .user = "cat:mouse", .cwd = "~", .is_detached = true };
    const struct process_spec nobody = { .user = "nobody-here", .is_detached = true };
    const struct process_spec nowhere = { .user = "mouse", .cwd = "no", .is_detached = true };
    struct process *process;
    char id[16];

    CHECK(world_sh(box, "echo 'mouse:x:77:78::/tmp:' > /etc/passwd", NULL) == 0);
    process = start(box, "busybox id -u; busybox id -g; echo $HOME $USER; pwd", &mouse);
    CHECK(process_wait_started(process));
    CHECK(!process_reader(process));
    (void)snprintf(id, sizeof(id), "%s", process_id(process));
    process_abandon(process);
    CHECK(wait_end(box, id).exit_code == 0);
    check_text(box, id, PROCESS_OUT, "77\n78\n/tmp mouse\n/tmp\n");

    process = start(box, "true", &nobody);
    CHECK(!process_wait_started(process));
    CHECK(wait_end(box, process_id(process)).start_failure == START_FAILURE_USER);
    process_abandon(process);
    process = start(box, "true", &nowhere);
    CHECK(!process_wait_started(process));
    CHECK(wait_end(box, process_id(process)).start_failure == START_FAILURE_CWD);
    process_abandon(process);
    world_destroy(box);
}

/* A reader with a timeout gets -ETIMEDOUT and misses no output. */
static void a_reader_may_wait_for_a_while(void)
{
    struct sandbox *box = world_create("patience");
    const struct process_spec spec = { .has_stdin = true };
    struct process *process = start(box, "read line; echo $line", &spec);
    struct reader_event event = { 0 };
    char data[64];

    CHECK(process_wait_started(process));
    CHECK(reader_next_within(process_reader(process), -1, 20, data, sizeof(data), &event) ==
          -ETIMEDOUT);
    CHECK_OK(process_send_input(process, "hi\n", 3, true, &err), &err);
    CHECK(reader_next_within(process_reader(process), -1, PATIENCE_MS, data, sizeof(data),
                             &event) == 0);
    CHECK(event.kind == READER_DATA && event.len == 3 && memcmp(data, "hi\n", 3) == 0);
    CHECK(process_next(process, -1, data, sizeof(data), &event) == 0);
    CHECK(event.kind == READER_ENDED && event.end.exit_code == 0);
    process_abandon(process);
    world_destroy(box);
}

static void the_end_of_its_sandboxs_time_is_told(void)
{
    const struct sandbox_spec spec = { .caller = &caller_root,
                                       .template = "small",
                                       .ttl_ms = 1000 };
    struct sandbox *sandbox = NULL;
    struct record *record;
    struct process_end end;

    CHECK_OK(sandbox_create(world.host, &spec, &sandbox, &err), &err);
    record = find(sandbox, start_detached(sandbox, "sleep 1000"));
    CHECK(record_wait(record, -1, PATIENCE_MS, &end) == 0);
    CHECK(end.outcome == OUTCOME_KILLED && end.killer == KILLER_QUOTA);
    record_unref(record);
    sandbox_unref(sandbox);
}

static void a_key_is_used_once(void)
{
    struct sandbox *sandbox = world_create("keys");
    const struct process_spec keyed = { .is_detached = true, .key = "once" };
    struct process *process = start(sandbox, "echo -n one", &keyed), *second;
    char *args[] = { (char *)(uintptr_t) "/bin/true", NULL };
    struct process_spec again = keyed;
    struct record *record;

    again.args = args;
    CHECK(sandbox_exec(sandbox, &again, &second, &err) < 0 && err.cause == CAUSE_PROCESS_EXISTS);
    CHECK_OK(sandbox_find_record_by_key(sandbox, "once", &record, &err), &err);
    CHECK(record == process_record(process));
    record_unref(record);
    CHECK(wait_end(sandbox, process_id(process)).exit_code == 0);
    process_abandon(process);
    CHECK(sandbox_exec(sandbox, &again, &second, &err) < 0 && err.cause == CAUSE_PROCESS_EXISTS,
          "(also when it is over)");
    CHECK(sandbox_find_record_by_key(sandbox, "other", &record, &err) < 0);
    world_destroy(sandbox);
}

/* --- the daemon goes and comes back ---------------------------------------------------------- */

static void ended_processes_are_known_to_the_next_daemon(void)
{
    struct sandbox *sandbox = world_create("history");
    char told[16], failed[16];
    struct record *record;
    struct record_info info;

    (void)snprintf(told, sizeof(told), "%s",
                   start_detached(sandbox, "echo -n told; echo -n er >&2; exit 9"));
    (void)wait_end(sandbox, told);
    (void)snprintf(failed, sizeof(failed), "%s", start_detached(sandbox, "/nosuch"));
    (void)wait_end(sandbox, failed);
    sandbox_unref(sandbox);
    restart();
    sandbox = find_again("history");
    CHECK(wait_end(sandbox, told).exit_code == 9 && wait_end(sandbox, failed).exit_code == 127);
    check_text(sandbox, told, PROCESS_OUT, "told");
    check_text(sandbox, told, PROCESS_ERR, "er");
    record = find(sandbox, told);
    record_get(record, &info);
    CHECK_TEXT(info.spec->args[2], "echo -n told; echo -n er >&2; exit 9");
    CHECK(info.is_over && info.ended_ms >= info.started_ms && info.started_ms > 0);
    record_unref(record);
    CHECK(strcmp(start_detached(sandbox, "true"), failed) != 0);
    world_destroy(sandbox);
}

static void running_processes_go_on_where_they_were(void)
{
    struct sandbox *sandbox = world_create("going");
    struct process *process =
        start(sandbox, NUMBERS(20000) "; read end; " NUMBERS(40000) "; exit 5",
              &(struct process_spec){ .is_detached = true, .has_stdin = true });
    const uint64_t first = 20000 * 8, all_bytes = first + 40000 * 8;
    char id[16];
    struct record *record;
    struct record_info info;

    (void)snprintf(id, sizeof(id), "%s", process_id(process));
    do {
        pause_ms(POLL_MS);
        record_get(process_record(process), &info);
    } while (info.streams[PROCESS_OUT].total < first);
    process_abandon(process);
    sandbox_unref(sandbox);
    restart();
    sandbox = find_again("going");
    CHECK_OK(sandbox_find_process(sandbox, id, &process, &err), &err);
    CHECK_OK(process_send_input(process, "end\n", 4, true, &err), &err);
    process_abandon(process);
    CHECK(wait_end(sandbox, id).exit_code == 5);
    record = find(sandbox, id);
    record_get(record, &info);
    record_unref(record);
    CHECK(info.streams[PROCESS_OUT].total == all_bytes);
    {
        cleanup_with(stream_output_done) struct stream_output heard =
            stream_read(sandbox, id, PROCESS_OUT, &all);

        CHECK(heard.data.len == all_bytes && heard.missing == 0);
        check_numbers(heard.data.data, first, 0);
        check_numbers(heard.data.data + first, all_bytes - first, 0);
    }
    world_destroy(sandbox);
}

static void a_timeout_holds_over_a_restart(void)
{
    struct sandbox *sandbox = world_create("timed");
    const struct process_spec spec = { .is_detached = true, .timeout_ms = 1500 };
    struct process *process = start(sandbox, "sleep 1000", &spec);
    struct process_end end;
    char id[16];

    (void)snprintf(id, sizeof(id), "%s", process_id(process));
    process_abandon(process);
    sandbox_unref(sandbox);
    restart();
    sandbox = find_again("timed");
    end = wait_end(sandbox, id);
    CHECK(end.outcome == OUTCOME_TIMED_OUT && end.duration_ms >= 1500, "(%" PRIu64 " ms)",
          end.duration_ms);
    world_destroy(sandbox);
}

/* --- restarts -------------------------------------------------------------------------------- */

static uint32_t restarts_of(struct sandbox *sandbox, const char *id)
{
    struct record *record = find(sandbox, id);
    struct record_info info;

    record_get(record, &info);
    record_unref(record);
    CHECK(!info.is_over, "(after %u restarts it ended, outcome %d, code %d: %s)", info.restarts,
          (int)info.end.outcome, info.end.exit_code, info.end.reason);
    return info.restarts;
}

static void check_runs(struct sandbox *sandbox, const char *id, uint32_t runs)
{
    cleanup_with(stream_output_done) struct stream_output heard =
        stream_read(sandbox, id, PROCESS_OUT, &all);

    /* The last run may have been killed before its output, and one more may have been started. */
    CHECK(heard.data.len + 1 >= runs && heard.data.len <= runs + 1, "(%zu bytes, %d missing at %d)",
          heard.data.len, (int)heard.missing, (int)heard.gap_at);
    for (size_t i = 0; i < heard.data.len; i++)
        CHECK(heard.data.data[i] == 'x');
}

static void a_service_is_started_again_until_it_is_killed(void)
{
    struct sandbox *sandbox = world_create("service");
    const struct process_spec spec = { .is_detached = true, .restart = RESTART_ON_FAILURE };
    struct process *process = start(sandbox, "echo -n x; sleep 0.1; exit 1", &spec);
    struct process_end end;
    uint32_t runs;
    char id[16];

    (void)snprintf(id, sizeof(id), "%s", process_id(process));
    process_abandon(process);
    EVENTUALLY(restarts_of(sandbox, id) >= 2);
    sandbox_unref(sandbox);
    restart();
    sandbox = find_again("service");
    EVENTUALLY(restarts_of(sandbox, id) >= 4);
    runs = restarts_of(sandbox, id) + 1;
    CHECK_OK(sandbox_find_process(sandbox, id, &process, &err), &err);
    CHECK_OK(process_signal(process, SIGKILL, false, &err), &err);
    process_abandon(process);
    end = wait_end(sandbox, id);
    CHECK(end.outcome == OUTCOME_KILLED && end.killer == KILLER_USER);
    check_runs(sandbox, id, runs);

    end = wait_end(sandbox, start_detached(sandbox, "exit 1"));
    CHECK(end.outcome == OUTCOME_EXITED && end.exit_code == 1, "(others are not)");
    process = start(sandbox, "exit 0", &spec);
    end = wait_end(sandbox, process_id(process));
    CHECK(end.outcome == OUTCOME_EXITED && end.exit_code == 0, "(nor what has not failed)");
    process_abandon(process);
    world_destroy(sandbox);
}

static void a_rollback_ends_services_for_good(void)
{
    struct sandbox *sandbox = world_create("rolled");
    const struct process_spec spec = { .is_detached = true, .restart = RESTART_ALWAYS };
    struct snapshot_info snapshot;
    struct process *process;
    struct process_end end;

    CHECK_OK(sandbox_snapshot(sandbox, "s", SNAPSHOT_NAMED, &snapshot, &err), &err);
    for (int i = 0; i < 10; i++) {
        process = start(sandbox, i % 2 ? "exit 0" : "sleep 0.05", &spec);
        EVENTUALLY(i < 5 || restarts_of(sandbox, process_id(process)) > 0);
        CHECK_OK(sandbox_rollback(sandbox, "s", false, &err), &err);
        end = wait_end(sandbox, process_id(process));
        CHECK(end.outcome == OUTCOME_KILLED && end.killer == KILLER_ROLLBACK);
        process_abandon(process);
    }
    world_destroy(sandbox);
}

/* Fills the socket to a stopped guest, with acknowledgements that are valid and change nothing. */
static void channel_fill(const struct process *process)
{
    cleanup_with(buf_done) struct buf frame = BUF_INIT(64);
    uint64_t offset = record_ack_offset(process->record, PROCESS_OUT, true);
    int r;

    CHECK(message_put_numbers(&frame, FRAME_ACK, process->number, STREAM_STDOUT, offset) == 0);
    do
        r = channel_offer(&process->machine->channel, &frame);
    while (r == 0);
    CHECK(r == 1 || r == -EAGAIN);
}

/* A blocking send would give the guest up after ten seconds, and its machine would end. */
static void a_guest_that_does_not_read_holds_up_nobody_else(void)
{
    struct sandbox *stuck = world_create("stuck"), *other = world_create("other");
    struct process *process = start(stuck, "while :; do echo 0123456789abcdef; done", NULL);
    struct machine *machine = process->machine;
    uint64_t acked, received;

    EVENTUALLY(atomic_load(&process->acked[STREAM_STDOUT]) >= 2 * PROCESS_ACK_EVERY);
    CHECK(pidfd_send_signal(machine->guest.pidfd, SIGSTOP, NULL, 0) == 0);
    channel_fill(process);
    acked = atomic_exchange(&process->acked[STREAM_STDOUT], 0);
    process_writer_add(world.host->writer, process);

    (void)wait_end(other, start_detached(other, NUMBERS(655360)));
    CHECK(!machine->is_gone && machine->state == MACHINE_ACTIVE, "(the stuck guest was given up)");
    CHECK(atomic_load(&process->acked[STREAM_STDOUT]) == 0);

    received = record_received(process->record, PROCESS_OUT);
    CHECK(pidfd_send_signal(machine->guest.pidfd, SIGCONT, NULL, 0) == 0);
    EVENTUALLY(atomic_load(&process->acked[STREAM_STDOUT]) > acked);
    EVENTUALLY(record_received(process->record, PROCESS_OUT) > received);
    process_abandon(process);
    world_destroy(stuck);
    world_destroy(other);
}

/* --- forgetting ------------------------------------------------------------------------------ */

static size_t count_records(struct sandbox *sandbox)
{
    struct record **list;
    size_t count;

    sandbox_list_records(sandbox, &list, &count);
    for (size_t i = 0; i < count; i++)
        record_unref(list[i]);
    free(list);
    return count;
}

static void what_ended_long_ago_is_forgotten(void)
{
    struct sandbox *sandbox;
    char id[16];

    host_close(TAKE_PTR(world.host));
    world_set("processes.max", "3");
    world_start();
    sandbox = world_create("forgetful");
    for (int i = 0; i < 8; i++) {
        (void)snprintf(id, sizeof(id), "%s", start_detached(sandbox, NUMBERS(4000)));
        (void)wait_end(sandbox, id);
    }
    EVENTUALLY(count_records(sandbox) <= 4);
    check_output(sandbox, id, 4000 * 8);
    sandbox_unref(sandbox);
    host_close(TAKE_PTR(world.host));
    world_set("processes.max", "1000");
    world_set("processes.keep", "1ms");
    world_start();
    sandbox = find_again("forgetful");
    EVENTUALLY(count_records(sandbox) == 1);
    CHECK(strcmp(start_detached(sandbox, "true"), "p9") == 0, "(numbers are not reused)");
    world_destroy(sandbox);
    world_set("processes.keep", "10m");
    restart();
}

static void a_destroyed_sandbox_leaves_no_output(void)
{
    struct sandbox *sandbox = world_create("gone");
    char path[128];

    (void)wait_end(sandbox, start_detached(sandbox, NUMBERS(20000)));
    world_destroy(sandbox);
    (void)snprintf(path, sizeof(path), "%s/state/output", world.dir);
    EVENTUALLY(count_entries(path) == 0);
}

static void all_tests(void)
{
    struct host_counts before = host_count();
    char disk[32];

    must_be_root();
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    world_open("auto");
    world_import("small");
    host_close(TAKE_PTR(world.host));
    (void)snprintf(disk, sizeof(disk), "%d", DISK_BYTES);
    world_set("output.disk", disk);
    world_start();
    RUN(output_is_read_from_any_offset_by_anybody);
    RUN(an_offset_that_was_never_written_is_refused);
    RUN(a_reader_that_does_not_follow_gets_what_there_is);
    RUN(of_long_output_head_and_tail_are_kept);
    RUN(a_guest_that_does_not_read_holds_up_nobody_else);
    RUN(a_slow_owner_misses_nothing);
    RUN(outcomes_say_who_did_it);
    RUN(a_process_runs_as_a_user_of_its_sandbox);
    RUN(a_reader_may_wait_for_a_while);
    RUN(the_end_of_its_sandboxs_time_is_told);
    RUN(a_key_is_used_once);
    RUN(ended_processes_are_known_to_the_next_daemon);
    RUN(running_processes_go_on_where_they_were);
    RUN(a_timeout_holds_over_a_restart);
    RUN(a_service_is_started_again_until_it_is_killed);
    RUN(a_rollback_ends_services_for_good);
    RUN(what_ended_long_ago_is_forgotten);
    RUN(a_destroyed_sandbox_leaves_no_output);
    world_close();
    CHECK(host_count().fds == before.fds, "(%zu, then %zu)", before.fds, host_count().fds);
    CHECK(host_count().mounts == before.mounts);
}

int main(void)
{
    RUN(all_tests);
    return 0;
}
