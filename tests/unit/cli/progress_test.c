// SPDX-License-Identifier: Apache-2.0
/* The line that shows how far a long work is, on a terminal of our own. */
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../src/cli/core/progress.c" // NOLINT(bugprone-suspicious-include)
#include "../../../src/cli/core/report.c"   // NOLINT(bugprone-suspicious-include)
#include "../../../src/cli/core/table.c"    // NOLINT(bugprone-suspicious-include)
#include "../../../src/cli/core/terminal.c" // NOLINT(bugprone-suspicious-include)
#include "check.h"

enum { SEEN_SIZE = 4096, MIB = 1024 * 1024 };

static char seen[SEEN_SIZE];

/* As if the last drawing were long ago, and the work had begun a second before. */
static void wait_enough(struct progress *progress)
{
    progress->drawn_ms = 0;
    progress->began_ms = clock_ms() - 1000;
}

/* What `work` writes to a terminal of so many columns. */
static void look(unsigned short width, const char *term, void (*work)(struct progress *))
{
    const struct winsize size = { .ws_row = 24, .ws_col = width };
    size_t len = 0;
    ssize_t n;
    int terminal;
    pid_t pid = forkpty(&terminal, NULL, NULL, &size);

    CHECK(pid >= 0);
    if (pid == 0) {
        struct progress progress;

        (void)setenv("TERM", term, 1);
        work(&progress);
        _exit(0);
    }
    while (len < SEEN_SIZE - 1 && (n = read(terminal, seen + len, SEEN_SIZE - 1 - len)) > 0)
        len += (size_t)n;
    seen[len] = '\0';
    (void)close(terminal);
    CHECK(waitpid(pid, NULL, 0) == pid);
}

static void half_of_a_file(struct progress *progress)
{
    progress_begin(progress, "file", 100 * MIB);
    wait_enough(progress);
    progress_add(progress, 50 * MIB);
    progress_end(progress);
    progress_end(progress);
}

static void a_known_total_has_a_bar_and_what_is_left(void)
{
    look(100, "xterm", half_of_a_file);
    CHECK(strncmp(seen, "\r\033[Kfile  [==================>", 30) == 0, "(%s)", seen);
    CHECK(strstr(seen, "50%  50.0 MiB of 100.0 MiB  "), "(%s)", seen);
    CHECK(strstr(seen, "MiB/s  0:01 left\r\033[K"), "(%s)", seen);
    CHECK(seen[strlen(seen) - 1] == 'K', "(nothing is left of it: %s)", seen);
}

static void it_fits_the_terminal(void)
{
    for (unsigned short width = 20; width < 120; width++) {
        look(width, "xterm", half_of_a_file);
        CHECK(strcspn(seen + 4, "\r") < (size_t)width || width < 40, "(%u: %s)", width, seen);
    }
}

static void some_of_nobody_knows_what(struct progress *progress)
{
    progress_begin(progress, "tree", 0);
    wait_enough(progress);
    progress_add(progress, 3 * MIB);
    progress_end(progress);
}

static void an_unknown_total_has_time_and_speed(void)
{
    look(80, "xterm", some_of_nobody_knows_what);
    CHECK(strncmp(seen, "\r\033[Ktree  3.0 MiB  ", 19) == 0, "(%s)", seen);
    CHECK(strstr(seen, "/s  0:01\r\033[K"), "(%s)", seen);
}

static void more_than_there_was_to_do(struct progress *progress)
{
    progress_begin(progress, "grew\033[2J\n", MIB);
    wait_enough(progress);
    progress_add(progress, 9 * MIB);
    progress_end(progress);
}

static void it_never_exceeds_all_and_no_name_moves_the_cursor(void)
{
    look(100, "xterm", more_than_there_was_to_do);
    CHECK(strstr(seen, "grew?[2J?  ["), "(%s)", seen);
    CHECK(strstr(seen, "100%  1.0 MiB"), "(%s)", seen);
}

static void a_dumb_terminal_gets_nothing(void)
{
    look(80, "dumb", half_of_a_file);
    CHECK_TEXT(seen, "");
}

int main(void)
{
    RUN(a_known_total_has_a_bar_and_what_is_left);
    RUN(it_fits_the_terminal);
    RUN(an_unknown_total_has_time_and_speed);
    RUN(it_never_exceeds_all_and_no_name_moves_the_cursor);
    RUN(a_dumb_terminal_gets_nothing);
    return 0;
}
