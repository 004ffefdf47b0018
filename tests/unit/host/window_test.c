// SPDX-License-Identifier: Apache-2.0
/* Tests that windows and spools have the same bytes at the same offsets, whatever was dropped. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "check.h"
#include "host/process/spool.h"
#include "host/process/window.h"

enum { MAX = 4096, HALF = 1000, DATA = 20000 };

static unsigned char byte_at(uint64_t offset)
{
    return (unsigned char)(offset * 2654435761U >> 13);
}

static void fill(char *data, uint64_t offset, size_t len)
{
    for (size_t i = 0; i < len; i++)
        data[i] = (char)byte_at(offset + i);
}

static void check_bytes(const char *data, uint64_t offset, size_t len)
{
    for (size_t i = 0; i < len; i++)
        CHECK((unsigned char)data[i] == byte_at(offset + i), "(offset %zu)", (size_t)offset + i);
}

static void check_window(const struct window *window)
{
    static char data[DATA];

    for (uint64_t at = window->start; at <= window->end; at += 37) {
        size_t len = window_copy(window, at, data, sizeof(data));

        CHECK(len == window->end - at);
        check_bytes(data, at, len);
    }
}

static void a_window_has_the_latest_bytes(void)
{
    static const size_t sizes[] = { 1, 0, 700, 1024, 1, 3000, 4096, 17, 9000, 4095, 2 };
    static const uint64_t starts[] = { 0, 5, MAX, MAX - 1, UINT64_C(1) << 40 };
    static char data[DATA];

    for (size_t i = 0; i < ARRAY_SIZE(starts); i++) {
        struct window window;

        window_init(&window, MAX, starts[i]);
        for (size_t j = 0; j < 3 * ARRAY_SIZE(sizes); j++) {
            size_t len = sizes[j % ARRAY_SIZE(sizes)];
            uint64_t before = window.start, end = window.end + len;

            fill(data, window.end, len);
            CHECK(window_add(&window, data, len) == 0);
            CHECK(window.end == end && window.end - window.start <= MAX);
            CHECK(window.start == before || window.end - window.start == MAX);
            check_window(&window);
        }
        window_done(&window);
    }
}

static void what_is_trimmed_is_still_there(void)
{
    struct window window;
    char data[100];

    window_init(&window, MAX, 12345);
    fill(data, 12345, sizeof(data));
    CHECK(window_add(&window, data, sizeof(data)) == 0);
    window_trim(&window);
    CHECK(window.capacity == sizeof(data));
    check_window(&window);
    fill(data, 12445, sizeof(data));
    CHECK(window_add(&window, data, sizeof(data)) == 0);
    CHECK(window.start == 12345);
    check_window(&window);
    CHECK(window_has_room(&window, window.capacity - 200) &&
          !window_has_room(&window, window.capacity - 199));
    window_forget(&window, 12445);
    CHECK(window.start == 12445 && window_has_room(&window, window.capacity - 100));
    check_window(&window);
    window_forget(&window, 12400);
    CHECK(window.start == 12445);
    window_drop(&window);
    CHECK(window.start == 12545 && window.end == 12545 && !window.data);
    window_trim(&window);
    window_done(&window);
}

/* --- spools ---------------------------------------------------------------------------------- */

static char dir[] = "/tmp/holt-spool-test-XXXXXX";
static int dir_fd;

static void put(struct spool *spool, size_t len)
{
    static char data[DATA];

    fill(data, spool->end, len);
    spool_reserve(spool, len);
    CHECK(spool_write(spool, spool->end, data, len) == 0);
    spool->end += len;
}

