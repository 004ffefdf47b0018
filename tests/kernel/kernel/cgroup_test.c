// SPDX-License-Identifier: Apache-2.0
/* Control groups of this machine, v2 or hybrid, under a label that is unique to this test. */
#include <sys/ptrace.h>
#include <sys/stat.h>

#include "kernel/kernel/cgroup_world.h"

static void a_root_comes_and_goes(void)
{
    struct cgroup_root *root = open_root();

    CHECK(label_groups() > 0 && strlen(cgroup_root_kind(root)) > 0);
    cgroup_root_close(root);
    CHECK(label_groups() == 0, "(%zu groups)", label_groups());
}

static void a_group_is_removed_with_its_children(void)
{
    struct cgroup_root *root = open_root();
    cleanup_close int fd = -EBADF;
    struct err err = { 0 };

    CHECK_OK(cgroup_create(root, "one", 0, &err), &err);
    CHECK_OK(cgroup_open_child(root, "one", "p1", 0, &fd, &err), &err);
    CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC);
    CHECK(cgroup_create(root, "one", 0, &err) < 0, "(made twice)");
    CHECK(cgroup_remove(root, "one", "p1") == 0);
    CHECK(cgroup_remove(root, "one", NULL) == 0);
    CHECK(cgroup_remove(root, "one", NULL) == 0, "(what is gone is removed)");
    cgroup_root_close(root);
    CHECK(label_groups() == 0);
}

/* Like two concurrent callers that both found the group missing. */
static void a_group_that_somebody_is_making_is_given_to_its_owner(void)
{
    enum { OWNER = 4711 };
    struct cgroup_root *root = open_root();
    cleanup_close int fd = -EBADF;
    struct stat st = { 0 };
    struct err err = { 0 };

    CHECK_OK(cgroup_create(root, "one", 0, &err), &err);
    CHECK(mkdirat(root->unified_fd, "one/p1", 0755) == 0);
    CHECK_OK(cgroup_open_child(root, "one", "p1", OWNER, &fd, &err), &err);
    CHECK(fstatat(fd, "cgroup.procs", &st, 0) == 0 && st.st_uid == OWNER, "(%u)", st.st_uid);
    CHECK(cgroup_remove(root, "one", "p1") == 0 && cgroup_remove(root, "one", NULL) == 0);
    cgroup_root_close(root);
}

static void a_kill_takes_the_whole_tree(void)
{
    struct cgroup_root *root = open_root();
    struct err err = { 0 };
    pid_t pid;

    CHECK_OK(cgroup_create(root, "one", 0, &err), &err);
    pid = start_in(root, "one", "p1",
                   "trap '' TERM HUP INT; setsid sleep 1000 & (setsid sleep 1000 &); sleep 1000 & "
                   "kill -STOP $!; while :; do sleep 1000; done");
    pause_ms(100);
    CHECK(cgroup_kill(root, "one", "p1") == 0);
    CHECK(WTERMSIG(status_of(pid)) == SIGKILL);
    CHECK(cgroup_wait_empty(root, "one", "p1") == 0);
    CHECK(cgroup_remove(root, "one", NULL) == 0);
    cgroup_root_close(root);
}

static void a_signal_reaches_each_of_a_child_group(void)
{
    struct cgroup_root *root = open_root();
    struct err err = { 0 };
    pid_t one, two, other;

    CHECK_OK(cgroup_create(root, "one", 0, &err), &err);
    one = start_in(root, "one", "p1", "exec sleep 1000");
    two = start_in(root, "one", "p1", "exec sleep 1000");
    other = start_in(root, "one", "p2", "exec sleep 1000");
    CHECK(cgroup_signal(root, "one", "p1", SIGUSR1) == 0);
    CHECK(WTERMSIG(status_of(one)) == SIGUSR1 && WTERMSIG(status_of(two)) == SIGUSR1);
    CHECK(waitpid(other, NULL, WNOHANG | __WALL) == 0, "(hit a process of another group)");
    CHECK(cgroup_kill(root, "one", NULL) == 0);
    CHECK(WTERMSIG(status_of(other)) == SIGKILL);
    CHECK(cgroup_wait_empty(root, "one", NULL) == 0 && cgroup_remove(root, "one", NULL) == 0);
    cgroup_root_close(root);
}

static void what_an_earlier_life_left_is_swept(void)
{
    struct cgroup_root *root = open_root();
    struct err err = { 0 };
    pid_t pid;

    CHECK_OK(cgroup_create(root, "one", 0, &err), &err);
    CHECK_OK(cgroup_create(root, "two", 0, &err), &err);
    CHECK_OK(cgroup_zygote_create(root, "seat-1", &err), &err);
    pid = start_in(root, "one", "p1", "sleep 1000 & exec sleep 1000");
    cgroup_root_close(root); /* not empty, so it is kept */
    CHECK(label_groups() > 0);

    root = open_root();
    CHECK(cgroup_root_sweep(root, NULL, NULL, &err) >= 2, "(%s)", err.msg);
    CHECK(WTERMSIG(status_of(pid)) == SIGKILL);
    CHECK(cgroup_root_sweep(root, NULL, NULL, &err) == 0);
    cgroup_root_close(root);
    CHECK(label_groups() == 0, "(%zu groups)", label_groups());
}

