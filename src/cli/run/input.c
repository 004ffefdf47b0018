// SPDX-License-Identifier: Apache-2.0
#include "cli/run/input.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/thread.h"
#include "base/xalloc.h"
#include "cli/run/leave_keys.h"
#include "cli/run/target.h"
#include "holt.h"

enum {
    INPUT_SIZE = 64 * 1024,
    HOLD_MS = 500, /* how long a key that may be the first of two is kept from the process */
};

/* The thread's own copy, since the program may be on its way out while the thread still runs. */
struct input {
    char *host;
    struct holt_input *raw; /* NULL: the target is called */
    struct run_target target;
    bool keeps_open;
    int leave_fd;
    struct leave_keys keys;
    char typed[INPUT_SIZE];
    char data[INPUT_SIZE];
};

static void input_free(struct input *input)
{
    holt_input_close(input->raw);
    run_target_done(&input->target);
    (void)fd_close(input->leave_fd);
    free(input->host);
    free(input);
}

static void leave(const struct input *input)
{
    const uint64_t one = 1;

    (void)!write(input->leave_fd, &one, sizeof(one));
}

/* Whether the key that is held back has waited long enough to be only itself. */
static bool is_alone(void)
{
    struct pollfd wait = { .fd = STDIN_FILENO, .events = POLLIN };

    return poll(&wait, 1, HOLD_MS) == 0;
}

static int send_or_end(struct input *input, const char *data, size_t len, bool is_eof)
{
    struct holt_error ignored;

    if (input->raw)
        return holt_input_send(input->raw, data, len, is_eof, HOLT_NO_DEADLINE, &ignored);
    return run_target_send(&input->target, data, len, is_eof, &ignored);
}

static int send_bytes(struct input *input, const char *data, size_t len)
{
    return len > 0 ? send_or_end(input, data, len, false) : 0;
}

/* Bytes that were typed; false when that is to be the last of them. */
static bool pass_keys(struct input *input, size_t len)
{
    static const char first = LEAVE_KEY_FIRST;
    bool leaves;
    size_t kept = leave_keys_filter(&input->keys, input->typed, len, input->data, &leaves);

    if (send_bytes(input, input->data, kept) < 0)
        return false;
    if (leaves) {
        leave(input);
        return false;
    }
    if (!input->keys.is_held || !is_alone())
        return true;
    input->keys.is_held = false;
    return send_bytes(input, &first, 1) == 0;
}

/* What was read, or the end of it; false when nothing more is to be read. */
static bool pass_on(struct input *input, ssize_t n)
{
    if (n <= 0) {
        if (!input->keeps_open)
            (void)send_or_end(input, NULL, 0, true);
        return false;
    }
    if (input->leave_fd >= 0)
        return pass_keys(input, (size_t)n);
    return send_bytes(input, input->typed, (size_t)n) == 0;
}

/* A send returns when the sandbox has room for more, so a slow process slows the reading. Any error
 * means that the process takes no more input: it is gone or has closed its stdin, and what became
 * of it is told by the stream of its output. */
static void input_main(void *argument)
{
    struct input *input = argument;
    /* A key that was held back comes in front of what is read. */
    const size_t room = INPUT_SIZE - (input->leave_fd >= 0 ? 1 : 0);
    ssize_t n;

    do
        n = read(STDIN_FILENO, input->typed, room);
    while ((n < 0 && errno == EINTR) || pass_on(input, n));
    input_free(input);
}

int run_input_start(const struct run_input *what)
{
    struct input *input = xcalloc(1, sizeof(*input));
    struct holt_error ignored;
    int r;

    input->host = xstrdup(what->target->host);
    input->target = (struct run_target){
        .host = input->host,
        .sandbox_id = xstrdup(what->target->sandbox_id),
        .process_id = xstrdup(what->target->process_id),
    };
    if (holt_input_open(what->stream, &input->raw, &ignored) < 0)
        input->raw = NULL;
    input->keeps_open = what->keeps_open;
    input->leave_fd = what->leave_fd < 0 ? -1 : fcntl(what->leave_fd, F_DUPFD_CLOEXEC, 3);
    r = thread_start_detached("holt-input", 0, input_main, input);
    if (r < 0)
        input_free(input);
    return r;
}

bool run_input_is_possible(void)
{
    struct stat stat;

    return fstat(STDIN_FILENO, &stat) == 0 &&
           !(S_ISCHR(stat.st_mode) && stat.st_rdev == makedev(1, 3));
}
