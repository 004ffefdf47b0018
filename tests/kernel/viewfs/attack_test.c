// SPDX-License-Identifier: Apache-2.0
/* Ways around the rules of a codebase: names that move between the check and the use, files with
 * several names, and a server that is killed or stopped. */
#include <dirent.h>
#include <sys/prctl.h>

#include "kernel/viewfs/view_world.h"

enum { RACE_ROUNDS_SHORT = 2000 };

static int open_error(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC);

    if (fd < 0)
        return errno;
    (void)close(fd);
    return 0;
}

static bool has_secret(const char *path)
{
    char text[16] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return false;
    (void)!read(fd, text, sizeof(text) - 1);
    (void)close(fd);
    return strcmp(text, "secret") == 0;
}

static unsigned race_rounds(void)
{
    const char *rounds = getenv("VIEW_RACE_ROUNDS");

    return rounds ? (unsigned)strtoul(rounds, NULL, 10) : RACE_ROUNDS_SHORT;
}

/* --- races ------------------------------------------------------------------------------------ */

/* Swaps a directory that may be read with one that holds the same name as a hidden file. */
static void swaps_run(void *argument)
{
    (void)argument;
    CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
    for (;;) {
        (void)renameat2(AT_FDCWD, "free/a", AT_FDCWD, "free/b", RENAME_EXCHANGE);
        (void)renameat2(AT_FDCWD, "free/link", AT_FDCWD, "free/plain", RENAME_EXCHANGE);
    }
}

static void reads_run(void *argument)
{
    const unsigned rounds = *(const unsigned *)argument;

    for (unsigned i = 0; i < rounds; i++) {
        CHECK(!has_secret("free/link") && !has_secret("free/plain"));
        CHECK(!has_secret("free/a/key") && !has_secret("free/b/key"));
        CHECK(open_error("hidden/key", O_RDONLY) == ENOENT);
        (void)rename("free/a", "free/c");
        (void)rename("free/c", "free/a");
        CHECK(rename("mixed", "free/mixed") < 0 && errno == EACCES);
    }
}

static void swapped_names_show_nothing_hidden(void)
{
    unsigned rounds = race_rounds();
    pid_t pid;

    world_begin();
    lower_directory("hidden");
    lower_file("hidden/key", "secret");
    lower_directory("mixed");
    lower_file("mixed/open", "open");
    lower_file("mixed/key.pem", "secret");
    lower_directory("free");
    lower_file("free/plain", "plain");
    lower_link("../hidden/key", "free/link");
    world_show("/**=write\n/hidden/**=none@1\n**/*.pem=none@1\n");
    CHECK(mkdirat(world.seen_fd, "free/a", 0777) == 0 &&
          mkdirat(world.seen_fd, "free/b", 0777) == 0);
    pid = sandbox_start(0, swaps_run, NULL);
    sandbox_run(0, reads_run, &rounds);
    CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
    world_end();
}

/* --- several names ---------------------------------------------------------------------------- */

static void links_make(void *ignored)
{
    (void)ignored;
    CHECK(link("free/file", "free/second") == 0);
    CHECK(open_error("free/second", O_RDWR) == 0);
}

static void links_check(void *ignored)
{
    struct stat one, other;

    (void)ignored;
    CHECK(open_error("free/second", O_RDONLY) == ENOENT);
    CHECK(open_error("free/file", O_RDWR) == 0);
    CHECK(link("free/file", "free/third.pem") < 0 && errno == EACCES);
    CHECK(link("free/file", "free/third") == 0);
    CHECK(stat("free/file", &one) == 0 && stat("free/third", &other) == 0);
    CHECK(one.st_ino == other.st_ino && one.st_nlink == 3 && other.st_nlink == 3);
    CHECK(truncate("free/third", 2) == 0 && stat("free/file", &one) == 0 && one.st_size == 2);
}

static void each_name_of_a_file_is_judged_by_itself(void)
{
    world_begin();
    lower_directory("free");
    lower_file("free/file", "text");
    world_show("/**=write\n**/*.pem=none@1\n");
    sandbox_run(0, links_make, NULL);
    (void)world_set_rules("/**=write\n**/*.pem=none@1\n/free/second=none@2\n");
    sandbox_run(0, links_check, NULL);
    world_end();
}

/* --- rules that change ------------------------------------------------------------------------ */

static void pipes_make(void *ignored)
{
    (void)ignored;
    CHECK(mkfifo("free/pipe", 0666) == 0 && open_error("free/pipe", O_RDWR) == 0);
    CHECK(access("free/file", F_OK) == 0 && opendir("free"));
}

