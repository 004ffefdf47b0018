// SPDX-License-Identifier: Apache-2.0
#include "cli/run_input.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "cli/run_target.h"
#include "holt.h"

enum { INPUT_SIZE = 64 * 1024 };

/* The thread's own copy, since the program may be on its way out while the thread still runs. */
struct input {
    char *host;
    struct run_target target;
};

static void input_free(struct input *input)
{
    run_target_done(&input->target);
    free(input->host);
    free(input);
}

/* A call returns when the sandbox has room for more, so a slow process slows the reading. Any error
 * means that the process takes no more input: it is gone or has closed its stdin, and what became
 * of it is told by the stream of its output. */
static void *input_main(void *argument)
{
    struct input *input = argument;
    char data[INPUT_SIZE];
    struct holt_error ignored;
    ssize_t n;

    do {
        n = read(STDIN_FILENO, data, sizeof(data));
        if (n < 0 && errno == EINTR)
            continue;
        if (run_target_send(&input->target, data, n > 0 ? (size_t)n : 0, n <= 0, &ignored) < 0)
            break;
    } while (n > 0);
    input_free(input);
    return NULL;
}

int run_input_start(const struct run_target *target)
{
    struct input *input = xcalloc(1, sizeof(*input));
    pthread_t thread;
    int r;

    input->host = xstrdup(target->host);
    input->target = (struct run_target){
        .host = input->host,
        .sandbox_id = xstrdup(target->sandbox_id),
        .process_id = xstrdup(target->process_id),
    };
    r = pthread_create(&thread, NULL, input_main, input);
    if (r != 0) {
        input_free(input);
        return -r;
    }
    (void)pthread_detach(thread);
    return 0;
}
