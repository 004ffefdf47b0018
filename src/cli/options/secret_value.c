// SPDX-License-Identifier: Apache-2.0
#include "cli/options/secret_value.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "base/err.h"
#include "base/io.h"
#include "base/xalloc.h"
#include "cli/core/report.h"

/* More than the daemon accepts, so that it sees a value that is too long. */
enum { VALUE_SIZE = 8192 + 4 };

void secret_value_free(char *value)
{
    if (value)
        explicit_bzero(value, VALUE_SIZE);
    free(value);
}

/* Waits for a line. Signals are held back while the terminal shows nothing: one that ends holt is
 * delivered when it shows everything again. */
static ssize_t line_wait(int signal_fd, char *value)
{
    struct pollfd waits[] = { { .fd = STDIN_FILENO, .events = POLLIN },
                              { .fd = signal_fd, .events = POLLIN } };
    ssize_t n;

    while (poll(waits, ARRAY_SIZE(waits), -1) < 0 && errno == EINTR)
        continue;
    if (waits[1].revents)
        return -EINTR;
    n = read(STDIN_FILENO, value, VALUE_SIZE - 1);
    return n < 0 ? -errno : n;
}

/* Reads a line from the terminal without showing it. */
static ssize_t line_read(const char *prompt, char *value)
{
    struct termios before, hidden;
    sigset_t signals, old;
    cleanup_close int signal_fd = -EBADF;
    ssize_t n = -EIO;

    (void)sigemptyset(&signals);
    for (size_t i = 0; i < 5; i++)
        (void)sigaddset(&signals, (const int[]){ SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP }[i]);
    signal_fd = signalfd(-1, &signals, SFD_CLOEXEC);
    if (signal_fd < 0 || tcgetattr(STDIN_FILENO, &before) < 0)
        return -errno;
    hidden = before;
    hidden.c_lflag &= ~(tcflag_t)ECHO;
    (void)sigprocmask(SIG_BLOCK, &signals, &old);
    if (tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden) == 0) {
        (void)fprintf(stderr, "%s: ", prompt);
        n = line_wait(signal_fd, value);
    }
    (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
    (void)fprintf(stderr, "\n");
    (void)sigprocmask(SIG_SETMASK, &old, NULL);
    return n;
}

static ssize_t value_fill(const char *file, const char *prompt, char *value)
{
    cleanup_close int fd = file ? open(file, O_RDONLY | O_CLOEXEC) : -EBADF;

    if (file && fd < 0)
        return -errno;
    if (!file && isatty(STDIN_FILENO) && prompt)
        return line_read(prompt, value);
    if (!file && isatty(STDIN_FILENO))
        (void)fprintf(stderr, "Enter the value, then a new line and Ctrl-D:\n");
    return read_full(file ? fd : STDIN_FILENO, value, VALUE_SIZE - 1);
}

char *secret_value_read(const char *file, const char *prompt)
{
    cleanup_with(secret_value_free_slot) char *value = xcalloc(1, VALUE_SIZE);
    ssize_t n = value_fill(file, prompt, value);
    struct err err = { 0 };

    if (n > 0 && value[n - 1] == '\n')
        value[--n] = '\0';
    if (n > 0 && value[n - 1] == '\r')
        value[--n] = '\0';
    if (n < 0)
        (void)err_sys(&err, (int)n, "read the value from '%s'", file ? file : "standard input");
    else if (strlen(value) != (size_t)n)
        (void)err_set(&err, ERR_INVALID, "the value contains a NUL byte");
    if (err.kind == ERR_NONE)
        return TAKE_PTR(value);
    (void)report_err(&err);
    return NULL;
}
