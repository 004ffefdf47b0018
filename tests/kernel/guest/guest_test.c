// SPDX-License-Identifier: Apache-2.0
/* Boot, roots and processes. */
#include "kernel/guest/guest_again.h"

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
    (void)expect(&guest, FRAME_FAILED, 1);
    send_root(&guest);
    (void)expect(&guest, FRAME_ROOTED, 0);
    check_run(&guest, 1, "echo hi", "hi\n");
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

/* As in a rollback: the shell keeps running and sees the new files by absolute path. */
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
            seen_add(&seen, &frame);
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

/* A user of the sandbox's own /etc/passwd. */
static void a_user_is_who_the_sandbox_says(void)
{
    cleanup_with(seen_done) struct seen seen = SEEN_INIT, other = SEEN_INIT;
    struct guest guest = start();
    struct message_spawn *spec;

    check_run(&guest, 1,
              "echo 'jane:x:1234:2345:,,,:/home/jane:/bin/sh' >> /etc/passwd && "
              "echo 'crew:x:77:bob,jane' >> /etc/group && mkdir -p /home/jane/sub && echo made",
              "made\n");
    spec = SHELL("id -u; id -g; id -G; echo $HOME $USER $LOGNAME; pwd; echo new > /dev/stdout; "
                 "grep CapEff /proc/self/status | cut -f2");
    spec->user = "nobody-here:jane:0";
    spec->cwd = "~/sub";
    spawn_spec(&guest, 2, spec);
    (void)expect(&guest, FRAME_STARTED, 2);
    read_to_end(&guest, 2, &seen);
    check_text(
        &seen, STREAM_STDOUT,
        "1234\n2345\n2345 77\n/home/jane jane jane\n/home/jane/sub\nnew\n0000000000000000\n");
    spec = SHELL("echo $HOME $USER; pwd");
    spec->user = "no-such-user:0";
    spec->env[spec->env_count++] = "USER=me";
    spec->cwd = "../tmp";
    spawn_spec(&guest, 3, spec);
    (void)expect(&guest, FRAME_STARTED, 3);
    read_to_end(&guest, 3, &other);
    check_text(&other, STREAM_STDOUT, "/root me\n/tmp\n");
    end(&guest);
}

static void a_terminal_belongs_to_its_user(void)
{
    cleanup_with(seen_done) struct seen seen = SEEN_INIT;
    struct guest guest = start();
    struct message_spawn *spec = SHELL("stat -c %u $(tty); : > /dev/tty && echo own");

    spec->user = "1234";
    spec->cwd = "/";
    spec->has_terminal = true;
    spec->rows = 24;
    spec->columns = 80;
    spawn_spec(&guest, 1, spec);
    (void)expect(&guest, FRAME_STARTED, 1);
    read_to_end(&guest, 1, &seen);
    check_text(&seen, STREAM_STDOUT, "1234\r\nown\r\n");
    end(&guest);
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
    spec->user = "no-such-user";
    spawn_spec(&guest, 1, spec);
    check_failed(&guest, 1, FAILED_USER, ENOENT);
    spec = SHELL("true");
    spec->uid = 70000; /* outside the id range of 65,536 */
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

    send_listener(&guest);
    for (int i = 0; i < 50; i++)
        check_run(&guest, 1, "echo hi", "hi\n");
    spawn_on_terminal(&guest, 2, "sleep 1000");
    spawn_with_stdin(&guest, 3, "sleep 1000");
    send_numbers(&guest, FRAME_FORGET, 2, 0, 0); /* also while it is running */
    send_numbers(&guest, FRAME_FORGET, 3, 0, 0);
    EVENTUALLY(fds_of(&guest) == fds + 1 /* the listener */);
    CHECK(reconnect(&guest, states, ARRAY_SIZE(states)) == 0);
    end(&guest);
}

static void all(void)
{
    world_begin();
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
    RUN_CLEAN(a_user_is_who_the_sandbox_says);
    RUN_CLEAN(a_terminal_belongs_to_its_user);
    RUN_CLEAN(what_cannot_start_says_which_step_failed);
    RUN_CLEAN(an_id_that_is_taken_is_refused);
    RUN_CLEAN(signals_arrive);
    RUN_CLEAN(a_signal_to_what_has_ended_hits_nobody);
    RUN_CLEAN(a_terminal_is_resized);
    RUN_CLEAN(the_end_of_input_ends_a_terminals_reader);
    RUN_CLEAN(a_hundred_processes_run_at_once);
    RUN_CLEAN(orphans_are_reaped);
    RUN_CLEAN(a_forgotten_process_leaves_no_descriptor);
    RUN_CLEAN(a_root_that_fails_leaves_the_old_one);
    world_close();
}

int main(void)
{
    RUN(all);
    return 0;
}
