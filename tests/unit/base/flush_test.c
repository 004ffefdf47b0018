// SPDX-License-Identifier: Apache-2.0
/* One flush covers the writes of all threads that wait for it. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/flush.h"
#include "base/thread.h"
#include "check.h"

enum { THREADS = 8, ROUNDS = 200 };

static struct flush flush;
static int fd;
static atomic_int failures;

static void write_often(void *argument)
{
    (void)argument;
    for (int i = 0; i < ROUNDS; i++) {
        if (write(fd, "x", 1) != 1 || flush_wait(&flush, fd, flush_count_write(&flush)) < 0)
            atomic_fetch_add(&failures, 1);
    }
}

static void every_write_is_flushed(void)
{
    struct thread threads[THREADS];
    FILE *file = tmpfile();

    CHECK(file);
    fd = fileno(file);
    flush_init(&flush);
    for (int i = 0; i < THREADS; i++)
        CHECK(thread_start(&threads[i], "writer", write_often, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        thread_join(&threads[i]);
    CHECK(atomic_load(&failures) == 0);
    CHECK(flush.written == (uint64_t)THREADS * ROUNDS && flush.flushed == flush.written);
    CHECK(flush_last_write(&flush) == flush.written);
    flush_destroy(&flush);
    (void)fclose(file);
}

/* The kernel reports a failed write once. A second flush succeeds although the data is lost, so it
 * must not be taken for a proof. */
static void a_failed_flush_stays_failed_for_its_writes(void)
{
    cleanup_close int good_fd = open("/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    uint64_t first, second;

    CHECK(good_fd >= 0);
    flush_init(&flush);
    first = flush_count_write(&flush);
    CHECK(flush_wait(&flush, -1, first) == -EBADF);
    CHECK(flush_wait(&flush, good_fd, first) == -EBADF);
    second = flush_count_write(&flush);
    CHECK(flush_wait(&flush, good_fd, second) == 0);
    CHECK(flush_wait(&flush, good_fd, first) == -EBADF);
    flush_destroy(&flush);
}

int main(void)
{
    RUN(every_write_is_flushed);
    RUN(a_failed_flush_stays_failed_for_its_writes);
    return 0;
}
