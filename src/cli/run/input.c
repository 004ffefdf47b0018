// SPDX-License-Identifier: Apache-2.0
#include "cli/run/input.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/thread.h"
#include "base/xalloc.h"
#include "cli/run/leave_keys.h"
#include "holt.h"

enum {
    INPUT_SIZE = 64 * 1024,
    HOLD_MS = 500, /* how long the first key that detaches waits for the second */
};

/* The state of the thread, which may outlive the session. */
struct input {
    struct holt_process *process;
    bool keeps_open;
    int leave_fd;
    struct leave_keys keys;
    char typed[INPUT_SIZE];
    char data[INPUT_SIZE];
};

static void input_free(struct input *input)
{
    (void)fd_close(input->leave_fd);
    free(input);
}

static void leave_signal(const struct input *input)
{
    const uint64_t one = 1;

    (void)!write(input->leave_fd, &one, sizeof(one));
}

/* Returns whether no key follows the one that is held back. */
static bool is_last_key(void)
{
    struct pollfd wait = { .fd = STDIN_FILENO, .events = POLLIN };

    return poll(&wait, 1, HOLD_MS) == 0;
}

static int bytes_send(struct input *input, const char *data, size_t len)
{
    struct holt_error ignored;

    return len > 0 ? holt_process_send(input->process, data, len, false, HOLT_NO_DEADLINE, &ignored)
                   : 0;
}

/* Sends what was typed; returns false if it was the last input. */
static bool keys_send(struct input *input, size_t len)
{
    static const char first = LEAVE_KEY_FIRST;
    bool leaves;
    size_t kept = leave_keys_filter(&input->keys, input->typed, len, input->data, &leaves);

    if (bytes_send(input, input->data, kept) < 0)
        return false;
    if (leaves) {
        leave_signal(input);
        return false;
    }
    if (!input->keys.is_held || !is_last_key())
        return true;
    input->keys.is_held = false;
    return bytes_send(input, &first, 1) == 0;
}

/* Sends n bytes of stdin, or its end; returns false if it was the last input. */
static bool input_send(struct input *input, ssize_t n)
{
    struct holt_error ignored;

    if (n <= 0) {
        if (!input->keeps_open)
            (void)holt_process_send(input->process, NULL, 0, true, HOLT_NO_DEADLINE, &ignored);
        return false;
    }
    if (input->leave_fd >= 0)
        return keys_send(input, (size_t)n);
    return bytes_send(input, input->typed, (size_t)n) == 0;
}

/* Ends the threads; made with the first one. */
static int stop_fd = -EBADF;

/* Waits for input; returns false if the thread is to end. */
static bool input_wait(void)
{
    struct pollfd waits[] = { { .fd = STDIN_FILENO, .events = POLLIN },
                              { .fd = stop_fd, .events = POLLIN } };
    int r;

    do
        r = poll(waits, ARRAY_SIZE(waits), -1);
    while (r < 0 && errno == EINTR);
    return r > 0 && !waits[1].revents;
}

/* A send returns when the sandbox has room for more: back-pressure. Any error means that the
 * process has ended or closed its stdin; its events have the reason. */
static void input_main(void *argument)
{
    struct input *input = argument;
    /* A key that was held back is sent before what is read. */
    const size_t room = INPUT_SIZE - (input->leave_fd >= 0 ? 1 : 0);
    ssize_t n;

    while (input_wait()) {
        n = read(STDIN_FILENO, input->typed, room);
        if ((n >= 0 || errno != EINTR) && !input_send(input, n))
            break;
    }
    input_free(input);
}

int run_input_start(const struct run_input *options)
{
    struct input *input = xcalloc(1, sizeof(*input));
    int r;

    if (stop_fd < 0)
        stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    input->process = options->process;
    input->keeps_open = options->keeps_open;
    input->leave_fd = options->leave_fd < 0 ? -1 : fcntl(options->leave_fd, F_DUPFD_CLOEXEC, 3);
    r = thread_start_detached("holt-input", 0, input_main, input);
    if (r < 0)
        input_free(input);
    return r;
}

void run_input_stop(void)
{
    const uint64_t one = 1;

    if (stop_fd >= 0)
        (void)!write(stop_fd, &one, sizeof(one));
}

bool run_input_is_waiting(void)
{
    struct stat stat;
    int bytes = 0;

    return fstat(STDIN_FILENO, &stat) == 0 && (S_ISFIFO(stat.st_mode) || S_ISSOCK(stat.st_mode)) &&
           ioctl(STDIN_FILENO, FIONREAD, &bytes) == 0 && bytes > 0;
}

bool run_input_is_possible(void)
{
    struct stat stat;

    return fstat(STDIN_FILENO, &stat) == 0 &&
           !(S_ISCHR(stat.st_mode) && stat.st_rdev == makedev(1, 3));
}