static void waiting_for_what_is_not_there_ends_at_once(void)
{
    struct cgroup_root *root = open_root();

    CHECK(cgroup_wait_empty(root, "nothing", NULL) == 0);
    CHECK(cgroup_kill(root, "nothing", NULL) == -ENOENT);
    cgroup_root_close(root);
}

static void accounts_outlive_their_group_and_say_nothing(void)
{
    struct cgroup_root *root = open_root();
    bool v1 = cgroup_root_limits_zygotes(root);
    struct cgroup_meter meter = CGROUP_METER_INIT;
    struct err err = { 0 };

    cgroup_meter_close(&meter);
    cgroup_meter_open(root, "nothing", &meter);
    CHECK(cgroup_meter_oom_kills(&meter) == 0);
    cgroup_meter_close(&meter);

    CHECK_OK(cgroup_create(root, "one", 0, &err), &err);
    CHECK_OK(cgroup_zygote_create(root, "seat-1", &err), &err);
    cgroup_meter_open(root, v1 ? "seat-1" : "one", &meter);
    CHECK(meter.oom_fd >= 0);
    CHECK(cgroup_meter_oom_kills(&meter) == 0);
    CHECK(cgroup_zygote_remove(root, "seat-1") == 0 && cgroup_remove(root, "one", NULL) == 0,
          "(an open account keeps no group)");
    CHECK(cgroup_meter_oom_kills(&meter) == 0);
    cgroup_meter_close(&meter);
    cgroup_root_close(root);
}

static void limits_are_taken_and_refused(void)
{
    struct cgroup_root *root = open_root();
    const char *name = cgroup_root_limits_zygotes(root) ? "seat-1" : "one";
    struct err err = { 0 };

    CHECK_OK(cgroup_create(root, "one", 0, &err), &err);
    CHECK_OK(cgroup_zygote_create(root, "seat-1", &err), &err);
    CHECK_OK(cgroup_set_limits(
                 root, name,
                 &(struct cgroup_limits){ .memory_bytes = 64 << 20, .cpu_millis = 500, .pids = 16 },
                 &err),
             &err);
    cgroup_zygote_reset(root, "seat-1");
    CHECK_OK(
        cgroup_set_limits(root, name, &(struct cgroup_limits){ .memory_bytes = 1 << 30 }, &err),
        &err);
    CHECK(cgroup_set_limits(root, "nothing", &(struct cgroup_limits){ .pids = 1 }, &err) < 0);
    CHECK(strlen(err.msg) > 0);
    CHECK(cgroup_zygote_remove(root, "seat-1") == 0 && cgroup_remove(root, "one", NULL) == 0);
    cgroup_root_close(root);
    CHECK(label_groups() == 0);
}

static bool keeps_one(const char *name, void *context)
{
    ++*(size_t *)context;
    return strcmp(name, "one") == 0 || strcmp(name, "seat-1") == 0;
}

static bool has_group(int dir_fd, const char *name)
{
    return faccessat(dir_fd, name, F_OK, 0) == 0;
}

/* A traced process that is killed waits for its tracer before it ends. */
static void a_sweep_does_not_wait_for_what_does_not_end(void)
{
    struct cgroup_root *root = open_root();
    struct err err = { 0 };
    pid_t held, other;

    CHECK_OK(cgroup_create(root, "one", 0, &err), &err);
    CHECK_OK(cgroup_create(root, "two", 0, &err), &err);
    held = start_in(root, "one", "p1", "exec sleep 1000");
    other = start_in(root, "two", "p1", "exec sleep 1000");
    CHECK(ptrace(PTRACE_SEIZE, held, NULL, PTRACE_O_TRACEEXIT) == 0);
    CHECK(cgroup_root_sweep(root, NULL, NULL, &err) == 1, "(%s)", err.msg);
    CHECK(has_group(root->unified_fd, "one") && !has_group(root->unified_fd, "two"));
    CHECK(WTERMSIG(status_of(other)) == SIGKILL);
    CHECK(WIFSTOPPED(status_of(held)));
    CHECK(ptrace(PTRACE_DETACH, held, NULL, NULL) == 0);
    CHECK(WTERMSIG(status_of(held)) == SIGKILL);
    CHECK(cgroup_root_sweep(root, NULL, NULL, &err) == 1, "(%s)", err.msg);
    cgroup_root_close(root);
}