/* Checks every byte that spool_has reports. */
static void check_spool(const struct spool *spool)
{
    static char data[DATA];
    uint64_t at = 0, missing = 0;

    while (at < spool->end) {
        ssize_t n;

        if (!spool_has(spool, at)) {
            missing++, at++;
            continue;
        }
        n = spool_read(spool, at, spool->end, data, sizeof(data));
        CHECK(n > 0 && spool_has(spool, at + (uint64_t)n - 1));
        check_bytes(data, at, (size_t)n);
        at += (uint64_t)n;
    }
    CHECK(at == spool->end && missing == spool_tail_start(spool) - spool_head_end(spool));
    CHECK(missing == (spool->end > 2 * HALF ? spool->end - 2 * HALF : 0), "(%zu missing of %zu)",
          (size_t)missing, (size_t)spool->end);
}

static void a_spool_has_the_beginning_and_the_latest(void)
{
    static const size_t sizes[] = { 1, 600, 399, 1, 998, 1, 1, 500, 700, 999, 1000, 3, 1000, 250 };
    struct spool spool, again;

    spool_init(&spool, 2 * HALF);
    CHECK(!spool_has(&spool, 0) && spool_head_end(&spool) == 0 && spool_tail_start(&spool) == 0);
    CHECK(spool_create(&spool, dir_fd, "a") == 0);
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        put(&spool, sizes[i]);
        check_spool(&spool);
        spool_init(&again, 2 * HALF);
        CHECK(spool_reopen(&again, dir_fd, "a", spool.end, 0) == 0);
        check_spool(&again);
        spool_done(&again);
    }
    spool_done(&spool);
}

/* Bytes that may have been overwritten do not count as valid. */
static void a_spool_that_may_be_ahead_promises_less(void)
{
    struct spool spool;

    spool_init(&spool, 2 * HALF);
    CHECK(spool_create(&spool, dir_fd, "b") == 0);
    put(&spool, HALF);
    put(&spool, HALF);
    put(&spool, 300);
    spool_done(&spool);
    spool_init(&spool, 2 * HALF);
    CHECK(spool_reopen(&spool, dir_fd, "b", 2 * HALF + 100, 200) == 0);
    CHECK(spool_tail_start(&spool) == HALF + 300);
    put(&spool, 200);
    CHECK(spool_tail_start(&spool) == HALF + 300);
    check_spool(&spool);
    spool_done(&spool);
    CHECK(spool_reopen(&spool, dir_fd, "nosuch", 5, 0) == -ENOENT);
}

static void a_file_alone_tells_how_far_it_came(void)
{
    struct spool spool;

    spool_init(&spool, 2 * HALF);
    CHECK(spool_create(&spool, dir_fd, "c") == 0);
    put(&spool, 1700 - HALF);
    put(&spool, HALF);
    spool_done(&spool);
    spool_init(&spool, 2 * HALF);
    CHECK(spool_recover(&spool, dir_fd, "c") == 0 && spool.end == 1700);
    check_spool(&spool);
    put(&spool, HALF);
    spool_done(&spool);
    spool_init(&spool, 2 * HALF);
    CHECK(spool_recover(&spool, dir_fd, "c") == 0 && spool.end == HALF, "(it wrapped)");
    check_spool(&spool);
    spool_done(&spool);
    CHECK(spool_recover(&spool, dir_fd, "nosuch") == -ENOENT);
}

static void all(void)
{
    static const char *const files[] = { "a", "b", "c" };

    RUN(a_window_has_the_latest_bytes);
    RUN(what_is_trimmed_is_still_there);
    CHECK(mkdtemp(dir));
    dir_fd = open(dir, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    CHECK(dir_fd >= 0);
    RUN(a_spool_has_the_beginning_and_the_latest);
    RUN(a_spool_that_may_be_ahead_promises_less);
    RUN(a_file_alone_tells_how_far_it_came);
    for (size_t i = 0; i < ARRAY_SIZE(files); i++)
        CHECK(unlinkat(dir_fd, files[i], 0) == 0 || errno == ENOENT);
    (void)close(dir_fd);
    CHECK(rmdir(dir) == 0);
}

int main(void)
{
    RUN(all);
    return 0;
}