static void pipes_check(void *ignored)
{
    DIR *dir = opendir("free");
    const struct dirent *entry;

    (void)ignored;
    CHECK(open_error("free/pipe", O_RDWR) == EACCES);
    CHECK(open_error("free/file", O_RDONLY) == ENOENT && dir);
    while ((entry = readdir(dir)))
        CHECK(strcmp(entry->d_name, "file") != 0);
    (void)closedir(dir);
}

static void new_rules_bind_what_the_kernel_has_cached(void)
{
    int fd, handle_mount;
    union {
        struct file_handle handle;
        char space[sizeof(struct file_handle) + MAX_HANDLE_SZ];
    } file = { .handle = { .handle_bytes = MAX_HANDLE_SZ } };

    world_begin();
    lower_directory("free");
    lower_file("free/file", "secret");
    world_show("/**=write\n");
    sandbox_run(0, pipes_make, NULL);
    fd = openat(world.seen_fd, "free/file", O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK(name_to_handle_at(world.seen_fd, "free/file", &file.handle, &handle_mount, 0) == 0);
    CHECK(world_set_rules("/**=write\n/free/pipe=view@1\n/free/file=none@1\n") == 1);
    sandbox_run(0, pipes_check, NULL);
    /* A handle leads to the file, not past its rules. */
    CHECK(open_by_handle_at(world.seen_fd, &file.handle, O_RDONLY | O_CLOEXEC) < 0);
    (void)close(fd);
    EVENTUALLY(world_set_rules("/**=write\n/free/file=none@1\n") == 0);
    world_end();
}

/* --- a server that is gone -------------------------------------------------------------------- */

/* The server is a child of this process. */
static pid_t server_pid(void)
{
    char path[64], text[256];
    FILE *file;
    pid_t found = 0;

    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    file = fopen(path, "re");
    CHECK(file && fgets(text, sizeof(text), file));
    (void)fclose(file);
    found = (pid_t)strtol(text, NULL, 10);
    CHECK(found > 0);
    return found;
}

static void gone_begin(void)
{
    world_begin();
    lower_file("file", "text");
    lower_file("key", "secret");
    world_show("/**=write\n/key=none@1\n");
    CHECK(openat(world.seen_fd, "key", O_RDONLY | O_CLOEXEC) < 0 && errno == ENOENT);
}

static void nothing_is_read_after_the_server_was_killed(void)
{
    gone_begin();
    CHECK(kill(server_pid(), SIGKILL) == 0);
    EVENTUALLY(world.deaths == 1);
    CHECK(openat(world.seen_fd, "file", O_RDONLY | O_CLOEXEC) < 0 && errno == ENOTCONN);
    /* The kernel may remember that it does not exist. */
    CHECK(openat(world.seen_fd, "key", O_RDONLY | O_CLOEXEC) < 0);
    CHECK(errno == ENOTCONN || errno == ENOENT, "(%s)", strerror(errno));
    world_end();
}

static void a_server_that_is_stopped_is_ended(void)
{
    siginfo_t info;
    pid_t pid;

    gone_begin();
    pid = server_pid();
    CHECK(kill(pid, SIGSTOP) == 0 && waitid(P_PID, (id_t)pid, &info, WSTOPPED) == 0);
    /* Waits until the watchdog aborts the connection. */
    CHECK(openat(world.seen_fd, "file", O_RDONLY | O_CLOEXEC) < 0);
    CHECK(errno == ENOTCONN || errno == ECONNABORTED, "(%s)", strerror(errno));
    /* The kernel may remember that it does not exist. */
    CHECK(openat(world.seen_fd, "key", O_RDONLY | O_CLOEXEC) < 0);
    CHECK(errno == ENOTCONN || errno == ENOENT, "(%s)", strerror(errno));
    EVENTUALLY(world.deaths == 1);
    world_end();
}

static void a_view_is_found_again(void)
{
    struct err err = { 0 };

    gone_begin();
    view_release(TAKE_PTR(world.view));
    CHECK(view_adopt(world.views, "test", "/**=view\n", ++world.generation, &world.view, &err) == 0,
          "(%s)", err.msg);
    CHECK(openat(world.seen_fd, "file", O_RDONLY | O_CLOEXEC) < 0 && errno == EACCES);
    CHECK(faccessat(world.seen_fd, "key", F_OK, 0) == 0);
    world_end();
}

int main(void)
{
    must_be_root();
    RUN(swapped_names_show_nothing_hidden);
    RUN(each_name_of_a_file_is_judged_by_itself);
    RUN(new_rules_bind_what_the_kernel_has_cached);
    RUN(nothing_is_read_after_the_server_was_killed);
    RUN(a_server_that_is_stopped_is_ended);
    RUN(a_view_is_found_again);
    return 0;
}