static void a_sweep_spares_what_is_kept(void)
{
    static const char *const names[] = { "one", "two", "seats" };
    struct cgroup_root *root = open_root();
    struct err err = { 0 };
    size_t asked = 0;
    pid_t pids[3];

    for (int i = 0; i < 3; i++) {
        CHECK_OK(cgroup_create(root, names[i], 0, &err), &err);
        pids[i] = start_in(root, names[i], "init", "exec sleep 1000");
    }
    CHECK_OK(cgroup_zygote_create(root, "seat-1", &err), &err);
    CHECK_OK(cgroup_zygote_create(root, "seat-2", &err), &err);
    CHECK(cgroup_root_sweep(root, keeps_one, &asked, &err) == 2, "(%s)", err.msg);
    CHECK(asked >= 3);
    CHECK(WTERMSIG(status_of(pids[1])) == SIGKILL && WTERMSIG(status_of(pids[2])) == SIGKILL);
    CHECK(waitpid(pids[0], NULL, WNOHANG | __WALL) == 0, "(killed what was kept)");
    CHECK(has_group(root->unified_fd, "one") && !has_group(root->unified_fd, "seats"));
    for (int i = 0; i < CGROUP_CONTROLLERS; i++)
        if (root->v1_fd[i] >= 0)
            CHECK(has_group(root->v1_fd[i], "seat-1") && !has_group(root->v1_fd[i], "seat-2"));
    CHECK(cgroup_root_sweep(root, NULL, NULL, &err) == 1, "(%s)", err.msg);
    CHECK(WTERMSIG(status_of(pids[0])) == SIGKILL);
    cgroup_root_close(root);
    CHECK(label_groups() == 0);
}

static void a_zygote_whose_name_is_taken_is_not_made(void)
{
    struct cgroup_root *root = open_root();
    struct err err = { 0 };

    if (cgroup_root_limits_zygotes(root)) {
        /* In one hierarchy only, and not in the first. */
        CHECK(mkdirat(root->v1_fd[CGROUP_CPU], "seat-1", 0755) == 0);
        CHECK(cgroup_zygote_create(root, "seat-1", &err) == -EEXIST);
        CHECK(!has_group(root->v1_fd[CGROUP_MEMORY], "seat-1") &&
              has_group(root->v1_fd[CGROUP_CPU], "seat-1"));
        CHECK(cgroup_zygote_remove(root, "seat-1") == 0);
    }
    cgroup_root_close(root);
    CHECK(label_groups() == 0);
}

/* --- from another group ---------------------------------------------------------------------- */

/* Runs it in a process that is in other groups, and exits without closing anything. */
static void elsewhere(void (*life)(const char *home_file), const char *home_file)
{
    cleanup_close int group_fd = -EBADF;
    struct cgroup_root *other;
    struct err err = { 0 };
    pid_t pid;

    CHECK_OK(cgroup_root_open(other_label, &other, &err), &err);
    if (!has_group(other->unified_fd, "place")) {
        CHECK_OK(cgroup_create(other, "place", 0, &err), &err);
        CHECK_OK(cgroup_zygote_create(other, "place", &err), &err);
    }
    CHECK_OK(cgroup_open_child(other, "place", "init", 0, &group_fd, &err), &err);
    pid = fork();
    if (pid == 0) {
        CHECK(file_write_at(group_fd, "cgroup.procs", "0") == 0);
        CHECK_OK(cgroup_zygote_attach(other, "place", getpid(), &err), &err);
        life(home_file);
        _exit(0);
    }
    CHECK(status_of(pid) == 0);
    cgroup_root_close(other);
}

static void leave_elsewhere(void)
{
    struct cgroup_root *other;
    struct err err = { 0 };

    CHECK_OK(cgroup_root_open(other_label, &other, &err), &err);
    CHECK(cgroup_root_sweep(other, NULL, NULL, &err) >= 0, "(%s)", err.msg);
    cgroup_root_close(other);
    CHECK(label_groups() == 0 && groups_with(other_label) == 0);
}

static struct cgroup_root *open_at(const char *home_file)
{
    struct cgroup_root *root;
    struct err err = { 0 };

    CHECK_OK(cgroup_root_open_at(label, home_file, &root, &err), &err);
    return root;
}

static void leaves_a_sandbox(const char *home_file)
{
    struct cgroup_root *root = open_at(home_file);
    struct err err = { 0 };

    CHECK_OK(cgroup_create(root, "one", 0, &err), &err);
    CHECK_OK(cgroup_zygote_create(root, "seat-1", &err), &err);
    (void)start_in(root, "one", "init", "exec sleep 1000");
}

static void leaves_nothing(const char *home_file)
{
    (void)open_at(home_file);
}

static bool is_elsewhere(pid_t pid)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(1 << 16);
    char path[32];

    (void)snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
    CHECK(file_read_at(AT_FDCWD, path, &text) == 0);
    return strstr(text.data, other_label);
}

