// SPDX-License-Identifier: Apache-2.0
/* Copies one file from standard input, or to standard output, a pipe or a device. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "cli/core/report.h"
#include "cli/cp/cp.h"
#include "holt.h"

enum { CHUNK = 256 * 1024 };

struct bytes {
    int fd;
    bool has_entry;
};

/* The sandbox may have put something else in the place of the file since it was looked at. */
static int bytes_entry(void *context, const struct file_entry *entry)
{
    struct bytes *bytes = context;

    if (bytes->has_entry || entry->type != ENTRY_FILE)
        return -ESTALE;
    bytes->has_entry = true;
    return 0;
}

static int bytes_data(void *context, const void *data, size_t len)
{
    const struct bytes *bytes = context;

    return write_all(bytes->fd, data, len);
}

int cp_pull_bytes(struct cp *cp, struct tree_pull *pull, int fd)
{
    static const struct cp_taker taker = { bytes_entry, bytes_data };
    struct bytes bytes = { .fd = fd };
    struct holt_error error = { .code = "" };
    int r;

    (void)signal(SIGPIPE, SIG_IGN); /* EPIPE is the exit status instead */
    r = cp_take(cp, pull, &taker, &bytes, &error);
    if (r < 0 && error.code[0])
        return report_holt_error(&error);
    if (r == -EPIPE)
        return STATUS_BROKEN_PIPE;
    return r < 0 ? report("write '%s': %s", cp->to.text, strerror(-r)) : STATUS_OK;
}

/* Returns 0, -EPIPE with error set, or another -errno of standard input. */
static int stdin_push(struct cp *cp, struct tree_push *push, struct holt_error *error)
{
    static char data[CHUNK];

    for (;;) {
        ssize_t n = read(STDIN_FILENO, data, sizeof(data));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            return tree_push_finish(push, error) < 0 ? -EPIPE : 0;
        cp_moved(cp, (size_t)n);
        if (tree_push_data(push, data, (size_t)n, error) < 0)
            return -EPIPE;
    }
}

int cp_push_bytes(struct cp *cp, struct tree_push *push)
{
    struct file_entry entry = { .path = cp->name,
                                .type = ENTRY_FILE,
                                .mode = 0644,
                                .mtime_s = time(NULL),
                                .target = "",
                                .same_as = "" };
    struct holt_error error;
    int r = tree_push_entry(push, &entry, &error) < 0 ? -EPIPE : stdin_push(cp, push, &error);

    if (r == -EPIPE)
        return report_holt_error(&error);
    return r < 0 ? report("read standard input: %s", strerror(-r)) : STATUS_OK;
}