static const char *home_path(void)
{
    static char path[96];

    (void)snprintf(path, sizeof(path), "%s/home", dir);
    (void)unlink(path);
    return path;
}

static void groups_are_found_again_from_another_shell(void)
{
    const char *home = home_path();
    struct cgroup_root *root;
    struct err err = { 0 };
    pid_t pid, init;
    int pidfd;

    elsewhere(leaves_a_sandbox, home);
    for (int i = 0; i < 2; i++) { /* and once more */
        root = open_at(home);
        CHECK(cgroup_find_init(root, "one", &init, &pidfd) == 0, "(it is not there)");
        CHECK(is_elsewhere(init) && close(pidfd) == 0);
        cgroup_root_close(root);
    }
    root = open_at(home);
    pid = start_in(root, "one", "p1", "exec sleep 1000");
    CHECK_OK(cgroup_zygote_attach(root, "seat-1", pid, &err), &err);
    CHECK(is_elsewhere(pid));
    CHECK(cgroup_root_sweep(root, NULL, NULL, &err) == 1, "(%s)", err.msg);
    CHECK(WTERMSIG(status_of(pid)) == SIGKILL);
    cgroup_root_close(root);

    root = open_at(home); /* the old location is empty now */
    CHECK_OK(cgroup_create(root, "one", 0, &err), &err);
    pid = start_in(root, "one", "p1", "exec sleep 1000");
    CHECK(!is_elsewhere(pid));
    CHECK(cgroup_root_sweep(root, NULL, NULL, &err) == 1);
    CHECK(WTERMSIG(status_of(pid)) == SIGKILL);
    cgroup_root_close(root);
    leave_elsewhere();
}

static void empty_groups_elsewhere_are_let_go(void)
{
    const char *home = home_path();
    struct cgroup_root *root;
    size_t left;

    elsewhere(leaves_nothing, home);
    left = label_groups();
    CHECK(left > 0);
    root = open_at(home);
    CHECK(label_groups() == left, "(%zu groups, then %zu)", left, label_groups());
    cgroup_root_close(root);
    leave_elsewhere();
}

static void a_damaged_home_file_is_as_none(void)
{
    static const char *const texts[] = {
        "",
        "\n",
        "rubbish\n",
        "holt control groups 1\nunified",
        "holt control groups 1\nunified /\n memory /\n",
        "holt control groups 1\nunified relative\n",
        "holt control groups 1\nunified /\nunified /\n",
        "holt control groups 1\nunified /../../../../etc\nmemory /no/such/group\n",
        "holt control groups 2\nunified /\n",
    };
    const char *home = home_path();
    struct cgroup_locations locations;

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        CHECK(file_create_at(AT_FDCWD, home, 0600, texts[i]) == 0);
        cgroup_root_close(open_at(home));
        CHECK(label_groups() == 0);
        cgroup_locations_read(home, &locations);
        CHECK(locations.path[CGROUP_UNIFIED][0] == '/' &&
                  !strstr(locations.path[CGROUP_UNIFIED], ".."),
              "(text %zu: '%s')", i, locations.path[CGROUP_UNIFIED]);
    }
    CHECK(unlink(home) == 0 && mkdir(home, 0700) == 0);
    {
        struct cgroup_root *root;
        struct err err = { 0 };

        CHECK(cgroup_root_open_at(label, home, &root, &err) < 0 && strstr(err.msg, home));
        CHECK(label_groups() == 0, "(made what nobody would find again)");
    }
    CHECK(rmdir(home) == 0);
}

static void all(void)
{
    begin();
    RUN_CLEAN(a_root_comes_and_goes);
    RUN_CLEAN(a_group_is_removed_with_its_children);
    RUN_CLEAN(a_group_that_somebody_is_making_is_given_to_its_owner);
    RUN_CLEAN(a_kill_takes_the_whole_tree);
    RUN_CLEAN(a_signal_reaches_each_of_a_child_group);
    RUN_CLEAN(what_an_earlier_life_left_is_swept);
    RUN_CLEAN(a_sweep_does_not_wait_for_what_does_not_end);
    RUN_CLEAN(waiting_for_what_is_not_there_ends_at_once);
    RUN_CLEAN(accounts_outlive_their_group_and_say_nothing);
    RUN_CLEAN(limits_are_taken_and_refused);
    RUN_CLEAN(a_sweep_spares_what_is_kept);
    RUN_CLEAN(a_zygote_whose_name_is_taken_is_not_made);
    RUN_CLEAN(groups_are_found_again_from_another_shell);
    RUN_CLEAN(empty_groups_elsewhere_are_let_go);
    RUN_CLEAN(a_damaged_home_file_is_as_none);
}

int main(void)
{
    RUN(all);
    return 0;
}
